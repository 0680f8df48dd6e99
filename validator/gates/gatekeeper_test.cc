#include "validator/gates/gatekeeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/properties.h"
#include "validator/gates/testing/fakes.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using campaign::FakeEngine;
using campaign::FakeRun;
using campaign::MakeFinding;
using ::testing::HasSubstr;
using ::testing::Not;
using verdict::Counterexample;
using verdict::GateResult;
using verdict::GateStatus;
using verdict::Outcome;

TEST(GatekeeperTest, AcceptsWhatIsRight) {
  FakeBench bench;
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted) << RenderVerdict(judgement.verdict);
  ASSERT_TRUE(judgement.vetted);
  EXPECT_EQ(judgement.vetted->candidate().kernel, bench.candidate.kernel);
  EXPECT_EQ(GateOf(judgement.verdict, "speed").status, GateStatus::kSkipped);
  EXPECT_EQ(GateOf(judgement.verdict, "holdout").status, GateStatus::kPassed);
  EXPECT_EQ(bench.compiler.calls, 2);  // For the PTX, and for machine code.
}

TEST(GatekeeperTest, NothingCountsThatTheAssemblerRefuses) {
  for (const unsigned jobs : {1u, 2u}) {
    FakeBench bench([](FakeRun& run) { run.Floats("y")[0] = 7; });  // wrong, too
    bench.options.jobs = jobs;
    bench.compiler.assembled = bench.compiler.outcome;
    bench.compiler.assembled->kind = engine::CompileOutcome::Kind::kRefused;
    bench.compiler.assembled->detail = "too much shared data";
    const Judgement refused = bench.Judge();
    EXPECT_EQ(refused.verdict.outcome, Outcome::kRefuted);
    EXPECT_THAT(refused.verdict.reason, HasSubstr("too much shared data"));
    EXPECT_FALSE(refused.vetted);
    for (const std::string_view later : {"memory", "numeric", "precision", "holdout"}) {
      const GateResult& gate = GateOf(refused.verdict, std::string(later));
      EXPECT_EQ(gate.status, GateStatus::kSkipped) << later;
      EXPECT_EQ(gate.reason, "not reached: compile is refuted") << later;
      EXPECT_TRUE(gate.counterexamples.empty()) << later;
    }
    EXPECT_EQ(refused.verdict.ledger.planned(), 0u);
  }
  // Other PTX than what the cases ran is none that was judged.
  FakeBench bench;
  bench.compiler.assembled = bench.compiler.outcome;
  bench.compiler.assembled->kernel.digest = "another";
  bench.compiler.assembled->kernel.ptx += "// another\n";
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kInconclusive);
  // But for what the compiler draws anew it may be the same.
  bench.compiler.outcome.kernel.ptx += "_INTERNAL_00000000_9_kernel_cu_d2b035da_585";
  bench.compiler.assembled->kernel.ptx =
      bench.compiler.outcome.kernel.ptx.substr(0, bench.compiler.outcome.kernel.ptx.size() - 3) +
      "7";
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kAccepted);
}

TEST(GatekeeperTest, WhatTinyCasesRefutePaysForNoPlaces) {
  const auto waves_of = [](FakeEngine::Kernel kernel) {
    FakeBench bench(std::move(kernel));
    bench.options.effort = campaign::Effort::kStandard;
    std::set<std::string> waves;
    const Judgement judgement = bench.Judge();
    for (const verdict::LedgerRow& row : judgement.verdict.ledger.rows()) waves.insert(row.wave);
    return waves;
  };
  const std::set<std::string> of_wrong = waves_of([](FakeRun& run) { run.Floats("y")[0] = 7; });
  EXPECT_TRUE(of_wrong.contains("tiny"));
  EXPECT_FALSE(of_wrong.contains("places"));
  EXPECT_TRUE(waves_of(FakeEngine::Good()).contains("places"));
}

TEST(GatekeeperTest, NeverVetsWithoutAJail) {
  FakeBench bench;
  bench.options.unsafe_no_jail = true;
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted);
  EXPECT_FALSE(judgement.vetted);
  EXPECT_THAT(RenderVerdict(judgement.verdict), HasSubstr("without a jail"));
}

