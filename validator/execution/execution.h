// What an engine is asked to do, and what it answers. Values with one JSON form each; no behaviour.
//
// An Execution is a program (PTX), device buffers, and a list of launches that run in order on the same memory, with complete
// barriers between them. The answer is a Report: how it stopped, what was found, and counters. Buffer contents travel in shared
// memory beside these values (engine.h), never inside them.
//
// Used on both sides of the jail: by the orchestrator's engines (validator/engine) and by the emulator (validator/emu).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "validator/findings/finding.h"

namespace assay {

enum class BufferRole : std::uint8_t { kInput, kOutput, kWorkspace };
/// What a buffer holds before the first launch.
enum class BufferFill : std::uint8_t {
  kProvided,       ///< The bytes handed over; all defined. An output that starts so is updated.
  kZero,           ///< Zeros; defined.
  kUninitialised,  ///< Poisoned with `poison`; every byte undefined until written.
};

/// From launch `launch` on, a buffer lies at the address of the earlier `buffer`, which has been freed by then: what a caching
/// allocator does from one call to the next.
struct BufferReuse {
  std::uint32_t buffer = 0;  ///< Index into Execution::buffers.
  std::uint32_t launch = 0;  ///< Index into Execution::launches.
  bool operator==(const BufferReuse&) const = default;
};

struct BufferSpec {
  std::string name;  ///< As the launch plan names it.
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  BufferRole role = BufferRole::kInput;  ///< Inputs are read-only: writing one is a finding.
  BufferFill fill = BufferFill::kProvided;
  std::uint8_t poison = 0xff;
  std::uint32_t misalign =
      0;  ///< Bytes by which the address misses a 256-byte boundary; a multiple of the element size.
  /// Unset: at an address of its own, for all launches.
  std::optional<BufferReuse> reuse = std::nullopt;
};

/// A tensor map (CUtensorMap) over a buffer, tile mode. Dimension 0 is the innermost.
struct TensorMapSpec {
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;    ///< Elements of each dimension, 1 to 5 of them.
  std::vector<std::uint64_t> strides;  ///< Bytes, of dimensions 1 and up.
  std::vector<std::uint32_t> box;      ///< Elements of each dimension that a copy moves.
  std::uint8_t swizzle = 0;            ///< 0 to 3: none, 32, 64, 128 bytes.
  bool fill_nan = false;               ///< What lies outside reads as NaN instead of zero.
  bool operator==(const TensorMapSpec&) const = default;
};

/// A kernel argument: the address of a buffer, a value of its own, or a tensor map over a buffer.
struct Argument {
  enum class Kind : std::uint8_t { kBuffer, kScalar, kTensorMap } kind = Kind::kScalar;
  std::string name;          ///< For messages.
  std::uint32_t buffer = 0;  ///< Index into Execution::buffers.
  TensorMapSpec map;         ///< kTensorMap.
  std::vector<std::uint8_t>
      bytes;  ///< Scalar: little-endian value, as long as the kernel's parameter.
  DType dtype = DType::
      kI64;  ///< Scalar: its type, so that it can be narrowed to the parameter (checked, never truncated).
};

struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const BlockRange&) const = default;
};

struct Launch {
  std::string entry;  ///< Mangled name in the PTX.
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  Dim3 cluster{1, 1, 1};
  std::uint64_t shared_bytes = 0;  ///< Dynamic shared memory.
  bool cooperative = false;
  std::vector<Argument> args;
  /// Blocks to run, by number (x fastest); empty: all. For grids of which only the ends can be
  /// afforded.
  std::vector<BlockRange> only;
  /// Of each block the threads to run, by number (x fastest); empty: all. For blocks whose threads run by themselves
  /// (facts::Unit).
  std::vector<BlockRange> threads;
  /// Buffers that hold their first content again before this launch, undefined bytes and all: a
  /// call is made once more on the same memory. No inputs: nobody writes those.
  std::vector<std::uint32_t> fresh;
};

