// Cases for masks: what each row of results sees of a long axis ends somewhere, and the last that it sees outweighs all
// before.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

constexpr std::string_view kRising = "rising";

/// The float inputs that are matrices whose rows are places of the axis.
std::vector<const ops::TensorSpec*> MatricesOver(const ops::Instance& instance,
                                                 std::string_view axis) {
  std::vector<const ops::TensorSpec*> matrices;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (!cases::IsOf(cases::InputClass::kFloat, instance, spec)) continue;
    const auto dimension = ops::DimensionOf(spec, axis);
    if (dimension && *dimension + 2 == spec.shape.size()) matrices.push_back(&spec);
  }
  return matrices;
}

}  // namespace

// Of thousands of ordinary values one more or less is below what narrow results round away, wherever a mask ends. So
// scores grow along the axis: what a query sees last is most of what it gets. Scalars that may be zero are, for a cap makes
// all large scores alike. Rows are short, for large tensors take no values that hang on places.
std::vector<Task> Campaign::RisingAlong(const ops::Axis& axis, const ops::AxisValues& pinned,
                                        const std::string& purpose, std::uint64_t seed) const {
  constexpr std::array<std::int64_t, 3> kColumns = {4, 2, 1};
  const ops::OpSpec& op = trial_.instance.op;
  const auto matrices = MatricesOver(trial_.instance, axis.name);
  if (matrices.empty()) return {};
  for (const std::int64_t columns : kColumns) {
    ops::AxisValues beside;
    for (const ops::Axis& other : op.axes) beside[other.name] = other.min;
    for (const ops::TensorSpec* const matrix : matrices)
      beside[matrix->shape.back().text()] = columns;
    const auto axes = cases::SolveAxes(op, pinned, beside);
    if (!axes) return {};
    cases::Case value =
        cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes, seed, purpose);
    for (const ops::TensorSpec* const matrix : matrices)
      value.profiles[matrix->name] = {
          .kind = std::string(kRising), .parameters = {}, .literal = {}};
    for (const ops::TensorSpec& spec : op.inputs) {
      if (spec.is_scalar && std::ranges::find(spec.domain.values, 0.0) != spec.domain.values.end())
        value.profiles[spec.name] = {.kind = "literal", .parameters = {}, .literal = {0.0}};
    }
    Task task = TaskFor(std::move(value), purpose);
    const bool rises = std::ranges::all_of(matrices, [&](const ops::TensorSpec* matrix) {
      return task.probe.case_.profiles.at(matrix->name).kind == kRising;
    });
    if (rises) return WithEachFlag(std::move(task));
  }
  return {};
}

// Masks are cut into tiles, and an axis into parts, each of so many places as a constant of the program or of the plan
// says: just past one, as many results as see that far, the first of them a bit into the axis, so that tiles of results lie
// across the ends of parts; and the last few of these, as where a model goes on with what it has.
std::vector<Task> Campaign::MaskedPast(const ProgramConstants& constants) const {
  constexpr std::int64_t kShortest = 64, kPast = 64, kFirstSees = 33, kFew = 48;
  constexpr std::size_t kMost = 2;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 16;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> ends;
  for (const std::int64_t constant : constants.integers) ends.insert(constant);
  for (const std::int64_t constant : cases::ConstantsOf(trial_.plan)) ends.insert(constant);
  std::vector<Task> planned;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || !ops::MayBeReducedOver(op, axis.name)) continue;
    const auto in_step = ops::AxesInStepWith(op, axis.name);
    if (in_step.empty()) continue;
    std::size_t count = 0;
    for (const std::int64_t end : ends) {
      if (end < kShortest || end + kPast > axis.max || count >= kMost) continue;
      const auto plan = [&](std::int64_t places, std::int64_t results) {
        ops::AxisValues pinned;
        for (const std::string& other : in_step) {
          const ops::Axis* const of_results = op.FindAxis(other);
          if (of_results->kind == ops::Axis::Kind::kVariable) pinned[other] = results;
        }
        pinned[axis.name] = places;
        std::vector<Task> tasks =
            RisingAlong(axis, pinned, "aimed", DeriveSeed(trial_.seed, "masked") + planned.size());
        if (tasks.empty()) return false;
        const ops::AxisValues& axes = tasks.front().probe.case_.axes;
        if (cases::TotalElements(trial_.instance, axes) > most_elements ||
            StepsFor(axes) > most_steps)
          return false;
        std::ranges::move(tasks, std::back_inserter(planned));
        return true;
      };
      // The last few results alone: some of them see nothing past the end.
      const bool few = end + kFew / 3 <= axis.max && plan(end + kFew / 3, kFew);
      const bool many = plan(end + kPast, end + kPast - kFirstSees);
      count += few || many ? 1 : 0;
    }
  }
  return planned;
}

}  // namespace assay::campaign
