// Which outcomes of decisions, alone and in pairs, some case has had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "validator/campaign/turns.h"

namespace assay::campaign {

using Outcomes = std::vector<std::uint8_t>;  ///< By decision on shapes: see CodeOf.

class OutcomesHad {
 public:
  /// `worth` of an outcome that no case has had, by decision, in pairs that no case has had.
  explicit OutcomesHad(std::vector<int> worth)
      : worth_(std::move(worth)),
        single_(worth_.size() * kCodes, false),
        pairs_(single_.size() * single_.size(), false) {}

  /// What of `outcomes` is new.
  int Gain(const Outcomes& outcomes) const {
    int gain = GainOfSingles(outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i] == kUnknownOutcome) continue;
      for (std::size_t j = i + 1; j < outcomes.size(); ++j)
        gain += outcomes[j] != kUnknownOutcome && !pairs_[PairAt(i, outcomes[i], j, outcomes[j])]
                    ? 1
                    : 0;
    }
    return gain;
  }
  int GainOfSingles(const Outcomes& outcomes) const {
    int gain = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i] != kUnknownOutcome && !single_[i * kCodes + outcomes[i]]) gain += worth_[i];
    }
    return gain;
  }
  void Mark(const Outcomes& outcomes) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i] == kUnknownOutcome) continue;
      single_[i * kCodes + outcomes[i]] = true;
      for (std::size_t j = i + 1; j < outcomes.size(); ++j) {
        if (outcomes[j] != kUnknownOutcome) pairs_[PairAt(i, outcomes[i], j, outcomes[j])] = true;
      }
    }
  }
  bool Has(std::size_t decision, std::uint8_t code) const {
    return single_[decision * kCodes + code];
  }
  bool HasBoth(std::size_t one, std::uint8_t code, std::size_t other,
               std::uint8_t other_code) const {
    if (one == other) return Has(one, code);
    return pairs_[one < other ? PairAt(one, code, other, other_code)
                              : PairAt(other, other_code, one, code)];
  }

 private:
  static constexpr std::size_t kCodes = 3;
  /// `one` before `other`.
  std::size_t PairAt(std::size_t one, std::uint8_t code, std::size_t other,
                     std::uint8_t other_code) const {
    return (one * kCodes + code) * single_.size() + other * kCodes + other_code;
  }

  std::vector<int> worth_;
  std::vector<bool> single_;
  std::vector<bool> pairs_;
};

}  // namespace assay::campaign
