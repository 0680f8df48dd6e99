// The loop: prompt, compile, judge, feed back, emit.
//
// Level-triggered: each turn looks at the state, sets going whatever the state calls for (attempts
// that the strategy names, requests whose answers are missing, candidates without a verdict), then
// waits for the next thing to happen and records it. The state changes by recorded events only, so
// a run that was killed continues by being looked at. Model calls, compilation and judging overlap.
#pragma once

#include "agent/loop/budget.h"
#include "agent/loop/generate.h"
#include "agent/loop/judge.h"
#include "agent/prompts/prompt.h"
#include "runs/folder.h"

namespace assay::loop {

struct LoopParts {
  const GenerateRequest& request;
  Environment& environment;
  const prompts::PromptLibrary& prompts;
  const Meter& meter;
  models::Model& model;
  JudgeDesk& desk;
  std::string author;  ///< For the certificate where a reply names no model.
};

/// Runs until there is a result, a limit, or nothing more to try. Errors leave a run that can be
/// resumed.
Result<runs::RunStopped> RunLoop(runs::RunFolder& run, LoopParts& parts);

}  // namespace assay::loop
