#include "validator/oracle/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace assay::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The scores of a row, turned so that larger ones are better.
class Scores {
 public:
  Scores(const ops::Relation& relation, const OutputTruth& scores, std::int64_t row)
      : candidates_(scores.shape.back()),
        first_(static_cast<std::size_t>(row * candidates_)),
        sign_(relation.largest ? 1 : -1),
        scores_(scores) {}

  std::int64_t size() const { return candidates_; }
  double Value(std::int64_t j) const { return sign_ * scores_.value[At(j)]; }
  double Error(std::int64_t j) const {
    const double error = scores_.allowance[At(j)];
    return std::isnan(Value(j)) || std::isnan(error) ? kInfinity : error;
  }
  double Low(std::int64_t j) const {
    return Error(j) == kInfinity ? -kInfinity : Value(j) - Error(j);
  }
  double High(std::int64_t j) const {
    return Error(j) == kInfinity ? kInfinity : Value(j) + Error(j);
  }

 private:
  std::size_t At(std::int64_t j) const { return first_ + static_cast<std::size_t>(j); }

  std::int64_t candidates_;
  std::size_t first_;
  double sign_;
  const OutputTruth& scores_;
};

ChoiceFault FaultAt(const Scores& scores, ChoiceFault::Kind kind, std::int64_t at,
                    std::int64_t chosen, std::int64_t better) {
  return {.kind = kind,
          .at = at,
          .better = better,
          .distance = scores.Value(better) - scores.Value(chosen),
          .allowed = scores.Error(better) + scores.Error(chosen)};
}

/// Equal scores without any error: the one with the smaller index is chosen, and comes first.
std::optional<ChoiceFault> CheckTies(const Scores& scores, std::span<const std::int64_t> chosen,
                                     const std::vector<bool>& taken, bool sorted) {
  std::map<double, std::size_t> largest;  // score -> where the largest index with it was chosen
  for (std::size_t p = 0; p < chosen.size(); ++p) {
    const std::int64_t j = chosen[p];
    if (scores.Error(j) != 0) continue;
    const auto [known, is_new] = largest.try_emplace(scores.Value(j), p);
    if (is_new) continue;
    const std::int64_t before = chosen[known->second];
    if (before > j && sorted) {
      return FaultAt(scores, ChoiceFault::Kind::kTie, static_cast<std::int64_t>(known->second),
                     before, j);
    }
    if (j > before) known->second = p;
  }
  for (std::int64_t j = 0; j < scores.size(); ++j) {
    if (taken[static_cast<std::size_t>(j)] || scores.Error(j) != 0) continue;
    const auto known = largest.find(scores.Value(j));
    if (known == largest.end() || chosen[known->second] < j) continue;
    return FaultAt(scores, ChoiceFault::Kind::kTie, static_cast<std::int64_t>(known->second),
                   chosen[known->second], j);
  }
  return std::nullopt;
}

}  // namespace

Result<ChoiceShape> ShapeOfChoice(const OutputTruth& scores, const Shape& chosen,
                                  const std::string& op) {
  ASSAY_CHECK(!scores.shape.empty(), "CheckRelations lets no scalar pass");
  ChoiceShape shape{.rows = 1, .candidates = scores.shape.back(), .chosen = 1};
  for (std::size_t d = 0; d + 1 < scores.shape.size(); ++d) shape.rows *= scores.shape[d];
  if (chosen.size() == scores.shape.size()) shape.chosen = chosen.back();
  if (shape.rows > 0 && shape.chosen > shape.candidates) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("asks for {} of {} candidates", shape.chosen, shape.candidates), op,
                "add a constraint that leaves enough to choose from");
  }
  return shape;
}

std::optional<ChoiceFault> CheckChoice(const ops::Relation& relation, const OutputTruth& truth,
                                       std::int64_t row, std::span<const std::int64_t> chosen) {
  using enum ChoiceFault::Kind;
  const Scores scores(relation, truth, row);
  std::vector<bool> taken(static_cast<std::size_t>(scores.size()));
  for (std::size_t p = 0; p < chosen.size(); ++p) {
    const auto at = static_cast<std::int64_t>(p);
    if (chosen[p] < 0 || chosen[p] >= scores.size()) return ChoiceFault{.kind = kNoIndex, .at = at};
    if (taken[static_cast<std::size_t>(chosen[p])]) return ChoiceFault{.kind = kTwice, .at = at};
    taken[static_cast<std::size_t>(chosen[p])] = true;
  }
  // The position of the smallest upper end so far.
  std::size_t least = 0;
  for (std::size_t p = 0; p < chosen.size(); ++p) {
    if (relation.sorted && scores.High(chosen[least]) < scores.Low(chosen[p]))
      return FaultAt(scores, kOrder, static_cast<std::int64_t>(least), chosen[least], chosen[p]);
    if (scores.High(chosen[p]) < scores.High(chosen[least])) least = p;
  }
  if (chosen.empty()) return std::nullopt;
  std::optional<std::int64_t> best;
  for (std::int64_t j = 0; j < scores.size(); ++j) {
    if (!taken[static_cast<std::size_t>(j)] && (!best || scores.Low(j) > scores.Low(*best)))
      best = j;
  }
  if (best && scores.High(chosen[least]) < scores.Low(*best))
    return FaultAt(scores, kNotBest, static_cast<std::int64_t>(least), chosen[least], *best);
  return relation.first_of_ties ? CheckTies(scores, chosen, taken, relation.sorted) : std::nullopt;
}

std::vector<std::int64_t> BestOf(const ops::Relation& relation, const OutputTruth& truth,
                                 std::int64_t row, std::int64_t count) {
  const Scores scores(relation, truth, row);
  std::vector<std::int64_t> order(static_cast<std::size_t>(scores.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // NaN ranks last here: no order that is defined is lost by it.
  const auto rank = [&](std::int64_t j) {
    const double value = scores.Value(j);
    return std::isnan(value) ? -kInfinity : value;
  };
  std::ranges::partial_sort(order, order.begin() + count, [&](std::int64_t a, std::int64_t b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

std::vector<std::int64_t> RowOf(const Tensor& choice, std::int64_t row, std::int64_t count) {
  std::vector<std::int64_t> indices;
  for (std::int64_t p = 0; p < count; ++p)
    indices.push_back(LoadAsInt64(choice.dtype, choice.Element(row * count + p)));
  return indices;
}

}  // namespace assay::oracle
