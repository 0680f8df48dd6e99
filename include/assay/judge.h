// Judging: a candidate (kernel.cu and launch.json) goes in, a verdict with its findings comes out.
//
//   auto judge = Judge::Make(Environment::Installed(), {});
//   auto verdict = judge->Check({.op = "rms_norm", .binding = {{"T", "f16"}}}, {kernel, launch});
//   for (const Counterexample& shown : verdict->counterexamples)
//     for (const Finding& finding : shown.findings) std::cout << finding.text;
//
// Accepted means that every gate passed, with what was left out said in Verdict::text. A Judge keeps warm workers in jails; making one
// tries the jail, the first question starts them. One thread at a time; several judges may live beside each other. Cost of a
// judgement: seconds to minutes, by effort.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/environment.h"
#include "assay/error.h"
#include "assay/ops.h"

namespace assay::api {

struct Candidate {
  std::string kernel;  ///< Text of kernel.cu.
  std::string launch;  ///< Text of launch.json.
};

enum class Effort : std::uint8_t { kQuick, kStandard, kThorough };

struct Question {
  std::string op;  ///< A name of the library, or a folder.
  Binding binding;
  std::string arch = "sm_90";
  Effort effort = Effort::kStandard;
  std::uint64_t seed = 1;  ///< Of the cases; those of the holdout gate are drawn anew each time.
};

/// A line of the candidate that a finding is about.
struct Site {
  std::string file;  ///< "kernel.cu"; empty without line information.
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string what;     ///< "write", "read", "waits at barrier 0"
  std::string excerpt;  ///< The line's text.
};

struct Finding {
  std::string kind;    ///< "data_race", "out_of_bounds", "precision_row"
  std::string family;  ///< "race", "memory", "precision"
  std::string message;
  std::string missing;  ///< The edge or guard that is missing; may be empty.
  std::string cause;    ///< The likely cause, when recognised.
  std::vector<Site> sites;
  std::string text;  ///< For people: as a compiler would print it, with the source.
};

struct Counterexample {
  std::string gate;
  std::string description;  ///< "tokens=3 hidden=5 ids=[0,0,1]"
  std::vector<Finding> findings;
  std::string json;  ///< The document that Replay takes; stands alone.
};

enum class Outcome : std::uint8_t { kAccepted, kRefuted, kInconclusive, kInternalError };
/// "accepted", "refuted", "inconclusive", "internal_error"
std::string_view Name(Outcome outcome);

struct GateResult {
  std::string gate;
  std::string status;  ///< "passed", "refuted", "inconclusive", "skipped"
  std::string reason;
  std::uint64_t cases = 0;
};

struct Verdict {
  Outcome outcome = Outcome::kInconclusive;
  std::string reason;  ///< One line.
  std::vector<GateResult> gates;
  std::vector<Counterexample> counterexamples;
  std::string text;  ///< For people: gates, what was tried and left out, counterexamples.
  std::string json;  ///< The whole of it, schema assay.verdict/1.
};

struct JudgeOptions {
  unsigned workers = 0;  ///< Processes of a kind; 0: one a core.
  /// Runs untrusted code without namespaces; stands in the verdict.
  bool unsafe_no_jail = false;
};

struct Progress {
  std::string gate;
  std::string detail;
  double fraction = -1;  ///< 0..1, or -1 when unknown.
};

class Judge {
 public:
  /// Fails where no jail can be had, with what to enable.
  static Result<Judge> Make(const Environment& environment, const JudgeOptions& options = {});
  Judge(Judge&& other) noexcept;
  Judge& operator=(Judge&& other) noexcept;
  ~Judge();

  /// Errors are those of the request and the machine; what a kernel does wrong is in the verdict. `progress` may be empty; it is called
  /// on this thread or one of ours, by one at a time.
  Result<Verdict> Check(const Question& question, const Candidate& candidate,
                        const std::function<void(const Progress&)>& progress = {});
  /// Runs a counterexample again and returns what its case shows now: no findings, it passes. The op is the library's of the recorded
  /// name, or the one of folder `op`.
  Result<Counterexample> Replay(std::string_view json, const std::string& op = {});

 private:
  struct Impl;
  explicit Judge(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::api
