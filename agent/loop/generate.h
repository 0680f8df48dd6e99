// `assay generate` as a function: from an instance and a model to a vetted kernel, or to an honest
// account of why there is none.
//
//   GenerateRequest request{.instance = instance, .model = {.spec = "openai/gpt-5"}};
//   Environment environment{.clock = clock, .make_judges = ..., .observe = PrintProgress};
//   ASSAY_TRY(RunOutcome outcome, Generate(request, environment));
//   return outcome.ExitCode();
//
// Everything that happens is in the run folder (run_folder.h) before it is told to the observer; a
// process killed at any instruction leaves a run that `resume` continues. Errors (Result) are
// faults of the request or the machine: no server, no key, no prompts. What the model does wrong is
// an attempt's verdict. The observer is called on the calling thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/loop/judge.h"
#include "agent/models/model.h"
#include "agent/models/providers.h"
#include "agent/prompts/feedback.h"
#include "agent/prompts/task_prompt.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "ops/op.h"
#include "runs/signature.h"
#include "validator/campaign/effort.h"
#include "validator/gates/gatekeeper.h"
#include "validator/verdict/verdict.h"

namespace assay::loop {

enum class StrategyKind : std::uint8_t { kRefine, kSample, kRestart, kBeam };
std::string_view Name(StrategyKind kind);
std::optional<StrategyKind> ParseStrategyKind(std::string_view name);

struct StrategyOptions {
  StrategyKind kind = StrategyKind::kRefine;
  int attempts = 8;  ///< Of the whole run.
  int samples = 1;   ///< Independent first attempts (more than one makes refine a sample).
  int width = 2;     ///< Beam: lines kept.
  int depth = 0;     ///< Beam: attempts of a line before it is given up (0: no limit).
  int stagnation =
      3;  ///< Restart: attempts without progress after which a new conversation begins.
  bool optimize =
      false;  ///< After acceptance keep going for speed; the accepted kernel stays as the floor.
};

/// 0: no limit.
struct Budget {
  double usd = 0;
  std::uint64_t tokens = 0;
  std::uint64_t seconds = 0;
  Path prices;  ///< Price table that overrides the built-in one (assay.prices/1).
};

struct GenerateRequest {
  ops::Instance instance;
  models::ModelSpec model;
  StrategyOptions strategy;
  Budget budget;
  prompts::FeedbackMode feedback = prompts::FeedbackMode::kFull;
  campaign::Effort effort = campaign::Effort::kStandard;
  std::string engine = "emulator";
  std::uint64_t seed = 1;
  bool unsafe_no_jail = false;
  std::optional<prompts::Sister> sister;  ///< Shown to the model with the task.
  Path out;             ///< The run's folder. Empty: runs/<id> in the working directory.
  bool resume = false;  ///< `out` holds a run to be continued (resume.h).
};

/// What a judge needs to know of a request.
struct JudgeSettings {
  campaign::Effort effort = campaign::Effort::kStandard;
  std::string engine;
  std::uint64_t seed = 0;
  bool unsafe_no_jail = false;
  bool optimize = false;  ///< An op's bar of speed is told and refutes nothing.
};

// What an observer is told, in this order for an attempt. Pointers live for the call only.
struct RunBegan {
  Path folder;
  std::string instance;
  std::string model;
  std::string notice;
  bool resumed = false;
};
struct AttemptBegan {
  int attempt = 0;
  int of = 0;
  std::string why;
};  ///< why: "first", "repair of 2 (race)", ...
/// Told now and then while the judge has nothing to do; `tokens` is 0 until the first arrives.
struct Streaming {
  int attempt = 0;
  std::uint64_t tokens = 0;
};
struct Retrying {
  int attempt = 0;
  Error error;
  std::chrono::milliseconds wait{0};
};
struct Replied {
  int attempt = 0;
  const runs::ModelReply* reply = nullptr;
};
struct Judging {
  int attempt = 0;
  gates::Progress progress;
};  ///< "compile", "memory", ... while it runs.
struct Judged {
  int attempt = 0;
  const verdict::Verdict* verdict = nullptr;
};
struct Emitted {
  int attempt = 0;
  Path folder;
};
struct RunEnded {
  verdict::Outcome outcome{};
  std::string reason;
};
using Notice = std::variant<RunBegan, AttemptBegan, Streaming, Retrying, Replied, Judging, Judged,
                            Emitted, RunEnded>;

/// Everything that is not a value of the request. Members without a comment must be set.
struct Environment {
  Clock& clock;
  std::function<Result<std::vector<std::unique_ptr<Judge>>>(const JudgeSettings&)> make_judges;
  std::function<void(const Notice&)> observe{};  ///< May be empty.
  std::function<bool()> interrupted{};           ///< Ctrl-C was pressed. May be empty.
  std::function<std::uint64_t()> entropy{};      ///< Empty: the system's.
  std::function<std::optional<std::string>(const std::string&)>
      variable{};  ///< Environment variables. Empty: the process's.
  Path prompts{};  ///< Empty: PromptLibrary::DefaultFolder().
  std::map<std::string, std::string>
      versions{};  ///< Tool versions for run.json and the certificate.
  std::shared_ptr<const runs::SigningKey> signer{};  ///< Of vetted folders; null: none.
  /// A model to use in place of the one that the request names (tests). It must outlive the call.
  models::Model* model = nullptr;
};

struct RunOutcome {
  verdict::Outcome outcome = verdict::Outcome::kInconclusive;
  std::string reason;  ///< One line for people, with what to do next.
  bool of_record =
      false;  ///< The accepted kernel was judged before this process began: the record says so.
  Path folder;
  std::optional<Path> vetted;  ///< The emitted kernel's folder.
  int attempts = 0;            ///< Judged ones.
  runs::Usage usage;
  std::optional<double> usd;  ///< Where prices are known.
  bool resumable = false;     ///< A limit or Ctrl-C ended it.

  int ExitCode() const { return verdict::ExitCode(outcome); }
};
Json ToJson(const RunOutcome& outcome);

Result<RunOutcome> Generate(const GenerateRequest& request, Environment& environment);

/// Exit code of a failed Generate: 3 usage or environment, 4 for bugs.
int ExitCodeOf(const Error& error);

}  // namespace assay::loop
