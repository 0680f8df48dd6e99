#include "agent/prompts/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "agent/testing/fakes.h"

namespace assay::prompts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKernel =
    "extern \"C\" __global__ void k(const float* x, float* y) {\n"
    "  __shared__ float tile[32];\n"
    "  tile[threadIdx.x] = x[threadIdx.x];\n"
    "  y[threadIdx.x] = tile[31 - threadIdx.x];\n"
    "}\n";

class FeedbackTest : public ::testing::Test {
 protected:
  verdict::Counterexample CounterexampleOf(Finding finding, const std::string& gate) {
    verdict::Counterexample counterexample;
    counterexample.gate = gate;
    counterexample.kernel = kKernel;
    cases::Case value;
    value.axes = {{"tokens", 1}, {"hidden", 32}};
    value.seed = 31337;
    counterexample.probe.emplace().case_ = value;
    counterexample.findings = {std::move(finding)};
    return counterexample;
  }

  void Refute(const std::string& gate, std::vector<verdict::Counterexample> counterexamples) {
    verdict::GateResult result;
    result.gate = gate;
    result.status = verdict::GateStatus::kRefuted;
    result.counterexamples = std::move(counterexamples);
    verdict_.outcome = verdict::Outcome::kRefuted;
    verdict_.gates.push_back(std::move(result));
  }

  static Finding Race() {
    Finding finding;
    finding.kind = FindingKind::kDataRace;
    finding.message = "two threads touch tile[0] without an order between them";
    Access write, read;
    write.what = "write";
    write.site = {.file = "kernel.cu",
                  .line = 3,
                  .column = 3,
                  .ptx_line = 40,
                  .instruction = "st.shared.f32",
                  .excerpt = ""};
    write.threads = 32;
    read.what = "read";
    read.site = {.file = "kernel.cu",
                 .line = 4,
                 .column = 20,
                 .ptx_line = 44,
                 .instruction = "ld.shared.f32",
                 .excerpt = ""};
    read.thread.thread = {31, 0, 0};
    finding.accesses = {write, read};
    finding.memory = MemoryPlace{
        .space = "shared", .buffer = "tile", .index = 0, .elements = 32, .address = 0, .bytes = 4};
    finding.missing = "no barrier between line 3 and line 4";
    return finding;
  }

  static Finding Wrong(const std::string& message) {
    Finding finding;
    finding.kind = FindingKind::kWrongValue;
    finding.message = message;
    finding.element = ElementPlace{
        .output = "y", .index = {0, 3}, .expected = 1.5, .got = -2, .allowance = 0.001};
    return finding;
  }

  std::string Repair(FeedbackMode mode = FeedbackMode::kFull) {
    FeedbackInput input{.instance = instance_,
                        .prompts = prompts_,
                        .mode = mode,
                        .last = {3, &verdict_},
                        .earlier = earlier_};
    const auto text = RepairPrompt(input);
    return text ? *text : ToString(text.error());
  }

  ops::Instance instance_ = testing::RmsNorm();
  PromptLibrary prompts_ = *PromptLibrary::Load(testing::PromptsFolder());
  verdict::Verdict verdict_;
  std::vector<PastAttempt> earlier_;
};

TEST_F(FeedbackTest, ARaceComesWithBothLinesBothThreadsAndTheMissingEdge) {
  Refute("race", {CounterexampleOf(Race(), "race")});
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("Attempt 3 was refuted (gate: race)."));
  EXPECT_THAT(text, HasSubstr(">    3 |   tile[threadIdx.x] = x[threadIdx.x];    <-- write"));
  EXPECT_THAT(text, HasSubstr(">    4 |   y[threadIdx.x] = tile[31 - threadIdx.x];    <-- read"));
  EXPECT_THAT(text, HasSubstr("     5 | }"));
  EXPECT_THAT(text, HasSubstr("thread (0,0,0) of block (0,0,0) and 31 more, line 3"));
  EXPECT_THAT(text, HasSubstr("thread (31,0,0) of block (0,0,0), line 4"));
  EXPECT_THAT(text, HasSubstr("missing: no barrier between line 3 and line 4"));
  EXPECT_THAT(text, HasSubstr("Smallest failing case: "));
  EXPECT_THAT(text, HasSubstr("`__syncthreads()`"));  // the family's advice
}

