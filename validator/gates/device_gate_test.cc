#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>

#include "validator/engine/inspector.h"
#include "validator/engine/stopwatch.h"
#include "validator/gates/testing/fakes.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using campaign::FakeEngine;
using campaign::FakeRun;
using ::testing::HasSubstr;
using verdict::GateResult;
using verdict::GateStatus;
using verdict::Outcome;

/// A judge with a GPU that runs another kernel than its emulator.
struct TwoWitnesses {
  explicit TwoWitnesses(FakeEngine::Kernel on_gpu,
                        FakeEngine::Kernel on_emulator = FakeEngine::Good())
      : bench(std::move(on_emulator)), gpu(std::move(on_gpu)) {}
  Judgement Judge() { return keeper().Judge(bench.instance, bench.candidate); }
  Gatekeeper keeper() {
    Tools tools = bench.tools();
    tools.gpu = &gpu;
    return Gatekeeper(tools, bench.options);
  }
  FakeBench bench;
  FakeEngine gpu;
};

FakeEngine::Kernel WrongFrom(std::int64_t n) {
  return [n](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() > n) run.Floats("y")[n] = 7;
  };
}

TEST(DeviceGateTest, WithoutAGpuItIsSkippedAndBarsNothing) {
  FakeBench bench;
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(GateOf(judgement.verdict, "device").status, GateStatus::kSkipped);
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted);
}

TEST(DeviceGateTest, PassesWhereBothAgree) {
  TwoWitnesses both(FakeEngine::Good());
  const Judgement judgement = both.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted) << RenderVerdict(judgement.verdict);
  const GateResult& gate = GateOf(judgement.verdict, "device");
  EXPECT_EQ(gate.status, GateStatus::kPassed);
  ASSERT_EQ(gate.statistics.size(), 1u);
  EXPECT_EQ(gate.statistics[0].value, static_cast<double>(gate.cases));
  EXPECT_GT(both.gpu.runs, 0);
}

/// An op of which no case runs whole in the emulator.
void MakeLarge(TwoWitnesses& both) {
  both.bench.options.effort = campaign::Effort::kQuick;
  both.bench.instance.op.axes = {cases::VariableAxis("n", 1 << 18, 1 << 20)};
  both.bench.oracle.slices = true;
}

TEST(DeviceGateTest, OfAnOpThatIsNeverSmallCasesRunWholeAndAreComparedInPart) {
  TwoWitnesses both(FakeEngine::Good());
  MakeLarge(both);
  const Judgement judgement = both.Judge();
  const GateResult& gate = GateOf(judgement.verdict, "device");
  EXPECT_EQ(gate.status, GateStatus::kPassed) << RenderVerdict(judgement.verdict);
  EXPECT_THAT(gate.reason, HasSubstr("compared in part"));
  EXPECT_GT(both.gpu.runs, 0);

  TwoWitnesses apart(WrongFrom(3));
  MakeLarge(apart);
  const Judgement other = apart.Judge();
  EXPECT_EQ(GateOf(other.verdict, "device").status, GateStatus::kRefuted)
      << RenderVerdict(other.verdict);
}

TEST(DeviceGateTest, RefutesWhatOnlyTheGpuGetsWrongAndShowsBothValues) {
  TwoWitnesses both(WrongFrom(3));
  const Judgement judgement = both.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_FALSE(judgement.vetted);
  const GateResult& gate = GateOf(judgement.verdict, "device");
  ASSERT_EQ(gate.counterexamples.size(), 1u);
  const Finding& finding = gate.counterexamples[0].findings.at(0);
  EXPECT_EQ(finding.kind, FindingKind::kDeviceDisagreement);
  EXPECT_EQ(finding.element->got, 7);
  EXPECT_THAT(finding.message, HasSubstr("the emulator's is"));
  // It replays where there is a GPU, and says so where there is none.
  const auto again = both.keeper().Replay(both.bench.instance, gate.counterexamples[0]);
  ASSERT_TRUE(again) << ToString(again.error());
  EXPECT_EQ(again->findings.at(0).kind, FindingKind::kDeviceDisagreement);
  const auto alone = Gatekeeper(both.bench.tools(), both.bench.options)
                         .Replay(both.bench.instance, gate.counterexamples[0]);
  EXPECT_THAT(ToString(alone.error()), HasSubstr("--engine gpu,emulator"));
}