TEST(GatekeeperTest, SameVerdictTwiceAndOnAnyNumberOfThreads) {
  const auto wrong = [](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() > 40) run.Floats("y")[40] = 7;
  };
  std::vector<std::string> texts;
  for (const unsigned jobs : {1u, 2u, 5u}) {
    FakeBench bench(wrong);
    bench.options.jobs = jobs;
    texts.push_back(PrettyJson(ToJson(bench.Judge().verdict)));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

// --- numeric

TEST(GatekeeperTest, RefutesWrongValuesWithTheSmallestCase) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() > 40) run.Floats("y")[40] = 7;
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_FALSE(judgement.vetted);
  const GateResult& gate = GateOf(judgement.verdict, "numeric");
  ASSERT_EQ(gate.counterexamples.size(), 1u);
  const Counterexample& counterexample = gate.counterexamples[0];
  EXPECT_EQ(counterexample.probe->case_.axes.at("n"), 41);
  EXPECT_EQ(counterexample.findings.front().kind, FindingKind::kWrongValue);
  EXPECT_EQ(GateOf(judgement.verdict, "holdout").status, GateStatus::kSkipped);
}

TEST(GatekeeperTest, RefutesOmittedRemainder) {
  // Wrong for some shapes only: the tail of a tile that the plan names.
  FakeBench bench([](FakeRun& run) {
    const std::int64_t whole = run.n() / 128 * 128;
    for (std::int64_t i = 0; i < run.n(); ++i) run.Floats("y")[i] = 0;
    for (std::int64_t i = 0; i < whole; ++i) run.Floats("y")[i] = 2 * run.Floats("x")[i];
  });
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kRefuted);
}

// --- memory

TEST(GatekeeperTest, RefutesUnwrittenOutputs) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() <= 2) return;
    run.report.unwritten_bytes[run.Find("y")] = 4;
    run.report.first_unwritten[run.Find("y")] = 2;
  });
  const Judgement judgement = bench.Judge();
  const GateResult& gate = GateOf(judgement.verdict, "memory");
  ASSERT_EQ(gate.counterexamples.size(), 1u) << RenderVerdict(judgement.verdict);
  EXPECT_EQ(gate.counterexamples[0].probe->case_.axes.at("n"), 3);
  EXPECT_EQ(gate.counterexamples[0].findings.front().kind, FindingKind::kUnwrittenOutput);
  EXPECT_THAT(gate.counterexamples[0].findings.front().message, HasSubstr("y[2]"));
}

TEST(GatekeeperTest, RefutesFaults) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    run.report.stop = Stop::kFault;
    run.report.findings = {MakeFinding(FindingKind::kOutOfBounds, 3, "reads past x")};
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  const auto& counterexample = GateOf(judgement.verdict, "memory").counterexamples.at(0);
  EXPECT_EQ(counterexample.probe->case_.axes.at("n"), 1);
  EXPECT_THAT(counterexample.findings.front().accesses.front().site.excerpt,
              HasSubstr("y[i] = 2 * x[i]"));
  // Numeric saw no complete run: it may not claim to have passed.
  EXPECT_EQ(GateOf(judgement.verdict, "numeric").status, GateStatus::kInconclusive);
}

// --- race

TEST(GatekeeperTest, OneRoundCarriesDistinctFindingsOfSeveralGates) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    run.report.findings = {MakeFinding(FindingKind::kDataRace, 2, "race on line 2"),
                           MakeFinding(FindingKind::kDataRace, 2, "race on line 2")};
    if (run.n() > 5) {
      run.report.findings.push_back(
          MakeFinding(FindingKind::kMisaligned, 3, "misaligned on line 3"));
    }
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(GateOf(judgement.verdict, "race").counterexamples.size(), 1u);
  EXPECT_EQ(GateOf(judgement.verdict, "race").counterexamples[0].probe->case_.axes.at("n"), 1);
  ASSERT_EQ(GateOf(judgement.verdict, "memory").counterexamples.size(), 1u)
      << RenderVerdict(judgement.verdict);
  EXPECT_EQ(GateOf(judgement.verdict, "memory").counterexamples[0].probe->case_.axes.at("n"), 6);
}

void DependsOnSchedule(FakeRun& run) {
  FakeEngine::Good()(run);
  if (run.execution.schedule.policy == Schedule::Policy::kReversed) {
    // One unit in the last place: within every tolerance.
    float& first = run.Floats("y")[0];
    first = std::nextafter(first, 1e30f);
  }
}

