// What is asked of one run of a candidate, and what came of it: values that the runner (runner.h) takes and gives, the
// campaign plans and learns from, and gates read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "validator/cases/probe.h"
#include "validator/engine/engine.h"
#include "validator/oracle/oracle.h"

namespace assay::campaign {

/// What a run is asked for.
struct Wants {
  bool compare = true;  ///< Evaluate the truth and compare, unless the run already shows worse.
  bool coverage = false;
  bool keep_outputs = false;
  bool watch = true;  ///< False: values alone are wanted, from an engine that has no monitors.
  bool determinism =
      false;  ///< Compare outputs bit by bit with the same probe under the plain schedule.
  /// Run pairs of accesses that see who came first the other way round, and compare as well. Plain
  /// schedule only.
  bool orders = false;
  std::uint64_t max_steps = 200'000'000;
  /// What the blocks of a slice are to take together; all run where they take so many times that.
  std::uint64_t slice_steps = 32'000'000;
  static constexpr std::uint64_t kLittleMore = 4;
  /// What one block of a slice is estimated to take; 0: nobody knows.
  std::uint64_t block_steps = 0;
  /// And what the launches beside that run whole are; 0: none, or nobody knows.
  std::uint64_t beside_steps = 0;
  bool of_blocks = false;   ///< By blocks of other slices, rather than by whole cases.
  bool seems_long = false;  ///< It takes more than slices may, by that: it gets a part of it.
  bool too_long =
      false;  ///< One of a shape no larger has not ended by then: a slice does not begin.
  /// No fewer blocks of a slice run, unless each is dearer than all were to be by far.
  std::uint64_t least_blocks = 3;
  /// No fewer than that, however dear each is; of several launches, where blocks are needed, as there is room.
  std::uint64_t sure_blocks = 1;
  /// What a part of a case may take, where that is not what parts may take otherwise.
  std::uint64_t part_steps = 0;
  /// Of a slice of several launches run only the blocks that are needed, even where all might fit.
  bool needed_only = false;
  /// Of a slice of launches whose blocks may depend on each other: it runs where those that run do not, or not at all.
  bool apart_or_nothing = false;
  /// It is about values: a slice of which there is no truth does not run.
  bool truth_or_nothing = false;
  bool operator==(const Wants&) const = default;
};

/// A probe, what it is asked for, and why it is tried ("smoke", "schedules").
struct Task {
  cases::Probe probe;
  Wants wants;
  std::string purpose;
  std::size_t wave = 0;  ///< Of those that run in one go, what it takes is counted with this one's.
  bool sure = false;     ///< Not left out for what it costs.
};

struct OutputState {
  std::string name;
  Shape shape;
  std::uint64_t unwritten_bytes = 0;
  std::int64_t first_unwritten = -1;  ///< Element.
};

/// How much of a launch ran.
struct LaunchPart {
  std::string entry;
  std::uint64_t run = 0;  ///< Blocks,
  std::uint64_t all = 0;  ///< of these.
  bool tickets = false;   ///< These are tickets that its blocks draw.
};

/// Elements of an output whose error is traced to its origin.
struct OutputFocus {
  std::string output;
  std::int64_t first = 0;  ///< Row-major.
  std::int64_t elements = 1;
  bool common_sign = false;  ///< What the errors have in common matters, not how large they are.
};

/// What shadow values say about those elements. Sums over them.
struct ErrorTrace {
  ErrorOrigin origin;
  double error = 0;     ///< |got - truth|
  double rounding = 0;  ///< |got - exact|, exact being the kernel's operations in FP64.
  double formula = 0;   ///< |exact - truth|
  double allowed = 0;   ///< Of the allowances.
  double exact = 0;     ///< Of the first element.
  std::int64_t elements = 0;
  bool not_finite = false;  ///< Something is infinite, or no number, that need not be.
};

struct CaseRun {
  cases::Probe probe;
  std::optional<Error> error;  ///< It could not be run or judged: never a fault of the candidate.
  std::vector<Finding> plan_findings;  ///< The launch plan does not hold for this shape.
  Report report;                       ///< Of the judged call and its prelude together.
  std::vector<OutputState> outputs;    ///< Of the judged call.
  std::optional<oracle::Comparison> comparison;
  std::vector<Finding> nondeterminism;  ///< Against the plain schedule.
  std::uint64_t orders = 0;        ///< Pairs of accesses in the plain run that see who came first,
  std::uint64_t orders_tried = 0;  ///< and those that were run the other way round.
  TensorMap kept;                  ///< Outputs, when asked for.
  double truth_steps = 0;   ///< Of a whole case: what its truth took (oracle::Truth::warp_steps).
  std::uint64_t steps = 0;  ///< Of all engine runs it took.
  std::vector<LaunchPart> parts;  ///< Where a slice ran: of each launch.
  /// Why a probe of a part of a case was not run: its plan cannot be cut, or takes too long. Proves
  /// nothing, and bars nothing.
  std::string left_out;

  /// Why this run proves nothing, or empty. A run with findings refutes whatever else happened.
  std::string Inconclusive() const;
};

/// Line information carries the compiler's working directory: takes it off.
void NameTheKernelFile(Report& report);

/// Why a slice was left out whose other axes may be shorter.
inline constexpr std::string_view kBlockTooLong = "one block takes too long";

/// What the blocks of a slice may take.
std::uint64_t MostStepsOfSlice(const Wants& wants);

/// Is only a slice of it to run, rather than the ends of something huge, which is zero elsewhere?
bool IsSlice(const cases::Probe& probe);

/// Is only what some blocks add looked at (sums.cc)?
bool IsOfSums(const cases::Probe& probe);

}  // namespace assay::campaign