TEST(DeviceGateTest, AfterARefutationItIsAskedOnlyWhereEveryGateIs) {
  for (const bool every : {false, true}) {
    TwoWitnesses both(FakeEngine::Good(), WrongFrom(3));
    both.bench.options.every_gate = every;
    const Judgement judgement = both.Judge();
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
    EXPECT_TRUE(judgement.verdict.reason.starts_with("numeric"));
    EXPECT_FALSE(judgement.vetted);
    EXPECT_EQ(GateOf(judgement.verdict, "device").status,
              every ? GateStatus::kPassed : GateStatus::kSkipped);
  }
}

TEST(DeviceGateTest, ADeterministicOpHasTheSameBitsEveryTime) {
  for (const bool promised : {true, false}) {
    // Changes a last bit now and then, by less than any allowance.
    TwoWitnesses both([calls = std::make_shared<std::atomic<int>>(0)](FakeRun& run) {
      FakeEngine::Good()(run);
      if (++*calls % 7 == 0) run.Floats("y")[0] = std::nextafter(run.Floats("y")[0], 1e30f);
    });
    if (promised) both.bench.instance.op.properties = {{"deterministic", {}}};
    const Judgement judgement = both.Judge();
    const GateResult& gate = GateOf(judgement.verdict, "device");
    if (!promised) {
      EXPECT_EQ(gate.status, GateStatus::kPassed);
      continue;
    }
    ASSERT_EQ(gate.counterexamples.size(), 1u) << RenderVerdict(judgement.verdict);
    EXPECT_EQ(gate.counterexamples[0].findings.at(0).kind, FindingKind::kNondeterministic);
  }
}

/// A GPU that can repeat a call under pressure.
class PressedGpu final : public engine::Engine, public engine::Stopwatch {
 public:
  explicit PressedGpu(std::optional<StressPlan::Beside> changed) : changed_(changed) {}
  std::string_view name() const override { return "gpu"; }
  engine::Stopwatch* stopwatch() override { return this; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    return plain_.Run(execution, buffers, trust);
  }
  Result<Timed> Time(const Execution&, const TimingPlan&, std::span<SharedMemory* const>) override {
    return Timed{};
  }
  Result<Stressed> Repeat(const Execution& execution, const StressPlan& plan,
                          std::span<SharedMemory* const>) override {
    const bool twice = plan.beside == StressPlan::Beside::kItself;
    EXPECT_EQ(execution.launches.size(), twice ? 2u : 1u);
    conditions.push_back(plan);
    return Stressed{
        .report = {},
        .stress = {
            .made = plan.repetitions, .changed = plan.beside == changed_ ? 3 : -1, .slots = {}}};
  }
  Result<Rates> Measure() override { return Rates{}; }
  Result<double> Time(const MatrixProduct&) override { return 1.0; }
  Result<double> Time(const RowsPrimitive&) override { return 1.0; }

  std::vector<StressPlan> conditions;

 private:
  FakeEngine plain_;
  std::optional<StressPlan::Beside> changed_;
};

TEST(DeviceGateTest, TheLargestCaseHasTheSameBitsUnderPressure) {
  using Beside = StressPlan::Beside;
  for (const std::optional<Beside> changed :
       {std::optional<Beside>(), std::optional(Beside::kItself),
        std::optional(Beside::kFewProcessors)}) {
    FakeBench bench;
    bench.instance.op.properties = {{"deterministic", {}}};
    PressedGpu gpu(changed);
    Tools tools = bench.tools();
    tools.gpu = &gpu;
    const Judgement judgement =
        Gatekeeper(tools, bench.options).Judge(bench.instance, bench.candidate);
    const GateResult& gate = GateOf(judgement.verdict, "device");
    if (!changed) {
      EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
      EXPECT_THAT(gate.reason, HasSubstr("300 times, under 6 conditions"));
      EXPECT_EQ(gpu.conditions.size(), 6u);
      continue;
    }
    ASSERT_EQ(gate.counterexamples.size(), 1u) << RenderVerdict(judgement.verdict);
    EXPECT_EQ(gate.counterexamples[0].findings.at(0).kind, FindingKind::kNondeterministic);
    EXPECT_EQ(gpu.conditions.back().beside, *changed);
  }
}

TEST(DeviceGateTest, AGpuThatFailsProvesNothing) {
  TwoWitnesses both([](FakeRun& run) {
    run.report.stop = Stop::kEngineFailure;
    run.report.reason = "the GPU has fallen off the bus";
  });
  const Judgement judgement = both.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
  EXPECT_THAT(judgement.verdict.reason, HasSubstr("fallen off"));
}

