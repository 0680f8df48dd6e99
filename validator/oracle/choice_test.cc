// Choices, permutations and norms, each against a slow rule that is obviously right.
#include "validator/oracle/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "validator/oracle/element.h"
#include "validator/oracle/permutation.h"
#include "validator/oracle/relations.h"

namespace assay::oracle {
namespace {

using ::testing::HasSubstr;
using Kind = ChoiceFault::Kind;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

OutputTruth TruthOf(Shape shape, std::vector<double> values, std::vector<double> allowances,
                    DType dtype = DType::kF64) {
  OutputTruth truth;
  truth.shape = std::move(shape);
  truth.dtype = dtype;
  truth.value = std::move(values);
  truth.allowance = std::move(allowances);
  truth.allowance.resize(truth.value.size());
  truth.typical = truth.allowance;
  truth.independent.resize(truth.value.size());
  truth.contributions.assign(truth.value.size(), 1);
  return truth;
}

ops::Relation Choice() {
  ops::Relation relation;
  relation.kind = ops::Relation::Kind::kChoice;
  relation.of = "scores";
  return relation;
}

// Is there any vector of whole numbers within the intervals for which `chosen` is the best?
bool IsRightForSome(const ops::Relation& relation, const OutputTruth& scores,
                    const std::vector<std::int64_t>& chosen) {
  const std::size_t n = scores.value.size();
  std::vector<double> at(n);
  for (std::size_t j = 0; j < n; ++j) at[j] = scores.value[j] - scores.allowance[j];
  const double sign = relation.largest ? 1 : -1;
  while (true) {
    bool right = true;
    for (std::size_t p = 0; right && p < chosen.size(); ++p) {
      const double mine = sign * at[static_cast<std::size_t>(chosen[p])];
      if (relation.sorted && p + 1 < chosen.size())
        right = mine >= sign * at[static_cast<std::size_t>(chosen[p + 1])];
      for (std::size_t j = 0; right && j < n; ++j) {
        if (std::ranges::find(chosen, static_cast<std::int64_t>(j)) == chosen.end())
          right = mine >= sign * at[j];
      }
    }
    if (right) return true;
    std::size_t j = 0;
    for (; j < n && at[j] == scores.value[j] + scores.allowance[j]; ++j)
      at[j] = scores.value[j] - scores.allowance[j];
    if (j == n) return false;
    at[j] += 1;
  }
}

TEST(CheckChoice, AgreesWithTryingAllScoresWithinTheirErrors) {
  Rng rng(3);
  int right = 0, wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> values, errors;
    for (int j = 0; j < 4; ++j) {
      values.push_back(static_cast<double>(rng.Below(6)));
      errors.push_back(static_cast<double>(rng.Below(3)));
    }
    const OutputTruth scores = TruthOf({1, 4}, values, errors);
    ops::Relation relation = Choice();
    relation.largest = rng.Below(2) == 0;
    relation.sorted = rng.Below(2) == 0;
    std::vector<std::int64_t> chosen = {0, 1, 2, 3};
    for (std::size_t i = 3; i > 0; --i) std::swap(chosen[i], chosen[rng.Below(i + 1)]);
    chosen.resize(1 + rng.Below(4));
    const bool expected = IsRightForSome(relation, scores, chosen);
    EXPECT_EQ(!CheckChoice(relation, scores, 0, chosen), expected);
    (expected ? right : wrong) += 1;
    const auto best = BestOf(relation, scores, 0, static_cast<std::int64_t>(chosen.size()));
    EXPECT_FALSE(CheckChoice(relation, scores, 0, best));
  }
  EXPECT_GT(right, 300);
  EXPECT_GT(wrong, 300);
}

TEST(CheckChoice, SaysWhatIsWrong) {
  const OutputTruth scores = TruthOf({2, 3}, {0, 0, 0, 1, 5, 3}, {0, 0, 0, 0.5, 0.5, 0.5});
  const auto fault = [&](std::vector<std::int64_t> chosen) {
    return CheckChoice(Choice(), scores, 1, chosen);
  };
  EXPECT_FALSE(fault({1, 2}));
  EXPECT_EQ(fault({1, 3})->kind, Kind::kNoIndex);
  EXPECT_EQ(fault({-1, 1})->kind, Kind::kNoIndex);
  EXPECT_EQ(fault({1, 1})->kind, Kind::kTwice);
  EXPECT_EQ(fault({2, 1})->kind, Kind::kOrder);
  const auto worse = fault({1, 0});
  ASSERT_TRUE(worse);
  EXPECT_EQ(worse->kind, Kind::kNotBest);
  EXPECT_EQ(worse->at, 1);
  EXPECT_EQ(worse->better, 2);
  EXPECT_EQ(worse->distance, 2);
  EXPECT_EQ(worse->allowed, 1);
}

TEST(CheckChoice, TiesOfExactScoresGoToTheFirstWhereTheOpSaysSo) {
  const OutputTruth exact = TruthOf({1, 4}, {7, 9, 9, 9}, {0, 0, 0, 0});
  const OutputTruth rough = TruthOf({1, 4}, {7, 9, 9, 9}, {0.1, 0.1, 0.1, 0.1});
  ops::Relation first = Choice();
  first.first_of_ties = true;
  const std::vector<std::int64_t> in_order = {1, 2}, swapped = {2, 1}, later = {1, 3};
  for (const auto& chosen : {in_order, swapped, later}) {
    EXPECT_FALSE(CheckChoice(Choice(), exact, 0, chosen));
    EXPECT_FALSE(CheckChoice(first, rough, 0, chosen));
  }
  EXPECT_FALSE(CheckChoice(first, exact, 0, in_order));
  EXPECT_EQ(CheckChoice(first, exact, 0, swapped)->kind, Kind::kTie);
  EXPECT_EQ(CheckChoice(first, exact, 0, later)->kind, Kind::kTie);
  first.sorted = false;
  EXPECT_FALSE(CheckChoice(first, exact, 0, swapped));
  EXPECT_EQ(CheckChoice(first, exact, 0, later)->kind, Kind::kTie);
}

TEST(CheckChoice, WhatHasNoBoundMayBeAnywhereButIsStillAnIndex) {
  const OutputTruth scores = TruthOf({1, 3}, {std::nan(""), 2, 1}, {0, 0, kInfinity});
  for (std::int64_t j : {0, 1, 2}) EXPECT_FALSE(CheckChoice(Choice(), scores, 0, std::vector{j}));
  EXPECT_TRUE(CheckChoice(Choice(), scores, 0, std::vector<std::int64_t>{3}));
  EXPECT_FALSE(CheckChoice(Choice(), scores, 0, BestOf(Choice(), scores, 0, 3)));
}

TEST(ShapeOfChoice, MoreThanThereAreIsTheOpsFault) {
  const OutputTruth scores = TruthOf({1, 2}, {1, 2}, {0, 0});
  EXPECT_EQ(ShapeOfChoice(scores, {1, 2}, "op")->chosen, 2);
  EXPECT_EQ(ShapeOfChoice(scores, {1}, "op")->chosen, 1);
  const auto many = ShapeOfChoice(scores, {1, 3}, "op");
  ASSERT_FALSE(many.has_value());
  EXPECT_THAT(many.error().message, HasSubstr("asks for 3 of 2 candidates"));
}

Tensor Got(DType dtype, Shape shape, const std::vector<double>& values) {
  Tensor tensor = *Tensor::Create(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.Set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

bool AllWithin(const OutputTruth& truth, const Tensor& got) {
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    if (!(std::fabs(got.At(static_cast<std::int64_t>(i)) - truth.value[i]) <= truth.allowance[i]))
      return false;
  }
  return true;
}

TEST(Matched, FindsAPartnerForAllWheneverThereIsOne) {
  Rng rng(5);
  int found = 0, none = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> values, allowances, results;
    for (int i = 0; i < 5; ++i) {
      values.push_back(static_cast<double>(rng.Below(8)));
      allowances.push_back(static_cast<double>(rng.Below(3)));
      results.push_back(static_cast<double>(rng.Below(8)));
    }
    const OutputTruth truth = TruthOf({5}, values, allowances);
    const Tensor got = Got(DType::kF64, {5}, results);
    std::vector<std::size_t> order(5);
    std::iota(order.begin(), order.end(), std::size_t{0});
    bool possible = false;
    do {
      possible =
          possible || std::ranges::all_of(order, [&, i = std::size_t{0}](std::size_t from) mutable {
            return std::fabs(results[i++] - values[from]) <= allowances[from];
          });
    } while (!possible && std::ranges::next_permutation(order).found);
    const OutputTruth matched = Matched({}, truth, nullptr, got);
    EXPECT_EQ(AllWithin(matched, got), possible);
    // A permutation of the truth, whatever was found.
    std::vector<double> all = matched.value;
    std::ranges::sort(all);
    std::ranges::sort(values);
    EXPECT_EQ(all, values);
    (possible ? found : none) += 1;
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(none, 50);
}

TEST(Matched, OnlyTiesChangePlacesAndPaddingNever) {
  const OutputTruth keys = TruthOf({2, 3}, {1, 1, 2, 1, 1, 1}, {});
  const OutputTruth truth = TruthOf({2, 3}, {4, 5, 6, 7, 8, -1}, {}, DType::kI32);
  ops::Relation relation;
  relation.kind = ops::Relation::Kind::kUnordered;
  relation.of = "keys";
  relation.padding = -1;
  const auto right = [&](const std::vector<double>& results) {
    const Tensor got = Got(DType::kI32, {2, 3}, results);
    return AllWithin(Matched(relation, truth, &keys, got), got);
  };
  EXPECT_TRUE(right({4, 5, 6, 7, 8, -1}));
  EXPECT_TRUE(right({5, 4, 6, 8, 7, -1}));
  EXPECT_FALSE(right({6, 5, 4, 7, 8, -1}));  // of unequal keys
  EXPECT_FALSE(right({7, 5, 6, 4, 8, -1}));  // of another row
  EXPECT_FALSE(right({4, 5, 6, 7, -1, 8}));  // padding moved
  EXPECT_FALSE(right({4, 4, 6, 7, 8, -1}));  // once too often
}

/// What is said of an output "y" under a relation.
Comparison Said(const ops::Relation& relation, const OutputTruth& truth, const Tensor& got) {
  ops::Instance instance;
  ops::TensorSpec spec;
  spec.name = "y";
  spec.dtype_name = std::string(Name(truth.dtype));
  spec.relation = relation;
  instance.op.outputs = {spec};
  Truth all;
  all.outputs["y"] = truth;
  TensorMap outputs;
  outputs.emplace("y", *got.Clone());
  return Compare(instance, all, {}, {}, outputs);
}

TEST(CompareNorm, ErrorsMayLieAnywhereInAVector) {
  ops::Relation norm;
  norm.kind = ops::Relation::Kind::kNorm;
  OutputTruth truth = TruthOf({2, 4}, {1, 1, 1, 0, 1, 1, 1, 0},
                              {1e-4, 1e-4, 1e-4, 1e-9, 1e-4, 1e-4, 1e-4, 1e-9}, DType::kF32);
  truth.typical.assign(8, 1e-10);
  const auto got = [](double error, double other) {
    return Got(DType::kF32, {2, 4}, {1, 1, 1, error, 1, 1, 1, other});
  };
  // Within the norm of the allowances, 1.7e-4, and far beyond the element's own.
  EXPECT_TRUE(Said(norm, truth, got(1.5e-4, -1.5e-4)).numeric.empty());
  EXPECT_TRUE(Said(norm, truth, got(1.5e-4, -1.5e-4)).precision.empty());
  EXPECT_FALSE(Said({}, truth, got(1.5e-4, -1.5e-4)).numeric.empty());
  const Comparison off = Said(norm, truth, got(0, 3e-4));
  ASSERT_EQ(off.precision.size(), 1u);
  EXPECT_EQ(off.precision[0].element->index, (std::vector<std::int64_t>{1, 3}));
  EXPECT_THAT(off.precision[0].message, HasSubstr("1 of 2 vectors are off"));
  EXPECT_EQ(Said(norm, truth, got(0, 20)).numeric.size(), 1u);
  EXPECT_EQ(Said(norm, truth, got(0, std::nan(""))).numeric.size(), 1u);
  // Both rows as one vector: its norm has more room.
  norm.over = 2;
  EXPECT_TRUE(Said(norm, truth, got(0, 2.4e-4)).precision.empty());
  EXPECT_FALSE(Said(norm, truth, got(2.4e-4, 2.4e-4)).precision.empty());
  // What is exact element by element is not so for a fast algorithm of log2(n) stages.
  truth.allowance.assign(8, 0);
  truth.contributions.assign(8, 1024);
  EXPECT_TRUE(Said(norm, truth, got(2e-6, 0)).precision.empty());
  EXPECT_FALSE(Said(norm, truth, got(2e-5, 0)).precision.empty());
}

TEST(CompareAny, NothingIsSaid) {
  ops::Relation any;
  any.kind = ops::Relation::Kind::kAny;
  const OutputTruth truth = TruthOf({2}, {1, 2}, {0, 0}, DType::kF32);
  const Tensor got = Got(DType::kF32, {2}, {5, std::nan("")});
  EXPECT_TRUE(Said(any, truth, got).numeric.empty());
  EXPECT_FALSE(Said({}, truth, got).numeric.empty());
}

TEST(CheckElement, MinusZeroIsZeroUnlessTheOpSaysOtherwise) {
  OutputTruth truth = TruthOf({2}, {0.0, -0.0}, {0x1p-150, 0x1p-150}, DType::kF32);
  truth.typical = {0, 0};
  const auto is_right = [&](std::size_t i, double got) {
    return CheckElement(truth, i, got, false, 0x1p-24).verdict == ElementClass::kRight;
  };
  EXPECT_TRUE(is_right(0, -0.0));
  truth.keeps_zero_sign = true;
  EXPECT_FALSE(is_right(0, -0.0));
  EXPECT_TRUE(is_right(0, 0.0));
  EXPECT_TRUE(is_right(1, -0.0));
  EXPECT_FALSE(is_right(1, 0.0));
  // An error may have any sign.
  truth.typical = {0x1p-160, 0x1p-160};
  EXPECT_TRUE(is_right(0, -0.0));
}

TEST(RelationRows, EveryKindHasOne) {
  for (const ops::RelationName& named : ops::RelationNames()) {
    EXPECT_EQ(std::ranges::count(RelationRows(), named.kind, &RelationRow::kind), 1) << named.name;
  }
}

}  // namespace
}  // namespace assay::oracle