TEST(GatekeeperTest, RefutesDependenceOnTheScheduleWhereDeterminismIsPromised) {
  FakeBench bench(DependsOnSchedule);
  bench.instance.op.properties = {{"deterministic", {}}};
  const Judgement judgement = bench.Judge();
  const auto& counterexamples = GateOf(judgement.verdict, "race").counterexamples;
  ASSERT_EQ(counterexamples.size(), 1u) << RenderVerdict(judgement.verdict);
  EXPECT_EQ(counterexamples[0].findings.front().kind, FindingKind::kNondeterministic);
  EXPECT_EQ(counterexamples[0].probe->schedule.policy, Schedule::Policy::kReversed);
}

TEST(GatekeeperTest, AllowsDependenceOnTheScheduleElsewhere) {
  FakeBench bench(DependsOnSchedule);
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kAccepted);
}

// --- state

TEST(GatekeeperTest, RefutesWhatIsRightForTheFirstCallsOnly) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.launches() > 3) run.Floats("y")[0] = 7;
  });
  const Judgement judgement = bench.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_EQ(GateOf(judgement.verdict, "numeric").counterexamples.at(0).probe->prelude.size(), 3u);
}

// A kernel that gives out again what it computed for a key; the fake engine sees all calls of a run
// at once, so it plays the last one from the first.
FakeEngine::Kernel Memoised(bool (*same)(const BufferSpec& first, const BufferSpec& last)) {
  return [same](FakeRun& run) {
    FakeEngine::Good()(run);
    if (!run.Has("x@call1")) return;  // One call, or the same one again on the same memory.
    const std::size_t before = run.Find("x@call1");
    const std::size_t now = run.Find("x");
    if (!same(run.execution.buffers[before], run.execution.buffers[now])) return;
    const std::int64_t kept = run.execution.buffers[before].elements;
    for (std::int64_t i = 0; i < std::min(kept, run.n()); ++i)
      run.Floats("y")[i] = 2 * run.Floats("x@call1")[i];
  };
}

TEST(GatekeeperTest, RefutesResultsKeptByAddress) {
  FakeBench bench(
      Memoised([](const BufferSpec&, const BufferSpec& last) { return last.reuse.has_value(); }));
  const Judgement judgement = bench.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  const Counterexample& counterexample = GateOf(judgement.verdict, "numeric").counterexamples.at(0);
  EXPECT_EQ(counterexample.probe->prelude.size(), 1u);
  EXPECT_TRUE(counterexample.probe->reuse_addresses);
}

TEST(GatekeeperTest, RefutesResultsKeptByShape) {
  FakeBench bench(Memoised([](const BufferSpec& first, const BufferSpec& last) {
    return first.elements == last.elements;
  }));
  const Judgement judgement = bench.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_FALSE(GateOf(judgement.verdict, "numeric").counterexamples.at(0).probe->reuse_addresses);
}

TEST(GatekeeperTest, AcceptsResultsKeptForWhatIsReallyTheSame) {
  FakeBench bench(Memoised([](const BufferSpec&, const BufferSpec&) { return false; }));
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kAccepted);
}

// --- inconclusive

TEST(GatekeeperTest, UnknownInstructionsAreInconclusive) {
  FakeBench bench([](FakeRun& run) {
    run.report.stop = Stop::kUnsupported;
    run.report.reason = "'wgmma.fence' in line 14 is not covered";
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
  EXPECT_THAT(judgement.verdict.reason, HasSubstr("wgmma.fence"));
  EXPECT_FALSE(judgement.vetted);
  EXPECT_LE(bench.engine.runs, 8);
}

TEST(GatekeeperTest, EveryWayToStopEarlyIsInconclusive) {
  for (const Stop stop : {Stop::kStepLimit, Stop::kUnsupported, Stop::kResourceLimit,
                          Stop::kEngineFailure, Stop::kFault}) {
    FakeBench bench([stop](FakeRun& run) {
      FakeEngine::Good()(run);
      if (run.n() > 30) run.report.stop = stop;
    });
    const Judgement judgement = bench.Judge();
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive) << Name(stop);
    EXPECT_FALSE(judgement.vetted);
  }
}

// What a property's run may take is no limit of the candidate's: as a case it runs to its end.
TEST(GatekeeperTest, TwinsOfAPropertyThatTakeLongAreLeftOutAndNotHeldAgainstIt) {
  constexpr std::uint64_t kLimitOfProperties = 200'000'000;
  for (const std::int64_t longer_than : {1 << 30, 12, 0}) {
    FakeBench bench([longer_than](FakeRun& run) {
      FakeEngine::Good()(run);
      if (run.n() > longer_than && run.execution.limits.max_steps == kLimitOfProperties)
        run.report.stop = Stop::kStepLimit;
    });
    bench.instance.op.properties = {ops::PropertyFromText("scale_equivariant x y")};
    const Judgement judgement = bench.Judge();
    const std::string text = RenderVerdict(judgement.verdict);
    if (longer_than == 0) {
      EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive) << text;
      EXPECT_THAT(judgement.verdict.reason,
                  HasSubstr("no case of the property scale_equivariant x y ended"));
    } else {
      EXPECT_EQ(judgement.verdict.outcome, Outcome::kAccepted) << text;
    }
  }
}

