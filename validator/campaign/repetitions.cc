#include "validator/campaign/repetitions.h"

#include <array>
#include <optional>

#include "validator/cases/recipes.h"

namespace assay::campaign {
namespace {

using Before = Repetition::Before;

// The first half is tried at every effort, the second from standard effort on. Several calls before
// come at the same addresses: their buffers are those of one call.
constexpr std::array kRepetitions = {
    Repetition{Before::kSame, 4, true, "calls are counted"},
    Repetition{Before::kOtherValues, 1, true, "results are kept by address"},
    Repetition{Before::kSomeValues, 1, true, "results are kept by address and some of the values"},
    Repetition{Before::kOtherShape, 1, false, "state of another shape is trusted"},
    Repetition{Before::kOtherValues, 1, false, "results are kept by shape or scalar"},
    Repetition{Before::kOtherShape, 1, true, "what is kept by address has another shape"},
    Repetition{Before::kSame, 1, false, "every other call is another"},
    Repetition{Before::kOtherValues, 3, true, "results are trusted once they have come again"},
    Repetition{Before::kSomeValues, 1, true, "results are kept by address and some of the values"},
    Repetition{Before::kOtherShape, 3, true, "state grows from call to call"},
    Repetition{Before::kSomeValues, 1, false, "results are kept by some of the values"},
    Repetition{Before::kSame, 9, true, "calls are counted"},
};

// Which elements of a tensor are others than the judged ones.
struct Part {
  std::size_t first = 0;
  std::size_t end = 0;
};

constexpr std::uint64_t kParts = 5;

Part PartOf(std::size_t elements, std::uint64_t choice, Rng& rng) {
  if (elements == 0) return {};
  const std::size_t middle = (elements + 1) / 2;
  switch (choice % kParts) {
    case 0:
      return {middle, elements};
    case 1:
      return {0, middle};
    case 2:
      return {1, elements};  // what is kept by the first element
    case 3:
      return {0, elements - 1};  // by the last
    default:
      break;
  }
  const std::size_t one = rng.Below(elements);
  return {one, one + 1};
}

}  // namespace

std::span<const Repetition> Repetitions() { return kRepetitions; }

cases::Probe ProbeAfter(const ops::Instance& instance, const Repetition& repetition,
                        const cases::Case& judged, const cases::Case& other, Rng& rng) {
  cases::Probe probe;
  probe.case_ = judged;
  cases::Case before = judged;
  switch (repetition.before) {
    case Before::kSame:
      break;
    case Before::kOtherValues:
      // Values of another kind: some kinds are the same for every seed.
      before = cases::MakeMixedCase(instance, judged.axes, rng.Next() % 1'000'000, judged.origin);
      break;
    case Before::kOtherShape:
      before = other;
      break;
    case Before::kSomeValues:
      if (const auto spelled = cases::SpellOut(instance, judged)) {
        probe.case_ = before = *spelled;
        const std::uint64_t choice = rng.Below(kParts);
        for (auto& [input, profile] : before.profiles) {
          const Part part = PartOf(profile.literal.size(), choice, rng);
          for (std::size_t i = part.first; i < part.end; ++i)
            profile.literal[i] = 1 - profile.literal[i];
        }
      }
      break;
  }
  probe.prelude.assign(repetition.calls, before);
  probe.reuse_addresses = repetition.same_addresses;
  return probe;
}

}  // namespace assay::campaign
