// Decisions: floats that become integers, and where those are not what exact arithmetic would have made.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"
#include "validator/campaign/compute_nodes.h"
#include "validator/campaign/decisions.h"

namespace assay::campaign {
namespace {

using facts::Node;
using Op = Node::Op;
using Type = Node::Type;
using Becomes = facts::Decision::Becomes;

/// One thread of a launch, in one turn of each of its loops.
struct ThreadContext {
  std::array<std::int64_t, 3> block{}, thread{}, blocks{}, threads{};
  std::array<std::int64_t, kMostNodes> turns{};  ///< By node.
  bool exact = false;                            ///< Reals are exact, rather than f32.

  static Type TypeOf(const Node& node) { return node.type; }
  static Value Constant(const Node& node) { return Integer(node.type, node.value); }
  std::optional<std::int64_t> Special(std::int64_t which) const {
    constexpr std::int64_t kLane = 16;
    if (which == kLane) return thread[0] % 32;
    const auto component = static_cast<std::size_t>(which % 4);
    const std::array groups = {&thread, &threads, &block, &blocks};
    const auto group = static_cast<std::size_t>(which) / 4;
    if (which < 0 || component > 2 || group >= groups.size()) return std::nullopt;
    return (*groups[group])[component];
  }
  static Value Element() { return kNoValue; }
  Value Counted(std::size_t number, Type type, Value step) const {
    return Apply(Op::kMultiply, type, Integer(type, turns[number]), step);
  }
  static bool second_way() { return false; }
  Value Rounded(Value value) const {
    return exact ? value : RealValue(static_cast<double>(static_cast<float>(value.real())));
  }
};

/// The integer that a real becomes. An exact one is computed in double, and an integer all the same where it is one but for
/// that.
double IntegerOf(double real, Becomes becomes, bool exact) {
  constexpr double kOfDouble = 1e-12;
  const double nearest = std::nearbyint(real);
  if (exact && std::fabs(real - nearest) <= kOfDouble * std::fabs(real)) return nearest;
  return becomes == Becomes::kNearest ? nearest
         : becomes == Becomes::kUpper ? std::ceil(real)
                                      : std::floor(real);
}

}  // namespace

void Decisions::AddRounded(const facts::Facts& program, const engine::CompiledKernel& compiled) {
  for (const facts::Decision& decision : program.decisions) {
    if (decision.becomes == Becomes::kNothing || decision.nodes.size() > kMostNodes) continue;
    View view{.decision = &decision, .input = {}};
    for (std::uint32_t n = 0; n < decision.nodes.size(); ++n) {
      if (decision.nodes[n].op != Op::kCounter) continue;
      if (const facts::Decision* const end = EndOf(program, decision, n))
        view.loops.push_back({n, end});
    }
    for (view.kernel = 0; view.kernel < plan_.kernels.size(); ++view.kernel) {
      const auto lowered = compiled.lowered.find(plan_.kernels[view.kernel].entry);
      if (lowered != compiled.lowered.end() && lowered->second == decision.entry)
        rounded_.push_back(view);
    }
  }
}

Decisions::Misrounding Decisions::MisroundedAt(const Point& point, std::size_t most,
                                               std::uint64_t seed) const {
  Misrounding worst;
  for (const View& view : rounded_) {
    const Misrounding misrounding = MisroundedBy(view, point, most, seed);
    if (misrounding.share() > worst.share()) worst = misrounding;
  }
  return worst;
}

Decisions::Misrounding Decisions::MisroundedBy(const View& view, const Point& point,
                                               std::size_t most, std::uint64_t seed) const {
  const Point::Kernel& kernel = point.kernels[view.kernel];
  if (!kernel.runs) return {};
  const facts::Decision& decision = *view.decision;
  const std::vector<double> last = LastTurns(view, point);
  ThreadContext context{.blocks = kernel.grid, .threads = kernel.block};
  const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  Rng rng(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(
        rng.Below(static_cast<std::uint64_t>(std::max<std::int64_t>(bound, 1))));
  };
  const bool all_blocks = blocks <= static_cast<std::int64_t>(most);
  Misrounding misrounding;
  std::array<Value, kMostNodes> values;
  for (std::size_t i = 0; i < most; ++i) {
    // Each block where they are few; the first thread and the last turn often, for there errors are largest.
    std::int64_t block = all_blocks ? static_cast<std::int64_t>(i) % blocks : below(blocks);
    for (std::size_t d = 0; d < 3; ++d) {
      context.block[d] = block % kernel.grid[d];
      block /= kernel.grid[d];
      context.thread[d] = i % 4 < 2 ? 0 : below(kernel.block[d]);
    }
    for (const auto& [counter, end] : view.loops) {
      const auto turns = static_cast<std::int64_t>(last[counter]);
      context.turns[counter] = i % 2 == 0 ? turns - below(turns / 16 + 1) : below(turns + 1);
    }
    context.exact = false;
    if (!ComputeNodes(decision, kernel.parameters, context, values)) return {};
    const double kept = IntegerOf(AsReal(values[decision.left]), decision.becomes, false);
    context.exact = true;
    if (!ComputeNodes(decision, kernel.parameters, context, values)) return {};
    const double wanted = IntegerOf(AsReal(values[decision.left]), decision.becomes, true);
    ++misrounding.all;
    misrounding.wrong += kept != wanted && std::isfinite(kept) && std::isfinite(wanted) ? 1 : 0;
  }
  return misrounding;
}

}  // namespace assay::campaign
