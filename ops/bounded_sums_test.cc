// The prelude's error bound (assay/bounded.cuh) on sums of products, against honest and dishonest ways to add them up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ops/reference_on_host.h"

namespace assay::ops {
namespace {

using Honest = Bounded<F32Contract>;
struct WithTensorCores : F32Contract {
  static constexpr bool tensor_cores = true;
};
struct Dependent : F32Contract {
  static bool independent() { return false; }
};

using Terms = std::vector<float>;

float Sequential(const Terms& x, const Terms& y) {
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
float Reversed(const Terms& x, const Terms& y) {
  float sum = 0;
  for (std::size_t i = x.size(); i-- > 0;) sum = std::fmaf(x[i], y[i], sum);
  return sum;
}
float Tree(const Terms& x, const Terms& y) {
  Terms level(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) level[i] = x[i] * y[i];
  while (level.size() > 1) {
    Terms next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  return level.empty() ? 0.0f : level[0];
}
template <std::size_t kLanes>
float Strided(const Terms& x, const Terms& y) {
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < x.size(); ++i)
    lanes[i % kLanes] = std::fmaf(x[i], y[i], lanes[i % kLanes]);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}
float SplitK(const Terms& x, const Terms& y) {
  float sum = 0;
  for (std::size_t start = 0; start < x.size(); start += 128) {
    float part = 0;
    for (std::size_t i = start; i < std::min(start + 128, x.size()); ++i) part += x[i] * y[i];
    sum += part;
  }
  return sum;
}
float Kahan(const Terms& x, const Terms& y) {
  float sum = 0, lost = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float term = x[i] * y[i] - lost;
    const float next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  return sum;
}
// A tensor core's way: groups of 16 products, aligned to the largest and truncated to 25 bits,
// added and truncated.
float TensorCore(const Terms& x, const Terms& y) {
  double sum = 0;
  for (std::size_t start = 0; start < x.size(); start += 16) {
    double largest = std::fabs(sum);
    for (std::size_t i = start; i < std::min(start + 16, x.size()); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(x[i]) * y[i]));
    }
    if (largest == 0) continue;
    const double quantum = std::ldexp(1.0, std::ilogb(largest) - 24);
    double group = std::trunc(sum / quantum);
    for (std::size_t i = start; i < std::min(start + 16, x.size()); ++i) {
      group += std::trunc(static_cast<double>(x[i]) * y[i] / quantum);
    }
    sum = F32Format::toward_zero(group * quantum);
  }
  return static_cast<float>(sum);
}

using Evaluation = float (*)(const Terms&, const Terms&);
constexpr std::array<Evaluation, 8> kHonest = {Sequential, Reversed,    Tree,   Strided<2>,
                                               Strided<4>, Strided<32>, SplitK, Kahan};

template <class R>
R Dot(const Terms& x, const Terms& y) {
  R sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += R(f32{x[i]}) * R(f32{y[i]});
  return sum;
}

float ToBf16(double x) { return static_cast<float>(Bf16Format::nearest(x)); }

Terms Draw(Rng& rng, std::size_t count, int kind) {
  Terms terms(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double normal = rng.Normal();
    const std::array<double, 6> values = {normal,
                                          normal + 3,
                                          std::fabs(normal),
                                          std::exp(2 * normal),
                                          (i % 2 == 0 ? 1 : -1) * std::fabs(normal),
                                          (i < count / 2 ? 1 : -1) * (1 + rng.Unit())};
    terms[i] = ToBf16(values[static_cast<std::size_t>(kind)]);
  }
  return terms;
}

TEST(BoundedSums, NoHonestSumExceedsTheBound) {
  Rng rng(11);
  double worst = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::size_t count = rng.Below(4) == 0 ? 1 + rng.Below(8) : 1 + rng.Below(3000);
    const int kind = static_cast<int>(rng.Below(6));
    Terms x = Draw(rng, count, kind);
    Terms y = Draw(rng, count, rng.Below(2) == 0 ? kind : 0);
    if (rng.Below(2) == 0) {
      for (float& value : x)
        value = static_cast<float>(value * (1 + 0.3 * rng.Unit()));  // f32 inputs, not bf16
    }
    const Honest truth = Dot<Honest>(x, y);
    for (std::size_t i = 0; i < kHonest.size(); ++i) {
      const double error = std::fabs(static_cast<double>(kHonest[i](x, y)) - truth.v);
      ASSERT_LE(error, truth.hard())
          << "evaluation " << i << ", " << count << " terms of kind " << kind;
      if (truth.hard() > 0) worst = std::max(worst, error / truth.hard());
    }
  }
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + rng.Below(6000);
    const Terms x = Draw(rng, count, round % 6), y = Draw(rng, count, round % 4);
    const auto truth = Dot<Bounded<WithTensorCores>>(x, y);
    ASSERT_LE(std::fabs(static_cast<double>(TensorCore(x, y)) - truth.v), truth.hard())
        << count << " of kind " << round % 6;
  }
  // The bound is not void either: some honest sum comes within a factor of its reach.
  EXPECT_GT(worst, 0.05);
  RecordProperty("worst_share_of_bound", std::to_string(worst));
}

