// What timed outputs are held to (validator/speed/hold.h): what each of the three sees, and what it must
// let pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "validator/gates/testing/fake_stopwatch.h"
#include "validator/speed/hold.h"

namespace assay::gates {
namespace {

using speed::Depth;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verdict::GateResult;
using verdict::GateStatus;

// More than whole truths are made for.
constexpr std::int64_t kLarge = std::int64_t{1} << 22;
// Between the places of kLarge that are held to their truths.
constexpr std::size_t kBetween = 1'234'567;

struct Large : Timed {
  Large() {
    bench.instance.op.axes[0].max = kLarge;
    bench.instance.op.workloads = {{.axes = {{"n", kLarge}}, .note = "large"}};
    // The device gate looks at other calls.
    stopwatch.seconds = 6e-3;
  }
  void Wrong(std::function<void(std::span<float> y)> what) {
    stopwatch.kernel = [what](std::span<const float> x, std::span<float> y, int call) {
      FakeStopwatch::Good()(x, y, call);
      if (y.size() == kLarge) what(y);
    };
  }
  void PromiseNothing() { bench.instance.op.properties.clear(); }
};

TEST(Places, AreAscendingAndHoldEndsMiddleAndPowersOfTwo) {
  for (const Depth depth : {Depth::kFew, Depth::kMany}) {
    const auto places = speed::Places(kLarge, depth, 7);
    EXPECT_TRUE(std::ranges::is_sorted(places, std::less_equal{}));
    for (const std::int64_t place : {std::int64_t{0}, kLarge / 2, kLarge - 1})
      EXPECT_TRUE(std::ranges::binary_search(places, place)) << place;
    EXPECT_FALSE(std::ranges::binary_search(places, kLarge));
    EXPECT_LT(places.size(), kLarge / 2);
    EXPECT_NE(places, speed::Places(kLarge, depth, 8));
  }
  for (std::int64_t power = 1 << 16; power < kLarge; power *= 2) {
    const auto places = speed::Places(kLarge, Depth::kMany, 7);
    EXPECT_TRUE(std::ranges::binary_search(places, power - 1)) << power;
    EXPECT_TRUE(std::ranges::binary_search(places, power)) << power;
  }
  EXPECT_THAT(speed::Places(3, Depth::kFew, 1), ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(speed::Places(0, Depth::kMany, 1), IsEmpty());
}

TEST(TimedOutputs, RightOnesPassAndTheVerdictSaysWhatWasHeldToWhat) {
  Large timed;
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
  ASSERT_THAT(gate.statistics, SizeIs(2));
  EXPECT_THAT(gate.statistics[1].note, HasSubstr("places of one set of inputs"));
  EXPECT_THAT(gate.statistics[1].note, HasSubstr("all have the bits of an untimed call"));
  Timed small;
  EXPECT_THAT(small.Gate().statistics[1].note, HasSubstr("all outputs of one set of inputs"));
}

TEST(TimedOutputs, OneWrongElementThatNoTruthLooksAtHasOtherBitsThanUntimed) {
  Large timed;
  timed.Wrong([](std::span<float> y) { y[kBetween] += 1; });
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kRefuted) << gate.reason;
  ASSERT_THAT(gate.counterexamples, SizeIs(1));
  const Finding& finding = gate.counterexamples[0].findings.at(0);
  // Once it is known where to look, its truth is asked for.
  EXPECT_EQ(finding.kind, FindingKind::kDeviceDisagreement) << finding.message;
  EXPECT_THAT(finding.message, HasSubstr("but the op defines"));
  EXPECT_THAT(finding.element.value_or(ElementPlace{}).index,
              ::testing::ElementsAre(static_cast<std::int64_t>(kBetween)));
}

TEST(TimedOutputs, WhatIsRightAndHasOtherBitsBreaksAPromiseOnly) {
  for (const bool promised : {true, false}) {
    Large timed;
    timed.Wrong([](std::span<float> y) { y[kBetween] = std::nextafter(y[kBetween], 1e9f); });
    if (!promised) timed.PromiseNothing();
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(gate.status, promised ? GateStatus::kRefuted : GateStatus::kPassed) << gate.reason;
    if (!promised) {
      EXPECT_THAT(gate.statistics.at(1).note, HasSubstr("those that differ most"));
      continue;
    }
    ASSERT_THAT(gate.counterexamples, SizeIs(1));
    const Finding& finding = gate.counterexamples[0].findings.at(0);
    EXPECT_EQ(finding.kind, FindingKind::kNondeterministic) << finding.message;
    EXPECT_THAT(finding.message, HasSubstr("when the same call runs untimed"));
  }
}

TEST(TimedOutputs, WithoutAPromiseWhatDiffersMostIsHeldToItsTruth) {
  for (const bool wrong : {true, false}) {
    Large timed;
    timed.PromiseNothing();
    timed.Wrong([wrong](std::span<float> y) {
      for (float& value : y) value = std::nextafter(value, 0.0f);
      if (wrong) y[kBetween] *= 1.5f;
    });
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(gate.status, wrong ? GateStatus::kRefuted : GateStatus::kPassed) << gate.reason;
  }
}

TEST(TimedOutputs, WhatIsWrongUntimedAsWellIsLeftToTruths) {
  // In every element: each set of inputs shows it.
  Large timed;
  timed.gpu.kernel = [](campaign::FakeRun& run) {
    for (std::int64_t i = 0; i < run.n(); ++i)
      run.Floats("y")[i] = (run.n() == kLarge ? 3 : 2) * run.Floats("x")[i];
  };
  timed.Wrong([](std::span<float> y) {
    for (float& value : y) value *= 1.5f;
  });
  const GateResult& gate = timed.Gate();
  EXPECT_EQ(gate.status, GateStatus::kRefuted) << gate.reason;
  EXPECT_THAT(gate.counterexamples.at(0).findings.at(0).message, HasSubstr("the op defines"));
}

TEST(TimedOutputs, WhatNeitherCallWritesDiffers) {
  Large timed;
  timed.gpu.kernel = [](campaign::FakeRun& run) {
    const Execution& execution = run.execution;
    const std::uint8_t poison = execution.buffers[run.Find("y")].poison;
    for (std::int64_t i = 0; i < run.n(); ++i) run.Floats("y")[i] = 2 * run.Floats("x")[i];
    if (run.n() == kLarge) std::memset(&run.Floats("y")[kBetween], poison, sizeof(float));
  };
  timed.Wrong([](std::span<float> y) { std::memset(&y[kBetween], 0xff, sizeof(float)); });
  EXPECT_EQ(timed.Gate().status, GateStatus::kRefuted);
}

TEST(TimedOutputs, WithoutTruthsOfPartsTheWholeReferenceRunsAndSaysTheSame) {
  for (const bool wrong : {true, false}) {
    Large timed;
    timed.bench.oracle.whole_only = true;
    timed.PromiseNothing();
    timed.Wrong([wrong](std::span<float> y) {
      for (float& value : y) value = std::nextafter(value, 0.0f);
      if (wrong) y[kBetween] *= 1.5f;
    });
    const GateResult& gate = timed.Gate();
    EXPECT_EQ(gate.status, wrong ? GateStatus::kRefuted : GateStatus::kPassed) << gate.reason;
    if (wrong) continue;
    EXPECT_THAT(gate.statistics.at(1).note, HasSubstr("places of 0 of"));
  }
}

TEST(TimedOutputs, AnElementWithoutATruthIsZero) {
  for (const float value : {0.0f, 1e-3f}) {
    Timed timed;
    timed.bench.instance.op.properties.clear();
    const cases::Case case_{.axes = {{"n", 8}}, .seed = 1, .profiles = {}, .origin = "test"};
    cases::Materialised inputs{.axes = case_.axes, .inputs = {}};
    inputs.inputs.emplace("x", *Tensor::Create(DType::kF32, {8}));
    TensorMap outputs, alone;
    Tensor& y = outputs.emplace("y", *Tensor::Create(DType::kF32, {8})).first->second;
    alone.emplace("y", *Tensor::Create(DType::kF32, {8}));
    y.Set(5, value);
    const speed::Instruments instruments{timed.stopwatch, timed.gpu, timed.bench.oracle,
                                         timed.bench.oracle};
    const speed::Difference difference =
        speed::CompareToUntimed(timed.bench.instance, outputs, alone);
    EXPECT_THAT(difference.suspects, SizeIs(value == 0 ? 0 : 1));
    EXPECT_THAT(difference.findings, IsEmpty());
    for (const bool parts : {true, false}) {
      timed.bench.oracle.whole_only = !parts;
      const auto held = speed::HoldSuspects(instruments, timed.bench.instance,
                                            {case_, inputs, outputs}, difference.suspects, parts);
      ASSERT_TRUE(held) << ToString(held.error());
      EXPECT_EQ(held->findings.empty(), value == 0);
    }
  }
}

}  // namespace
}  // namespace assay::gates
