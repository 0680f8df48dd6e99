// Choices by computed scores: which of them are right, and which is the truth's own.
//
// Scores carry errors: an honest kernel's score of candidate j lies within allowance[j] of value[j].
// A choice is right exactly if some scores within those intervals make it the best. For c(1) .. c(k),
// best first, with intervals [low, high] and larger ones better:
//
//   min over p' <= p of high(c(p'))  >=  low(c(p))     for each p: a descending sequence exists, and
//   min over p of high(c(p))         >=  low(j)        for each j that was not chosen.
//
// Linear in the candidates, and exact: nothing right is refuted, and nothing else passes. Where no
// order is asked for, the second alone remains. A score that is NaN, or whose error has no bound, is
// in (-inf, inf).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/relation.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// How often, of how many, how many are chosen.
struct ChoiceShape {
  std::int64_t rows = 0;
  std::int64_t candidates = 0;
  std::int64_t chosen = 0;
};
/// kMalformedInput where more are to be chosen than there are.
Result<ChoiceShape> ShapeOfChoice(const OutputTruth& scores, const Shape& chosen,
                                  const std::string& op);

/// What is wrong with the choice of a row.
struct ChoiceFault {
  enum class Kind : std::uint8_t {
    kNoIndex,  ///< Not in [0, candidates).
    kTwice,    ///< Chosen before.
    kNotBest,  ///< `better` was left out.
    kOrder,    ///< `better` comes later.
    kTie,      ///< `better` has an equal score, and a smaller index.
  } kind = Kind::kNoIndex;
  std::int64_t at = 0;      ///< Position in the choice.
  std::int64_t better = 0;  ///< A candidate.
  double distance = 0;      ///< Between the two scores, and
  double allowed = 0;       ///< what their errors may be together.
};

/// Nothing where `chosen` is a right choice of row `row`.
std::optional<ChoiceFault> CheckChoice(const ops::Relation& relation, const OutputTruth& scores,
                                       std::int64_t row, std::span<const std::int64_t> chosen);

/// The best of row `row` by the true scores, best first; of equal ones the first.
std::vector<std::int64_t> BestOf(const ops::Relation& relation, const OutputTruth& scores,
                                 std::int64_t row, std::int64_t count);

/// The indices that a row of a choice holds.
std::vector<std::int64_t> RowOf(const Tensor& choice, std::int64_t row, std::int64_t count);

}  // namespace assay::oracle
