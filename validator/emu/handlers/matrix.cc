// Handlers of mma, wmma.mma and movmatrix (PTX ISA 9.7.14).
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/mma.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu {
namespace {

using enum Type;
using M = Mod;

/// movmatrix.sync.aligned.m8n8.trans.b16: lane l holds row l/4, columns 2(l%4) and 2(l%4)+1 of an 8
/// by 8 matrix of 16-bit values.
void Movmatrix(Warp& warp, const Decoded& op) {
  const auto* const a = warp.Lanes<std::uint16_t>(op.operands[1].slot);
  std::uint16_t transposed[64];
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column)
      transposed[column * 8 + row] = a[row * 8 + column];
  }
  auto* const d = warp.Lanes<std::uint16_t>(op.operands[0].slot);
  for (std::size_t i = 0; i < 64; ++i) {
    if ((warp.exec >> (i / 2) & 1) != 0) d[i] = transposed[i];
  }
}

}  // namespace

Handler ResolveMatrix(const ptx::Instruction& instruction, Decoded& decoded) {
  if (instruction.opcode != Opcode::kMovmatrix) return ResolveMma(instruction, decoded);
  if (instruction.operands.size() == 2 && instruction.type() == kB16 && instruction.Has(M::kM8n8) &&
      instruction.Has(M::kTrans)) {
    return Movmatrix;
  }
  return nullptr;
}

}  // namespace assay::emu