TEST(GatekeeperTest, AFailingOracleIsInconclusive) {
  FakeBench bench;
  bench.oracle.fail = true;
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
  EXPECT_THAT(judgement.verdict.reason, HasSubstr("oracle"));
}

TEST(GatekeeperTest, AReferenceThatDoesNotCompileIsToldAtOnce) {
  for (const unsigned jobs : {1u, 2u}) {
    FakeBench bench;
    bench.oracle.broken = true;
    bench.options.jobs = jobs;
    const Judgement judgement = bench.Judge();
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kInconclusive);
    EXPECT_FALSE(judgement.vetted);
    EXPECT_THAT(judgement.verdict.reason, HasSubstr("the op itself is at fault"));
    EXPECT_THAT(judgement.verdict.reason, HasSubstr("does not compile"));
    EXPECT_TRUE(judgement.verdict.gates.empty());
    EXPECT_EQ(bench.engine.runs, 0);
    // Where there are several jobs the candidate compiles beside the reference.
    EXPECT_EQ(bench.compiler.calls, jobs == 1 ? 0 : 2);
  }
}

TEST(GatekeeperTest, TheWorstCaseIsKeptBesideTheShrunkOne) {
  // Wrong by one unit of allowance more for each element of the case.
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    const double size = static_cast<double>(run.n());
    run.Floats("y")[0] = static_cast<float>(run.Floats("y")[0] + 16 + size);
  });
  const Judgement judgement = bench.Judge();
  const Counterexample& counterexample = *judgement.verdict.Counterexamples().at(0);
  ASSERT_TRUE(counterexample.worst) << RenderVerdict(judgement.verdict);
  EXPECT_GT(counterexample.worst->ratio, 1);
  EXPECT_THAT(counterexample.worst->description, HasSubstr("n="));
  EXPECT_THAT(RenderVerdict(judgement.verdict), HasSubstr("worst seen: "));
}

TEST(GatekeeperTest, WhereNoCaseIsWorseNothingIsKept) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    run.Floats("y")[0] = std::nanf("");
  });
  const Counterexample counterexample = *bench.Judge().verdict.Counterexamples().at(0);
  EXPECT_FALSE(counterexample.worst);
}

TEST(GatekeeperTest, ARaceKeepsItsReachWhenItsCaseIsShrunk) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() <= 3) return;
    Finding race = MakeFinding(FindingKind::kDataRace, 2, "race on line 2");
    const bool wide = run.n() > 20;
    race.missing = wide ? "no barrier" : "no __syncwarp()";
    race.statistics = {StatisticOf(wide ? RaceReach::kBlock : RaceReach::kWarp)};
    run.report.findings = {race};
  });
  const Judgement judgement = bench.Judge();
  const Counterexample& counterexample = GateOf(judgement.verdict, "race").counterexamples.at(0);
  EXPECT_EQ(counterexample.findings.front().missing, "no barrier");
  EXPECT_EQ(counterexample.probe->case_.axes.at("n"), 21);
}

TEST(GatekeeperTest, BytesWrittenFromUndefinedOnesAreNotCalledUnwritten) {
  FakeBench bench([](FakeRun& run) {
    FakeEngine::Good()(run);
    run.report.unwritten_bytes[run.Find("y")] = 4;
    run.report.first_unwritten[run.Find("y")] = 0;
    Finding use = MakeFinding(FindingKind::kUninitialisedUse, 3, "undefined bytes are stored");
    use.memory = MemoryPlace{.space = "global", .buffer = "y"};
    run.report.findings = {use};
  });
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_THAT(RenderVerdict(judgement.verdict), Not(HasSubstr("never written")));
}

TEST(GatekeeperTest, ThrowingToolsAreInternalOrInconclusiveNeverAccepted) {
  FakeBench bench([](FakeRun&) { throw std::runtime_error("boom"); });
  const Judgement judgement = bench.Judge();
  EXPECT_NE(judgement.verdict.outcome, Outcome::kAccepted);
  EXPECT_FALSE(judgement.vetted);
}

// --- holdout

