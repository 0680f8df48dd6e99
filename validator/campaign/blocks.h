// Which blocks of a launch run where not all of them can: for slices of a case (slices.cc) and for the
// ends of a huge one (ends.cc).
//
// The last element of an output is written by the last block, or, where the blocks of a capped grid go
// over an output in turns, by any other. Which one is guessed, from what a block wrote and from the
// launch plan: a wrong guess costs a block, and whether the end was written is seen in any case.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ops/launch_plan.h"
#include "validator/execution/execution.h"

namespace assay::campaign {

std::uint64_t Blocks(const Launch& launch);
/// Those of them that run.
std::uint64_t BlocksThatRun(const Launch& launch);

/// Threads of a block, and those of them that run.
std::uint64_t Threads(const Launch& launch);
std::uint64_t ThreadsThatRun(const Launch& launch);

/// Elements that are read at once, at the most.
inline constexpr std::int64_t kVector = 8;
/// However many are asked for, no more are chosen, but for all of them.
inline constexpr std::uint64_t kMostChosen = 288;
/// About `count` blocks of `all`: the first and the last ones, and runs of neighbours between them, drawn
/// by `seed`. None: all of them.
std::vector<BlockRange> ChooseBlocks(std::uint64_t all, std::uint64_t count, std::uint64_t seed);

/// The same blocks of `all` and `more`, ascending.
std::vector<BlockRange> WithBlocks(std::vector<BlockRange> chosen,
                                   const std::set<std::uint64_t>& more, std::uint64_t all);

/// The block that writes the last of `elements`, where some blocks of a grid of `all`, of which `first`
/// is the first, wrote `written`: if each block takes as many neighbours, one block after the other,
/// and then all of them step over the whole grid. Nothing where it does not look so.
std::optional<std::uint64_t> WriterOfTheEnd(const std::vector<std::int64_t>& written,
                                            std::int64_t elements, std::uint64_t first,
                                            std::uint64_t all);

/// The blocks that come to the last of what a plan deals out to the blocks of a capped grid in turns:
/// both numbers are operands of the minimum in its expression.
std::set<std::uint64_t> LastOfTurns(const ops::LaunchPlan& plan, const ops::AxisValues& axes);

/// Blocks of a kernel of a plan at a shape; 0 where it is not launched, and 2^64 - 1 where they are more.
std::uint64_t BlocksOf(const ops::OpSpec& op, const ops::KernelPlan& kernel,
                       const ops::AxisValues& axes);
/// Has it any?
bool HasBlocks(const ops::OpSpec& op, const ops::KernelPlan& kernel, const ops::AxisValues& axes);
/// The same of all of them: many a plan chooses among kernels by lengths.
std::vector<bool> PathAt(const ops::OpSpec& op, const ops::LaunchPlan& plan,
                         const ops::AxisValues& axes);

}  // namespace assay::campaign
