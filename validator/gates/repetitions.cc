#include "validator/gates/repetitions.h"

#include <array>
#include <optional>

#include "validator/cases/recipes.h"

namespace assay::gates {
namespace {

using Before = Repetition::Before;

// Every row is tried at every effort: in this order, and again.
constexpr std::array kRepetitions = {
    Repetition{Before::kSame, 4, false, "calls are counted"},
    Repetition{Before::kOtherValues, 1, true, "results are kept by address"},
    Repetition{Before::kSomeValues, 1, true, "results are kept by some of the values"},
    Repetition{Before::kOtherShape, 1, false, "state of another shape is trusted"},
    Repetition{Before::kOtherValues, 1, false, "results are kept by shape or scalar"},
    Repetition{Before::kOtherShape, 1, true, "what is kept by address has another shape"},
};

// Which elements of a tensor are others than the judged ones.
struct Part {
  std::size_t first = 0;
  std::size_t end = 0;
};

Part PartOf(std::size_t elements, std::uint64_t choice, Rng& rng) {
  const std::size_t middle = (elements + 1) / 2;
  if (choice == 0) return {middle, elements};
  if (choice == 1) return {0, middle};
  const std::size_t one = elements == 0 ? 0 : rng.Below(elements);
  return {one, elements == 0 ? 0 : one + 1};
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
        const std::uint64_t choice = rng.Below(3);
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

}  // namespace assay::gates
