// What judging a whole case and judging a part of it have in common; and what parts have, be it the
// ends of a huge one (ends.cc) or a slice of any (slices.cc): which elements the blocks that ran
// wrote, and whether they hold what the op defines.
//
// Outputs start as files without a page. What a kernel wrote lies on pages that are no holes any
// more, and differs from the poison that the emulator lays there first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "ops/op.h"
#include "validator/cases/case.h"
#include "validator/engine/bind.h"
#include "validator/execution/execution.h"

namespace assay::campaign {

/// A plan that does not hold for a shape, as a finding.
Finding PlanFinding(const Error& error);

/// A run that ended well and without findings, but was not watched as asked, proves nothing: it
/// becomes a failure of the engine.
void RefuseUnwatched(const Checks& asked, std::string_view engine, Report& report);

/// Elements of a case of which some are made, or copied, for a part.
inline constexpr std::int64_t kMostMade = std::int64_t{1} << 24;

/// Inputs that repeat a pattern cost nothing, however large. What is overwritten has to be copied, and
/// what a generator makes has to be made: that takes inputs that are zero but for their ends.
bool NeedsZerosBetween(const ops::OpSpec& op);

/// Does it overwrite some input?
bool Overwrites(const ops::OpSpec& op);

/// Inputs of a case that are huge and have no pattern: each element is made for its place, which takes seconds.
std::vector<std::string> InputsMadeInFull(const ops::Instance& instance, const cases::Case& value);

/// It ended for being long, or since it waits for what other blocks would do. Not a loop that is shown to
/// go round for ever, whatever they do.
bool IsTooLong(const Report& report, bool others_may_help = true);

/// Does something hang on what nobody has written?
bool UsesUndefined(const Report& report);

inline constexpr std::string_view kTooLongAtItsEnds = "takes too long even at its ends";
inline constexpr std::string_view kBeyondBudget = "beyond the budget of emulated instructions";
/// Why a part of a case that shows no defect counts as left out all the same.
inline constexpr std::string_view kUnknownEnd =
    "the end of an output seems unwritten, and the whole grid takes too long";

/// Why a part is left out that did not come to its end: what the engine says of a limit of its own,
/// memory or time, else `otherwise`.
std::string ReasonOfALimit(const Report& report, std::string_view otherwise);

/// Garbage that tells what was written from what was not: no number of any type has all bits set.
inline constexpr std::uint8_t kGarbage = 0xff;

/// As much of the written pages of a buffer is looked at.
inline constexpr std::int64_t kMostScanned = std::int64_t{64} << 20;

/// Elements of buffer `buffer` of a run that no longer hold what was there before the launch, ascending: of `size` bytes
/// each, in memory that was poisoned. At most kMostScanned bytes are looked at.
std::vector<std::int64_t> WrittenElements(const SharedMemory& memory, std::size_t size,
                                          std::uint8_t poison, const Report& report,
                                          std::size_t buffer);
/// The same of a fresh output of a call.
std::vector<std::int64_t> WrittenElements(const engine::BoundCall& call, const std::string& output,
                                          std::uint8_t poison, const Report& report);

/// How many of them, ascending, follow each other from the first element of the output on.
std::int64_t RunFromTheFront(const std::vector<std::int64_t>& written);

/// Elements of a fresh output, all of which may have been written, that still hold what was there: how many, the
/// first of them, and some from all over them, ascending.
struct Unwritten {
  std::int64_t count = 0;
  std::int64_t first = -1;
  std::vector<std::int64_t> some;
};
inline constexpr std::size_t kMostUnwritten = 1024;
Unwritten CountUnwritten(const engine::BoundCall& call, const std::string& output,
                         std::uint8_t poison, const Report& report);

/// Elements of an output that no longer hold the bits of the tensor that it overwrites, ascending.
std::vector<std::int64_t> ChangedElements(const Tensor& tensor, const Tensor& before);

/// Of a tensor of `elements`, some hundred: about both ends and each power of two, and drawn ones,
/// ascending.
std::vector<std::int64_t> Everywhere(std::int64_t elements, std::uint64_t seed);

/// At most `most` of them, evenly, the first and the last included.
std::vector<std::int64_t> Spread(std::vector<std::int64_t> elements, std::size_t most);

/// Keeps of `elements` those that hold the same bits in both.
void KeepEqual(const Tensor& tensor, const Tensor& other, std::vector<std::int64_t>& elements);

/// The last element: in grids that loop the first block writes it, in others the last one.
bool EndIsUnwritten(const Tensor& tensor, std::uint8_t poison);
/// The same of a tensor that is overwritten: what it held may be right by chance.
bool EndIsTheSame(const Tensor& tensor, const Tensor& before);

// Of any slice: cells of the reference are 48 bytes, addresses 47 bits.
inline constexpr std::int64_t kMostElementsOfASlice = std::int64_t{1} << 35;
// Of the axes beside a long one.
inline constexpr std::int64_t kBackground = 5;
/// The axis as long as the op and any slice allow, the others near `background`.
std::optional<ops::AxisValues> AsLongAsCanBe(const ops::Instance& instance, const ops::Axis& axis,
                                             const ops::AxisValues& background);

}  // namespace assay::campaign