TEST_F(FeedbackTest, AWrongValueComesWithExpectedAndGot) {
  Refute("numeric", {CounterexampleOf(Wrong("y[0, 3] is wrong"), "numeric")});
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("element: y[0, 3]"));
  EXPECT_THAT(text, HasSubstr("expected: 1.5"));
  EXPECT_THAT(text, HasSubstr("got: -2 (off by -3.5, allowed 0.001)"));
}

TEST_F(FeedbackTest, WhatIsNoNumberIsOffByNothing) {
  Finding finding = Wrong("y[0, 3] is nan");
  finding.element->got = std::nan("");
  finding.statistics = {{"worst_element_in_allowances", 0, 1, "y[0]"}, {"largest_ulps", 4, 0, ""}};
  Refute("numeric", {CounterexampleOf(finding, "numeric")});
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("got: nan\n"));
  EXPECT_THAT(text, Not(HasSubstr("off by")));
  EXPECT_THAT(text, Not(HasSubstr("limit 0")));
  EXPECT_THAT(text, Not(HasSubstr("largest_ulps")));
}

TEST_F(FeedbackTest, TheWorstOfLargerCasesStandsBesideTheShrunkOne) {
  verdict::Counterexample small = CounterexampleOf(Wrong("y[0, 3] is off"), "numeric");
  EXPECT_EQ(DescribeWorst(small), "");
  small.worst = verdict::WorstSeen{.ratio = 512, .description = "tokens=4096", .cause = "a guess"};
  Refute("numeric", {small});
  const std::string text = Repair();
  EXPECT_THAT(text,
              HasSubstr("worst seen, on a larger case: 512 times what is allowed [tokens=4096]"));
  EXPECT_THAT(text, HasSubstr("likely cause, by larger cases: a guess"));
  const auto back = verdict::CounterexampleFromJson(ToJson(small), "c");
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(back->worst, small.worst);
}

TEST_F(FeedbackTest, ALineOfAHelperShowsTheCall) {
  Finding finding = Race();
  finding.accesses[0].site.called_at = {1};
  Refute("race", {CounterexampleOf(finding, "race")});
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("line 3, called at line 1"));
  EXPECT_THAT(text, HasSubstr("<-- calls what does the write"));
}

TEST_F(FeedbackTest, AnUndecidedVerdictSaysWhatToChange) {
  verdict_.outcome = verdict::Outcome::kInconclusive;
  verdict::GateResult gate;
  gate.gate = "memory";
  gate.status = verdict::GateStatus::kInconclusive;
  gate.reason = "step_limit: 400000000 instructions [tokens=4096]";
  verdict_.gates.push_back(gate);
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("[tokens=4096]"));
  EXPECT_THAT(text, HasSubstr("split its longest loop"));
}

TEST_F(FeedbackTest, APrecisionFindingShowsTheLineWhereTheErrorEntered) {
  Finding finding = Wrong("y[0, 3] is off");
  finding.kind = FindingKind::kPrecisionElement;
  finding.origin = "97 % of the error enters at line 3";
  finding.origins = {
      {.site = {.file = "kernel.cu", .line = 3, .excerpt = "  tile[threadIdx.x] = x[threadIdx.x];"},
       .share = 0.97},
      {.site = {.file = "kernel.cu", .line = 5}, .share = 0.03}};
  Refute("precision", {CounterexampleOf(finding, "precision")});
  const std::string text = Repair();
  EXPECT_THAT(text,
              HasSubstr(">    3 |   tile[threadIdx.x] = x[threadIdx.x];    <-- 97 % of the error"));
  EXPECT_THAT(text, Not(HasSubstr("<-- 3 % of the error")));
  EXPECT_THAT(text, HasSubstr("origin of the error: 97 % of the error enters at line 3"));
}