/// Which monitors watch. The emulator always looks at bounds, alignment and write protection.
struct Checks {
  bool bounds = true;
  bool initialisation = true;
  bool race = true;
  bool barrier = true;
  bool coverage = false;
  bool order = false;  ///< Report::order: what depends on who came first. Needs `race`.
  bool shadow_values =
      false;  ///< FP64 shadows, to find the line that loses the precision (`focus`). Slow; no other monitor watches then.
  bool operator==(const Checks&) const = default;
};
/// What was asked for and not watched, in words; empty: everything was. No finding of a monitor that
/// did not watch says nothing.
std::string NotWatched(const Checks& asked, const Checks& watched);

/// The elements that shadow values are asked about, and how many of them an engine looks at.
inline constexpr std::int64_t kMostFocusElements = 4096;
struct ShadowFocus {
  std::uint32_t buffer = 0;  ///< Index into Execution::buffers.
  std::int64_t first = 0;
  std::int64_t elements = 0;
  bool common_sign =
      false;  ///< Shares of what the elements' errors have in common, not of their sizes.
  bool operator==(const ShadowFocus&) const = default;
};

/// Two strong accesses to one place that nothing orders: the n-th strong access of one warp of a launch, then that of another.
struct OrderPair {
  std::uint32_t launch = 0;
  std::uint32_t first_warp = 0;    ///< Through the whole launch.
  std::uint32_t first_access = 1;  ///< From 1 on.
  std::uint32_t second_warp = 0;
  std::uint32_t second_access = 1;
  bool operator==(const OrderPair&) const = default;
};

/// In which order blocks, warps and lanes run. Everything follows from these numbers: same schedule, same result.
struct Schedule {
  enum class Policy : std::uint8_t {
    kSequential,  ///< Blocks in order, a few at a time; warps round robin. The default, and the fastest.
    kPermuted,  ///< Blocks in a random order and interleaved, lanes in order.
    kReversed,  ///< Blocks, warps and lanes in reverse.
    kPriorities,  ///< PCT: random priorities, lowered at random synchronisation points. Fair for spin loops.
  };
  Policy policy = Policy::kSequential;
  std::uint64_t seed = 0;
  /// Of the strong loads that may return an earlier value by the memory model, how many do, in percent; 100: all, and the oldest.
  /// Needs the race monitor; plain loads always return the newest.
  std::uint32_t stale = 0;
  /// The other order of a pair: the first warp waits before its access until the second has made its own, or cannot.
  std::optional<OrderPair> hold = std::nullopt;
  bool operator==(const Schedule&) const = default;
};

struct Limits {
  std::uint64_t max_steps = 2'000'000'000;      ///< Thread-level instructions, over all launches.
  std::uint64_t max_memory_bytes = 4ull << 30;  ///< Shadow state and blocks' own memory.
  std::uint32_t max_findings = 32;              ///< Distinct findings kept.
  std::uint32_t max_milliseconds =
      0;  ///< 0: the caller's deadline alone. Only a guard: never decides a verdict but inconclusive.
};

/// Bytes of a buffer.
struct BufferRange {
  std::uint32_t buffer = 0;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  bool operator==(const BufferRange&) const = default;
};

/// As many bytes as may be asked about at once (Execution::whose).
inline constexpr std::uint64_t kMostWhose = std::uint64_t{2} << 20;

/// A counter that work is dealt out by: who adds to it and looks at what it held has drawn that as a ticket.
struct Tickets {
  BufferRange word;  ///< Four or eight bytes.
  /// What the first draws find there, one after the other, instead of what it holds; after them it counts on. So a few of
  /// many tickets are dealt out, as if others had drawn those between.
  std::vector<std::uint64_t> held;
  bool operator==(const Tickets&) const = default;
};

