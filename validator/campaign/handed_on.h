// What the blocks of all launches but the last hand on: which of them write what, and what they take.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "validator/campaign/producers.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {

/// By launch, but for the last, as far as blocks end. Not all followed: no producers.
struct Runner::HandedOn {
  std::vector<Producers> producers;
  std::vector<std::uint64_t> block_steps;  ///< The most that one of the sample blocks took.
  std::vector<std::uint64_t> whole_steps;  ///< All of its blocks, if they take as much on average.
  std::uint64_t skeleton_steps = 0;        ///< The same of their skeleton.
  std::uint64_t StepsOfAll() const { return std::reduce(whole_steps.begin(), whole_steps.end()); }

  std::uint64_t unending = 0;  ///< What a block took that did not end; 0: all that were tried did.
};

/// What a block that ran alone, over garbage, wrote of buffers that start as nothing.
std::vector<BufferRange> WrittenBytes(const engine::Binding& binding, const Report& report);

}  // namespace assay::campaign