TEST(BoundedSums, TypicalErrorIsRatherAboveThanBelowTheRealOne) {
  Rng rng(12);
  for (const int kind : {0, 1, 2, 3}) {
    for (const std::size_t count : {32u, 500u, 4000u}) {
      double squares = 0, limits = 0;
      for (int round = 0; round < 60; ++round) {
        Terms x = Draw(rng, count, kind);
        const Terms y = Draw(rng, count, 0);
        for (float& value : x) value = static_cast<float>(value * (1 + 0.3 * rng.Unit()));
        const Honest truth = Dot<Honest>(x, y);
        for (const Evaluation evaluate : kHonest) {
          const double error = static_cast<double>(evaluate(x, y)) - truth.v;
          squares += error * error;
          limits += truth.typical() * truth.typical();
        }
      }
      EXPECT_LT(std::sqrt(squares), std::sqrt(limits)) << kind << " " << count;
      EXPECT_GT(std::sqrt(squares) * 60, std::sqrt(limits)) << kind << " " << count;
    }
  }
}

TEST(BoundedSums, NarrowAccumulatorsExceedIt) {
  Rng rng(13);
  for (const std::size_t count : {64u, 256u, 2048u}) {
    int refuted = 0;
    for (int round = 0; round < 40; ++round) {
      const Terms x = Draw(rng, count, round % 4);
      const Terms y = Draw(rng, count, 0);
      const Honest truth = Dot<Honest>(x, y);
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i)
        sum = Bf16Format::nearest(sum + static_cast<double>(x[i]) * y[i]);
      // Stored as bf16, so half an ulp of bf16 is allowed on top.
      if (std::fabs(sum - truth.v) > truth.hard() + Bf16Format::ulp(truth.v) / 2) ++refuted;
    }
    // One element each: an output has thousands.
    EXPECT_GE(refuted, count > 256 ? 32 : 22) << count;
  }
}

TEST(BoundedSums, IntegerSumsAreExact) {
  Rng rng(14);
  Terms x(1000), y(1000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(rng.Between(-8, 8));
    y[i] = static_cast<float>(rng.Between(-8, 8));
  }
  const Honest truth = Dot<Honest>(x, y);
  EXPECT_EQ(truth.hard(), 0);
  for (const Evaluation evaluate : kHonest) EXPECT_EQ(static_cast<double>(evaluate(x, y)), truth.v);
  x[500] = 0.1f;  // 24 bits of significand: no longer exact in every order
  EXPECT_GT(Dot<Honest>(x, y).hard(), 0);
}

TEST(BoundedSums, RepeatedTermsNeedTheDeterministicBound) {
  const Terms x(200000, 0.1f), y(200000, 1.0f);
  const double error = std::fabs(static_cast<double>(Sequential(x, y)) - Dot<Honest>(x, y).v);
  EXPECT_GT(error, Dot<Honest>(x, y).hard()) << "roundings of equal terms conspire";
  EXPECT_LT(error, Dot<Bounded<Dependent>>(x, y).hard());
}

}  // namespace
}  // namespace assay::ops
