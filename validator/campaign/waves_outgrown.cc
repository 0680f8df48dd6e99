// Waves of numbers that outgrow their formats as they were seen to grow (outgrown.h): shapes that show how, and those at which
// they have.
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/sums.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

// How numbers grow shows at shapes whose axes are far apart, each beside others; a program of which small cases are dear has
// run at too few.
std::vector<Task> Campaign::Growing() {
  // By estimates that are many times too much where a grid costs most of it.
  const auto budget = static_cast<double>(trial_.effort.campaign_steps);
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes == 0 || only_slices_) return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "growing");
  double total = 0;
  for (const ops::AxisValues& axes : outgrowing_.Wanting()) {
    const double steps = WholeStepsFor(axes);
    if (cases::TotalElements(trial_.instance, axes) > trial_.effort.whole_elements ||
        steps > budget / 2 || total + steps > 2 * budget)
      continue;
    total += steps;
    planned.push_back(TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), axes,
                                              seed + planned.size(), "growing"),
                              "growing"));
    // How large numbers become hangs on no schedule.
    planned.back().wants.determinism = false;
    planned.back().probe.ends_only = false;
    planned.back().sure = true;
  }
  return planned;
}

// Where numbers have outgrown their formats that were seen to grow, and nothing has run yet.
std::vector<Task> Campaign::Outgrown() {
  constexpr std::size_t kMost = 6;
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes == 0) return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "outgrown");
  std::set<ops::AxisValues> known;
  for (const Outgrowing::Outgrown& outgrown : outgrowing_.Find()) {
    if (outgrowing_.IsSeen(outgrown) || known.size() >= kMost ||
        !known.insert(outgrown.axes).second)
      continue;
    const bool too_long = RunsWhole(outgrown.axes) &&
                          WholeStepsFor(outgrown.axes) > static_cast<double>(kMostLimitSteps);
    Task task = too_long ? EndsOf(outgrown.axes, "huge", seed + known.size())
                         : PartOf(outgrown.axes, "huge", seed + known.size());
    // What wraps is not to find the same values where it comes to.
    if (auto unlike = OfUnlikePages(task)) task = *std::move(unlike);
    task.wants.part_steps = kMostLimitSteps;
    planned.push_back(std::move(task));
    // What has a buffer's bytes come round to none may need several turns to show.
    if (const ops::AxisValues longer = WithOthersLong(outgrown); longer != outgrown.axes) {
      planned.push_back(PartOf(longer, "huge", seed + 200 + known.size()));
      planned.back().wants.part_steps = kMostLimitSteps / 4;
    }
    if (!too_long) continue;
    if (auto sums = SumsOf(outgrown.axes, "huge", seed + 100 + known.size())) {
      sums->wants.part_steps = kMostLimitSteps;
      planned.push_back(*std::move(sums));
    }
  }
  return planned;
}

// The other axes as long as is affordable beside that, by halves of what they may be.
ops::AxisValues Campaign::WithOthersLong(const Outgrowing::Outgrown& outgrown) const {
  constexpr std::int64_t kMostElements = 1 << 26;
  ops::AxisValues best = outgrown.axes;
  ops::AxisValues pinned;
  for (const std::string& axis : outgrown.along) pinned[axis] = outgrown.axes.at(axis);
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || pinned.contains(axis.name)) continue;
    for (std::int64_t length = axis.max; length > best.at(axis.name); length /= 2) {
      pinned[axis.name] = length;
      const auto solved = cases::SolveAxes(trial_.instance.op, pinned, best);
      if (!solved || cases::TotalElements(trial_.instance, *solved) > kMostElements) continue;
      best = *solved;
      break;
    }
    pinned[axis.name] = best.at(axis.name);
  }
  return best;
}

}  // namespace assay::campaign
