// The verdict on a candidate: every gate's result, and what follows from them. JSON schema
// assay.verdict/1.
//
// Accepted means: every gate of the policy passed. Everything that is not proven to have passed (an
// unknown instruction, a time-out, a step limit, a crash of a worker, a gate that could not run) is
// inconclusive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "validator/cases/case.h"
#include "validator/cases/probe.h"
#include "validator/execution/execution.h"
#include "validator/findings/finding.h"

namespace assay::gates {

enum class Outcome : std::uint8_t { kAccepted, kRefuted, kInconclusive, kInternalError };
std::string_view Name(Outcome outcome);
/// 0 accepted, 1 refuted, 2 inconclusive, 4 internal error.
int ExitCode(Outcome outcome);

/// A case, minimised, with its findings and all that replay needs (schema assay.counterexample/1).
/// Replays alone: it carries the candidate's text.
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
};
Json ToJson(const Counterexample& counterexample);
Result<Counterexample> CounterexampleFromJson(const Json& json, std::string place);

enum class GateStatus : std::uint8_t { kPassed, kRefuted, kInconclusive, kSkipped };
std::string_view Name(GateStatus status);

struct GateResult {
  std::string gate;
  GateStatus status = GateStatus::kSkipped;
  std::string reason;                ///< For kInconclusive and kSkipped, and a summary for kPassed.
  std::uint64_t cases = 0;           ///< How many cases ran.
  std::uint64_t steps = 0;           ///< Emulated thread-level instructions.
  std::vector<std::uint64_t> seeds;  ///< Recorded for the certificate.
  std::vector<Statistic> statistics;
  std::vector<Counterexample> counterexamples;  ///< Up to three, distinct findings.
  double seconds = 0;                           ///< Left out of comparisons between runs.
};

struct Verdict {
  Outcome outcome = Outcome::kInconclusive;
  std::string reason;  ///< One line for people.
  std::string instance;
  std::string engine;
  bool unsafe_no_jail = false;    ///< Bars emission.
  std::vector<GateResult> gates;  ///< In the order run.

  /// Counterexamples of all gates, first one first.
  std::vector<const Counterexample*> Counterexamples() const;
};
Json ToJson(const Verdict& verdict);
Result<Verdict> VerdictFromJson(const Json& json, std::string place);

}  // namespace assay::gates
