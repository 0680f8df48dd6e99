#include "validator/campaign/orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/campaign/runner.h"
#include "validator/campaign/testing/fakes.h"

namespace assay::campaign {
namespace {

struct Tried {
  CaseRun run;
  int runs = 0;
};

/// A kernel that adds floats as they come: somewhere (`noted`), so that the plain run's report has it; whether another
/// order `shows` in the output.
Tried Judge(bool noted, bool shows, bool orders = true, bool when_reversed = true) {
  FakeParts bench([&](FakeRun& run) {
    FakeEngine::Good()(run);
    if (noted && run.execution.checks.order) {
      run.report.order.sums.push_back(
          MakeFinding(FindingKind::kNondeterministic, 3, "floats are added as they come"));
      run.report.order.sums.back().memory = MemoryPlace{.buffer = "parts"};
    }
    const Schedule::Policy policy = run.execution.schedule.policy;
    if (shows && policy != Schedule::Policy::kSequential &&
        (when_reversed || policy != Schedule::Policy::kReversed))
      run.Floats("y")[0] = std::nextafter(run.Floats("y")[0], 100.0f);
  });
  const Json launch = *ParseJson(bench.candidate.launch, "launch.json");
  const auto plan = ops::ParseLaunchPlan(launch, "launch.json", bench.instance.op);
  const engine::CompiledKernel compiled = FakeCompiler::Good().kernel;
  const Runner runner({&bench.instance, &*plan, &compiled}, bench.engine, bench.oracle, 1);
  cases::Probe probe;
  probe.case_ = {.axes = {{"n", 12}}, .seed = 5, .profiles = {}, .origin = ""};
  Tried tried{runner.Run(probe, {.determinism = true, .orders = orders}), 0};
  tried.runs = bench.engine.runs;
  EXPECT_FALSE(tried.run.error.has_value());
  return tried;
}

TEST(OrdersTest, FloatsAddedAsTheyComeRunInOtherOrders) {
  const Tried shown = Judge(/*noted=*/true, /*shows=*/true);
  ASSERT_EQ(shown.run.nondeterminism.size(), 1u);
  EXPECT_EQ(shown.run.nondeterminism[0].element->output, "y");
  EXPECT_EQ(shown.run.nondeterminism[0].cause, "floats are added as they come");
  // What replays it is that order.
  EXPECT_EQ(shown.run.probe.schedule.policy, Schedule::Policy::kReversed);
  // Which order shows it is left to chance.
  const Tried late =
      Judge(/*noted=*/true, /*shows=*/true, /*orders=*/true, /*when_reversed=*/false);
  ASSERT_EQ(late.run.nondeterminism.size(), 1u);
  EXPECT_EQ(late.run.probe.schedule.policy, Schedule::Policy::kPermuted);
  EXPECT_EQ(late.runs, 3);
  // Right: sums that are the same in any order.
  const Tried hidden = Judge(/*noted=*/true, /*shows=*/false);
  EXPECT_THAT(hidden.run.nondeterminism, testing::IsEmpty());
  EXPECT_EQ(hidden.run.probe.schedule, Schedule{});
  EXPECT_EQ(hidden.runs, 6);
}

TEST(OrdersTest, WhereNothingIsAddedAsItComesOrNobodyAskedTheCaseRunsOnce) {
  EXPECT_EQ(Judge(/*noted=*/false, /*shows=*/true).runs, 1);
  EXPECT_EQ(Judge(/*noted=*/true, /*shows=*/true, /*orders=*/false).runs, 1);
}

}  // namespace
}  // namespace assay::campaign
