// A kernel's speed on a GPU, at the sizes that real models use, as a share of what the card allows.
//
//   Meter meter({stopwatch, truth}, rates);
//   Measurement at = meter.Measure(subject, workload, settings);
//   if (at.findings.empty() && at.left_out.empty()) Use(at.share);
//
// A workload is timed on several sets of fresh inputs, in an order that nobody knows, each call on cold
// caches with poisoned outputs (validator/execution/timing.h). Then the timed process is ended, and
// every output is held to what an untimed call gives and to truths (hold.h). A workload that does not
// fit the card is halved along its longest axis until it does, and says so.
//
// The limit: bytes that must move over the measured copy bandwidth, operations over the rate of the
// vendor's matrix products, or one launch after another; the longest of them.
//
// One measurement at a time. Cost: seconds a workload, most of them for inputs and truths.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "ops/speed.h"
#include "validator/cases/case.h"
#include "validator/engine/compiler.h"
#include "validator/engine/stopwatch.h"
#include "validator/oracle/oracle.h"
#include "validator/speed/workload_speed.h"

namespace assay::speed {

/// What measures.
struct Instruments {
  engine::Stopwatch& stopwatch;
  engine::Engine& engine;  ///< Makes the same calls untimed: the same GPU.
  oracle::Oracle& truth;  ///< Whole ones; runs references where there is room for them: on the GPU.
  oracle::Oracle&
      parts;  ///< Of some elements; runs references where it takes a few of their threads.
};

struct Subject {
  const ops::Instance& instance;
  const ops::LaunchPlan& plan;
  const engine::CompiledKernel& compiled;
};

struct Settings {
  std::uint64_t seed = 1;
  std::uint32_t rounds = 10;
  double most_seconds = 1;                            ///< Of timed calls of a workload.
  std::int64_t most_outputs = std::int64_t{1} << 27;  ///< Elements of all outputs of a call.
  /// Hold outputs to their truths. Off for what has been judged elsewhere and plays no tricks: then two
  /// sets of inputs do.
  bool check = true;
};

/// Below this no kernel gets.
struct Limit {
  double seconds = 0;
  std::string by;  ///< "memory", "arithmetic" or "launch".
  double bytes = 0;
  double operations = 0;
};
/// kUnsupported where the op's operations need a rate that was not measured, and are not few.
Result<Limit> LimitOf(const ops::Instance& instance, const ops::SpeedContract& contract,
                      const Rates& rates, const ops::AxisValues& axes, std::size_t launches);

struct Measurement {
  std::string workload;  ///< "m=64 n=4096 k=4096".
  std::string note;
  ops::AxisValues axes;         ///< As timed.
  std::string scaled;           ///< What of the full size is missing, and why; empty: nothing.
  std::string left_out;         ///< Why there are no times; empty: there are.
  std::vector<double> seconds;  ///< Of each timed call, shortest first.
  Limit limit;
  double share = 0;               ///< Of the limit, by the median.
  std::optional<double> library;  ///< Seconds of the vendor's library,
  std::string library_name;       ///< which is "cuBLASLt" or "cuDNN".
  std::string no_library;         ///< Why not, where the op has one.
  std::uint64_t checked = 0;      ///< Output elements held to a truth.
  std::uint64_t compared = 0;     ///< Output elements held to those of an untimed call.
  std::string held;               ///< Both in words; empty: neither.
  Conditions before, after;
  std::vector<Finding> findings;      ///< What was wrong with the outputs, guards, inputs.
  std::optional<cases::Case> guilty;  ///< Of the first finding.

  double Median() const;
  /// The middle half of the times, as a share of the median.
  double Spread() const;
  /// The library is as fast, or faster, within the spread.
  bool UseLibrary() const;
  WorkloadSpeed Summary() const;
};
Json ToJson(const Measurement& measurement);

/// What came of running one call again and again under conditions that change who comes first.
struct Stressed {
  std::vector<Finding> findings;  ///< Of the first condition that showed any.
  std::size_t repetitions = 0;    ///< Over all conditions.
  std::size_t conditions = 0;
  cases::Case case_;
};

class Meter {
 public:
  Meter(Instruments instruments, Rates rates)
      : instruments_(instruments), rates_(std::move(rates)) {}
  const Rates& rates() const { return rates_; }

  /// What went wrong is in the measurement: findings of the kernel, or why it was left out.
  Measurement Measure(const Subject& subject, const ops::Workload& workload,
                      const Settings& settings);

  /// The same call again and again, under all conditions of stress.h: `most` times under each, or as
  /// often as fits a few seconds where a call takes `seconds`.
  Result<Stressed> Stress(const Subject& subject, const ops::Workload& workload,
                          const Settings& settings, std::uint32_t most, double seconds);

  /// The largest of `axes` and its halves that fit card and settings; how many halvings.
  Result<std::pair<ops::AxisValues, int>> Fit(const Subject& subject, ops::AxisValues axes,
                                              const Settings& settings) const;

 private:
  struct Ring;
  Result<Ring> MakeRing(const Subject& subject, const ops::AxisValues& axes,
                        const Settings& settings, std::uint32_t slots);
  Status Time(const Subject& subject, const Settings& settings, Ring& ring, Measurement& result);
  /// What the op's library takes at the same shape, where the contract names one.
  Status TimeLibrary(const Subject& subject, const ops::SpeedContract& contract,
                     const ops::AxisValues& axes, Measurement& result);
  Status HoldToTruths(const Subject& subject, const Settings& settings, Ring& ring,
                      Measurement& result);
  /// Leaves in the ring what is to be held to its truth because it differs.
  Status HoldToUntimed(const Subject& subject, Ring& ring, Measurement& result);
  Status HoldSuspects(const Subject& subject, Ring& ring, Measurement& result);
  /// What the call of a slot gives where nothing is timed.
  Result<TensorMap> RunAlone(const Subject& subject, const Ring& ring, std::size_t slot,
                             std::vector<Finding>& findings);
  static void Blame(const Ring& ring, std::size_t slot, std::vector<Finding> findings,
                    Measurement& result);
  bool HasParts(const Subject& subject, const Measurement& result) const;
  std::uint32_t SlotsFor(const Subject& subject, const ops::AxisValues& axes,
                         const Settings& settings) const;

  Instruments instruments_;
  Rates rates_;
  /// Workloads whose references cannot be run in part, or not in seconds.
  std::set<std::string, std::less<>> without_parts_;
};

/// All workloads of an op, as a document (assay.speed/1).
Json ReportOf(const ops::Instance& instance, const Rates& rates,
              std::span<const Measurement> measurements);
std::string TextOf(std::span<const Measurement> measurements);

}  // namespace assay::speed
