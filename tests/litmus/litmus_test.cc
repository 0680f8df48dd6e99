// The litmus tests: what each expects is what the model says, and the emulator keeps to both.
#include "tests/litmus/litmus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "tests/litmus/emulate.h"
#include "tests/litmus/kernel.h"
#include "tests/litmus/model.h"
#include "tests/litmus/table.h"

namespace assay::litmus {
namespace {

const std::vector<Test>& All() {
  static const std::vector<Test> tests = [] {
    auto all = LoadAll();
    EXPECT_TRUE(all) << (all ? "" : ToString(all.error()));
    return all ? *all : std::vector<Test>();
  }();
  return tests;
}

std::string Show(const std::set<Outcome>& outcomes) {
  std::string text;
  for (const Outcome& outcome : outcomes) text += "\n  " + ToString(outcome);
  return text;
}

bool Has(const std::set<Outcome>& outcomes, const Outcome& part) {
  return std::ranges::any_of(outcomes, [&](const Outcome& each) { return Matches(each, part); });
}

class Litmus : public ::testing::TestWithParam<std::size_t> {
 protected:
  const litmus::Test& test() const { return All()[GetParam()]; }
};

TEST_P(Litmus, IsAsTheModelSays) {
  const std::set<Outcome> allowed = AllowedOutcomes(test());
  EXPECT_EQ(Has(allowed, test().outcome), test().allowed()) << test().name << Show(allowed);
}

TEST_P(Litmus, TheEmulatorShowsNothingElse) {
  const bool shown = test().expectation == litmus::Test::Expectation::kShown;
  const Emulated emulated = Emulate(test(), kSeeds);
  EXPECT_EQ(emulated.failure, "") << test().name;
  const std::set<Outcome> allowed = AllowedOutcomes(test());
  for (const Outcome& outcome : emulated.outcomes)
    EXPECT_TRUE(allowed.contains(outcome)) << test().name << ": " << ToString(outcome);
  // What races may be seen or not.
  const bool races = test().expectation == litmus::Test::Expectation::kRace;
  EXPECT_TRUE(emulated.raced || !races) << test().name;
  EXPECT_TRUE(races || Has(emulated.outcomes, test().outcome) == shown)
      << test().name << Show(emulated.outcomes);
}

std::string NameOf(const ::testing::TestParamInfo<std::size_t>& tested) {
  std::string name = All()[tested.param].name;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Litmus, ::testing::Range<std::size_t>(0, All().size()), NameOf);

TEST(LitmusFiles, AreManyAndOfAllKinds) {
  EXPECT_GE(All().size(), 100u);
  std::set<std::string> names;
  for (const litmus::Test& test : All()) EXPECT_TRUE(names.insert(test.name).second) << test.name;
  for (const auto expectation :
       {litmus::Test::Expectation::kForbidden, litmus::Test::Expectation::kShown,
        litmus::Test::Expectation::kNever, litmus::Test::Expectation::kRace})
    EXPECT_NE(std::ranges::count(All(), expectation, &litmus::Test::expectation), 0);
}

TEST(LitmusFiles, ErrorsNameTheLine) {
  const auto bad = Parse("test A\nthread 0.0\n  st.relaxed x 1\n", "a.litmus");
  ASSERT_FALSE(bad);
  EXPECT_NE(ToString(bad.error()).find("a.litmus:3"), std::string::npos) << ToString(bad.error());
}

// Without old values the outcomes that need them are not seen: the test can fail.
TEST(LitmusModel, TellsTheStrengthsApart) {
  const auto test = [](const std::string& writer, const std::string& reader) {
    const auto tests = Parse("test T\nthread 0.0\n  st.relaxed.gpu x 1\n" + writer +
                                 "  st.relaxed.gpu y 1\nthread 1.0\n  ld.relaxed.gpu r0 y\n" +
                                 reader + "  ld.relaxed.gpu r1 x\noutcome 1:r0=1 1:r1=0\n",
                             "t");
    return AllowedOutcomes(tests->front());
  };
  EXPECT_EQ(test("", "").size(), 4u);
  EXPECT_EQ(test("  fence.acq_rel.gpu\n", "  fence.acq_rel.gpu\n").size(), 3u);
}

TEST(LitmusRecordings, OnesThatTheModelForbidsAreFound) {
  Recording recording{.device = "a device", .recorded = "2026-01-01", .driver = 1, .outcomes = {}};
  recording.outcomes["MP.fence.acq_rel"]["1:r0=1 1:r1=1 x=1 y=1"] = 5;
  recording.outcomes["CoRR.relaxed"]["1:r0=0 1:r1=1 x=1"] = 7;
  EXPECT_TRUE(Contradictions(recording, All()).empty());
  recording.outcomes["MP.fence.acq_rel"]["1:r0=1 1:r1=0 x=1 y=1"] = 1;
  EXPECT_EQ(Contradictions(recording, All()),
            std::vector<std::string>{"MP.fence.acq_rel: 1:r0=1 1:r1=0 x=1 y=1"});
  const auto again = RecordingFromJson(ToJson(recording));
  ASSERT_TRUE(again) << ToString(again.error());
  EXPECT_EQ(again->outcomes, recording.outcomes);
}

TEST(LitmusRecordings, WhatGpusShowIsAllowed) {
  const auto recordings = LoadRecordings();
  ASSERT_TRUE(recordings) << ToString(recordings.error());
  for (const Recording& recording : *recordings)
    EXPECT_EQ(Contradictions(recording, All()), std::vector<std::string>{}) << recording.device;
}

TEST(LitmusTable, StandsInTheDocuments) {
  const auto document = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/docs/litmus.md");
  ASSERT_TRUE(document);
  const auto recordings = LoadRecordings();
  ASSERT_TRUE(recordings);
  const std::string table = Table(All(), *recordings);
  EXPECT_NE(document->find(table), std::string::npos)
      << "docs/litmus.md is not what litmus_table prints";
}

}  // namespace
}  // namespace assay::litmus
