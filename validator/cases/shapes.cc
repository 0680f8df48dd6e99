#include "validator/cases/shapes.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/rng.h"
#include "validator/cases/case.h"

namespace assay::cases {
namespace {

struct Wanted {
  std::int64_t value;
  std::string_view origin;
};

// Values to try on one axis, in rounds: round r of every axis comes before round r+1 of any.
using Rounds = std::array<std::vector<Wanted>, 6>;

constexpr std::array<std::int64_t, 9> kPrimes = {5, 7, 13, 61, 97, 251, 509, 1021, 2039};

void Around(std::vector<Wanted>& round, std::int64_t value, std::string_view origin) {
  round.push_back({value + 1, origin});
  round.push_back({value, origin});
  if (value > 1) round.push_back({value - 1, origin});
}

Rounds Interesting(const ops::OpSpec& op, const ops::Axis& axis, const ShapeRequest& request) {
  Rounds rounds;
  for (const std::int64_t value : {axis.min, std::int64_t{2}, std::int64_t{1}, std::int64_t{3}}) {
    rounds[0].push_back({value, "edge"});
  }
  Around(rounds[1], 32, "warp");
  for (const std::int64_t constant : request.constants) {
    if (constant < 2 || constant > INT64_MAX / 4) continue;
    Around(rounds[2], constant, "constant");
    if (constant < 4096) rounds[3].push_back({constant * 2 + 1, "constant"});
    if (constant < 4096) rounds[3].push_back({constant * 3 - 1, "constant"});
  }
  for (const std::int64_t power : {64, 128, 256, 512, 1024}) Around(rounds[3], power, "power");
  for (const std::int64_t prime : kPrimes) rounds[4].push_back({prime, "prime"});
  for (const std::int64_t power : {2048, 4096, 8192, 16384}) Around(rounds[5], power, "power");
  for (const ops::Workload& workload : op.workloads) {
    const auto found = workload.axes.find(axis.name);
    if (found != workload.axes.end()) Around(rounds[5], found->second, "workload");
  }
  if (axis.max < INT64_MAX) rounds[5].push_back({axis.max, "edge"});
  for (auto& round : rounds) {
    std::erase_if(round, [&](const Wanted& wanted) {
      return wanted.value < axis.min || wanted.value > axis.max;
    });
  }
  return rounds;
}

class Collector {
 public:
  Collector(const ops::Instance& instance, std::int64_t max_elements)
      : instance_(instance), max_elements_(max_elements) {}

  bool Add(const Result<ops::AxisValues>& axes, std::string_view origin) {
    if (!axes || TotalElements(instance_, *axes) > max_elements_) return false;
    if (!seen_.insert(*axes).second) return false;
    shapes_.push_back({*axes, std::string(origin)});
    return true;
  }
  std::size_t size() const { return shapes_.size(); }
  std::vector<ShapeChoice> Take() { return std::move(shapes_); }

 private:
  const ops::Instance& instance_;
  std::int64_t max_elements_;
  std::set<ops::AxisValues> seen_;
  std::vector<ShapeChoice> shapes_;
};

std::vector<const ops::Axis*> Variables(const ops::OpSpec& op) {
  std::vector<const ops::Axis*> variables;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable) variables.push_back(&axis);
  }
  return variables;
}

// Small values for the axes that are not being tried, different from each other, so that mixing two
// of them up shows.
ops::AxisValues Background(const std::vector<const ops::Axis*>& variables, Rng& rng) {
  constexpr std::array<std::int64_t, 6> kSmall = {2, 3, 5, 7, 4, 9};
  ops::AxisValues values;
  const std::uint64_t start = rng.Below(kSmall.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    values[variables[i]->name] =
        std::clamp(kSmall[(start + i) % kSmall.size()], variables[i]->min, variables[i]->max);
  }
  return values;
}

}  // namespace

