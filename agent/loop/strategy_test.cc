#include "agent/loop/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fakes.h"

namespace assay::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Attempts by their judge's words; "" is not judged yet. Each repairs the one before, but for first
// ones.
runs::RunState StateOf(const std::vector<std::pair<runs::DraftKind, std::string>>& attempts) {
  static const ops::Instance instance = testing::RmsNorm();
  runs::RunState state;
  for (const auto& [kind, words] : attempts) {
    runs::Attempt attempt;
    attempt.number = static_cast<int>(state.attempts.size()) + 1;
    attempt.kind = kind;
    attempt.parent = kind == runs::DraftKind::kRepair || kind == runs::DraftKind::kOptimize
                         ? attempt.number - 1
                         : 0;
    if (!words.empty()) attempt.verdict = testing::VerdictOf(instance, {}, words);
    state.attempts.push_back(std::move(attempt));
  }
  return state;
}

constexpr auto kFirst = runs::DraftKind::kFirst;
constexpr auto kRepair = runs::DraftKind::kRepair;

runs::Draft Repair(int parent) { return {kRepair, parent}; }

TEST(StrategyTest, RefineGoesOneByOne) {
  const StrategyOptions options{.attempts = 3};
  EXPECT_THAT(NextDrafts(StateOf({}), options), ElementsAre(runs::Draft{}));
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
  runs::RunState state = StateOf({{kFirst, "refute compile compile_error"},
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
              ElementsAre(runs::Draft{runs::DraftKind::kRestart, 0}));
  // Progress within the patience keeps the line going.
  EXPECT_THAT(
      NextDrafts(
          StateOf({{kFirst, stuck}, {kRepair, stuck}, {kRepair, "refute numeric wrong_value"}}),
          options),
      ElementsAre(Repair(3)));
  // A new conversation gets its own patience.
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, stuck},
                                  {kRepair, stuck},
                                  {kRepair, stuck},
                                  {runs::DraftKind::kRestart, stuck}}),
                         options),
              ElementsAre(Repair(4)));
}

TEST(StrategyTest, BeamRepairsTheBestUnrepaired) {
  const StrategyOptions options{
      .kind = StrategyKind::kBeam, .attempts = 20, .samples = 4, .width = 2};
  EXPECT_EQ(NextDrafts(StateOf({}), options).size(), 4u);
  const runs::RunState state = StateOf({{kFirst, "refute compile compile_error"},
                                        {kFirst, "refute precision precision_row"},
                                        {kFirst, "refute race data_race"},
                                        {kFirst, "refute policy forbidden_construct"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(2), Repair(3)));
}

TEST(StrategyTest, BeamGivesLinesUpAtItsDepth) {
  const StrategyOptions options{.kind = StrategyKind::kBeam, .attempts = 9, .width = 1, .depth = 2};
  runs::RunState state = StateOf({{kFirst, "refute race data_race"}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(1)));
  state = StateOf({{kFirst, "refute race data_race"}, {kRepair, "refute race data_race"}});
  EXPECT_THAT(NextDrafts(state, options),
              ElementsAre(runs::Draft{.kind = runs::DraftKind::kRestart}));
  EXPECT_THAT(NextDrafts(state, {.kind = StrategyKind::kBeam, .attempts = 9, .width = 1}),
              ElementsAre(Repair(2)));
}

TEST(StrategyTest, OptimizeKeepsTheAcceptedKernelAsTheFloor) {
  const StrategyOptions options{.attempts = 4, .optimize = true};
  EXPECT_THAT(NextDrafts(StateOf({{kFirst, "accept"}}), options),
              ElementsAre(runs::Draft{runs::DraftKind::kOptimize, 1}));
  // One that is right and no faster is not built on.
  EXPECT_THAT(
      NextDrafts(StateOf({{kFirst, "accept"}, {runs::DraftKind::kOptimize, "accept"}}), options),
      ElementsAre(runs::Draft{runs::DraftKind::kOptimize, 1}));
}

TEST(StrategyTest, ARefutedOptimisationIsRepairedTwice) {
  constexpr const char* kRefuted = "refute race data_race";
  const StrategyOptions options{.attempts = 9, .optimize = true};
  runs::RunState state = StateOf({{kFirst, "accept"}, {runs::DraftKind::kOptimize, kRefuted}});
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(2)));
  state =
      StateOf({{kFirst, "accept"}, {runs::DraftKind::kOptimize, kRefuted}, {kRepair, kRefuted}});
  state.attempts[2].parent = 2;
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(Repair(3)));
  state = StateOf({{kFirst, "accept"},
                   {runs::DraftKind::kOptimize, kRefuted},
                   {kRepair, kRefuted},
                   {kRepair, kRefuted}});
  state.attempts[2].parent = 2;
  state.attempts[3].parent = 3;
  EXPECT_THAT(NextDrafts(state, options), ElementsAre(runs::Draft{runs::DraftKind::kOptimize, 1}));
}

TEST(StrategyTest, NeverMoreThanTheLimit) {
  for (const StrategyKind kind : {StrategyKind::kRefine, StrategyKind::kSample,
                                  StrategyKind::kRestart, StrategyKind::kBeam}) {
    const StrategyOptions options{.kind = kind, .attempts = 2, .samples = 2, .width = 8};
    EXPECT_EQ(NextDrafts(StateOf({}), options).size(), kind == StrategyKind::kRefine ? 2u : 2u);
  }
}

}  // namespace
}  // namespace assay::loop
