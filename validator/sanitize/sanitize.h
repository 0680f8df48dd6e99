// The emulator as a stand-alone sanitizer: any kernel, a launch file, no op.
//
// Model: the kernel is compiled (PTX is taken as it is), bound to the plan's buffers, and run under
// one schedule after the other, each from fresh memory. The first schedule is the plain one; when
// the kernel orders its threads by atomics or polling, or when the caller asks for it, others
// follow: reversed, permuted, and by random priorities in turns, without and with loads that return
// old values; then the first schedule with single pairs of accesses the other way round, of those
// that see who came first. Findings of all schedules are merged; buffers that end differently under
// two of them are `nondeterministic`, or `stale_read` where only old values make the difference,
// unless a race explains it or the plan allows it. Findings are then tried on smaller launches.
//
// Everything follows from the job: the same job gives the same outcome.
//
// Cost: one engine run a schedule, and a bounded number of further ones (on launches that are
// smaller than the first) for each of the first few findings. Thread-safe as far as the compiler
// and the engine are.
//
//   ASSAY_TRY(auto outcome, Sanitize(job, toolbox->compiler(), toolbox->emulator()));
//   for (const Finding& finding : outcome.findings) ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "ops/sanitize_plan.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/execution/execution.h"

namespace assay::sanitize {

struct Job {
  std::string file;  ///< Of the kernel, for messages. "*.ptx" is PTX, all else CUDA C++.
  std::string text;
  ops::SanitizePlan plan;
  Checks checks;
  int schedules = 0;       ///< 0: one, or kSchedulesForAtomics where the order may matter.
  std::uint64_t seed = 0;  ///< Of the schedules.
  std::uint64_t max_steps = Limits{}.max_steps;  ///< For each schedule.
  std::string arch = "sm_90";
  bool shrink = true;  ///< Look for the smallest launch that shows a finding.
};

inline constexpr int kSchedulesForAtomics = 8;
/// Runs of the second witness, their results compared.
inline constexpr int kWitnessRuns = 20;
/// Of the pairs of accesses of which one saw who came first: so many are run the other way round.
inline constexpr std::size_t kOrdersTried = 8;

/// Grid and block of every kernel of the plan, in order.
struct SmallLaunch {
  struct Sizes {
    Dim3 grid{1, 1, 1};
    Dim3 block{1, 1, 1};
    bool operator==(const Sizes&) const = default;
  };
  std::vector<Sizes> kernels;
};

/// What a GPU makes of the same launches. It watches little (validator/gpu/device.h): no finding of
/// its own acquits a kernel.
struct Testimony {
  Stop stop = Stop::kCompleted;  ///< Of the run that ended worst.
  std::string reason;
  int runs = 0;
  /// What stopped it, guards that were written, results with other bits than the emulator's plain
  /// run (device_disagreement) or than the run before (nondeterministic), which the plan does not
  /// allow. Sorted and merged.
  std::vector<Finding> findings;
};

struct Outcome {
  Stop stop = Stop::kCompleted;  ///< Of the schedule that ended worst.
  std::string reason;
  std::vector<Finding> findings;  ///< Sorted and merged.
  /// For each finding: a smaller launch that still shows it.
  std::vector<std::optional<SmallLaunch>> smallest;
  Counters counters;         ///< Of the first schedule.
  int schedules = 0;         ///< How many ran.
  std::uint64_t orders = 0;  ///< Pairs of accesses in the first schedule that see who came first,
  std::uint64_t orders_tried = 0;     ///< and those that were run the other way round.
  std::vector<SharedMemory> buffers;  ///< After the first schedule, in the plan's order.
  /// What the second witness said, where there was one; null: nobody was asked.
  std::optional<Testimony> witness;

  /// False: the kernel was not run to an end that means anything, so that no findings say nothing.
  bool complete() const { return stop == Stop::kCompleted || stop == Stop::kFault; }
};

/// Errors: a kernel that does not compile, a plan that names what the kernel does not have, files
/// that cannot be read. What the kernel does wrong is a finding. `witness`: a GPU that runs the
/// launches as well, or null; what it saw stands apart (Outcome::witness).
Result<Outcome> Sanitize(const Job& job, engine::Compiler& compiler, engine::Engine& engine,
                         engine::Engine* witness = nullptr);

/// The n-th schedule of an exploration; 0 is the plain one.
Schedule ScheduleNumber(int number, std::uint64_t seed);

}  // namespace assay::sanitize
