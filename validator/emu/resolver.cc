#include "validator/emu/resolver.h"

#include "validator/emu/handlers/rows.h"
#include "validator/emu/program.h"

namespace assay::emu {
namespace {

constexpr std::span<const ResolverRow> (*kTables[])() = {
    IntegerRows, ArithmeticRows, MoveRows,     CompareRows, FloatRows,   ConvertRows,
    MatrixRows,  MemoryRows,     AtomicRows,   WarpRows,    BarrierRows, FenceRows,
    ControlRows, AsyncCopyRows,  MbarrierRows, FragmentRows};

/// Handlers of matrix products know lanes and registers only; that the warp comes together for them
/// is the core's part.
bool IsMatrixProduct(ptx::Opcode opcode) {
  return opcode == ptx::Opcode::kMma || opcode == ptx::Opcode::kWmmaMma ||
         opcode == ptx::Opcode::kMovmatrix;
}

}  // namespace

ResolverTable::ResolverTable() {
  for (const auto table : kTables) {
    for (const ResolverRow& row : table())
      resolvers_[static_cast<std::size_t>(row.opcode)] = row.resolve;
  }
}

bool ResolverTable::Resolve(const ptx::Instruction& instruction, Decoded& decoded) const {
  const Resolver resolver = resolvers_[static_cast<std::size_t>(instruction.opcode)];
  if (resolver == nullptr) return false;
  decoded.propagate = kPropagateByRule;
  decoded.run = resolver(instruction, decoded);
  if (decoded.monitored == nullptr) decoded.monitored = decoded.run;
  if (IsMatrixProduct(instruction.opcode)) decoded.flags |= kFlagControl | kFlagWarpWide;
  return decoded.run != nullptr;
}

}  // namespace assay::emu
