#include "runs/standing.h"

#include <gtest/gtest.h>

#include <optional>

#include "runs/state.h"
#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

TEST(HowFarTest, CountsGatesBeforeTheFirstFailure) {
  const ops::Instance instance = testing::RmsNorm();
  EXPECT_EQ(HowFar(testing::VerdictOf(instance, {}, "refute format malformed_plan")), 0);
  EXPECT_EQ(HowFar(testing::VerdictOf(instance, {}, "refute race data_race")), 4);
  EXPECT_EQ(HowFar(testing::VerdictOf(instance, {}, "accept")), 8);
}

// What the first kernel costs is told by the numeric gate, unless speed was measured.
TEST(CostOfRunningTest, MeasuredTimeBeforeCountedSteps) {
  verdict::Verdict verdict = testing::VerdictOf(testing::RmsNorm(), {}, "accept");
  EXPECT_EQ(CostOfRunning(verdict), 0);
  for (verdict::GateResult& gate : verdict.gates) {
    if (gate.gate == "numeric") gate.steps = 70;  // of 7 cases
  }
  EXPECT_EQ(CostOfRunning(verdict), 10);
  verdict::GateResult speed;
  speed.gate = "speed";
  speed.statistics = {{.name = "median_us", .value = 3.5}};
  verdict.gates.push_back(speed);
  EXPECT_EQ(CostOfRunning(verdict), 3.5);
}

TEST(AcceptedTest, WithoutAJailTheFastestIsTheFloor) {
  const auto attempt = [](int number, double times, const char* vetted) {
    Attempt made;
    made.number = number;
    made.vetted = vetted;
    verdict::GateResult speed;
    speed.gate = "speed";
    speed.statistics = {{"times_the_limit", times, 2, ""}};
    made.verdict.emplace();
    made.verdict->outcome = verdict::Outcome::kAccepted;
    made.verdict->gates = {speed};
    return made;
  };
  RunState state;
  state.attempts = {attempt(1, 7, ""), attempt(2, 5, ""), attempt(3, 6, "")};
  EXPECT_EQ(state.Accepted()->number, 2);
  // What was emitted is the floor, since only what is faster is emitted.
  state.attempts.push_back(attempt(4, 6.5, "vetted/x"));
  EXPECT_EQ(state.Accepted()->number, 4);
}

TEST(MissedBarTest, IsToldWhereTheGateLetItStand) {
  const auto missed = [](std::vector<Statistic> statistics) {
    verdict::Verdict verdict;
    verdict::GateResult speed;
    speed.gate = "speed";
    speed.reason = "how fast it is";
    speed.statistics = std::move(statistics);
    verdict.gates = {speed};
    return MissedBar(verdict);
  };
  EXPECT_EQ(missed({{"times_the_limit", 5.3, 2, ""}}), "how fast it is");
  EXPECT_EQ(missed({{"times_the_limit", 2, 2, ""}}), "");
  // An op that asks for nothing; a gate that neither measured nor modelled.
  EXPECT_EQ(missed({{"times_the_limit", 5.3, 0, ""}}), "");
  EXPECT_EQ(missed({}), "");
}

TEST(RunsFasterTest, ComparesWhatIsKnownOfBoth) {
  const auto kernel = [](double steps, std::optional<double> times) {
    verdict::Verdict verdict;
    verdict::GateResult numeric;
    numeric.gate = "numeric";
    numeric.cases = 1;
    numeric.steps = static_cast<std::uint64_t>(steps);
    verdict::GateResult speed;
    speed.gate = "speed";
    if (times) speed.statistics = {{"times_the_limit", *times, 0, ""}};
    verdict.gates = {numeric, speed};
    return verdict;
  };
  EXPECT_TRUE(RunsFaster(kernel(900, 2), kernel(100, 3)));
  EXPECT_FALSE(RunsFaster(kernel(100, 3), kernel(900, 2)));
  EXPECT_FALSE(RunsFaster(kernel(100, 3), kernel(100, 3)));
  // Timed and not timed: by their steps.
  EXPECT_TRUE(RunsFaster(kernel(100, 3), kernel(900, std::nullopt)));
  EXPECT_FALSE(RunsFaster(kernel(900, 3), kernel(100, std::nullopt)));
}

}  // namespace
}  // namespace assay::runs
