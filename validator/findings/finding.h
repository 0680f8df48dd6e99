// A finding: one defect of a kernel, typed and located. What engines and gates produce, verdicts carry, prompts and people read.
//
// Findings are values, ordered deterministically, with one JSON form (`ToJson`, `FromJson`; schema assay.finding/1) and one text
// form (render.h). They never describe faults of the environment (Error) or of Assay (ASSAY_CHECK).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

/// FindingKind rows: enumerator, JSON name, family (which repair template and which gate it belongs to), one-line meaning.
#define ASSAY_FINDING_KINDS(X)                                                                     \
  X(MalformedReply, "malformed_reply", "format",                                                   \
    "the reply does not hold exactly one kernel and one launch plan")                              \
  X(MalformedPlan, "malformed_plan", "format", "the launch plan cannot be read or evaluated")      \
  X(ForbiddenConstruct, "forbidden_construct", "policy",                                           \
    "the source or PTX uses what a kernel may not use")                                            \
  X(CompileError, "compile_error", "compile", "NVRTC refused the source")                          \
  X(CompileWarning, "compile_warning", "compile", "NVRTC warned about the source")                 \
  X(ResourceLimit, "resource_limit", "compile",                                                    \
    "registers, spills or shared memory exceed the target's limits")                               \
  X(LaunchFailure, "launch_failure", "compile",                                                    \
    "the launch plan does not fit the kernel or the target")                                       \
  X(OutOfBounds, "out_of_bounds", "memory",                                                        \
    "an access outside of every allocation, or past its own")                                      \
  X(WrongProvenance, "wrong_provenance", "memory",                                                 \
    "an access through a pointer derived from another allocation")                                 \
  X(Misaligned, "misaligned", "memory", "an address that is not a multiple of the access size")    \
  X(UseAfterFree, "use_after_free", "memory", "an access to freed memory")                         \
  X(InvalidFree, "invalid_free", "memory", "free of what malloc did not return")                   \
  X(IndexOverflow, "index_overflow", "memory", "a 32-bit index product wrapped")                   \
  X(WriteToInput, "write_to_input", "memory", "an input was written")                              \
  X(WriteToConstant, "write_to_constant", "memory", "constant or parameter memory was written")    \
  X(UninitialisedUse, "uninitialised_use", "memory",                                               \
    "undefined bytes reached an address, a branch or an output")                                   \
  X(MachineDependent, "machine_dependent", "machine",                                              \
    "a result depends on what the machine chooses")                                                \
  X(UnwrittenOutput, "unwritten_output", "memory", "output elements were never written")           \
  X(DataRace, "data_race", "race", "two conflicting accesses without an order between them")       \
  X(SameValueRace, "same_value_race", "race", "racing writes that stored the same value")          \
  X(ReadOnlyCacheWrite, "read_only_cache_write", "race",                                           \
    "memory read through ld.global.nc was written by the same kernel")                             \
  X(BarrierDivergence, "barrier_divergence", "race",                                               \
    "a barrier not reached by all the threads that it needs")                                      \
  X(BarrierMisuse, "barrier_misuse", "race", "a barrier, mask or mbarrier used against its rules") \
  X(Deadlock, "deadlock", "race", "no thread can proceed")                                         \
  X(Livelock, "livelock", "race", "threads come back to a state that nothing will change")         \
  X(Nondeterministic, "nondeterministic", "race", "results depend on the schedule")                \
  X(StaleRead, "stale_read", "race",                                                               \
    "a result depends on a write that nothing orders before its read")                             \
  X(Trap, "trap", "memory", "the kernel trapped")                                                  \
  X(WrongValue, "wrong_value", "numeric", "an output element is not what the op defines")          \
  X(PrecisionElement, "precision_element", "precision",                                            \
    "an element is off by more than honest arithmetic can be")                                     \
  X(PrecisionRow, "precision_row", "precision",                                                    \
    "a row is off by more than honest arithmetic can be")                                          \
  X(PrecisionBias, "precision_bias", "precision", "errors have a common sign")                     \
  X(PrecisionGrowth, "precision_growth", "precision",                                              \
    "the error grows too fast with the reduction length")                                          \
  X(DeviceDisagreement, "device_disagreement", "device",                                           \
    "on a GPU an output is not what the op defines, though the emulator's is")                     \
  X(PropertyBroken, "property_broken", "property", "a declared property of the op does not hold")

enum class FindingKind : std::uint8_t {
#define X(name, json, family, meaning) k##name,
  ASSAY_FINDING_KINDS(X)
#undef X
};

std::string_view Name(FindingKind kind);
std::string_view FamilyOf(FindingKind kind);
std::string_view MeaningOf(FindingKind kind);
std::optional<FindingKind> ParseFindingKind(std::string_view name);

