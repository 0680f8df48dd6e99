// The verdict on a candidate: every gate's result, and what follows from them. JSON schema
// assay.verdict/1.
//
// Accepted means: every gate of the policy passed. Everything that is not proven to have passed (an
// unknown instruction, a time-out, a step limit, a crash of a worker, a gate that could not run) is
// inconclusive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "validator/findings/error_profile.h"
#include "validator/findings/finding.h"
#include "validator/verdict/counterexample.h"
#include "validator/verdict/ledger.h"

namespace assay::verdict {

enum class Outcome : std::uint8_t { kAccepted, kRefuted, kInconclusive, kInternalError };
std::string_view Name(Outcome outcome);
/// 0 accepted, 1 refuted, 2 inconclusive, 4 internal error.
int ExitCode(Outcome outcome);

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
  std::vector<ErrorProfile> errors;             ///< How they lie, an output each; for drawing.
  std::vector<Counterexample> counterexamples;  ///< Up to three, distinct findings.
  double seconds = 0;                           ///< Left out of comparisons between runs.
};

/// This gate proves nothing about the candidate, and why.
void SetInconclusive(GateResult& result, std::string reason);

struct Verdict {
  Outcome outcome = Outcome::kInconclusive;
  std::string reason;  ///< One line for people.
  std::string instance;
  std::string engine;
  std::string truth = "cuda";     ///< Kind of the reference behind all truths (OpSpec::truth).
  bool unsafe_no_jail = false;    ///< Bars emission.
  std::vector<GateResult> gates;  ///< In the order run.
  Ledger ledger;                  ///< What was tried, and what was left out.

  /// Counterexamples of all gates, first one first.
  std::vector<const Counterexample*> Counterexamples() const;
};
Json ToJson(const Verdict& verdict);
Result<Verdict> VerdictFromJson(const Json& json, std::string place);

}  // namespace assay::verdict
