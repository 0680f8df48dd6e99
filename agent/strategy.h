// Which attempts to make next: pure functions of what has happened so far.
//
// A strategy never waits, asks or judges; it looks at the attempts (some of them still under way)
// and names the ones to begin now. An empty answer means "wait", or, when nothing is under way,
// "done". The same state always gives the same answer, which is what makes a killed run resume on
// its course. Adding one: a function and its row in strategy.cc.
//
//   refine    one conversation: each finding goes back to the model
//   sample    N independent first attempts; the best one is refined
//   restart   refine, but a new conversation with a summary when attempts stagnate
//   beam      in every round the best `width` attempts that were not yet repaired are, down to
//             `depth`; when every line has reached it, new ones begin with a summary
#pragma once

#include <vector>

#include "agent/generate.h"
#include "agent/run_state.h"

namespace assay::agent {

struct Draft {
  DraftKind kind = DraftKind::kFirst;
  int parent = 0;
  bool operator==(const Draft&) const = default;
};

std::vector<Draft> NextDrafts(const RunState& state, const StrategyOptions& options);

/// How far a judged attempt got: gates passed before the first that was not, malformed replies
/// lowest. Higher is better.
int Progress(const gates::Verdict& verdict);

/// What running the kernel costs, to compare accepted ones: the speed gate's first statistic where
/// it measured, else emulated thread-level instructions a case. 0 where neither is known.
double CostOfRunning(const gates::Verdict& verdict);

}  // namespace assay::agent
