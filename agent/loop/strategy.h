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

#include "agent/loop/generate.h"
#include "runs/state.h"

namespace assay::loop {

std::vector<runs::Draft> NextDrafts(const runs::RunState& state, const StrategyOptions& options);

}  // namespace assay::loop
