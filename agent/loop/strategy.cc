#include "agent/loop/strategy.h"

#include <algorithm>
#include <array>

#include "runs/standing.h"

namespace assay::loop {
namespace {

std::string_view kNames[] = {"refine", "sample", "restart", "beam"};

bool AllJudged(const runs::RunState& state) {
  return std::ranges::all_of(state.attempts,
                             [](const runs::Attempt& a) { return a.verdict.has_value(); });
}

// The best first; among equals the later one, which knows more.
std::vector<const runs::Attempt*> Ranked(const runs::RunState& state) {
  std::vector<const runs::Attempt*> ranked;
  for (const runs::Attempt& attempt : state.attempts) ranked.push_back(&attempt);
  std::ranges::stable_sort(ranked, [](const runs::Attempt* a, const runs::Attempt* b) {
    const int left = runs::HowFar(*a->verdict);
    const int right = runs::HowFar(*b->verdict);
    return left != right ? left > right : a->number > b->number;
  });
  return ranked;
}

std::vector<runs::Draft> FirstOnes(int count) {
  return std::vector<runs::Draft>(static_cast<std::size_t>(std::max(count, 1)));
}

std::vector<runs::Draft> Refine(const runs::RunState& state, const StrategyOptions&) {
  if (state.attempts.empty()) return FirstOnes(1);
  return {{runs::DraftKind::kRepair, state.attempts.back().number}};
}

std::vector<runs::Draft> Sample(const runs::RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(options.samples);
  const bool refining = state.attempts.back().kind == runs::DraftKind::kRepair;
  return {{runs::DraftKind::kRepair,
           refining ? state.attempts.back().number : Ranked(state).front()->number}};
}

std::vector<runs::Draft> Restart(const runs::RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(options.samples);
  // The current line: attempts since the last new conversation.
  std::vector<int> scores;
  for (const runs::Attempt& attempt : state.attempts) {
    if (attempt.parent == 0) scores.clear();
    if (attempt.verdict) scores.push_back(runs::HowFar(*attempt.verdict));
  }
  const auto patience = static_cast<std::size_t>(std::max(options.stagnation, 1));
  if (scores.size() > patience) {
    const auto recent = scores.end() - static_cast<std::ptrdiff_t>(patience);
    const int before = *std::max_element(scores.begin(), recent);
    if (*std::max_element(recent, scores.end()) <= before) {
      return {{runs::DraftKind::kRestart, 0}};
    }
  }
  return Sample(state, options);
}

// 1 for an attempt that repairs none.
int DepthOf(const runs::RunState& state, const runs::Attempt& attempt) {
  int depth = 1;
  for (const runs::Attempt* at = &attempt; at != nullptr && at->parent != 0;
       at = state.Find(at->parent))
    ++depth;
  return depth;
}

std::vector<runs::Draft> Beam(const runs::RunState& state, const StrategyOptions& options) {
  if (state.attempts.empty()) return FirstOnes(std::max(options.samples, options.width));
  std::vector<runs::Draft> drafts;
  for (const runs::Attempt* const attempt : Ranked(state)) {
    const bool repaired = std::ranges::any_of(state.attempts, [&](const runs::Attempt& other) {
      return other.parent == attempt->number;
    });
    if (repaired || (options.depth > 0 && DepthOf(state, *attempt) >= options.depth)) continue;
    drafts.push_back({runs::DraftKind::kRepair, attempt->number});
    if (static_cast<int>(drafts.size()) >= std::max(options.width, 1)) break;
  }
  if (drafts.empty()) {
    drafts.assign(static_cast<std::size_t>(std::max(options.width, 1)),
                  runs::Draft{.kind = runs::DraftKind::kRestart});
  }
  return drafts;
}

// An optimisation that was refuted may be a good idea with a bug: its finding is told and it is
// repaired, so often. Then the floor is built on again.
constexpr int kRepairsOfAnOptimisation = 2;

std::vector<runs::Draft> Optimise(const runs::RunState& state, const runs::Attempt& floor) {
  const runs::Attempt& last = state.attempts.back();
  int repairs = 0;
  const runs::Attempt* origin = &last;
  while (origin->kind == runs::DraftKind::kRepair && origin->parent != 0) {
    origin = state.Find(origin->parent);
    ++repairs;
  }
  const bool refuted = last.verdict && last.verdict->outcome == verdict::Outcome::kRefuted;
  if (refuted && origin->kind == runs::DraftKind::kOptimize && repairs < kRepairsOfAnOptimisation)
    return {{runs::DraftKind::kRepair, last.number}};
  return {{runs::DraftKind::kOptimize, floor.number}};
}

constexpr std::array<std::vector<runs::Draft> (*)(const runs::RunState&, const StrategyOptions&), 4>
    kStrategies = {&Refine, &Sample, &Restart, &Beam};

}  // namespace

std::string_view Name(StrategyKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<StrategyKind> ParseStrategyKind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<StrategyKind>(i);
  }
  return std::nullopt;
}

std::vector<runs::Draft> NextDrafts(const runs::RunState& state, const StrategyOptions& options) {
  const int left = options.attempts - static_cast<int>(state.attempts.size());
  if (left <= 0) return {};
  std::vector<runs::Draft> drafts;
  if (const runs::Attempt* const accepted = state.Accepted()) {
    // The accepted kernel is the floor: every further attempt starts from it.
    if (!options.optimize || !AllJudged(state)) return {};
    drafts = Optimise(state, *accepted);
  } else if (AllJudged(state)) {
    const bool sampled = options.kind == StrategyKind::kRefine && options.samples > 1;
    const StrategyKind kind = sampled ? StrategyKind::kSample : options.kind;
    drafts = kStrategies[static_cast<std::size_t>(kind)](state, options);
  }
  if (static_cast<int>(drafts.size()) > left) drafts.resize(static_cast<std::size_t>(left));
  return drafts;
}

}  // namespace assay::loop