struct Execution {
  std::string ptx;
  std::string cubin;  ///< Machine code of the same program, for engines that run it; may be empty.
  std::vector<BufferSpec> buffers;
  std::vector<Launch> launches;
  Checks checks;
  ShadowFocus focus;  ///< For checks.shadow_values.
  Schedule schedule;
  Limits limits;
  std::uint64_t perturbation_seed =
      0;  ///< Not 0: approximate instructions return values perturbed within their documented bound.
  bool note_missing = false;  ///< Report::missing. Needs checks.initialisation.
  /// Report::writers: who writes these, by buffer and ascending, none touching the next; at most kMostWhose bytes.
  std::vector<BufferRange> whose;
  /// With `whose`: of what plain stores write to buffers nothing is kept but that, for pages cost more than instructions. For
  /// programs that write global memory in no other way, and store nothing defined (skeletons): they read the same from what
  /// was never written. What outputs hold then means nothing.
  bool drop_stores = false;
  std::optional<Tickets> tickets = std::nullopt;
  bool note_drawn = false;  ///< Report::drawn.
  /// What is undefined counts as the machine's choice where it decides a branch: a finding only where that decides
  /// whether something lasts, or an address. For launches that run without what others hand on to them.
  bool follow_undefined = false;
  bool note_disguised = false;  ///< Report::disguised. Needs checks.initialisation.
  /// Ends the run, as at its step limit, where Counters::may_meet comes true. Needs checks.initialisation or checks.race.
  bool ends_at_meetings = false;
  std::string target_sm = "sm_90";  ///< Limits of the target: shared memory, threads, registers.
};

enum class Stop : std::uint8_t {
  kCompleted,  ///< All launches ran to their end (there may be findings).
  kFault,      ///< A finding that no execution survives: out of bounds, trap, deadlock.
  kStepLimit,  ///< max_steps reached.
  kUnsupported,  ///< An instruction or feature that the engine does not cover; `reason` names it and its line.
  kResourceLimit,  ///< Out of memory or time of the engine, not of the kernel.
  kEngineFailure,  ///< The worker died or broke its protocol.
};
std::string_view Name(Stop stop);

struct Counters {
  std::uint64_t steps = 0;  ///< Retired thread-level instructions.
  std::uint64_t warp_steps = 0;
  /// How long that takes the emulator, in plain instructions of a warp: a load, a copy or a matrix product takes as long
  /// as many of them (emu/work.h). 0 where nobody counted.
  std::uint64_t work = 0;
  std::uint64_t bytes_read = 0;  ///< Global memory.
  std::uint64_t bytes_written = 0;
  std::uint64_t barriers = 0;  ///< Completed block-wide barriers.
  std::uint64_t atomics = 0;
  bool used_atomics =
      false;  ///< Float or order-dependent atomics, or polling: the schedule may matter.
  /// An atomic operation or a strong access outside of shared memory ran, or a fence for more than a cluster: by which
  /// blocks may meet. Nothing else lets one hang on what others of its launch do, but clusters.
  bool may_meet = false;
  bool strong_loads =
      false;  ///< Volatile, relaxed or acquiring loads: they may return earlier values (Schedule::stale).
  std::uint64_t stale_chances =
      0;  ///< With Schedule::stale: loads of a lane that might have returned an earlier value,
  std::uint64_t stale_reads = 0;  ///< and that did.
};

/// A branch or a selection that ran, and which ways it went (coverage.h). Each run has hundreds of them.
struct BranchCoverage {
  std::uint32_t ptx_line = 0;
  std::string file;        ///< "kernel.cu"; empty without line information.
  std::uint32_t line = 0;  ///< In `file`.
  std::uint32_t column = 0;
  std::uint8_t sides = 0;
};

/// A number of which an instruction keeps no more digits than that, or takes it for whole though it was computed in no more:
/// an index of 32 bits that is widened to reach memory. Told with coverage.
struct NarrowNumber {
  std::uint32_t ptx_line = 0;
  std::uint8_t which = 0;   ///< Of the factors of a wide product the first or the second.
  std::uint8_t digits = 0;  ///< It is whole below that power of two.
  std::uint32_t line = 0;   ///< In the author's file, or 0.
  std::uint64_t most = 0;   ///< The largest that any thread had, 1 at least.
  bool operator==(const NarrowNumber&) const = default;
};

/// From shadow values: where the errors of the focus elements entered, and what they would be without.
struct ErrorOrigin {
  std::vector<ErrorShare> shares;  ///< Largest first, at most kMostErrorShares.
  std::vector<double>
      exact;  ///< By focus element: the kernel's result in FP64 throughout. NaN: unknown.
  std::uint64_t flipped =
      0;  ///< Comparisons and roundings to integers that FP64 would have decided otherwise.
  std::uint64_t lost = 0;  ///< Times that a number went where it is not followed.
  bool operator==(const ErrorOrigin&) const = default;
};

