// A counterexample: a case, minimised, with its findings and all that replay needs. JSON schema
// assay.counterexample/1.
//
// Replays alone: it carries the candidate's text, and the probe that shows the findings. Where the
// text itself shows them (a forbidden include, an error of the compiler) there is no probe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ops/op.h"
#include "validator/cases/probe.h"
#include "validator/findings/finding.h"
#include "validator/verdict/candidate.h"

namespace assay::verdict {

/// What other cases showed of the same defect: a case is shrunk to the smallest, whose error may be the mildest.
struct WorstSeen {
  double ratio = 0;         ///< Times what is allowed; 0: the shrunk case shows no less.
  std::string description;  ///< Of the case that showed it.
  std::string cause;        ///< Likely cause, where the shrunk case is too small to tell.
  bool operator==(const WorstSeen&) const = default;
};

struct Counterexample {
  std::string gate;
  std::string op;  ///< Name; `op_digest` guards against a changed op.
  std::string op_digest;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::string engine;
  std::string kernel;                 ///< kernel.cu
  std::string launch;                 ///< launch.json
  std::optional<cases::Probe> probe;  ///< Absent for gates that need no case (compile, policy).
  std::string property;               ///< For the property gate: which one.
  std::string description;            ///< "tokens=3 hidden=5 ids=[0,0,1]", for people and prompts.
  std::vector<Finding> findings;      ///< Guilty first.
  std::optional<WorstSeen> worst;     ///< Of the guilty one.
};

/// A line for people and prompts: "37 times what is allowed [rows=4096]", or nothing.
std::string DescribeWorst(const Counterexample& counterexample);

/// One without a probe, about `candidate` as it was judged for `instance` on the engine of that
/// name; the findings get the source lines that they are about.
Counterexample MakeCounterexample(const ops::Instance& instance, const Candidate& candidate,
                                  std::string_view engine, std::string_view gate,
                                  std::vector<Finding> findings);

Json ToJson(const Counterexample& counterexample);
Result<Counterexample> CounterexampleFromJson(const Json& json, std::string place);

}  // namespace assay::verdict