TEST(GatekeeperTest, HoldoutSeesWhatTheCampaignDidNotAndFeedbackDoesNotShowIt) {
  // Right for everything of the campaign's seed, wrong for others.
  FakeBench bench;
  std::mutex mutex;
  std::set<std::string> known;
  bool learning = true;
  FakeBench memoised([&](FakeRun& run) {
    FakeEngine::Good()(run);
    const std::string key(reinterpret_cast<const char*>(run.Floats("x")),
                          static_cast<std::size_t>(run.n()) * 4);
    const std::lock_guard lock(mutex);
    if (learning) known.insert(key);
    if (!known.contains(key)) run.Floats("y")[0] = 7;
  });
  memoised.options.holdout_seed = [&] {
    learning = false;
    return 4242u;
  };
  const Judgement judgement = memoised.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted) << RenderVerdict(judgement.verdict);
  const GateResult& gate = GateOf(judgement.verdict, "holdout");
  EXPECT_EQ(gate.status, GateStatus::kRefuted);
  EXPECT_EQ(gate.seeds, std::vector<std::uint64_t>{4242});
  ASSERT_EQ(gate.counterexamples.size(), 1u);
  EXPECT_EQ(gate.counterexamples[0].gate, "holdout");
  const std::string prompt = RenderForPrompt(judgement.verdict);
  EXPECT_THAT(prompt, HasSubstr("held-out"));
  EXPECT_THAT(prompt, Not(HasSubstr("n=")));
}

// --- regressions and replay

TEST(GatekeeperTest, ReplayGivesTheIdenticalCounterexampleTwice) {
  const auto wrong = [](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() > 40) run.Floats("y")[40] = 7;
    if (run.n() > 60 && run.n() % 2 == 1)
      run.report.findings = {MakeFinding(FindingKind::kDataRace, 2, "race")};
  };
  FakeBench bench(wrong);
  const Judgement judgement = bench.Judge();
  const auto all = judgement.verdict.Counterexamples();
  ASSERT_EQ(all.size(), 2u);
  for (const Counterexample* counterexample : all) {
    const Json json = ToJson(*counterexample);
    const auto read = verdict::CounterexampleFromJson(json, "counterexample.json");
    ASSERT_TRUE(read) << ToString(read.error());
    for (int i = 0; i < 2; ++i) {
      Gatekeeper gatekeeper(bench.tools(), bench.options);
      const auto again = gatekeeper.Replay(bench.instance, *read);
      ASSERT_TRUE(again) << ToString(again.error());
      EXPECT_EQ(PrettyJson(ToJson(*again)), PrettyJson(json));
    }
  }
}

TEST(GatekeeperTest, ReplayOfTextCounterexamplesNeedsNoCase) {
  FakeBench bench;
  bench.candidate.kernel += "__device__ void p() { printf(\"x\"); }\n";
  const Judgement judgement = bench.Judge();
  const Counterexample& counterexample = *judgement.verdict.Counterexamples().at(0);
  EXPECT_FALSE(counterexample.probe);
  const auto again =
      Gatekeeper(bench.tools(), bench.options).Replay(bench.instance, counterexample);
  ASSERT_TRUE(again);
  EXPECT_EQ(ToJson(*again), ToJson(counterexample));
}

TEST(GatekeeperTest, AFixedKernelReplaysWithoutFindings) {
  FakeBench wrong([](FakeRun& run) { run.Floats("y")[0] = 7; });
  const Counterexample counterexample = *wrong.Judge().verdict.Counterexamples().at(0);
  FakeBench right;
  const auto again =
      Gatekeeper(right.tools(), right.options).Replay(right.instance, counterexample);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->findings.empty());
}

TEST(GatekeeperTest, RegressionsRunFirst) {
  const auto rare = [](FakeRun& run) {
    FakeEngine::Good()(run);
    if (run.n() == 7919) run.Floats("y")[0] = 7;
  };
  FakeBench unaware(rare);
  EXPECT_EQ(unaware.Judge().verdict.outcome, Outcome::kAccepted);
  FakeBench aware(rare);
  Counterexample known;
  known.op = "double";
  known.probe.emplace().case_ = {
      .axes = {{"n", 7919}}, .seed = 1, .profiles = {}, .origin = "shrunk"};
  aware.options.regressions = {known};
  const Judgement judgement = aware.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_LE(judgement.verdict.Counterexamples().at(0)->probe->case_.axes.at("n"), 7919);
}

}  // namespace
}  // namespace assay::gates
