// Decisions: where numbers outgrow their formats, in the last turns of the loops that count them up.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "validator/campaign/compute_nodes.h"
#include "validator/campaign/decisions.h"

namespace assay::campaign {
namespace {

using facts::Node;
using Op = Node::Op;

/// Of each node of `a`: which one of `b` is computed alike, or none.
std::vector<std::optional<std::uint32_t>> Matching(const facts::Decision& a,
                                                   const facts::Decision& b) {
  std::vector<std::optional<std::uint32_t>> matches(a.nodes.size());
  if (a.nodes.size() > kMostNodes || b.nodes.size() > kMostNodes) return matches;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Node& left = a.nodes[i];
    for (std::uint32_t j = 0; j < b.nodes.size() && !matches[i]; ++j) {
      const Node& right = b.nodes[j];
      // Loops alike count alike, whichever they are.
      bool same = left.op == right.op && left.type == right.type &&
                  (left.value == right.value || left.op == Op::kCounter) &&
                  left.of.size() == right.of.size();
      for (std::size_t k = 0; same && k < left.of.size(); ++k)
        same = matches[left.of[k]] == right.of[k];
      if (same) matches[i] = j;
    }
  }
  return matches;
}

/// Does it look at some digits of what is counted?
bool IsOfDigits(const facts::Decision& decision, std::uint32_t counter) {
  constexpr std::array kOfDigits = {Op::kAnd,    Op::kOr,           Op::kXor,       Op::kRemainder,
                                    Op::kDivide, Op::kMultiplyHigh, Op::kShiftRight};
  std::vector<bool> counts(decision.nodes.size(), false);
  for (std::uint32_t i = 0; i < decision.nodes.size(); ++i) {
    const Node& node = decision.nodes[i];
    counts[i] =
        i == counter || std::ranges::any_of(node.of, [&](std::uint32_t of) { return counts[of]; });
    if (i != counter && counts[i] && std::ranges::find(kOfDigits, node.op) != kOfDigits.end())
      return true;
  }
  return false;
}

/// Does a loop's end compare what is counted next?
bool LooksAhead(const facts::Decision& limit, std::uint32_t counter, const facts::Decision& end) {
  const auto matches = Matching(limit, end);
  const auto counted = matches[counter];
  const auto step = matches[limit.nodes[counter].of[1]];
  return counted && step && std::ranges::any_of(end.nodes, [&](const Node& node) {
           return node.op == Op::kAdd && std::ranges::find(node.of, *counted) != node.of.end() &&
                  std::ranges::find(node.of, *step) != node.of.end();
         });
}

/// Is it one number for each thread or turn of a loop?
bool OfThreads(const facts::Decision& decision) {
  constexpr std::int64_t kThreads = 4, kLane = 16;  // %tid is below %ntid.
  return std::ranges::any_of(decision.nodes, [](const Node& node) {
    return node.op == Op::kCounter ||
           (node.op == Op::kSpecial && (node.value < kThreads || node.value == kLane));
  });
}

}  // namespace

void Decisions::AddLimits(const facts::Facts& program, const engine::CompiledKernel& compiled) {
  constexpr std::size_t kMostLimits = 48;
  std::size_t added = 0;
  for (const facts::Decision& limit : program.decisions) {
    if (!limit.limit) continue;
    View view{.decision = &limit, .input = {}};
    view.last_thread = true;
    for (std::uint32_t n = 0; n < limit.nodes.size(); ++n) {
      if (limit.nodes[n].op != Op::kCounter) continue;
      if (const facts::Decision* const end = EndOf(program, limit, n))
        view.loops.push_back({n, end});
    }
    for (view.kernel = 0; view.kernel < plan_.kernels.size(); ++view.kernel) {
      const auto lowered = compiled.lowered.find(plan_.kernels[view.kernel].entry);
      if (lowered == compiled.lowered.end() || lowered->second != limit.entry) continue;
      if (added++ >= kMostLimits) continue;
      // First where numbers wrap to the front: inputs that are zero between their ends show nothing of
      // what wraps to between them.
      view.just_past = true;
      if (!view.loops.empty()) {
        view.any_thread = true;
        views_.push_back(view);
        view.exactly = true;
        views_.push_back(view);
        view.any_thread = view.exactly = false;
      }
      view.of_blocks = view.exactly = view.loops.empty() && !OfThreads(limit);
      if (view.of_blocks) views_.push_back(view);
      view.of_blocks = view.exactly = false;
      for (const bool just_past : {true, false}) {
        view.just_past = just_past;
        views_.push_back(view);
      }
    }
  }
}

// A loop compares what it counts with more than its end: it looks at last digits, or takes minima.
const facts::Decision* Decisions::EndOf(const facts::Facts& program, const facts::Decision& limit,
                                        std::uint32_t counter) {
  const std::int64_t loop = limit.nodes[counter].value;
  const facts::Decision* best = nullptr;
  int best_rank = 0;
  for (const facts::Decision& end : program.decisions) {
    if (!end.Compares() || end.entry != limit.entry) continue;
    const auto same = Matching(limit, end)[counter];
    const auto beside = std::ranges::find_if(end.nodes, [&](const Node& node) {
      return node.op == Op::kCounter && node.value == loop && loop != 0;
    });
    if (!same && (beside == end.nodes.end() || end.branch_line == 0)) continue;
    const auto counted = same ? *same : static_cast<std::uint32_t>(beside - end.nodes.begin());
    const bool ends = end.branch_line != 0 && !IsOfDigits(end, counted);
    const int rank = ends && same ? 4 : ends ? 3 : same ? 2 : 1;
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = &end;
  }
  return best;
}

std::vector<double> Decisions::LastTurns(const View& view, const Point& point) const {
  std::vector<double> last(view.decision->nodes.size(), 0);
  for (const auto& [counter, end] : view.loops) {
    View loop{.decision = end, .kernel = view.kernel, .input = {}};
    loop.last_thread = true;
    loop.varied = view.decision->nodes[counter].value;
    const auto first = Of(loop, point, 0);
    loop.turn = 1;
    const auto second = Of(loop, point, 0);
    if (!first || !second) continue;
    const double step = first->gap - second->gap;
    double turns = step == 0 ? 0 : first->gap / step;
    if (view.any_thread && LooksAhead(*view.decision, counter, *end)) turns += 1;
    if (!view.any_thread) turns = std::floor(turns);
    if (turns > 0 && turns < 0x1p40) last[counter] = turns;
  }
  return last;
}

std::int64_t Decisions::Counted(const View& view, double turns, std::int64_t step) {
  const double counted = turns * static_cast<double>(step);
  if (!view.any_thread || turns == 0) return static_cast<std::int64_t>(counted);
  // Short of where the loop ends: a quotient that was rounded up does not reach it.
  constexpr double kRounded = 1e-3;
  return static_cast<std::int64_t>(step > 0 ? std::ceil(counted - kRounded) - 1
                                            : std::floor(counted + kRounded) + 1);
}

std::optional<Decisions::Outgrown> Decisions::OutgrownAt(const ops::AxisValues& axes) const {
  const std::optional<Point> point = At(axes);
  if (!point) return std::nullopt;
  for (const View& view : views_) {
    if (!view.just_past) continue;
    const auto outcome = Of(view, *point, 0);
    if (!outcome || outcome->sign <= 0) continue;
    const std::int64_t limit = view.decision->nodes[view.decision->right].value;
    return Outgrown{.line = view.decision->own_line,
                    .digits = std::countr_zero(static_cast<std::uint64_t>(limit))};
  }
  return std::nullopt;
}

}  // namespace assay::campaign
