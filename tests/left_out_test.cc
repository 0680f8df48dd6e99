// What a judgement leaves out is said wherever somebody reads of it: in verdict.json, on the
// terminal, and in the certificate where the kernel was accepted all the same. One verdict for each
// way of leaving something out, made by the judge itself over fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runs/emit.h"
#include "validator/execution/coverage.h"
#include "validator/gates/testing/fakes.h"
#include "validator/verdict/render.h"

namespace assay::tests {
namespace {

using campaign::FakeEngine;
using campaign::FakeRun;
using gates::FakeBench;
using ::testing::HasSubstr;
using ::testing::Not;
using verdict::Outcome;

struct Way {
  const char* name;
  /// What must be read everywhere.
  const char* words;
  Outcome outcome;
  std::function<void(FakeRun&)> kernel;
  std::function<void(FakeBench&)> arrange;
};

void Costly(FakeRun& run) {
  FakeEngine::Good()(run);
  run.report.counters.steps += static_cast<std::uint64_t>(run.n()) * 40'000;
}

void EndlessPast20000(FakeRun& run) {
  FakeEngine::Good()(run);
  if (run.n() >= 20'000) run.report.stop = Stop::kStepLimit;
}

void UncoveredPast30(FakeRun& run) {
  FakeEngine::Good()(run);
  if (run.n() <= 30) return;
  run.report.stop = Stop::kUnsupported;
  run.report.reason = "'foo.bar' in line 14";
}

void Went(FakeRun& run, std::uint8_t sides) {
  FakeEngine::Good()(run);
  BranchCoverage branch;
  branch.ptx_line = 70;
  branch.file = "kernel.cu";
  branch.line = 3;
  branch.sides = sides;
  run.report.coverage.push_back(branch);
}

void OneSided(FakeRun& run) { Went(run, kWentFirst); }
void OneWay(FakeRun& run) { Went(run, kWentFirst | kOfSelection); }
/// The other side is reached by what takes too long alone.
void OtherSideGivenUp(FakeRun& run) {
  const bool endless = run.n() >= 1'000'000;
  Went(run, endless ? kBothWays : kWentFirst);
  if (endless) run.report.stop = Stop::kStepLimit;
}

std::vector<Way> Ways() {
  const auto nothing = [](FakeBench&) {};
  return {
      {"trimmed", "beyond the budget of emulated instructions", Outcome::kAccepted, Costly,
       nothing},
      {"stopped", "a smaller case ran in its place", Outcome::kAccepted, EndlessPast20000, nothing},
      {"not_covered", "foo.bar", Outcome::kInconclusive, UncoveredPast30, nothing},
      {"not_applied", "the dtype or the domain would change the transformed values",
       Outcome::kAccepted, FakeEngine::Good(),
       [](FakeBench& bench) {
         bench.instance.op.properties = {{"linear", {"x", "y"}}};
         ops::Domain& domain = bench.instance.op.inputs[0].domain;
         domain.kind = ops::Domain::Kind::kRange;
         domain.low = 0.75;
         domain.high = 1;
       }},
      {"no_resources", "the assembler did not say what kernel 'twice' needs",
       Outcome::kInconclusive, FakeEngine::Good(),
       [](FakeBench& bench) { bench.compiler.outcome.kernel.resources.clear(); }},
      {"unreached", "kernel.cu:3", Outcome::kAccepted, OneSided, nothing},
      {"one_way", "it went one way only", Outcome::kAccepted, OneWay, nothing},
      {"given_up", "kernel.cu:3: the branch, not taken", Outcome::kAccepted, OtherSideGivenUp,
       nothing},
  };
}

/// The verdict as it stands in verdict.json, read back and written again.
std::string AsFile(const verdict::Verdict& verdict) {
  const auto read = verdict::VerdictFromJson(verdict::ToJson(verdict), "verdict.json");
  EXPECT_TRUE(read) << ToString(read.error());
  return read ? PrettyJson(verdict::ToJson(*read)) : std::string();
}

class LeftOut : public ::testing::TestWithParam<Way> {};

TEST_P(LeftOut, IsReadEverywhere) {
  const Way& way = GetParam();
  FakeBench bench(way.kernel);
  way.arrange(bench);
  const gates::Judgement judgement = bench.Judge();
  const std::string terminal = RenderVerdict(judgement.verdict);
  EXPECT_EQ(judgement.verdict.outcome, way.outcome) << terminal;
  EXPECT_THAT(terminal, HasSubstr(way.words));
  EXPECT_THAT(AsFile(judgement.verdict), HasSubstr(way.words));
  ASSERT_EQ(judgement.vetted.has_value(), way.outcome == Outcome::kAccepted);
  if (!judgement.vetted) return;
  const std::string certificate =
      PrettyJson(runs::CertificateOf(*judgement.vetted, {}, "2026-01-01T00:00:00Z"));
  EXPECT_THAT(certificate, HasSubstr(way.words));
  // An acceptance says at once that it is one with something missing.
  EXPECT_THAT(judgement.verdict.reason, Not(testing::Eq("every gate passed")));
}

TEST_P(LeftOut, IsNotSaidWhereNothingOfTheKindHappened) {
  FakeBench bench;
  bench.instance.op.axes = {cases::VariableAxis("n", 1, 4096)};
  const gates::Judgement judgement = bench.Judge();
  ASSERT_TRUE(judgement.vetted);
  for (const std::string& text :
       {RenderVerdict(judgement.verdict), AsFile(judgement.verdict),
        PrettyJson(runs::CertificateOf(*judgement.vetted, {}, "2026-01-01T00:00:00Z"))})
    EXPECT_THAT(text, Not(HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(All, LeftOut, ::testing::ValuesIn(Ways()),
                         [](const auto& each) { return std::string(each.param.name); });

// What was tried is told once, against what was planned: not by each gate that looked at the cases.
TEST(Summary, SaysOnceWhatWasTried) {
  FakeBench bench;
  const verdict::Verdict verdict = bench.Judge().verdict;
  const std::string terminal = RenderVerdict(verdict);
  const std::string planned = std::to_string(verdict.ledger.planned()) + " planned cases";
  const std::size_t first = terminal.find("tried: ");
  ASSERT_NE(first, std::string::npos) << terminal;
  EXPECT_EQ(terminal.find("tried: ", first + 1), std::string::npos) << terminal;
  EXPECT_THAT(terminal.substr(first), HasSubstr(planned));
  for (const verdict::GateResult& gate : verdict.gates)
    EXPECT_THAT(gate.reason, Not(HasSubstr(" cases"))) << gate.gate;
}

}  // namespace
}  // namespace assay::tests
