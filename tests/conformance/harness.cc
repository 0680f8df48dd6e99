#include "tests/conformance/harness.h"

#include <cstring>
#include <map>
#include <memory>

#include "validator/emu/exec.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/rows.h"
#include "validator/ptx/isa.h"
#include "validator/ptx/parser.h"

namespace assay::conformance {
namespace {

using emu::Decoded;
using emu::DecodedOperand;
using emu::Slot;

/// Every register gets as many slots as the widest needs.
constexpr Slot kSlotsEach = 4;

emu::Handler Resolve(const ptx::Instruction& instruction, Decoded& decoded, int level) {
  if (level >= 0 && ptx::FamilyOf(instruction.opcode) != ptx::Family::kMatrix) {
    return emu::ResolveAtLevel(level, instruction, decoded);
  }
  if (const auto resolve = emu::LaneResolver(ptx::FamilyOf(instruction.opcode)))
    return resolve(instruction, decoded);
  for (const emu::ResolverRow& row : emu::MatrixRows()) {
    if (row.opcode == instruction.opcode) return row.resolve(instruction, decoded);
  }
  return nullptr;
}

/// A straight-line program: the form's instructions, decoded.
class Program {
 public:
  explicit Program(const ptx::Function& function) : function_(function) {
    next_slot_ = static_cast<Slot>(function.registers.size()) * kSlotsEach;
  }

  bool Add(const ptx::Instruction& instruction, int level) {
    operands_.push_back(std::make_unique<std::vector<DecodedOperand>>());
    std::vector<DecodedOperand>& flat = *operands_.back();
    Decoded decoded;
    // Forms without a row (of later chips) have one result, and no constants whose width it says.
    constexpr int kAnyWidth = 64;
    const bool known = instruction.form != 0;
    const std::size_t destinations = known ? ptx::RulesOf(instruction).written() : 1;
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const ptx::Operand& operand = instruction.operands[i];
      const int bits =
          known ? ptx::BitsOf(ptx::RulesOf(instruction)[i], instruction, operand) : kAnyWidth;
      Flatten(operand, bits, flat);
      if (i + 1 == destinations) decoded.destinations = static_cast<std::uint16_t>(flat.size());
    }
    decoded.operands = flat.data();
    decoded.operand_count = static_cast<std::uint16_t>(flat.size());
    decoded.source = &instruction;
    const auto slot = [&](std::size_t i) { return i < flat.size() ? flat[i].slot : emu::kNoSlot; };
    decoded.d = slot(0);
    decoded.a = slot(decoded.destinations);
    decoded.b = slot(decoded.destinations + 1u);
    decoded.c = slot(decoded.destinations + 2u);
    decoded.run = Resolve(instruction, decoded, level);
    code_.push_back(decoded);
    return decoded.run != nullptr;
  }

  void Run(emu::Warp& warp) const {
    for (const auto& [slot, constant] : constants_) {
      std::byte* const lanes = warp.slots + slot * emu::kSlotBytes;
      const std::size_t bytes = constant.bits / 8u;
      for (std::size_t i = 0; i < emu::kWarpSize; ++i)
        std::memcpy(lanes + i * bytes, &constant.value, std::min<std::size_t>(bytes, 8));
    }
    for (const Decoded& decoded : code_) decoded.run(warp, decoded);
  }

  std::size_t slots() const { return next_slot_; }

 private:
  struct Constant {
    std::uint64_t value;
    int bits;
  };

  void Flatten(const ptx::Operand& operand, int bits, std::vector<DecodedOperand>& flat) {
    using Kind = ptx::Operand::Kind;
    if (operand.kind == Kind::kVector) {
      for (const ptx::Operand& element : operand.elements) Flatten(element, bits, flat);
      return;
    }
    DecodedOperand decoded;
    if (operand.kind == Kind::kRegister) {
      const ptx::Type type = function_.registers[operand.reg].type;
      const bool predicate = type == ptx::Type::kPred;
      decoded.kind = predicate ? DecodedOperand::Kind::kPredicate : DecodedOperand::Kind::kSlot;
      decoded.negated = operand.negated;
      decoded.bits = static_cast<std::uint8_t>(predicate ? 1 : std::max(16, ptx::BitsOf(type)));
      decoded.slot = predicate ? operand.reg : operand.reg * kSlotsEach;
    } else if (operand.kind == Kind::kSink) {
      decoded.kind = DecodedOperand::Kind::kSink;
    } else {
      const int width = std::max(bits, 16);
      decoded.kind = DecodedOperand::Kind::kSlot;
      decoded.bits = static_cast<std::uint8_t>(width);
      decoded.slot = next_slot_;
      constants_[next_slot_] = {operand.bits, width};
      next_slot_ += kSlotsEach;
    }
    flat.push_back(decoded);
  }

