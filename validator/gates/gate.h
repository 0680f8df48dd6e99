// What a gate is: a row of gates.def and a file. Adding one is adding these two.
//
// Gates of the stage kCases share one campaign (validator/campaign/campaign.h): each run of a case
// is examined by all of them, and each reports what it saw. `examine` is a pure function of a run;
// `run` turns what the gate knows into its result.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validator/campaign/effort.h"
#include "validator/campaign/runner.h"
#include "validator/campaign/trial.h"
#include "validator/gates/gatekeeper.h"
#include "validator/verdict/ledger.h"

namespace assay::campaign {
class Campaign;
}

namespace assay::gates {

/// Cheapest first. After a refutation the other gates of the same stage still run, later stages do
/// not.
enum class Stage : std::uint8_t { kFormat, kSource, kCompile, kCases, kDevice, kHoldout };

/// What gates share while they judge one candidate. Later gates rely on what earlier ones filled.
struct GateContext {
  GateContext(const ops::Instance& an_instance, const verdict::Candidate& a_candidate,
              Tools& some_tools, const Options& some_options);
  ~GateContext();

  const ops::Instance& instance;
  const verdict::Candidate& candidate;
  Tools& tools;
  const Options& options;
  const campaign::EffortRow effort;
  std::optional<ops::LaunchPlan> plan;  ///< Filled by the format gate.
  /// PTX, by the first who asks Compile(); what is assembled of it only once Settle() has passed.
  std::optional<Result<engine::CompileOutcome>> compilation;
  /// The same with machine code: made beside the first cases, for it takes as long again.
  std::shared_future<Result<engine::CompileOutcome>> assembly;
  verdict::GateResult compiled;                  ///< What the compile gate says of the PTX,
  std::optional<verdict::GateResult> assembled;  ///< and of all.
  std::unique_ptr<campaign::Runner> runner;      ///< Made by the first who asks cases().
  std::optional<campaign::Trial> trial;
  std::unique_ptr<campaign::Campaign> campaign;
  verdict::Ledger ledger;  ///< Of gates that run cases of their own; the campaign keeps its own.

  /// Only after the format gate has passed.
  const ops::LaunchPlan& Plan() const;
  /// Compiles, once.
  const Result<engine::CompileOutcome>& Compile();
  /// What the compile gate says of all, once the assembler is done: null before that, unless it is to wait.
  const verdict::GateResult* Assembled(bool wait);
  /// Runs the campaign, once. Only after the compile gate has passed.
  campaign::Campaign& Cases();
  /// Only after the compile gate has passed.
  campaign::Runner& CaseRunner();
  /// The candidate with all that runs it. Only after the compile gate has passed.
  const campaign::Trial& Trial();
  void Report(std::string_view gate, std::string detail, double fraction = -1) const;
};

struct Gate {
  std::string_view name;
  Stage stage;
  void (*run)(GateContext& context, verdict::GateResult& result);
  /// For kCases: this gate's findings in one run. Null for the others.
  std::vector<Finding> (*examine)(const campaign::CaseRun& run);
  std::string_view refutes;
};

/// All gates in the order of judging.
std::span<const Gate> AllGates();
/// What those of kCases make of a run, in the same order.
std::span<const campaign::Examiner> Examiners();

// --- the gates, one file each

#define GATE(Name, name, stage, refutes) \
  void Run##Name##Gate(GateContext& context, verdict::GateResult& result);
#define EXAMINING_GATE(Name, name, refutes) \
  GATE(Name, name, kCases, refutes)         \
  std::vector<Finding> Examine##Name(const campaign::CaseRun& run);
#include "validator/gates/gates.def"

// --- helpers for them

/// What a candidate is compiled with: nothing of it but the source and the names of its entries is
/// the author's choice.
engine::CompileRequest RequestFor(const ops::Instance& instance,
                                  const verdict::Candidate& candidate, const ops::LaunchPlan& plan);

/// What the compile gate says of `outcome`, after what it said of the PTX.
verdict::GateResult JudgeAssembled(const GateContext& context,
                                   const Result<engine::CompileOutcome>& outcome);

/// What a GPU says of one probe; for replay.
Result<std::vector<Finding>> FindingsOnDevice(GateContext& context, const cases::Probe& probe);
/// What the stopwatch says of one workload; for replay.
Result<std::vector<Finding>> FindingsOnClock(GateContext& context, const cases::Probe& probe);
/// A counterexample that needs no case: the candidate's text alone shows the findings.
verdict::Counterexample TextCounterexample(const GateContext& context, std::string_view gate,
                                           std::vector<Finding> findings);
/// Refuted with up to three of the findings, each its own counterexample.
void RefuteText(const GateContext& context, std::vector<Finding> findings,
                verdict::GateResult& result);

}  // namespace assay::gates