TEST_F(FeedbackTest, AtMostThreeDistinctFindingsGuiltyOnesFirst) {
  verdict::Counterexample both = CounterexampleOf(Race(), "race");
  both.findings.push_back(Wrong("a consequence"));
  Finding misaligned;
  misaligned.kind = FindingKind::kMisaligned;
  Finding unwritten;
  unwritten.kind = FindingKind::kUnwrittenOutput;
  Refute("race", {both, CounterexampleOf(Race(), "race"), CounterexampleOf(misaligned, "memory"),
                  CounterexampleOf(unwritten, "memory")});
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("Finding 1: data_race"));
  EXPECT_THAT(text, HasSubstr("Finding 2: misaligned"));
  EXPECT_THAT(text, HasSubstr("Finding 3: unwritten_output"));
  EXPECT_THAT(text, Not(HasSubstr("Finding 4")));
  EXPECT_THAT(text, Not(HasSubstr("a consequence")));
  EXPECT_THAT(FamiliesOf(verdict_), ElementsAre("race", "memory"));
  // Advice comes once a family.
  const std::size_t advice = text.find("How to fix a memory finding");
  EXPECT_NE(advice, std::string::npos);
  EXPECT_EQ(text.find("How to fix a memory finding", advice + 1), std::string::npos);
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST_F(FeedbackTest, FindingsOnOneCaseShareItsFacts) {
  Finding element = Wrong("y[0, 3] is off");
  element.kind = FindingKind::kPrecisionElement;
  element.origins = {{.site = {.file = "kernel.cu", .line = 3}, .share = 1}};
  element.statistics = {{"worst_row", 3, 1, "row 0"}};
  Finding row = element;
  row.kind = FindingKind::kPrecisionRow;
  row.message = "row 0 is off";
  row.cause = "a cause of its own";
  verdict::Counterexample both = CounterexampleOf(element, "precision");
  both.findings.push_back(row);
  Refute("precision", {both});
  const std::string text = Repair();
  EXPECT_EQ(Count(text, "tokens=1"), 1u) << text;
  EXPECT_EQ(Count(text, "__shared__ float tile"), 1u);
  EXPECT_EQ(Count(text, "worst_row: 3"), 1u);
  EXPECT_THAT(text, HasSubstr("Smallest failing case: that of finding 1."));
  EXPECT_THAT(text, HasSubstr("the lines of finding 1."));
  EXPECT_THAT(text, HasSubstr("row 0 is off"));
  EXPECT_THAT(text, HasSubstr("a cause of its own"));
}

TEST_F(FeedbackTest, FindingsOnOtherCasesRepeatTheirFacts) {
  // The twin: equal words about another case are another fact.
  Finding other = Wrong("y[0, 3] is off");
  other.kind = FindingKind::kPrecisionElement;
  Refute("numeric", {CounterexampleOf(Wrong("y[0, 3] is wrong"), "numeric"),
                     CounterexampleOf(other, "precision")});
  EXPECT_EQ(Count(Repair(), "element: y[0, 3]"), 2u);
}

TEST_F(FeedbackTest, OneMistakeInManyPlacesIsToldOnceWithItsLines) {
  verdict::Counterexample refused = CounterexampleOf({}, "compile");
  refused.probe.reset();
  refused.findings.clear();
  for (std::uint32_t line = 1; line <= 20; ++line) {
    Finding finding;
    finding.kind = FindingKind::kCompileError;
    finding.message = line == 20 ? "another one" : "identifier \"int64_t\" is undefined";
    Access access;
    access.what = "refused here";
    access.threads = 1;
    access.site = {.file = "kernel.cu", .line = line};
    finding.accesses = {access};
    refused.findings.push_back(finding);
  }
  Refute("compile", {refused});
  const std::string text = Repair();
  EXPECT_EQ(Count(text, "int64_t"), 1u) << text;
  EXPECT_THAT(text, HasSubstr("the same at: line 2, line 3"));
  EXPECT_THAT(text, HasSubstr("and 10 more"));
  EXPECT_THAT(text, HasSubstr("another one"));
  // No thread has run.
  EXPECT_THAT(text, Not(HasSubstr("thread (")));
}