/// With Checks::order: what of the results depends on the order of threads that nothing orders. No finding is a defect by itself.
struct OrderReport {
  std::vector<Finding>
      sums;  ///< Float additions that give other bits in another order; shown with both.
  std::vector<Finding>
      contests;  ///< Accesses that see who came first, one for each pair of program places.
  std::uint64_t pairs = 0;  ///< Such pairs of accesses in this run.
  std::vector<OrderPair>
      orders;         ///< Some of them, to be tried the other way round (Schedule::hold).
  bool held = false;  ///< Schedule::hold had its way: the second access came first.
  bool operator==(const OrderReport&) const = default;
};

/// Bytes that a block wrote, and nobody after it.
struct WrittenRange {
  BufferRange range;
  std::uint32_t launch = 0;  ///< Index into Execution::launches.
  std::uint64_t block = 0;   ///< By number, x fastest.
  bool operator==(const WrittenRange&) const = default;
};

/// A word of a buffer that started as zeros, to which integers were added by those who look at what it held.
struct DrawnWord {
  BufferRange word;
  std::uint64_t times = 0;  ///< By threads.
  std::uint64_t value = 0;  ///< That it held afterwards.
  bool operator==(const DrawnWord&) const = default;
};

struct Report {
  Stop stop = Stop::kCompleted;
  std::string reason;
  std::vector<Finding> findings;
  /// What the engine looked at; whoever sets nothing has seen nothing.
  Checks watched = {.bounds = false, .initialisation = false, .race = false, .barrier = false};
  /// Of kind stale_read: the earlier values that loads returned, one for each pair of load and store, likeliest culprit first. None
  /// is a defect by itself: they say why the run ended otherwise than one without them.
  std::vector<Finding> stale_reads;
  OrderReport order;
  /// With Execution::note_missing: what was read though nothing had written it, by buffer and ascending. Nothing
  /// where that was not asked for, or is too much.
  std::optional<std::vector<BufferRange>> missing;
  /// With Execution::whose: who wrote what of it; the rest nobody did. Nothing where that was not asked for, or is too much.
  std::optional<std::vector<WrittenRange>> writers;
  /// With Execution::note_drawn: such words, by buffer and place. Nothing where that was not asked for, or they are too many.
  std::optional<std::vector<DrawnWord>> drawn;
  /// With Execution::note_disguised: bytes of uninitialised buffers that were written though they look as if nobody had,
  /// by buffer and ascending. They hold the poison; or they are a page of zeros, as one is that nobody came to in a
  /// buffer so large that it is filled where a kernel comes to.
  std::vector<BufferRange> disguised;
  Counters counters;
  std::vector<std::uint64_t> launch_steps;  ///< Of counters.steps, by launch, as far as they ran.
  std::vector<BranchCoverage> coverage;
  std::vector<NarrowNumber> numbers;
  std::optional<ErrorOrigin> origin;
  std::vector<std::uint64_t>
      unwritten_bytes;  ///< For each buffer: bytes still undefined at the end (outputs: must be 0).
  std::vector<std::int64_t>
      first_unwritten;  ///< For each buffer: first element with an undefined byte, or -1.
};

/// Whether what is said of buffers over time fits together. Each takes over an earlier one that no other takes over, at a launch
/// that exists and after that one's life began; launches name only buffers that live, and fill anew only what has a fill.
/// kMalformedInput otherwise.
Status CheckBuffers(const Execution& execution);

/// Without `ptx` and `cubin`, which travel as the payload.
Json ToJson(const Execution& execution);
Result<Execution> ExecutionFromJson(const Json& json);
Json ToJson(const Report& report);
Result<Report> ReportFromJson(const Json& json);
Json ToJson(const Checks& checks);
Result<Checks> ChecksFromJson(const Json& json, std::string place);
Json ToJson(const OrderPair& pair);
Result<OrderPair> OrderPairFromJson(const Json& json, std::string place);
Json ToJson(const Schedule& schedule);
Result<Schedule> ScheduleFromJson(const Json& json, std::string place);

}  // namespace assay
