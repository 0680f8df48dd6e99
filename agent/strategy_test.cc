#include "agent/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fakes.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Attempts by their judge's words; "" is not judged yet. Each repairs the one before, but for first
// ones.
RunState StateOf(const std::vector<std::pair<DraftKind, std::string>>& attempts) {
  static const ops::Instance instance = testing::RmsNorm();
  RunState state;
  for (const auto& [kind, words] : attempts) {
    Attempt attempt;
    attempt.number = static_cast<int>(state.attempts.size()) + 1;
    attempt.kind = kind;
    attempt.parent =
        kind == DraftKind::kRepair || kind == DraftKind::kOptimize ? attempt.number - 1 : 0;
    if (!words.empty()) attempt.verdict = testing::VerdictOf(instance, {}, words);
    state.attempts.push_back(std::move(attempt));
  }
  return state;
}

constexpr auto kFirst = DraftKind::kFirst;
constexpr auto kRepair = DraftKind::kRepair;

Draft Repair(int parent) { return {kRepair, parent}; }

TEST(StrategyTest, RefineGoesOneByOne) {
  const StrategyOptions options{.attempts = 3};
  EXPECT_THAT(NextDrafts(StateOf({}), options), ElementsAre(Draft{}));
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, ""}}), options), IsEmpty());
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, "refute race data_race"}}), options),
              ElementsAre(Repair(1)));
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, "accept"}}), options), IsEmpty());
  EXPECT_THAT(
      NextDrafts(
          StateOf({{kFirst, "inconclusive"}, {kRepair, "inconclusive"}, {kRepair, "inconclusive"}}),
          options),
      IsEmpty());
}

TEST(StrategyTest, SampleRefinesTheBestAndThenItsLine) {
  const StrategyOptions options{.kind = StrategyKind::kSample, .attempts = 9, .samples = 3};
  EXPECT_EQ(NextDrafts(StateOf({}), options).size(), 3u);
  RunState state = StateOf({{kFirst, "refute compile compile_error"},
                            {kFirst, "refute precision precision_row"},
                            {kFirst, ""}});
  EXPECT_THAT(NextDrafts(state, options), IsEmpty());
  state = StateOf({{kFirst, "refute compile compile_error"},
                   {kFirst, "refute precision precision_row"},
                   {kFirst, "refute race data_race"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(2)));
  state = StateOf({{kFirst, "refute precision precision_row"},
                   {kFirst, "refute race data_race"},
                   {kRepair, "refute memory misaligned"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(3)));
}

TEST(StrategyTest, RestartBeginsAnewWhenNothingImproves) {
  const StrategyOptions options{.kind = StrategyKind::kRestart, .attempts = 20, .stagnation = 2};
  const std::string stuck = "refute race data_race";
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, stuck}, {kRepair, stuck}}), options),
              ElementsAre(Repair(2)));
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, stuck}, {kRepair, stuck}, {kRepair, stuck}}), options),
              ElementsAre(Draft{DraftKind::kRestart, 0}));
  // Progress within the patience keeps the line going.
  EXPECT_THAT(
      NextDrafts(
          StateOf({{kFirst, stuck}, {kRepair, stuck}, {kRepair, "refute numeric wrong_value"}}),
          options),
      ElementsAre(Repair(3)));
  // A new conversation gets its own patience.
  EXPECT_THAT(
      NextDrafts(
          StateOf(
              {{kFirst, stuck}, {kRepair, stuck}, {kRepair, stuck}, {DraftKind::kRestart, stuck}}),
          options),
      ElementsAre(Repair(4)));
}

TEST(StrategyTest, BeamRepairsTheBestUnrepaired) {
  const StrategyOptions options{
      .kind = StrategyKind::kBeam, .attempts = 20, .samples = 4, .width = 2};
  EXPECT_EQ(NextDrafts(StateOf({}), options).size(), 4u);
  const RunState state = StateOf({{kFirst, "refute compile compile_error"},
                                  {kFirst, "refute precision precision_row"},
                                  {kFirst, "refute race data_race"},
                                  {kFirst, "refute policy forbidden_construct"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(2), Repair(3)));
}

TEST(StrategyTest, BeamGivesLinesUpAtItsDepth) {
  const StrategyOptions options{.kind = StrategyKind::kBeam, .attempts = 9, .width = 1, .depth = 2};
  RunState state = StateOf({{kFirst, "refute race data_race"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(1)));
  state = StateOf({{kFirst, "refute race data_race"}, {kRepair, "refute race data_race"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Draft{.kind = DraftKind::kRestart}));
  EXPECT_THAT(NextDrafts(state, {.kind = StrategyKind::kBeam, .attempts = 9, .width = 1}),
              ElementsAre(Repair(2)));
}

TEST(StrategyTest, OptimizeKeepsTheAcceptedKernelAsTheFloor) {
  const StrategyOptions options{.attempts = 4, .optimize = true};
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, "accept"}}), options),
              ElementsAre(Draft{DraftKind::kOptimize, 1}));
  EXPECT_THAT(
      NextDrafts(StateOf({{kFirst, "accept"}, {DraftKind::kOptimize, "refute race data_race"}}),
                 options),
      ElementsAre(Draft{DraftKind::kOptimize, 1}));
}

TEST(StrategyTest, NeverMoreThanTheLimit) {
  for (const StrategyKind kind : {StrategyKind::kRefine, StrategyKind::kSample,
                                  StrategyKind::kRestart, StrategyKind::kBeam}) {
    const StrategyOptions options{.kind = kind, .attempts = 2, .samples = 2, .width = 8};
    EXPECT_EQ(NextDrafts(StateOf({}), options).size(), kind == StrategyKind::kRefine ? 2u : 2u);
  }
}

TEST(ProgressTest, CountsGatesBeforeTheFirstFailure) {
  const ops::Instance instance = testing::RmsNorm();
  EXPECT_EQ(Progress(testing::VerdictOf(instance, {}, "refute format malformed_plan")), 0);
  EXPECT_EQ(Progress(testing::VerdictOf(instance, {}, "refute race data_race")), 4);
  EXPECT_EQ(Progress(testing::VerdictOf(instance, {}, "accept")), 8);
}

}  // namespace
}  // namespace assay::agent
