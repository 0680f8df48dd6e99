// A wave of shapes that are too large for the program itself: where it writes, as its skeleton says (places.cc).
#include <iterator>
#include <set>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

// Of each axis the longest case that was left out, where none that ran is as long.
std::vector<Task> Campaign::Places() {
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes == 0) return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "places");
  std::set<ops::AxisValues> known;
  for (const auto& [name, axes] : harvest_.left_out_at) {
    const auto seen = harvest_.known_ends.find(name);
    if (seen != harvest_.known_ends.end() && seen->second >= axes.at(name)) continue;
    if (!known.insert(axes).second) continue;
    const bool zeros_between = NeedsZerosBetween(trial_.instance.op) &&
                               cases::TotalElements(trial_.instance, axes) > kMostMade;
    Task task = zeros_between ? EndsOf(axes, "places", seed + planned.size())
                              : SliceOf(axes, "places", seed + planned.size());
    task.probe.places_only = true;
    std::ranges::move(WithEachFlag(std::move(task)), std::back_inserter(planned));
  }
  return planned;
}

}  // namespace assay::campaign
