// The gatekeeper: runs the gates on a candidate, cheapest first, and is the only one who can make a
// VettedKernel.
//
//   Gatekeeper gatekeeper(tools, options);
//   Judgement judgement = gatekeeper.Judge(instance, candidate);
//   if (judgement.vetted) Emit(*std::move(judgement.vetted), folder);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/campaign/effort.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/engine/known_answers.h"
#include "validator/oracle/oracle.h"
#include "validator/speed/workload_speed.h"
#include "validator/verdict/candidate.h"
#include "validator/verdict/verdict.h"

namespace assay::speed {
class Meter;
}

namespace assay::gates {

/// Progress for people; called from the judging thread.
struct Progress {
  std::string gate;
  std::string detail;    ///< "case 12 of 60"
  double fraction = -1;  ///< 0..1, or -1 when unknown.
};

struct Tools {
  engine::Compiler& compiler;
  engine::Engine& engine;
  oracle::Oracle& oracle;
  Clock& clock;
  std::function<void(const Progress&)> progress;  ///< May be empty.
  /// What the engine is asked before it is believed; an error makes the judgement inconclusive.
  std::function<Status(engine::Engine& engine, std::uint64_t seed)> known_answers =
      engine::CheckKnownAnswers;
  engine::Engine* gpu = nullptr;  ///< The second witness; null: none.
  speed::Meter* meter = nullptr;  ///< What speed is judged with, beside `gpu`; null: it is not.
  /// Without a meter: what a model makes of the op's workloads. Compares kernels and refutes none.
  std::function<Result<std::vector<speed::WorkloadSpeed>>(
      const ops::Instance&, const ops::LaunchPlan&, const engine::CompiledKernel&)>
      model;
};

struct Options {
  campaign::Effort effort = campaign::Effort::kStandard;
  std::uint64_t seed = 0;
  /// Fresh seeds for the holdout gate; drawn at gate time, from the system or from what no author
  /// chooses: never from a record.
  std::function<std::uint64_t()> holdout_seed;
  bool unsafe_no_jail = false;
  /// After a refutation by cases the later stages run as well: to see what each gate sees. The
  /// outcome is the same.
  bool every_gate = false;
  /// A kernel below the op's bar of speed is told so and not refuted: faster ones are looked for
  /// from there.
  bool below_bar = false;
  std::size_t device_cases = 0;  ///< On a GPU; 0: as many as the effort says.
  unsigned jobs = 0;             ///< Cases run at a time; 0: as many as the machine has threads.
  std::vector<verdict::Counterexample>
      regressions;  ///< Known counterexamples of this instance: their cases run first.
};

/// A kernel that passed every gate. Only the Gatekeeper makes one, and Emit (runs/emit.h) takes
/// nothing else.
class VettedKernel {
 public:
  const verdict::Candidate& candidate() const { return candidate_; }
  const ops::Instance& instance() const { return instance_; }
  const engine::CompiledKernel& compiled() const { return compiled_; }
  const verdict::Verdict& verdict() const { return verdict_; }

 private:
  friend class Gatekeeper;
  VettedKernel(verdict::Candidate candidate, ops::Instance instance,
               engine::CompiledKernel compiled, verdict::Verdict verdict)
      : candidate_(std::move(candidate)),
        instance_(std::move(instance)),
        compiled_(std::move(compiled)),
        verdict_(std::move(verdict)) {}

  verdict::Candidate candidate_;
  ops::Instance instance_;
  engine::CompiledKernel compiled_;
  verdict::Verdict verdict_;
};

struct Judgement {
  verdict::Verdict verdict;
  std::optional<VettedKernel>
      vetted;  ///< Present exactly when the verdict is accepted and the jail was on.
};

class Gatekeeper {
 public:
  Gatekeeper(Tools tools, Options options);
  ~Gatekeeper();

  /// Never fails: what goes wrong is in the verdict.
  Judgement Judge(const ops::Instance& instance, const verdict::Candidate& candidate);

  /// Runs one counterexample again, with its own candidate; returns the findings of that case, in
  /// the order of a counterexample.
  Result<verdict::Counterexample> Replay(const ops::Instance& instance,
                                         const verdict::Counterexample& counterexample);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::gates
