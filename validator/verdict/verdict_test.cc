#include "validator/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "validator/campaign/testing/fakes.h"
#include "validator/verdict/render.h"

namespace assay::verdict {
namespace {

using ::testing::HasSubstr;

Verdict Sample() {
  Counterexample counterexample;
  counterexample.gate = "race";
  counterexample.op = "double";
  counterexample.binding = {{"T", "bf16"}};
  counterexample.arch = "sm_90";
  counterexample.engine = "emulator";
  counterexample.kernel = "line one\nline two\n";
  counterexample.launch = "{}";
  cases::Probe& probe = counterexample.probe.emplace();
  probe.case_ = {.axes = {{"n", 3}}, .seed = 5, .profiles = {}, .origin = "shrunk"};
  probe.prelude = {probe.case_};
  probe.reuse_addresses = true;
  probe.schedule = {.policy = Schedule::Policy::kPriorities, .seed = 4};
  probe.perturbation_seed = 9;
  probe.poison = 0x3c;
  probe.misalign = 4;
  probe.ends_only = true;
  probe.slice_blocks = 288;
  probe.needed_only = true;
  probe.apart = true;
  counterexample.description = "n=3";
  counterexample.findings = {campaign::MakeFinding(FindingKind::kDataRace, 2, "two threads write")};
  Verdict verdict;
  verdict.outcome = Outcome::kRefuted;
  verdict.reason = "race: two threads write";
  verdict.instance = "double-sm_90";
  verdict.engine = "emulator";
  GateResult gate;
  gate.gate = "race";
  gate.status = GateStatus::kRefuted;
  gate.cases = 12;
  gate.steps = 1ull << 60;
  gate.seeds = {UINT64_MAX};
  gate.statistics = {{"worst", HUGE_VAL, 1.0, "note"}, {"bias", std::nan(""), 0, ""}};
  gate.counterexamples = {counterexample};
  gate.seconds = 0.25;
  verdict.gates = {gate};
  return verdict;
}

TEST(VerdictTest, RoundTripsThroughJsonText) {
  const std::string text = PrettyJson(ToJson(Sample()));
  const auto document = ParseJson(text, "verdict.json");
  ASSERT_TRUE(document);
  const auto read = VerdictFromJson(*document, "verdict.json");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(PrettyJson(ToJson(*read)), text);
}

TEST(VerdictTest, ReadersAreStrict) {
  const auto fails = [](auto change, const std::string& expected) {
    Json json = ToJson(Sample());
    change(json);
    const auto read = VerdictFromJson(json, "verdict.json");
    ASSERT_FALSE(read) << expected;
    EXPECT_THAT(ToString(read.error()), HasSubstr(expected));
  };
  fails([](Json& json) { json["outcome"] = "acepted"; }, "accepted");
  fails([](Json& json) { json["schema"] = "assay.verdict/2"; }, "schema");
  fails([](Json& json) { json["extra"] = 1; }, "extra");
  fails([](Json& json) { json["gates"] = 1; }, "gates");
  fails([](Json& json) { json["gates"][0]["status"] = "ok"; }, "status");
  fails([](Json& json) { json["gates"][0]["counterexamples"][0]["poison"] = 256; }, "poison");
  fails([](Json& json) { json["gates"][0]["counterexamples"][0].erase("kernel"); }, "kernel");
  fails([](Json& json) { json["gates"][0]["counterexamples"][0]["case"]["axes"]["n"] = 1.5; },
        "axes");
  EXPECT_FALSE(VerdictFromJson(Json(3), "verdict.json"));
}

TEST(VerdictTest, ExitCodes) {
  EXPECT_EQ(ExitCode(Outcome::kAccepted), 0);
  EXPECT_EQ(ExitCode(Outcome::kRefuted), 1);
  EXPECT_EQ(ExitCode(Outcome::kInconclusive), 2);
  EXPECT_EQ(ExitCode(Outcome::kInternalError), 4);
}

TEST(VerdictTest, ProbesSurviveTheCounterexample) {
  const Counterexample counterexample = Sample().gates[0].counterexamples[0];
  const auto read = CounterexampleFromJson(ToJson(counterexample), "counterexample.json");
  ASSERT_TRUE(read) << ToString(read.error());
  ASSERT_TRUE(read->probe);
  EXPECT_EQ(*read->probe, *counterexample.probe);
}

TEST(VerdictTest, WithoutACaseThereIsNoProbe) {
  Counterexample counterexample = Sample().gates[0].counterexamples[0];
  counterexample.probe.reset();
  const Json json = ToJson(counterexample);
  EXPECT_TRUE(json.at("case").is_null());
  EXPECT_EQ(json.at("poison"), 0xff);
  const auto read = CounterexampleFromJson(json, "counterexample.json");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_FALSE(read->probe);
}

TEST(VerdictTest, RendersTheTableAndTheCase) {
  const std::string text = RenderVerdict(Sample());
  EXPECT_THAT(text, HasSubstr("refuted: race: two threads write"));
  EXPECT_THAT(text, HasSubstr("case: n=3"));
  EXPECT_THAT(text, HasSubstr("line two"));
  EXPECT_THAT(text, HasSubstr("schedule: priorities, seed 4"));
  EXPECT_THAT(
      text,
      HasSubstr("after 1 other call in the same context, its buffers at the same addresses\n"));
}

TEST(VerdictTest, SaysWhoseAddressesComeBackOnlyWhereTheyDo) {
  Verdict verdict = Sample();
  verdict.gates[0].counterexamples[0].probe->reuse_addresses = false;
  EXPECT_THAT(RenderVerdict(verdict), HasSubstr("after 1 other call in the same context\n"));
  // Files from before the field: addresses of their own.
  Json json = ToJson(verdict.gates[0].counterexamples[0]);
  json.erase("reuse_addresses");
  const auto read = CounterexampleFromJson(json, "counterexample.json");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->probe->reuse_addresses);
}

}  // namespace
}  // namespace assay::verdict
