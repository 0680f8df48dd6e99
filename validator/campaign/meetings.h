// Which blocks of a launch, or tickets of its queue, meet in memory that is zero before it (meetings.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "validator/campaign/producers.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {

/// Of a shape, by the marks that those leave which run alone.
struct Runner::Meetings {
  std::optional<Producers> marks;  ///< Nothing: they do not move evenly.
  bool are_shares = false;         ///< They do not, and all blocks leave some: neighbours may meet.
  bool are_apart = false;          ///< None leaves any, but where all do.
  bool all_meet = false;           ///< All blocks leave one at some place, which is none of these.
  bool is_wrong = false;           ///< One that ran by itself did what none may.
  bool ended = true;               ///< Those that ran did so within what they were given.
  std::uint64_t block_steps = 0;   ///< The most that one of the blocks took,
  std::uint64_t steps = 0;         ///< and what all that ran took.
  /// Blocks that leave other marks than they should, by that.
  std::vector<std::pair<std::uint64_t, std::vector<BufferRange>>> odd;
};

/// Where something else than zero stands now in what was zero.
std::vector<BufferRange> Marks(const engine::Binding& binding, const Report& report);

}  // namespace assay::campaign