Result<std::vector<ShapeChoice>> GenerateShapes(const ops::Instance& instance,
                                                const ShapeRequest& request) {
  const ops::OpSpec& op = instance.op;
  const std::vector<const ops::Axis*> variables = Variables(op);
  Rng rng(DeriveSeed(request.seed, "shapes"));
  Collector collector(instance, request.max_elements);

  // First of all something ordinary, so that a plain mistake is found at once.
  ASSAY_TRY(const ops::AxisValues ordinary, SolveAxes(op, {}, Background(variables, rng)));
  collector.Add(ordinary, "edge");

  std::vector<Rounds> interesting;
  std::size_t longest = 0;
  for (const ops::Axis* axis : variables) {
    interesting.push_back(Interesting(op, *axis, request));
    for (const auto& round : interesting.back()) longest = std::max(longest, round.size());
  }
  // A third of the shapes are workloads and random combinations of interesting values.
  const std::size_t single = request.count - request.count / 3;
  for (std::size_t round = 0; round < Rounds{}.size(); ++round) {
    for (std::size_t i = 0; i < longest; ++i) {
      for (std::size_t a = 0; a < variables.size() && collector.size() < single; ++a) {
        if (i >= interesting[a][round].size()) continue;
        const Wanted& wanted = interesting[a][round][i];
        const auto solved =
            SolveNear(op, variables[a]->name, wanted.value, Background(variables, rng));
        collector.Add(solved, wanted.origin);
      }
    }
  }
  for (const ShapeChoice& workload : ScaledWorkloads(instance, request.max_elements)) {
    if (collector.size() < request.count) collector.Add(workload.axes, workload.origin);
  }
  for (std::size_t tries = 0; tries < 4 * request.count && collector.size() < request.count;
       ++tries) {
    ops::AxisValues preferred;
    for (std::size_t a = 0; a < variables.size(); ++a) {
      // Later rounds hold larger values: take them less often.
      const auto& round = interesting[a][std::min(rng.Below(5), rng.Below(5))];
      if (!round.empty()) preferred[variables[a]->name] = round[rng.Below(round.size())].value;
    }
    collector.Add(SolveAxes(op, {}, preferred), "random");
  }
  std::vector<ShapeChoice> shapes = collector.Take();
  if (shapes.empty()) {
    return Fail(ErrorKind::kLimit,
                "no shape of op '" + op.name + "' fits the budget of " +
                    std::to_string(request.max_elements) + " elements",
                "op.json: /axes", "lower the axes' minima or judge with a higher effort");
  }
  return shapes;
}

std::vector<ShapeChoice> Neighbours(const ops::Instance& instance, const ops::AxisValues& around,
                                    std::int64_t max_elements) {
  Collector collector(instance, max_elements);
  for (const ops::Axis* axis : Variables(instance.op)) {
    const auto found = around.find(axis->name);
    if (found == around.end()) continue;
    for (const std::int64_t value : {found->second + 1, found->second - 1, found->second * 2 + 1}) {
      ops::AxisValues moved = around;
      moved[axis->name] = std::clamp(value, axis->min, axis->max);
      if (moved == around) continue;
      collector.Add(ops::ResolveAxes(instance.op, moved) ? Result<ops::AxisValues>(moved)
                                                         : SolveAxes(instance.op, {}, moved),
                    "neighbour");
    }
  }
  std::vector<ShapeChoice> shapes = collector.Take();
  std::erase_if(shapes, [&](const ShapeChoice& shape) { return shape.axes == around; });
  return shapes;
}

std::vector<ShapeChoice> ScaledWorkloads(const ops::Instance& instance, std::int64_t max_elements) {
  Collector collector(instance, max_elements);
  for (const ops::Workload& workload : instance.op.workloads) {
    ops::AxisValues axes = workload.axes;
    for (int halvings = 0; halvings < 40 && TotalElements(instance, axes) > max_elements;
         ++halvings) {
      // The longest axis gives way first: proportions matter less than having several rows.
      const auto longest =
          std::ranges::max_element(axes, {}, [](const auto& entry) { return entry.second; });
      if (longest == axes.end() || longest->second <= 1) break;
      ops::AxisValues halved = axes;
      halved[longest->first] = longest->second / 2;
      const auto solved = ops::ResolveAxes(instance.op, halved)
                              ? Result<ops::AxisValues>(halved)
                              : SolveAxes(instance.op, {}, halved);
      if (!solved) break;
      axes = *solved;
    }
    collector.Add(axes, "workload");
  }
  return collector.Take();
}

std::vector<ShapeChoice> ExtremeShapes(const ops::Instance& instance) {
  Collector collector(instance, INT64_MAX);
  Rng rng(0);
  const std::vector<const ops::Axis*> variables = Variables(instance.op);
  for (const ops::Axis* axis : variables) {
    for (const std::int64_t value :
         {std::int64_t{1025}, std::int64_t{65536}, axis->max / 2 + 1, axis->max}) {
      if (value < axis->min || value > axis->max) continue;
      collector.Add(SolveNear(instance.op, axis->name, value, Background(variables, rng)), "edge");
    }
  }
  return collector.Take();
}

namespace {

/// The axes of a tensor at values whose product is just past `target`, as far as they reach; the
/// first of them as long as they may be, each a multiple of `granule` where there is room.
ops::AxisValues JustPast(std::int64_t target, const std::vector<const ops::Axis*>& along,
                         std::int64_t granule) {
  ops::AxisValues pinned;
  std::int64_t product = 1;
  for (const ops::Axis* axis : along) {
    const std::int64_t wanted = (target / product / granule + 1) * granule;
    const std::int64_t value = std::clamp(wanted, axis->min, axis->max);
    pinned[axis->name] = value;
    if (__builtin_mul_overflow(product, value, &product)) product = INT64_MAX;
  }
  return pinned;
}

std::int64_t ProductOf(const ops::AxisValues& axes, const std::vector<const ops::Axis*>& along) {
  std::int64_t product = 1;
  for (const ops::Axis* axis : along) {
    if (__builtin_mul_overflow(product, axes.at(axis->name), &product)) return INT64_MAX;
  }
  return product;
}

}  // namespace