  const ptx::Function& function_;
  Slot next_slot_ = 0;
  std::vector<std::unique_ptr<std::vector<DecodedOperand>>> operands_;
  std::vector<Decoded> code_;
  std::map<Slot, Constant> constants_;
};

std::size_t RegisterNamed(const ptx::Function& function, const std::string& name) {
  for (std::size_t i = 0; i < function.registers.size(); ++i) {
    if (function.registers[i].name == name) return i;
  }
  CheckFailed("register of the kernel", name);
}

}  // namespace

Result<Outputs> RunForm(const Form& form, const std::vector<std::vector<std::uint64_t>>& inputs,
                        const RunOptions& options) {
  const FormKernel kernel = WriteKernel(form, "form");
  ASSAY_TRY(const ptx::Module module, ptx::Parse(ModuleHeader() + kernel.text, "form.ptx"));
  const ptx::Function& function = module.functions.at(0);

  Outputs outputs;
  Program program(function);
  for (int i = 0; i < kernel.statements; ++i) {
    const auto at = static_cast<std::size_t>(kernel.first_statement + i);
    if (!program.Add(function.body.at(at), options.level)) {
      outputs.uncovered = ptx::Mnemonic(function.body[at].opcode);
      return outputs;
    }
  }
  outputs.covered = true;
  outputs.values.resize(kernel.destination_registers.size());

  const auto location = [&](const std::string& name) {
    const std::size_t reg = RegisterNamed(function, name);
    return std::pair{reg, name[1] == 'p' ? 1 : name[1] == 'h' ? 16 : name[1] == 'r' ? 32 : 64};
  };
  const std::size_t bytes = program.slots() * emu::kSlotBytes;
  const std::unique_ptr<std::byte, decltype(&std::free)> slots(
      static_cast<std::byte*>(std::aligned_alloc(128, bytes)), &std::free);
  std::vector<emu::LaneMask> predicates(function.registers.size());
  for (std::size_t first = 0; first < static_cast<std::size_t>(form.threads);
       first += emu::kWarpSize) {
    std::memset(slots.get(), options.background, bytes);
    predicates.assign(predicates.size(), options.background * 0x01010101u);
    emu::Warp warp;
    warp.slots = slots.get();
    warp.predicates = predicates.data();
    warp.exec = options.exec;
    warp.perturbation.seed = options.seed;
    for (std::size_t r = 0; r < kernel.source_registers.size(); ++r) {
      const auto [reg, bits] = location(kernel.source_registers[r]);
      for (std::size_t lane = 0; lane < emu::kWarpSize; ++lane) {
        const std::uint64_t value = inputs[r][first + lane];
        if (bits == 1) {
          predicates[reg] =
              (predicates[reg] & ~(1u << lane)) | static_cast<emu::LaneMask>(value != 0) << lane;
        } else {
          const auto size = static_cast<std::size_t>(bits / 8);
          std::memcpy(slots.get() + reg * kSlotsEach * emu::kSlotBytes + lane * size, &value, size);
        }
      }
    }
    program.Run(warp);
    for (std::size_t r = 0; r < kernel.destination_registers.size(); ++r) {
      const auto [reg, bits] = location(kernel.destination_registers[r]);
      for (std::size_t lane = 0; lane < emu::kWarpSize; ++lane) {
        std::uint64_t value = 0;
        if (bits == 1) {
          value = predicates[reg] >> lane & 1;
        } else {
          const auto size = static_cast<std::size_t>(bits / 8);
          std::memcpy(&value, slots.get() + reg * kSlotsEach * emu::kSlotBytes + lane * size, size);
        }
        outputs.values[r].push_back(value);
      }
    }
  }
  return outputs;
}

}  // namespace assay::conformance
