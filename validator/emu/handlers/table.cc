#include "validator/emu/handlers/table.h"

#include "validator/emu/handlers/levels.h"

namespace assay::emu {

Signature SignatureOf(const ptx::Instruction& instruction) {
  Signature signature;
  signature.opcode = instruction.opcode;
  std::size_t count = 0;
  for (const Type type : instruction.types) {
    if (count == std::size(signature.types.type)) {
      signature.beyond = true;
      break;
    }
    signature.types.type[count++] = type;
  }
  for (const Mod mod : instruction.mods) {
    if (mod == Mod::kRn) continue;
    if (static_cast<unsigned>(mod) >= 128) signature.beyond = true;
    signature.mods = signature.mods | SetOf(mod);
  }
  return signature;
}

Handler FindHandler(const HandlerRow* rows, std::size_t count, const Signature& signature,
                    const ptx::Instruction& instruction, Decoded& decoded) {
  if (signature.beyond) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const HandlerRow& row = rows[i];
    if (row.opcode != signature.opcode || row.types != signature.types ||
        row.mods != signature.mods)
      continue;
    if (row.handler.sources >= 0 &&
        instruction.operands.size() != 1 + static_cast<std::size_t>(row.handler.sources)) {
      continue;
    }
    if (row.prepare != nullptr && !row.prepare(instruction, decoded)) continue;
    return row.handler.run;
  }
  return nullptr;
}

Handler FindHandler(const HandlerRow* rows, std::size_t count, const ptx::Instruction& instruction,
                    Decoded& decoded) {
  return FindHandler(rows, count, SignatureOf(instruction), instruction, decoded);
}

std::size_t OperandCount(const ptx::Instruction& instruction) {
  return instruction.operands.size();
}

bool ImmediateOperand(const ptx::Instruction& instruction, std::size_t index, std::uint64_t& bits) {
  if (index >= instruction.operands.size()) return false;
  const ptx::Operand& operand = instruction.operands[index];
  if (operand.kind != ptx::Operand::Kind::kImmediate) return false;
  bits = operand.bits;
  return true;
}

bool HasMod(const ptx::Instruction& instruction, Mod mod) { return instruction.Has(mod); }

Type TypeAt(const ptx::Instruction& instruction, std::size_t index) {
  return instruction.type(index);
}

VectorOperands VectorOperandsOf(const ptx::Instruction& instruction) {
  VectorOperands vectors;
  if (instruction.operands.size() != 2) return vectors;
  const auto elements = [](const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kVector ? operand.elements.size() : 0;
  };
  vectors.destination = elements(instruction.operands[0]);
  vectors.source = elements(instruction.operands[1]);
  vectors.any = vectors.destination + vectors.source != 0;
  vectors.type_bytes = ptx::BitsOf(instruction.type()) / 8;
  return vectors;
}

}  // namespace assay::emu
