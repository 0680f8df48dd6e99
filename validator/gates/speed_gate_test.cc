// The speed gate over a stopwatch that runs a C++ function call by call and says how long it took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/gates/testing/fake_stopwatch.h"

namespace assay::gates {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using verdict::GateResult;
using verdict::GateStatus;
using verdict::Outcome;

TEST(SpeedGateTest, WithoutAMeterItIsSkippedAndBarsNothing) {
  FakeBench bench;
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(GateOf(judgement.verdict, "speed").status, GateStatus::kSkipped);
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted);
}

TEST(SpeedGateTest, AModelComparesAndRefutesNothing) {
  for (const double share : {0.25, 0.0}) {
    FakeBench bench;
    bench.instance.op.workloads = {{.axes = {{"n", 8}}, .note = ""}};
    Tools tools = bench.tools();
    tools.model = [share](const ops::Instance&, const ops::LaunchPlan&,
                          const engine::CompiledKernel&) {
      return std::vector<speed::WorkloadSpeed>{{.workload = "n=8",
                                                .seconds = std::nullopt,
                                                .share = share,
                                                .limiter = "bank conflicts"}};
    };
    const Judgement judgement =
        Gatekeeper(tools, bench.options).Judge(bench.instance, bench.candidate);
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted);
    const GateResult& gate = GateOf(judgement.verdict, "speed");
    EXPECT_EQ(gate.status, GateStatus::kSkipped);
    // A workload of which nothing is known would let kernels be compared on other work.
    ASSERT_THAT(gate.statistics, SizeIs(share > 0 ? 2 : 0));
    if (share <= 0) continue;
    EXPECT_EQ(gate.statistics[0].value, 4);
    EXPECT_THAT(gate.statistics[1].note, HasSubstr("bank conflicts"));
  }
}

TEST(SpeedGateTest, PassesAtTheBarAndSaysHowNearTheLimitItIs) {
  Timed timed;
  timed.stopwatch.seconds = 2e-3;
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
  EXPECT_EQ(timed.judgement.verdict.outcome, Outcome::kAccepted);
  ASSERT_THAT(gate.statistics, SizeIs(2));
  // What kernels are compared by: less is better.
  EXPECT_NEAR(gate.statistics[0].value, 2, 1e-9);
  EXPECT_NEAR(gate.statistics[1].value, 0.5, 1e-9);
  EXPECT_EQ(gate.statistics[1].limit, 0.4);
  EXPECT_THAT(gate.statistics[1].note, HasSubstr("memory"));
}

TEST(SpeedGateTest, RefutesWhatStaysBelowTheBar) {
  Timed timed;
  timed.stopwatch.seconds = 3e-3;
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kRefuted);
  EXPECT_THAT(gate.reason, HasSubstr("40 % is asked for"));
  EXPECT_FALSE(timed.judgement.vetted);
}

TEST(SpeedGateTest, BelowTheBarIsKeptWhereFasterOnesAreLookedForAndSaysSo) {
  for (const double seconds : {2e-3, 3e-3}) {
    Timed timed;
    timed.bench.options.below_bar = true;
    timed.stopwatch.seconds = seconds;
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(timed.judgement.verdict.outcome, Outcome::kAccepted) << gate.reason;
    EXPECT_TRUE(timed.judgement.vetted);
    const bool met = seconds < 2.5e-3;
    // Not passed: whoever asks for the bar is not told that it was met.
    EXPECT_EQ(gate.status, met ? GateStatus::kPassed : GateStatus::kSkipped);
    EXPECT_EQ(gate.reason.find("below the bar") == std::string::npos, met) << gate.reason;
    ASSERT_FALSE(gate.statistics.empty());
    EXPECT_EQ(gate.statistics[0].value <= gate.statistics[0].limit, met);
  }
}

TEST(SpeedGateTest, WhatIsTooSlowIsToldOfTheLibraryAsWell) {
  for (const bool kept : {true, false}) {
    Timed timed(R"({"bar": 0.4, "library": {"m": "n", "n": "n", "k": "n"}})");
    timed.bench.options.below_bar = kept;
    timed.stopwatch.seconds = 3e-3;
    timed.stopwatch.library = 1e-3;
    EXPECT_THAT(timed.Gate().reason, HasSubstr("use the library at n="));
  }
}

TEST(SpeedGateTest, WrongOutputsAreRefutedHoweverLowTheBar) {
  Timed timed;
  timed.bench.options.below_bar = true;
  timed.stopwatch.kernel = [](std::span<const float>, std::span<float>, int) {};
  EXPECT_EQ(timed.Gate().status, GateStatus::kRefuted);
}

