// The steps of a sanitizer run. Internal to validator/sanitize.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "validator/sanitize/sanitize.h"

namespace assay::sanitize {

struct Program {
  std::string ptx;
  std::map<std::string, std::string> lowered;  ///< Entry as written -> name in the PTX.
};

/// PTX as it is; CUDA C++ through the compiler.
Result<Program> Load(const Job& job, engine::Compiler& compiler);
/// The plan as an execution; schedule, checks and limits are the caller's.
Execution Bind(const ops::SanitizePlan& plan, const Program& program);
/// Fresh buffers, filled as the plan says.
Result<std::vector<SharedMemory>> MakeBuffers(const ops::SanitizePlan& plan);

/// What one schedule left behind.
struct Run {
  Schedule schedule;
  Report report;
  std::vector<SharedMemory> buffers;
};
/// `execution` from fresh buffers.
Result<Run> RunOnce(const ops::SanitizePlan& plan, const Execution& execution,
                    engine::Engine& engine);

/// Outputs that were not written as a whole.
std::vector<Finding> Unwritten(const ops::SanitizePlan& plan, const Report& report);
/// The results that a completed run left, and how it was run, in words: "in reversed order, seed 3".
struct Ending {
  std::string how;
  const std::vector<SharedMemory>* buffers = nullptr;
};
/// The first element of each result that differs, one finding of `kind` each.
std::vector<Finding> DifferentBits(const ops::SanitizePlan& plan, const Ending& one,
                                   const Ending& other, FindingKind kind);
/// The buffers that differ between two completed runs, one finding each. `guilty`: the contest of the
/// plain run whose turn makes the difference; null: nobody knows.
std::vector<Finding> Differences(const ops::SanitizePlan& plan, const Run& plain, const Run& other,
                                 const Finding* guilty = nullptr);

/// What a second engine makes of `execution`. `emulated`: the results of the emulator's plain run, or
/// null where it was not run to its end.
Result<Testimony> Ask(engine::Engine& witness, const Job& job, Execution execution,
                      const std::vector<SharedMemory>* emulated);

/// Float sums in results that have other bits in another order of their terms, which no run happened
/// to show.
std::vector<Finding> OrderedSums(const ops::SanitizePlan& plan, const Report& report);

/// The old values that a run read and that made it end as `consequence` says, likeliest culprit
/// first.
std::vector<Finding> Blame(const Report& report, const std::string& consequence);

/// A smaller launch under which the engine still reports `finding`, if one is found within a
/// bounded number of runs. `execution` carries the schedule that showed it.
Result<std::optional<SmallLaunch>> Shrink(const ops::SanitizePlan& plan, Execution execution,
                                          const Finding& finding, std::uint64_t steps,
                                          engine::Engine& engine);

}  // namespace assay::sanitize