TEST(DeviceGateTest, ARepetitionThatDoesNotEndProvesNothing) {
  // Every case runs once; what comes again and again is the largest.
  TwoWitnesses both([calls = std::make_shared<std::atomic<int>>(0)](FakeRun& run) {
    FakeEngine::Good()(run);
    if (++*calls <= static_cast<int>(campaign::RowOf(campaign::Effort::kQuick).device_cases) + 3)
      return;
    run.report.stop = Stop::kResourceLimit;
    run.report.reason = "the kernel did not end";
  });
  both.bench.instance.op.properties = {{"deterministic", {}}};
  const Judgement judgement = both.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
  EXPECT_THAT(judgement.verdict.reason, HasSubstr("did not end"));
}

TEST(EngineContractTest, WhatWasNotWatchedHasNotPassed) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    run.report.watched.race = false;
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
  EXPECT_THAT(judgement.verdict.reason, HasSubstr("did not watch: race"));
}

/// A GPU whose worker can be watched by tools.
class WatchedGpu final : public engine::Engine, public engine::Inspector {
 public:
  std::string_view name() const override { return "gpu"; }
  engine::Inspector* inspector() override { return this; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    return plain_.Run(execution, buffers, trust);
  }
  std::span<const std::string_view> Tools() const override {
    static constexpr std::array<std::string_view, 2> kTools = {"memcheck", "racecheck"};
    return kTools;
  }
  Result<Inspected> Inspect(std::size_t tool, const Execution&,
                            std::span<SharedMemory* const>) override {
    if (!installed) return Fail(ErrorKind::kEnvironment, "compute-sanitizer is not installed");
    ++inspected;
    std::string text = tool == 0 ? "========= ERROR SUMMARY: 1 error\n"
                                 : "========= RACECHECK SUMMARY: 0 hazards displayed\n";
    if (tool == 0 && wrong) text = "========= Invalid __global__ write of size 4 bytes\n" + text;
    if (tool == 1 && cut_off) text.clear();
    return Inspected{.report = {}, .words = text};
  }
  bool installed = true, wrong = false, cut_off = false;
  std::atomic<int> inspected = 0;

 private:
  FakeEngine plain_;
};

TEST(DeviceGateTest, WhatToolsSeeIsAFindingAndReplays) {
  for (const bool wrong : {true, false}) {
    FakeBench bench;
    WatchedGpu gpu;
    gpu.wrong = wrong;
    Tools tools = bench.tools();
    tools.gpu = &gpu;
    const Judgement judgement =
        Gatekeeper(tools, bench.options).Judge(bench.instance, bench.candidate);
    const GateResult& gate = GateOf(judgement.verdict, "device");
    EXPECT_GT(gpu.inspected, 1);
    EXPECT_TRUE(judgement.verdict.ledger.Balanced());
    if (!wrong) {
      EXPECT_EQ(gate.status, GateStatus::kPassed) << gate.reason;
      EXPECT_THAT(gate.reason, HasSubstr("under compute-sanitizer's tools"));
      continue;
    }
    ASSERT_EQ(gate.counterexamples.size(), 1u) << RenderVerdict(judgement.verdict);
    const Finding& finding = gate.counterexamples[0].findings.at(0);
    EXPECT_EQ(finding.kind, FindingKind::kOutOfBounds);
    EXPECT_THAT(finding.message, HasSubstr("memcheck"));
    const auto again =
        Gatekeeper(tools, bench.options).Replay(bench.instance, gate.counterexamples[0]);
    ASSERT_TRUE(again) << ToString(again.error());
    EXPECT_EQ(again->findings.at(0).kind, FindingKind::kOutOfBounds);
  }
}

TEST(DeviceGateTest, WhatToolsCouldNotWatchStandsInTheLedgerAndBarsNothing) {
  for (const bool installed : {true, false}) {
    FakeBench bench;
    WatchedGpu gpu;
    gpu.installed = installed;
    gpu.cut_off = true;
    Tools tools = bench.tools();
    tools.gpu = &gpu;
    const Judgement judgement =
        Gatekeeper(tools, bench.options).Judge(bench.instance, bench.candidate);
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted) << RenderVerdict(judgement.verdict);
    const auto& rows = judgement.verdict.ledger.rows();
    const auto row = std::ranges::find(rows, "under compute-sanitizer", &verdict::LedgerRow::wave);
    ASSERT_NE(row, rows.end());
    EXPECT_EQ(row->examined, installed ? row->planned / 2 : 0);
    ASSERT_FALSE(row->left_out.empty());
    EXPECT_THAT(row->left_out.back().reason,
                HasSubstr(installed ? "came to no end" : "not installed"));
  }
}

}  // namespace
}  // namespace assay::gates
