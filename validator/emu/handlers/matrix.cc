// Handlers of mma, wmma.mma and movmatrix (PTX ISA 9.7.14).
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/mma.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/program.h"

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

Handler ResolveMovmatrix(const ptx::Instruction& instruction, Decoded&) {
  return instruction.operands.size() == 2 && instruction.type() == kB16 &&
                 instruction.Has(M::kM8n8) && instruction.Has(M::kTrans)
             ? Movmatrix
             : nullptr;
}

/// Handlers of matrix products know lanes and registers only; that the warp comes together for them
/// is the core's part.
template <Resolver kResolve>
Handler WarpWide(const ptx::Instruction& instruction, Decoded& decoded) {
  decoded.flags |= kFlagControl | kFlagWarpWide;
  return kResolve(instruction, decoded);
}

}  // namespace

std::span<const ResolverRow> MatrixRows() {
  static constexpr ResolverRow kRows[] = {{Opcode::kMma, &WarpWide<&ResolveMma>},
                                          {Opcode::kWmmaMma, &WarpWide<&ResolveMma>},
                                          {Opcode::kMovmatrix, &WarpWide<&ResolveMovmatrix>}};
  return kRows;
}

}  // namespace assay::emu