TEST(SpeedGateTest, WorkLeftOutInTimedCallsIsRefutedAndReplays) {
  // From the second round on, or from the first timed call on: slots are fresh inputs, all checked.
  for (const int first : {0, 1, 5}) {
    Timed timed;
    timed.stopwatch.seconds = 1e-3;
    timed.stopwatch.kernel = [first](std::span<const float> x, std::span<float> y, int call) {
      const std::size_t n = call >= first ? x.size() - 1 : x.size();
      for (std::size_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    };
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(gate.status, GateStatus::kRefuted) << first;
    ASSERT_THAT(gate.counterexamples, SizeIs(1));
    const Finding& finding = gate.counterexamples[0].findings.at(0);
    EXPECT_EQ(finding.kind, FindingKind::kDeviceDisagreement) << finding.message;
    EXPECT_THAT(finding.message, HasSubstr("in a timed call"));
    const verdict::Counterexample found = gate.counterexamples[0];
    const auto again = timed.keeper().Replay(timed.bench.instance, found);
    ASSERT_TRUE(again) << ToString(again.error());
    ASSERT_FALSE(again->findings.empty());
    EXPECT_EQ(again->findings[0].kind, FindingKind::kDeviceDisagreement);
    const auto alone =
        Gatekeeper(timed.bench.tools(), timed.bench.options).Replay(timed.bench.instance, found);
    EXPECT_THAT(ToString(alone.error()), HasSubstr("--speed"));
  }
}

TEST(SpeedGateTest, OneResultForAllInputsIsRefuted) {
  Timed timed;
  auto kept = std::make_shared<std::vector<float>>();
  timed.stopwatch.kernel = [kept](std::span<const float> x, std::span<float> y, int) {
    if (kept->empty()) {
      for (const float value : x) kept->push_back(2 * value);
    }
    std::ranges::copy(*kept, y.begin());
  };
  EXPECT_EQ(timed.Gate().status, GateStatus::kRefuted);
}

TEST(SpeedGateTest, OtherBitsOfTheLargestWorkloadUnderPressureAreRefuted) {
  for (const bool promised : {true, false}) {
    Timed timed;
    timed.stopwatch.changed_beside = StressPlan::Beside::kBandwidth;
    if (!promised) timed.bench.instance.op.properties.clear();
    const GateResult& gate = timed.Gate();
    if (!promised) {
      EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
      EXPECT_EQ(timed.stopwatch.conditions, 0);
      continue;
    }
    ASSERT_THAT(gate.counterexamples, SizeIs(1));
    const Finding& finding = gate.counterexamples[0].findings.at(0);
    EXPECT_EQ(finding.kind, FindingKind::kNondeterministic);
    EXPECT_THAT(finding.message, HasSubstr("takes the memory's bandwidth"));
  }
}

TEST(SpeedGateTest, WhatCouldNotBeTimedProvesNothing) {
  Timed timed;
  timed.stopwatch.stop = Stop::kResourceLimit;
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kInconclusive);
  EXPECT_THAT(gate.reason, HasSubstr("did not end"));
}

TEST(SpeedGateTest, SaysWhereTheLibraryIsAsFast) {
  for (const double library : {1.9e-3, 2.5e-3}) {
    Timed timed(R"({"library": {"m": "n", "n": "n", "k": "n"}})");
    timed.stopwatch.seconds = 2e-3;
    timed.stopwatch.library = library;
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
    EXPECT_EQ(gate.reason.find("use the library") != std::string::npos, library < 2e-3)
        << gate.reason;
  }
}

TEST(SpeedGateTest, RowsOfTheLibraryAreABaselineAsWell) {
  Timed timed(R"({"library": {"rows": "n", "columns": "2 * n", "of": "softmax"}})");
  timed.stopwatch.seconds = 2e-3;
  timed.stopwatch.library = 1e-3;
  const GateResult& gate = timed.Gate();
  EXPECT_THAT(gate.reason, HasSubstr("use the library"));
  ASSERT_FALSE(timed.stopwatch.rows.empty());
  EXPECT_EQ(timed.stopwatch.rows[0].operation, "softmax");
  EXPECT_EQ(timed.stopwatch.rows[0].dtype, "f32");
  EXPECT_EQ(timed.stopwatch.rows[0].rows, 1 << 20);
  EXPECT_EQ(timed.stopwatch.rows[0].columns, 2 << 20);
}

TEST(MeterTest, LargerThanTheCardIsHalvedAndSaysSo) {
  Timed timed;
  timed.bench.instance.op.axes[0].max = std::int64_t{1} << 40;
  const ops::LaunchPlan plan =
      ops::ParseLaunchPlan(ParseJson(timed.bench.candidate.launch, "test").value(), "test",
                           timed.bench.instance.op)
          .value();
  const engine::CompiledKernel compiled = timed.bench.compiler.outcome.kernel;
  const speed::Subject subject{timed.bench.instance, plan, compiled};
  const auto whole = timed.meter.Fit(subject, {{"n", 1 << 20}}, {});
  ASSERT_TRUE(whole) << ToString(whole.error());
  EXPECT_EQ(whole->second, 0);
  const auto halved = timed.meter.Fit(subject, {{"n", std::int64_t{1} << 36}}, {});
  ASSERT_TRUE(halved) << ToString(halved.error());
  EXPECT_GT(halved->second, 0);
  EXPECT_LE(halved->first.at("n"), std::int64_t{1} << 27);
  // Held to nothing it may be as large as the card, but for what is overwritten, which is copied.
  const speed::Settings unchecked{.check = false};
  const std::int64_t large = std::int64_t{1} << 28;
  EXPECT_EQ(timed.meter.Fit(subject, {{"n", large}}, unchecked).value().first.at("n"), large);
  timed.bench.instance.op.outputs[0].updates = timed.bench.instance.op.inputs[0].name;
  EXPECT_LE(timed.meter.Fit(subject, {{"n", large}}, unchecked).value().first.at("n"),
            std::int64_t{1} << 27);
}

}  // namespace
}  // namespace assay::gates
