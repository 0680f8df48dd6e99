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
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/gates/verdict.h"
#include "validator/oracle/oracle.h"

namespace assay::gates {

/// What an untrusted author handed in: bytes.
struct Candidate {
  std::string kernel;  ///< kernel.cu
  std::string launch;  ///< launch.json
};

enum class Effort : std::uint8_t { kQuick, kStandard, kThorough };

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
};

struct Options {
  Effort effort = Effort::kStandard;
  std::uint64_t seed = 0;
  /// Fresh seeds for the holdout gate; from the system at gate time unless a replayed run gives the
  /// recorded ones.
  std::function<std::uint64_t()> holdout_seed;
  bool unsafe_no_jail = false;
  unsigned jobs = 0;  ///< Cases run at a time; 0: as many as the machine has threads.
  std::vector<Counterexample>
      regressions;  ///< Known counterexamples of this instance: their cases run first.
};

/// A kernel that passed every gate. Only the Gatekeeper makes one, and Emit (agent/emit.h) takes
/// nothing else.
class VettedKernel {
 public:
  const Candidate& candidate() const { return candidate_; }
  const ops::Instance& instance() const { return instance_; }
  const engine::CompiledKernel& compiled() const { return compiled_; }
  const Verdict& verdict() const { return verdict_; }

 private:
  friend class Gatekeeper;
  VettedKernel(Candidate candidate, ops::Instance instance, engine::CompiledKernel compiled,
               Verdict verdict)
      : candidate_(std::move(candidate)),
        instance_(std::move(instance)),
        compiled_(std::move(compiled)),
        verdict_(std::move(verdict)) {}

  Candidate candidate_;
  ops::Instance instance_;
  engine::CompiledKernel compiled_;
  Verdict verdict_;
};

struct Judgement {
  Verdict verdict;
  std::optional<VettedKernel>
      vetted;  ///< Present exactly when the verdict is accepted and the jail was on.
};

class Gatekeeper {
 public:
  Gatekeeper(Tools tools, Options options);
  ~Gatekeeper();

  /// Never fails: what goes wrong is in the verdict.
  Judgement Judge(const ops::Instance& instance, const Candidate& candidate);

  /// Runs one counterexample again, with its own candidate; returns the findings of that case, in
  /// the order of a counterexample.
  Result<Counterexample> Replay(const ops::Instance& instance,
                                const Counterexample& counterexample);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::gates
