#include "validator/engine/window.h"

#include <set>

namespace assay::engine {
namespace {

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

}  // namespace

Cut MayCut(const Execution& execution, const facts::Facts* program, std::size_t number) {
  const Launch& launch = execution.launches[number];
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (launch.cooperative || cluster > 1 || MayBe(facts::BlocksDepend(program, launch.entry)))
    return Cut::kRefused;
  std::set<std::uint32_t> touched;
  for (const Argument& argument : launch.args) {
    if (argument.kind == Argument::Kind::kBuffer &&
        execution.buffers[argument.buffer].role != BufferRole::kInput)
      touched.insert(argument.buffer);
  }
  Cut cut = Cut::kIndependent;
  for (std::size_t later = number + 1; later < execution.launches.size(); ++later) {
    for (const Argument& argument : execution.launches[later].args) {
      if (argument.kind != Argument::Kind::kBuffer || !touched.contains(argument.buffer)) continue;
      if (execution.buffers[argument.buffer].fill != BufferFill::kUninitialised)
        return Cut::kRefused;
      cut = Cut::kHandedOn;
    }
  }
  return cut;
}

Cut CutToEnds(Execution& execution, const facts::Facts* program, bool last_block_only) {
  constexpr std::uint64_t kFew = 16;
  const std::uint64_t whole = last_block_only ? kFew : kWholeGrid;
  Cut cut = Cut::kIndependent;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) <= whole) continue;
    const Cut one = MayCut(execution, program, i);
    if (one == Cut::kRefused) return one;
    if (one == Cut::kHandedOn) cut = one;
  }
  for (Launch& launch : execution.launches) {
    const std::uint64_t blocks = Blocks(launch);
    if (blocks <= whole) continue;
    if (last_block_only) {
      launch.only = {{blocks - 1, 1}};
    } else {
      launch.only = {{0, 1}, {blocks - 2, 2}};
    }
  }
  return cut;
}

}  // namespace assay::engine
