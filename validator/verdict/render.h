// The verdict for people and for prompts. Text of single findings comes from
// validator/findings/render.h.
//
// Pure functions; no colour codes. What held-out cases look like is shown to people only: the
// compact form, which feedback is made of, says that the holdout gate refuted and nothing else.
#pragma once

#include <string>

#include "validator/verdict/verdict.h"

namespace assay::verdict {

/// What was tried against what was planned, how far along each axis, what was left out and why, and
/// what no case reached. Empty where nothing was planned.
std::string RenderLedger(const Ledger& ledger);

/// A table of gates, then each counterexample with source excerpts. Ends in a newline.
std::string RenderVerdict(const Verdict& verdict);

/// One counterexample for people: the case, the surroundings where they matter, the findings.
std::string RenderCounterexample(const Counterexample& counterexample);

/// For prompts: outcome, the refuting gates, each counterexample's case and findings; no seeds,
/// times or counters.
std::string RenderForPrompt(const Verdict& verdict);

}  // namespace assay::verdict
