#include "agent/strategy.h"

#include <algorithm>
#include <array>

namespace assay::agent {
namespace {

std::string_view kNames[] = {"refine", "sample", "restart", "beam"};

bool AllJudged(const RunState& state) {
  return std::ranges::all_of(state.attempts,
                             [](const Attempt& a) { return a.verdict.has_value(); });
}

// The best first; among equals the later one, which knows more.
std::vector<const Attempt*> Ranked(const RunState& state) {
  std::vector<const Attempt*> ranked;
  for (const Attempt& attempt : state.attempts) ranked.push_back(&attempt);
  std::ranges::stable_sort(ranked, [](const Attempt* a, const Attempt* b) {
    const int left = Progress(*a->verdict);
    const int right = Progress(*b->verdict);
    return left != right ? left > right : a->number > b->number;
  });
  return ranked;
}

std::vector<Draft> FirstOnes(int count) {
  return std::vector<Draft>(static_cast<std::size_t>(std::max(count, 1)));
}

std::vector<Draft> Refine(const RunState& state, const StrategyOptions&) {
  if (state.attempts.empty()) return FirstOnes(1);
  return {{DraftKind::kRepair, state.attempts.back().number}};
}

std::vector<Draft> Sample(const RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(options.samples);
  const bool refining = state.attempts.back().kind == DraftKind::kRepair;
  return {{DraftKind::kRepair,
           refining ? state.attempts.back().number : Ranked(state).front()->number}};
}

std::vector<Draft> Restart(const RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(options.samples);
  // The current line: attempts since the last new conversation.
  std::vector<int> scores;
  for (const Attempt& attempt : state.attempts) {
    if (attempt.parent == 0) scores.clear();
    scores.push_back(Progress(*attempt.verdict));
  }
  const auto patience = static_cast<std::size_t>(std::max(options.stagnation, 1));
  if (scores.size() > patience) {
    const auto recent = scores.end() - static_cast<std::ptrdiff_t>(patience);
    const int before = *std::max_element(scores.begin(), recent);
    if (*std::max_element(recent, scores.end()) <= before) {
      return {{DraftKind::kRestart, 0}};
    }
  }
  return Sample(state, options);
}

// 1 for an attempt that repairs none.
int DepthOf(const RunState& state, const Attempt& attempt) {
  int depth = 1;
  for (const Attempt* at = &attempt; at != nullptr && at->parent != 0; at = state.Find(at->parent))
    ++depth;
  return depth;
}

std::vector<Draft> Beam(const RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(std::max(options.samples, options.width));
  std::vector<Draft> drafts;
  for (const Attempt* const attempt : Ranked(state)) {
    const bool repaired = std::ranges::any_of(
        state.attempts, [&](const Attempt& other) { return other.parent == attempt->number; });
    if (repaired || (options.depth > 0 && DepthOf(state, *attempt) >= options.depth)) continue;
    drafts.push_back({DraftKind::kRepair, attempt->number});
    if (static_cast<int>(drafts.size()) >= std::max(options.width, 1)) break;
  }
  if (drafts.empty()) {
    drafts.assign(static_cast<std::size_t>(std::max(options.width, 1)),
                  Draft{.kind = DraftKind::kRestart});
  }
  return drafts;
}

constexpr std::array<std::vector<Draft> (*)(const RunState&, const StrategyOptions&), 4>
    kStrategies = {&Refine, &Sample, &Restart, &Beam};

}  // namespace

std::string_view Name(StrategyKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<StrategyKind> ParseStrategyKind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<StrategyKind>(i);
  }
  return std::nullopt;
}

int Progress(const gates::Verdict& verdict) {
  int passed = 0;
  for (const gates::GateResult& gate : verdict.gates) {
    if (gate.status == gates::GateStatus::kPassed) ++passed;
    if (gate.status == gates::GateStatus::kRefuted) break;
  }
  return passed;
}

double CostOfRunning(const gates::Verdict& verdict) {
  double steps = 0;
  for (const gates::GateResult& gate : verdict.gates) {
    if (gate.gate == "speed" && !gate.statistics.empty()) return gate.statistics.front().value;
    if (gate.cases > 0 && gate.gate == "numeric")
      steps = static_cast<double>(gate.steps) / static_cast<double>(gate.cases);
  }
  return steps;
}

std::vector<Draft> NextDrafts(const RunState& state, const StrategyOptions& options) {
  const int left = options.attempts - static_cast<int>(state.attempts.size());
  if (left <= 0) return {};
  std::vector<Draft> drafts;
  if (const Attempt* const accepted = state.Accepted()) {
    // The accepted kernel is the floor: every further attempt starts from it.
    if (!options.optimize || !AllJudged(state)) return {};
    drafts = {{DraftKind::kOptimize, accepted->number}};
  } else if (AllJudged(state)) {
    const bool sampled = options.kind == StrategyKind::kRefine && options.samples > 1;
    const StrategyKind kind = sampled ? StrategyKind::kSample : options.kind;
    drafts = kStrategies[static_cast<std::size_t>(kind)](state, options);
  }
  if (static_cast<int>(drafts.size()) > left) drafts.resize(static_cast<std::size_t>(left));
  return drafts;
}

}  // namespace assay::agent
