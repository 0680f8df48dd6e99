#include "validator/emu/resolver.h"

#include <array>

#include "validator/emu/handlers/rows.h"
#include "validator/emu/program.h"
#include "validator/emu/watch/selections.h"
#include "validator/ptx/names.h"

namespace assay::emu {
namespace {

using Table = std::array<Resolver, ptx::kOpcodeCount>;

Table BuildTable() {
  constexpr std::span<const ResolverRow> (*kFamilies[])() = {
      MatrixRows, MemoryRows,  AtomicRows,    WarpRows,     BarrierRows,
      FenceRows,  ControlRows, AsyncCopyRows, MbarrierRows, FragmentRows};
  Table table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = LaneResolver(ptx::FamilyOf(static_cast<ptx::Opcode>(i)));
  for (const auto rows : kFamilies) {
    for (const ResolverRow& row : rows()) table[static_cast<std::size_t>(row.opcode)] = row.resolve;
  }
  return table;
}

}  // namespace

bool Resolve(const ptx::Instruction& instruction, Decoded& decoded) {
  static const Table table = BuildTable();
  const Resolver resolver = table[static_cast<std::size_t>(instruction.opcode)];
  if (resolver == nullptr) return false;
  decoded.propagate = kPropagateByRule;
  decoded.run = resolver(instruction, decoded);
  if (decoded.monitored == nullptr) decoded.monitored = decoded.run;
  if (decoded.run != nullptr && decoded.rules.operation == ptx::Operation::kSelect)
    decoded.monitored = &NoteSelection;
  return decoded.run != nullptr;
}

}  // namespace assay::emu