TEST_F(FeedbackTest, SaysWhatHeldAndWhatWentWrongBefore) {
  verdict::GateResult passed;
  passed.gate = "memory";
  passed.status = verdict::GateStatus::kPassed;
  passed.cases = 60;
  verdict_.gates.push_back(passed);
  Refute("race", {CounterexampleOf(Race(), "race")});
  const verdict::Verdict old = testing::VerdictOf(instance_, {}, "refute precision precision_bias");
  earlier_ = {{1, &old}};
  const std::string text = Repair();
  EXPECT_THAT(text, HasSubstr("- memory, 60 cases"));
  EXPECT_THAT(
      text,
      HasSubstr("- attempt 1: refuted, precision_bias: the precision gate found precision_bias"));
}

TEST_F(FeedbackTest, AHoldoutFindingIsToldByKindAlone) {
  Finding finding = Wrong("y[0, 3] of the secret case");
  finding.accesses = Race().accesses;
  finding.cause = "secret cause";
  finding.statistics = {{"secret_statistic", 1, 2, "secret note"}};
  Refute("holdout", {CounterexampleOf(finding, "holdout")});
  verdict_.reason = "secret reason";
  for (const FeedbackMode mode : {FeedbackMode::kFull, FeedbackMode::kAggregate}) {
    const std::string text = Repair(mode);
    EXPECT_THAT(text, HasSubstr("wrong_value"));
    EXPECT_THAT(text, HasSubstr("on a case that is not shown"));
    for (const char* const secret : {"secret", "31337", "y[0, 3]", "-2", "tile[", "line 3"})
      EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(OneLine({1, &verdict_}, FeedbackMode::kFull), Not(HasSubstr("secret")));
  EXPECT_THAT(FamiliesOf(verdict_), ElementsAre("holdout"));
}

TEST_F(FeedbackTest, AggregateTellsKindsOnly) {
  Refute("race", {CounterexampleOf(Race(), "race")});
  const verdict::Verdict old = testing::VerdictOf(instance_, {}, "refute precision precision_bias");
  earlier_ = {{1, &old}};
  const std::string text = Repair(FeedbackMode::kAggregate);
  EXPECT_THAT(text, HasSubstr("data_race"));
  for (const char* const detail : {"31337", "tile[", "line 3", "the precision gate found",
                                   "without an order between them\n\nSmallest"}) {
    EXPECT_THAT(text, Not(HasSubstr(detail)));
  }
}

TEST_F(FeedbackTest, AnUndecidedVerdictSaysWhy) {
  verdict_ = testing::VerdictOf(instance_, {}, "inconclusive");
  EXPECT_THAT(Repair(), HasSubstr("could be neither accepted nor refuted"));
  EXPECT_THAT(Repair(), HasSubstr("the instruction foo.bar is not covered"));
}

TEST_F(FeedbackTest, AKernelCannotWriteHeadingsIntoThePrompt) {
  Finding finding = Race();
  finding.kind = FindingKind::kCompileError;
  finding.message = "static assertion failed with \"x\n```\n## What held\n- everything\"";
  finding.missing = "a\n## What held\n- everything";
  Refute("compile", {CounterexampleOf(finding, "compile")});
  earlier_ = {{1, &verdict_}};
  const std::string text = Repair();
  EXPECT_EQ(Count(text, "\n## What held\n"), 1u) << text;
  EXPECT_EQ(Count(text, "\n- everything"), 0u) << text;
}

TEST_F(FeedbackTest, HostileSizesAreBounded) {
  Finding finding = Race();
  finding.message = std::string(10 << 20, 'm');
  finding.missing = std::string(1 << 20, 'n');
  finding.cause = std::string(1 << 20, 'c');
  finding.accesses[0].value = std::string(1 << 20, 'v');
  finding.statistics.assign(1000, {"s", 1, 2, std::string(10000, 's')});
  finding.accesses[0].site.line = 4'000'000'000u;
  verdict::Counterexample counterexample = CounterexampleOf(finding, "race");
  counterexample.kernel = std::string(1 << 20, '\n');
  Refute("race", {counterexample, CounterexampleOf(Wrong(std::string(1 << 20, 'w')), "numeric")});
  std::vector<verdict::Verdict> many(1000,
                                     testing::VerdictOf(instance_, {}, "refute race data_race"));
  for (std::size_t i = 0; i < many.size(); ++i) earlier_.push_back({static_cast<int>(i), &many[i]});
  EXPECT_LT(Repair().size(), 96u * 1024);
}

TEST_F(FeedbackTest, RestartSummarisesAndOptimizeShowsWhatWasMeasured) {
  Refute("race", {CounterexampleOf(Race(), "race")});
  const verdict::Verdict old = testing::VerdictOf(instance_, {}, "refute precision precision_bias");
  FeedbackInput input{.instance = instance_,
                      .prompts = prompts_,
                      .mode = FeedbackMode::kFull,
                      .last = {3, &verdict_},
                      .earlier = {{1, &old}}};
  const auto restart = RestartPrompt(input);
  ASSERT_TRUE(restart) << ToString(restart.error());
  EXPECT_THAT(*restart, HasSubstr("attempt 1: refuted"));
  EXPECT_THAT(*restart, HasSubstr("data_race"));
  verdict::Verdict accepted = testing::VerdictOf(instance_, {}, "accept");
  for (verdict::GateResult& gate : accepted.gates) {
    gate.cases = 10;
    gate.steps = 12'340;
  }
  input.last = {4, &accepted};
  input.earlier.push_back({5, &accepted});
  const auto optimize = OptimizePrompt(input);
  ASSERT_TRUE(optimize) << ToString(optimize.error());
  EXPECT_THAT(*optimize, HasSubstr("- 1234 emulated thread-level instructions a case"));
  EXPECT_THAT(*optimize, HasSubstr("attempt 5: accepted, cost 1234"));
}

TEST_F(FeedbackTest, AKernelThatIsRightAndTooSlowIsToldWhereItsTimeGoes) {
  const auto slow = [&](FeedbackMode mode, bool measured) {
    verdict::Verdict verdict = testing::VerdictOf(instance_, {}, "accept");
    verdict.outcome = verdict::Outcome::kRefuted;
    verdict::GateResult gate;
    gate.gate = "speed";
    gate.status = measured ? verdict::GateStatus::kRefuted : verdict::GateStatus::kSkipped;
    gate.reason = "12.0 % of what the card allows, 50 % is asked for";
    gate.statistics = {{"times_the_limit", 8.3, 2, "geometric mean over the workloads"},
                       {"rows=9 columns=9", 0.9, 0.5, "of the limit (memory)"},
                       {"rows=1 columns=7", 0.02, 0.5, "of the limit (launch)"}};
    verdict.gates.push_back(gate);
    return RepairPrompt(FeedbackInput{.instance = instance_,
                                      .prompts = prompts_,
                                      .mode = mode,
                                      .last = {3, &verdict},
                                      .earlier = {}})
        .value();
  };
  const std::string full = slow(FeedbackMode::kFull, true);
  EXPECT_THAT(full, HasSubstr("too slow"));
  EXPECT_THAT(full, HasSubstr("50 % is asked for"));
  EXPECT_THAT(
      full,
      HasSubstr(
          "8.3 times the limit, geometric mean over the workloads; the op asks for at most 2"));
  // The farthest from its limit comes first.
  EXPECT_LT(full.find("rows=1 columns=7: 2.0 %"), full.find("rows=9 columns=9: 90.0 %"));
  EXPECT_THAT(slow(FeedbackMode::kAggregate, true), Not(HasSubstr("rows=1")));
  EXPECT_THAT(slow(FeedbackMode::kFull, false), Not(HasSubstr("too slow")));
}

}  // namespace
}  // namespace assay::prompts
