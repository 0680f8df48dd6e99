// What the outputs of timed calls are held to, so that every element of every call is looked at and
// truths at full size do not cost more than the timing.
//
//   1. Every element of every set of inputs: bit by bit what an untimed call of the same kernel on the
//      same inputs gives, in a process that knows nothing of the timing. So a timed call did the work
//      that an untimed one does, all of it, whatever was recognised or kept. Where the op promises no
//      determinism, bits may differ; there the elements that differ most are held to their truths.
//   2. That this work is right: one set of inputs, which the seed chooses, at all elements where the
//      whole truth is cheap (WholeTruthIsCheap), else at as many as the oracle computes in seconds:
//      about both ends, the middle, each power of two, and drawn places.
//   3. The other sets at a few places each: results of another set are found there.
//
// Where a reference cannot be run in part, all of it runs on the card and only what is wanted is kept;
// then the other sets are held to untimed calls alone.
//
// What is wrong in an untimed call as well, in an element of another set than the chosen one, and in
// none of the places, is no matter of timing: cases are there for that.
//
// Cost: a call and a comparison of bits for each set of inputs, and what truths take on the emulator
// (parts) and on the card (all). Truths are kept by op and case in the oracles. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validator/speed/meter.h"

namespace assay::speed {

/// One set of inputs, and what a call made of them.
struct Held {
  const cases::Case& case_;
  const cases::Materialised& inputs;
  const TensorMap& outputs;
};

/// How much of a set is held to its truth.
enum class Depth : std::uint8_t {
  kFew,   ///< Some places.
  kMany,  ///< As many as a few seconds allow.
};

struct Holding {
  std::vector<Finding> findings;
  std::uint64_t elements = 0;  ///< Held to a truth.
};

/// Few outputs, and not much to compute for them, at `axes` (resolved).
Result<bool> WholeTruthIsCheap(const ops::Instance& instance, const ops::AxisValues& axes);

Result<Holding> HoldWhole(const Instruments& instruments, const ops::Instance& instance,
                          const Held& held);
/// Nothing where the op's reference has no truths of parts, or they take too long.
Result<std::optional<Holding>> HoldParts(const Instruments& instruments,
                                         const ops::Instance& instance, const Held& held,
                                         Depth depth, std::uint64_t seed);
/// Where there are none: the places of kMany.
Result<Holding> HoldSome(const Instruments& instruments, const ops::Instance& instance,
                         const Held& held, std::uint64_t seed);

/// An element in which a timed call differs from an untimed one.
struct Suspect {
  std::string output;
  std::int64_t index = 0;
  double got = 0;  ///< In the timed call.
};

/// A timed call beside an untimed one.
struct Difference {
  std::vector<Suspect> suspects;  ///< Elements that differ most, absolutely and for their size.
  std::vector<Finding> findings;  ///< kNondeterministic; none where the op promises no determinism.
};
Difference CompareToUntimed(const ops::Instance& instance, const TensorMap& timed,
                            const TensorMap& alone);

/// Holds suspects to their truths. `parts`: the op has truths of parts.
Result<Holding> HoldSuspects(const Instruments& instruments, const ops::Instance& instance,
                             const Held& held, const std::vector<Suspect>& suspects, bool parts);

/// As findings about a timed call of `workload`: kDeviceDisagreement, but for other bits.
std::vector<Finding> InTimedCall(std::vector<Finding> findings, std::string_view workload);

/// Places of a tensor of `elements`, ascending: runs of neighbours at both ends, in the middle, about
/// powers of two, and drawn.
std::vector<std::int64_t> Places(std::int64_t elements, Depth depth, std::uint64_t seed);

}  // namespace assay::speed
