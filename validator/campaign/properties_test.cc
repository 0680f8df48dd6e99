#include "validator/campaign/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "validator/campaign/testing/fakes.h"
#include "validator/campaign/transforms.h"

namespace assay::campaign {
namespace {

using ::testing::HasSubstr;
using Formula = std::function<double(std::span<const float> x, std::size_t i)>;

/// Checks a property on a kernel of one line.
PropertyCheck Check(const std::string& property, const Formula& formula, std::int64_t n = 12,
                    const std::string& dtype = "f32", bool deterministic = false,
                    std::uint64_t seed = 5) {
  FakeParts bench([&](FakeRun& run) {
    const std::span<const float> x(run.Floats("x"), static_cast<std::size_t>(run.n()));
    for (std::size_t i = 0; i < x.size(); ++i)
      run.Floats("y")[i] = static_cast<float>(formula(x, i));
  });
  bench.instance.op.inputs[0].dtype_name = dtype;
  if (deterministic) bench.instance.op.properties = {{"deterministic", {}}};
  const Json launch = *ParseJson(bench.candidate.launch, "launch.json");
  const auto plan = ops::ParseLaunchPlan(launch, "launch.json", bench.instance.op);
  const engine::CompiledKernel compiled = FakeCompiler::Good().kernel;
  const Runner runner({&bench.instance, &*plan, &compiled}, bench.engine, bench.oracle, 1);
  cases::Probe probe;
  probe.case_ = {.axes = {{"n", n}}, .seed = seed, .profiles = {}, .origin = ""};
  const auto check =
      CheckProperty(bench.instance, ops::PropertyFromText(property), probe, runner, bench.oracle);
  EXPECT_TRUE(check.has_value()) << ToString(check.error());
  return check.value_or(PropertyCheck{});
}

const Formula kDouble = [](std::span<const float> x, std::size_t i) { return 2.0 * x[i]; };
const Formula kAffine = [](std::span<const float> x, std::size_t i) { return 2.0 * x[i] + 1; };
const Formula kSquare = [](std::span<const float> x, std::size_t i) { return x[i] * x[i]; };
const Formula kSign = [](std::span<const float> x, std::size_t i) { return x[i] < 0 ? -1.0 : 1.0; };
const Formula kRelu = [](std::span<const float> x, std::size_t i) { return std::max(0.f, x[i]); };
const Formula kFromFirst = [](std::span<const float> x, std::size_t i) { return x[i] - x[0]; };
const Formula kCounts = [](std::span<const float> x, std::size_t i) {
  return 2.0 * x[i] + static_cast<double>(x.size());
};
const Formula kPlaces = [](std::span<const float> x, std::size_t i) {
  return x[i] * static_cast<double>(i);
};
const Formula kTotal = [](std::span<const float> x, std::size_t) {
  return std::accumulate(x.begin(), x.end(), 0.0);
};

TEST(PropertiesTest, TheRunOfACaseIsShared) {
  int runs = 0;
  FakeParts bench([&](FakeRun& run) {
    ++runs;
    const auto n = static_cast<std::size_t>(run.n());
    for (std::size_t i = 0; i < n; ++i) run.Floats("y")[i] = 2 * run.Floats("x")[i];
  });
  const Json launch = *ParseJson(bench.candidate.launch, "launch.json");
  const auto plan = ops::ParseLaunchPlan(launch, "launch.json", bench.instance.op);
  const engine::CompiledKernel compiled = FakeCompiler::Good().kernel;
  const Runner runner({&bench.instance, &*plan, &compiled}, bench.engine, bench.oracle, 1);
  cases::Probe probe;
  probe.case_ = {.axes = {{"n", 12}}, .seed = 5, .profiles = {}, .origin = ""};
  const ops::Property property = ops::PropertyFromText("independent_rows x n");
  const auto first = CheckProperty(bench.instance, property, probe, runner, bench.oracle);
  ASSERT_TRUE(first && first->applied && first->base != nullptr);
  const int of_the_first = std::exchange(runs, 0);
  const auto again =
      CheckProperty(bench.instance, property, probe, runner, bench.oracle, first->base);
  ASSERT_TRUE(again && again->applied);
  EXPECT_EQ(runs, of_the_first - 1);
  EXPECT_EQ(again->base, nullptr) << "none was made";
  EXPECT_EQ(again->known_steps, first->base->steps);
}

struct Row {
  std::string property;
  Formula holds, broken;
};

TEST(PropertiesTest, FireWhereBrokenAndOnlyThere) {
  const std::vector<Row> rows = {
      {"independent_rows x n", kDouble, kTotal},   {"permutation_equivariant n", kDouble, kPlaces},
      {"scale_equivariant x y", kDouble, kSquare}, {"linear x y", kDouble, kAffine},
      {"scale_invariant x", kSign, kDouble},       {"shift_invariant x", kFromFirst, kDouble},
      {"idempotent x y", kRelu, kDouble},          {"padding_neutral n", kDouble, kCounts},
      {"batch_split n", kDouble, kCounts}};
  for (const Row& row : rows) {
    const PropertyCheck good = Check(row.property, row.holds);
    EXPECT_TRUE(good.applied) << row.property;
    EXPECT_TRUE(good.findings.empty()) << row.property << ": " << good.findings[0].message;
    const PropertyCheck bad = Check(row.property, row.broken);
    EXPECT_TRUE(bad.applied) << row.property;
    ASSERT_EQ(bad.findings.size(), 1u) << row.property;
    EXPECT_EQ(bad.findings[0].kind, FindingKind::kPropertyBroken);
    EXPECT_THAT(bad.findings[0].message, HasSubstr(row.property));
  }
  EXPECT_EQ(rows.size(), TransformRows().size());
}

TEST(PropertiesTest, LinearityIsMoreThanHomogeneity) {
  // The length of a vector doubles with it, but lengths do not add up.
  const Formula distance = [](std::span<const float> x, std::size_t) {
    double sum = 0;
    for (const float value : x) sum += value * value;
    return std::sqrt(sum);
  };
  EXPECT_TRUE(Check("scale_equivariant x y", distance).findings.empty());
  EXPECT_FALSE(Check("linear x y", distance).findings.empty());
}

TEST(PropertiesTest, WhatDoesNotFitTheCaseIsNotApplied) {
  EXPECT_FALSE(Check("batch_split n", kCounts, 1).applied);
  EXPECT_FALSE(Check("independent_rows x n", kTotal, 1).applied);
  EXPECT_FALSE(Check("padding_neutral n", kCounts, 1 << 20).applied);
}

// Twice x, a hair off where another row says so: within every allowance, and not the same bits.
TEST(PropertiesTest, BitsMustAgreeWhereTheOpIsDeterministic) {
  const Formula hair = [](std::span<const float> x, std::size_t i) {
    const bool nudged = std::ranges::any_of(x, [](float value) { return std::fabs(value) > 3; });
    const float twice = 2 * x[i];
    return nudged ? std::nextafter(twice, 0.f) : twice;
  };
  const auto broken = [](const std::string& property, const Formula& formula, bool deterministic) {
    std::size_t findings = 0;
    for (std::uint64_t seed = 1; seed <= 16; ++seed)
      findings += Check(property, formula, 12, "f32", deterministic, seed).findings.size();
    return findings;
  };
  EXPECT_GT(broken("independent_rows x n", hair, true), 2u);
  EXPECT_EQ(broken("independent_rows x n", kDouble, true), 0u);
  EXPECT_EQ(broken("independent_rows x n", hair, false), 0u);
  EXPECT_EQ(broken("permutation_equivariant n", hair, true), 0u);
}

// Just below the smallest normal number rounding takes more than beyond it: up to that number itself.
TEST(PropertiesTest, DoublesOfWhatWasRoundedUpIntoTheNormalNumbers) {
  const auto of = [](double units) {
    return [units](std::span<const float> x, std::size_t i) {
      return x[i] == 0 ? 0.0 : std::ldexp(units, std::ilogb(x[i]) - 149);
    };
  };
  const auto findings = [](const Formula& formula) {
    return Check("scale_equivariant x y", formula, 12, "f32", true).findings.size();
  };
  EXPECT_EQ(findings(of(0x1p23 - 0.4)), 0u);
  // Two units are no rounding.
  EXPECT_GT(findings([&](std::span<const float> x, std::size_t i) {
              return of(0x1p23)(x, i) + (std::fabs(x[i]) >= 2 ? 0x1p-146 : 0);
            }),
            0u);
}

// Whichever row it is that looks at its neighbour, some case keeps it and alters the neighbour.
TEST(PropertiesTest, EveryRowIsWatched) {
  for (std::size_t guilty = 0; guilty < 11; ++guilty) {
    const Formula leaks = [guilty](std::span<const float> x, std::size_t i) {
      return i == guilty ? x[i] + x[i + 1] : 2.0 * x[i];
    };
    std::size_t findings = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      findings += Check("independent_rows x n", leaks, 12, "f32", false, seed).findings.size();
    EXPECT_GT(findings, 0u) << guilty;
  }
}

TEST(PropertiesTest, EveryDeclarableOneHasItsTransformAndTheReverse) {
  for (const ops::PropertyRow& row : ops::PropertyRows()) {
    const bool transformed = std::ranges::find(TransformRows(), row.name,
                                               &TransformRow::property) != TransformRows().end();
    EXPECT_EQ(transformed, !row.of_surroundings) << row.name;
  }
  for (const TransformRow& row : TransformRows())
    EXPECT_NE(ops::FindPropertyRow(row.property), nullptr) << row.property;
}

// A counterexample's text comes from a file.
TEST(PropertiesTest, WhatTheOpCannotDeclareIsNotChecked) {
  FakeParts bench([](FakeRun&) {});
  const engine::CompiledKernel compiled = FakeCompiler::Good().kernel;
  const Json launch = *ParseJson(bench.candidate.launch, "launch.json");
  const auto plan = ops::ParseLaunchPlan(launch, "launch.json", bench.instance.op);
  const Runner runner({&bench.instance, &*plan, &compiled}, bench.engine, bench.oracle, 1);
  cases::Probe probe;
  probe.case_ = {.axes = {{"n", 4}}, .seed = 5, .profiles = {}, .origin = ""};
  for (const char* bad : {"linearity x y", "linear x", "padding_neutral x", "batch_split", ""}) {
    const auto check =
        CheckProperty(bench.instance, ops::PropertyFromText(bad), probe, runner, bench.oracle);
    ASSERT_FALSE(check.has_value()) << bad;
    EXPECT_THAT(ToString(check.error()), HasSubstr("/property")) << bad;
  }
}

}  // namespace
}  // namespace assay::campaign