using Dim3 = std::array<std::uint32_t, 3>;  ///< x, y, z

/// A line of the candidate: where PTX has line information, the innermost line of kernel.cu. What it was inlined into, a helper's
/// callers in kernel.cu, stands beside it.
inline constexpr std::size_t kMostCallSites = 8;
struct SourceSite {
  std::string file;  ///< "kernel.cu"; empty without line information.
  std::uint32_t line = 0;
  std::vector<std::uint32_t> called_at =
      {};  ///< Lines of the calls that were inlined, innermost first.
  std::uint32_t column = 0;
  std::uint32_t ptx_line = 0;
  std::string instruction;  ///< The PTX instruction, as printed.
  std::string excerpt;      ///< The source line's text, filled by whoever has the source.
  bool operator==(const SourceSite&) const = default;
};

struct ThreadId {
  Dim3 block{};
  Dim3 thread{};
  bool operator==(const ThreadId&) const = default;
};

/// One side of a finding: what some threads did where.
struct Access {
  std::string what;  ///< "write", "read", "atomic add", "waits at barrier 0"
  SourceSite site;
  ThreadId thread;            ///< The first thread, in block-then-thread order.
  std::uint64_t threads = 1;  ///< How many did it; 0: no thread did (the compiler refused).
  std::string value;          ///< What was read or written, printed, where known.
  bool operator==(const Access&) const = default;
};

/// The memory it is about.
struct MemoryPlace {
  std::string space;  ///< "global", "shared", "local", ...
  std::string
      buffer;  ///< Name from the launch plan or PTX symbol; empty when the address is nobody's.
  std::int64_t index = 0;      ///< Element index in `buffer` (may be negative or past the end).
  std::uint64_t elements = 0;  ///< Size of `buffer` in elements.
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  ///< Size of the access.
  bool operator==(const MemoryPlace&) const = default;
};

/// The output element it is about.
struct ElementPlace {
  std::string output;
  std::vector<std::int64_t> index;  ///< One a dimension.
  double expected = 0;
  double got = 0;
  double allowance = 0;
  bool operator==(const ElementPlace&) const = default;
};

/// A named number, e.g. {"hot_row_relative_error", 0.04, "row 17 received 212 adds"}.
struct Statistic {
  std::string name;
  double value = 0;
  double limit = 0;
  std::string note;
  bool operator==(const Statistic&) const = default;
};

/// From shadow values: how much of an error entered at a line. No site: at too many lines to tell apart.
struct ErrorShare {
  SourceSite site;
  double share = 0;  ///< 0..1
  bool operator==(const ErrorShare&) const = default;
};
inline constexpr std::size_t kMostErrorShares = 8;

/// Of a race, as one of its statistics: how far apart two threads of any of its occurrences were.
inline constexpr std::string_view kRaceReach = "race_reach";
enum class RaceReach : std::uint8_t { kUnknown, kWarp, kBlock, kGrid };

struct Finding {
  FindingKind kind{};
  std::string message;           ///< One sentence, the whole story in brief.
  std::vector<Access> accesses;  ///< Guilty side first. Two for a race.
  std::optional<MemoryPlace> memory;
  std::optional<ElementPlace> element;
  std::vector<Statistic> statistics;
  std::string
      missing;  ///< The edge or guard that is missing: "no barrier between line 14 and line 18".
  std::string cause;  ///< Likely cause, when recognised.
  std::vector<ErrorShare>
      origins;  ///< Precision: the lines where the error entered, largest share first.
  std::string
      origin;  ///< What follows from them: "line 24 makes 97 % of the error", "not a matter of rounding".
  bool operator==(const Finding&) const = default;
};

Json ToJson(const SourceSite& site);
Result<SourceSite> SourceSiteFromJson(const Json& json, std::string place);
Json ToJson(const Finding& finding);
Result<Finding> FindingFromJson(const Json& json, std::string place);
Json ToJson(const std::vector<Finding>& findings);
Json ToJson(const std::vector<ErrorShare>& shares);
Result<std::vector<ErrorShare>> ErrorSharesFromJson(const Json& json, std::string place);
Result<std::vector<Finding>> FindingsFromJson(const Json& json, std::string place);

/// Total order used before anything is shown: kind, then source line, then thread, then the rest. Duplicates (same kind and same
/// sites) are merged, thread counts added.
void SortAndMerge(std::vector<Finding>& findings);

RaceReach RaceReachOf(const Finding& finding);
/// kRaceReach as a statistic of a finding.
Statistic StatisticOf(RaceReach reach);

/// Two findings are *the same defect* for shrinking and replay if kind and source lines agree.
bool SameDefect(const Finding& a, const Finding& b);

}  // namespace assay
