// What the judging subcommands share: workers, compiler, engine, oracle and clock, made from the common options.
//
// One Workbench serves one invocation. Making it probes the jail; workers start on first use. Its parts are as thread-safe as their own
// headers say.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"
#include "validator/oracle/oracle.h"
#include "validator/speed/meter.h"

namespace assay::cli {

struct WorkbenchOptions {
  /// Or "gpu,emulator", "gpu:1,emulator", "gpu:0,gpu:1,emulator", "gpu:*,emulator", with ",speed" behind.
  std::string engine = "emulator";
  std::string arch = "sm_90";
  bool unsafe_no_jail = false;
  bool no_cache = false;
  unsigned jobs = 0;           ///< Workers a kind; 0: as many as there are cores.
  bool speed = false;          ///< Judge speed as well: the same as ",speed" behind the engines.
  std::optional<Rates> rates;  ///< What this card can do, where that has been measured.
  /// The engines with what is judged beside them, as a run's record keeps them.
  std::string Engine() const { return engine + (speed ? ",speed" : ""); }
};

struct Engines {
  std::vector<int> gpus;  ///< Numbers of those that are asked for beside the emulator.
  bool all = false;       ///< "gpu:*": however many there are.
  bool speed = false;     ///< Needs a GPU.
  bool gpu() const { return all || !gpus.empty(); }
};
/// "emulator", "gpu,emulator", "gpu:0,gpu:1,emulator", "gpu:*,emulator", "gpu,emulator,speed".
Result<Engines> ParseEngines(std::string_view text);

/// --engine, --arch, --jobs, --unsafe-no-jail, --no-cache.
void AddWorkbenchOptions(CLI::App& command, WorkbenchOptions& options);

class Workbench {
 public:
  /// Fails when the jail cannot be had (naming what to enable) and `unsafe_no_jail` was not given.
  static Result<std::unique_ptr<Workbench>> Make(const WorkbenchOptions& options);

  sandbox::Workers& workers() { return toolbox_->workers(); }
  engine::Compiler& compiler() { return toolbox_->compiler(); }
  engine::Engine& engine() { return toolbox_->emulator(); }
  /// Null unless speed was asked for.
  speed::Meter* meter() { return meter_ ? &*meter_ : nullptr; }
  /// Null unless it was asked for.
  engine::Engine* gpu() { return with_gpu_ ? &toolbox_->gpu() : nullptr; }
  Clock& clock() { return clock_; }
  /// For a Gatekeeper; without progress.
  gates::Tools MakeTools();
  /// What the cost model makes of kernels where none is timed (docs/cost.md).
  void AddModel(gates::Tools& tools);
  /// Before minutes of judging, or a model's tokens: does the op's reference compile?
  Status CheckReference(const ops::Instance& instance) { return oracle_.Check(instance); }
  /// Fails when the compiler does not know `arch`: nothing could be judged for it.
  Status CheckTarget(const std::string& arch);
  /// Tool versions, for run.json and certificates.
  std::map<std::string, std::string> Versions();
  /// The same and the digests of our programs: another build is another judge.
  Result<std::map<std::string, std::string>> JudgeVersions();

 private:
  Workbench(std::unique_ptr<engine::Toolbox> toolbox, bool with_gpu)
      : with_gpu_(with_gpu),
        toolbox_(std::move(toolbox)),
        oracle_(toolbox_->compiler(), toolbox_->emulator()) {}

  bool with_gpu_;
  SystemClock clock_;
  std::unique_ptr<engine::Toolbox> toolbox_;
  oracle::Oracle oracle_;
  std::unique_ptr<oracle::Oracle> gpu_truths_;  ///< References on the GPU.
  std::optional<speed::Meter> meter_;
};

}  // namespace assay::cli
