// What a gate is: a row of the table in gates.cc. One file a gate; adding one is adding a file and
// a row.
//
// Gates of the stage kCases share one campaign (campaign.h): each run of a case is examined by all
// of them, and each reports what it saw. `examine` is a pure function of a run; `run` turns what
// the gate knows into its result.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validator/gates/effort.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/runner.h"

namespace assay::gates {

class Campaign;

/// Cheapest first. After a refutation the other gates of the same stage still run, later stages do
/// not.
enum class Stage : std::uint8_t { kFormat, kSource, kCompile, kCases, kDevice, kHoldout };

/// What gates share while they judge one candidate. Later gates rely on what earlier ones filled.
struct GateContext {
  GateContext(const ops::Instance& an_instance, const Candidate& a_candidate, Tools& some_tools,
              const Options& some_options);
  ~GateContext();

  const ops::Instance& instance;
  const Candidate& candidate;
  Tools& tools;
  const Options& options;
  const EffortRow& effort;
  std::optional<ops::LaunchPlan> plan;  ///< Filled by the format gate.
  std::optional<Result<engine::CompileOutcome>>
      compilation;                 ///< Filled by the first who asks Compile().
  std::unique_ptr<Runner> runner;  ///< Made by the first who asks cases().
  std::unique_ptr<Campaign> campaign;

  /// Compiles, once.
  const Result<engine::CompileOutcome>& Compile();
  /// Runs the campaign, once. Only after the compile gate has passed.
  Campaign& Cases();
  /// Only after the compile gate has passed.
  Runner& CaseRunner();
  void Report(std::string_view gate, std::string detail, double fraction = -1) const;
};

struct Gate {
  std::string_view name;
  Stage stage;
  void (*run)(GateContext& context, GateResult& result);
  /// For kCases: this gate's findings in one run. Null for the others.
  std::vector<Finding> (*examine)(const CaseRun& run);
  std::string_view refutes;
};

/// All gates in the order of judging.
std::span<const Gate> AllGates();

// --- the gates, one file each

void RunFormatGate(GateContext& context, GateResult& result);
void RunPolicyGate(GateContext& context, GateResult& result);
void RunCompileGate(GateContext& context, GateResult& result);
void RunMemoryGate(GateContext& context, GateResult& result);
std::vector<Finding> ExamineMemory(const CaseRun& run);
void RunRaceGate(GateContext& context, GateResult& result);
std::vector<Finding> ExamineRace(const CaseRun& run);
void RunNumericGate(GateContext& context, GateResult& result);
std::vector<Finding> ExamineNumeric(const CaseRun& run);
void RunPrecisionGate(GateContext& context, GateResult& result);
std::vector<Finding> ExaminePrecision(const CaseRun& run);
void RunPropertyGate(GateContext& context, GateResult& result);
void RunHoldoutGate(GateContext& context, GateResult& result);

// --- helpers for them

/// A counterexample that needs no case: the candidate's text alone shows the findings.
Counterexample TextCounterexample(const GateContext& context, std::string_view gate,
                                  std::vector<Finding> findings);
/// Refuted with up to three of the findings, each its own counterexample.
void RefuteText(const GateContext& context, std::vector<Finding> findings, GateResult& result);
void SetInconclusive(GateResult& result, std::string reason);
/// Does op.json declare a property of this name?
bool HasProperty(const ops::OpSpec& op, std::string_view name);
/// Does the op promise the same bits on every run?
inline bool IsDeterministic(const ops::OpSpec& op) { return HasProperty(op, "deterministic"); }

/// Findings of all case gates in one run, `guilty` first where it is among them, the others in gate
/// order. What a counterexample holds.
std::vector<Finding> FindingsOf(const CaseRun& run, const Candidate& candidate,
                                const Finding* guilty);

}  // namespace assay::gates