std::vector<ShapeChoice> HugeShapes(const ops::Instance& instance,
                                    const std::function<bool(const ops::AxisValues&)>& is_dear) {
  // What keeps address space and files below the limits of a worker.
  constexpr std::int64_t kMostElements = std::int64_t{1} << 35;
  const ops::OpSpec& op = instance.op;
  Collector collector(instance, kMostElements);
  // A margin, so that the last turn of a loop over the grid lies past the limit as well; odd extents
  // and multiples, because kernels go different ways for them.
  // Outside in: the first axis, then from the last one on. What lies between, a batch and a row, is
  // often what a block loops over.
  enum class Order : std::uint8_t { kLongest, kLeading, kOutsideIn };
  using enum Order;
  struct Row {
    int bits;
    bool of_bytes;
    Order order;
    std::int64_t least_granule;
  };
  // Bytes first: offsets of 32 bits wrap in them before indices do. 2^24: what a float counts to, and
  // __umul24.
  constexpr std::array<Row, 10> kRows = {{{31, true, kLongest, 1},
                                          {32, false, kLongest, 16},
                                          {31, true, kLeading, 16},
                                          {31, false, kOutsideIn, 1},
                                          {32, false, kOutsideIn, 1},
                                          {31, false, kLongest, 1},
                                          {24, false, kLongest, 1},
                                          {31, false, kLeading, 16},
                                          {24, false, kLeading, 16},
                                          {32, false, kLeading, 1}}};
  ops::AxisValues small;
  for (const ops::Axis* axis : Variables(op)) small[axis->name] = 2;
  const auto shape_of = [&](const ops::TensorSpec& spec, const Row& row,
                            Order order) -> std::optional<ops::AxisValues> {
    const std::int64_t limit = (std::int64_t{1} << row.bits) + (std::int64_t{1} << (row.bits - 7));
    const std::int64_t target =
        row.of_bytes ? limit / static_cast<std::int64_t>(SizeOf(instance.TypeOf(spec))) : limit;
    std::vector<const ops::Axis*> along;
    for (const ops::Expression& extent : spec.shape) {
      const ops::Axis* axis = op.FindAxis(extent.text());
      if (axis != nullptr && axis->kind == ops::Axis::Kind::kVariable) along.push_back(axis);
    }
    if (order == kOutsideIn && along.size() < 3) return std::nullopt;
    if (order == kOutsideIn) std::reverse(along.begin() + 1, along.end());
    if (order == kLongest) std::ranges::stable_sort(along, std::greater<>(), &ops::Axis::max);
    // Constraints often ask for multiples.
    for (std::int64_t granule = row.least_granule; granule <= 128; granule *= 2) {
      auto solved = SolveAxes(op, JustPast(target, along, granule), small);
      if (solved && ProductOf(*solved, along) > target) return *std::move(solved);
    }
    return std::nullopt;
  };
  for (const Row& row : kRows) {
    for (const auto* specs : {&op.inputs, &op.outputs}) {
      for (const ops::TensorSpec& spec : *specs) {
        auto chosen = shape_of(spec, row, row.order);
        for (const Order other : {kLeading, kOutsideIn, kLongest}) {
          if (!chosen || !is_dear || !is_dear(*chosen)) break;
          const auto shape = shape_of(spec, row, other);
          if (shape && !is_dear(*shape)) chosen = shape;
        }
        if (chosen) collector.Add(*chosen, "huge");
      }
    }
  }
  return collector.Take();
}

std::vector<std::int64_t> ConstantsOf(const ops::LaunchPlan& plan) {
  std::set<std::int64_t> constants;
  const auto add = [&constants](const ops::Expression& expression) {
    for (const std::int64_t literal : expression.Literals()) {
      if (literal > 1) constants.insert(literal);
    }
  };
  for (const ops::KernelPlan& kernel : plan.kernels) {
    for (const auto* extents : {&kernel.grid, &kernel.block, &kernel.cluster}) {
      for (const ops::Expression& extent : *extents) add(extent);
    }
    // A number of bytes alone is no extent of anything.
    if (!kernel.shared_bytes.Evaluate({})) add(kernel.shared_bytes);
  }
  for (const ops::WorkspacePlan& workspace : plan.workspace) {
    for (const ops::Expression& extent : workspace.shape) add(extent);
  }
  return {constants.begin(), constants.end()};
}

}  // namespace assay::cases
