// A trial: a compiled candidate, the tools that run it, and how much is to be tried. What the
// campaign, shrinking and replay are handed, so that they know of no gate.
//
// Gates come in as examiners: pure functions of one run, in the order in which gates judge. All of
// them look at every run, whoever asked for it.
//
// Borrows everything; lives as long as the judgement of one candidate.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/runner.h"
#include "validator/engine/compiler.h"
#include "validator/findings/finding.h"
#include "validator/verdict/candidate.h"
#include "validator/verdict/counterexample.h"

namespace assay::campaign {

/// A gate's reading of one run.
struct Examiner {
  std::string_view gate;
  std::vector<Finding> (*examine)(const CaseRun& run);
};

struct Trial {
  const ops::Instance& instance;
  const verdict::Candidate& candidate;
  const ops::LaunchPlan& plan;
  const engine::CompiledKernel& compiled;
  const Runner& runner;
  std::string_view engine;  ///< Its name.
  const EffortRow& effort;
  std::uint64_t seed = 0;
  std::span<const verdict::Counterexample> regressions;  ///< Their cases run first.
  std::span<const Examiner> examiners;
  /// Asked now and then: will nobody look at what comes of it? May be empty.
  std::function<bool()> is_pointless;
  /// Progress for people; the fraction is -1 when unknown. May be empty.
  std::function<void(std::string_view gate, std::string detail, double fraction)> progress;

  void Report(std::string_view gate, std::string detail, double fraction = -1) const {
    if (progress) progress(gate, std::move(detail), fraction);
  }
};

}  // namespace assay::campaign
