// Cases in which one index is asked for more often than a program has room for at a time.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

// What has one place gathers its terms in lists, tiles and turns, of as many as a constant says. Just past one and past
// its double, all with one index, so that there is one more turn; values of one sign, of which each turn shows. Beside
// some of all others: what is normalised over one element is nothing.
std::vector<Task> Campaign::HotPast(const ProgramConstants& constants) const {
  constexpr std::int64_t kShortest = 64, kPast = 8, kOthers = 6;
  constexpr std::size_t kMost = 4;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 16;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> lengths;
  const auto add = [&](std::int64_t constant) {
    if (constant < kShortest || constant > most_elements) return;
    for (const std::int64_t times : {1, 2})
      lengths.insert(times * constant / kPast * kPast + kPast);
  };
  std::ranges::for_each(constants.integers, add);
  std::ranges::for_each(cases::ConstantsOf(trial_.plan), add);
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    if (indices.is_scalar || indices.IsGenerated() || indices.shape.empty() ||
        cases::ClassOf(indices, trial_.instance.TypeOf(indices)) != cases::InputClass::kIndex)
      continue;
    const ops::Axis* const along = op.FindAxis(indices.shape.front().text());
    if (along == nullptr || along->kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues some;
    for (const ops::Axis& other : op.axes) some[other.name] = std::max(other.min, kOthers);
    std::size_t count = 0;
    for (const std::int64_t length : lengths) {
      if (count >= kMost) break;
      const auto axes = cases::SolveNear(op, along->name, length, some);
      if (!axes || axes->at(along->name) < length ||
          cases::TotalElements(trial_.instance, *axes) > most_elements ||
          StepsFor(*axes) > most_steps)
        continue;
      cases::Case value = cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                                          DeriveSeed(trial_.seed, "hot") + planned.size(), "aimed");
      value.profiles[indices.name] = {.kind = "all_equal", .parameters = {}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "aimed"));
      ++count;
    }
  }
  return planned;
}

}  // namespace assay::campaign
