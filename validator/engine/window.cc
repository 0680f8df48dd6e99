#include "validator/engine/window.h"

#include <set>

namespace assay::engine {
namespace {

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

}  // namespace

bool MayCut(const Execution& execution, const facts::Facts* program, std::size_t number) {
  const Launch& launch = execution.launches[number];
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (launch.cooperative || cluster > 1 || MayBe(facts::BlocksDepend(program, launch.entry)))
    return false;
  std::set<std::uint32_t> touched;
  for (const Argument& argument : launch.args) {
    if (argument.kind == Argument::Kind::kBuffer &&
        execution.buffers[argument.buffer].role != BufferRole::kInput)
      touched.insert(argument.buffer);
  }
  for (std::size_t later = number + 1; later < execution.launches.size(); ++later) {
    for (const Argument& argument : execution.launches[later].args) {
      if (argument.kind == Argument::Kind::kBuffer && touched.contains(argument.buffer))
        return false;
    }
  }
  return true;
}

bool CutToEnds(Execution& execution, const facts::Facts* program) {
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) > kWholeGrid && !MayCut(execution, program, i)) return false;
  }
  for (Launch& launch : execution.launches) {
    if (const std::uint64_t blocks = Blocks(launch); blocks > kWholeGrid)
      launch.only = {{0, 1}, {blocks - 2, 2}};
  }
  return true;
}

}  // namespace assay::engine
