// Reach: cases with outcomes of the candidate's decisions that no case has had, alone or in pairs.
//
// A kernel that is wrong for `hidden % 37 == 36 && tokens > 5`, past 65535 blocks, or where a partial
// chunk follows a whole one, is wrong where two of its decisions (decisions.h) come out in a certain
// way. So shapes are searched for at which decisions change sides (bisection along each axis, and a
// walk along small extents for what repeats), combined with each other and with small steps, and
// picked by how much they show that is new: first outcomes of single decisions, then of pairs, the
// cheap ones before the costly ones (a covering array, chosen greedily). What compares elements of an
// input is aimed at with values that solve it, likewise.
//
// Deterministic. Cost: bounded by the sizes of its lists, some 0.1 s for a hundred decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validator/campaign/decisions.h"
#include "validator/cases/case.h"

namespace assay::campaign {

struct ReachRequest {
  std::vector<ops::AxisValues> tried;  ///< Shapes that ran whole.
  /// Lines of branches of which one side has not run: what decides them comes first.
  std::set<std::uint32_t> half_reached;
  /// Steps that a case at a shape will take.
  std::function<double(const ops::AxisValues&)> cost;
  /// Steps that what runs of a case beyond the budget will take: its ends, or all of it.
  std::function<double(const ops::AxisValues&)> part_cost;
  std::int64_t max_elements = 1 << 18;
  double steps = 0;       ///< For all of them together,
  double pair_steps = 0;  ///< and for those that show pairs alone.
  std::size_t shapes = 0;
  std::size_t values = 0;  ///< Cases that aim inputs.
  std::uint64_t seed = 0;
  /// TurnsOf the decisions, where they are known already.
  std::optional<std::vector<ops::AxisValues>> turns = std::nullopt;
};

struct ReachedCases {
  std::vector<cases::Case> cases;
  /// Outcomes of decisions that only shapes beyond the budget have, of the plan's first: for slices, or their ends.
  std::vector<ops::AxisValues> too_large;
  /// Shapes beyond the budget at which outcomes come together that came together in nothing within it: for slices,
  /// and, where those take too long, for where they write.
  std::vector<ops::AxisValues> together, written_together;
  /// Where numbers outgrow their formats, which nothing within the budget shows: the smallest shapes.
  std::vector<ops::AxisValues> past_limits;
};

ReachedCases CasesThatReach(const ops::Instance& instance, const Decisions& decisions,
                            const ReachRequest& request);

}  // namespace assay::campaign
