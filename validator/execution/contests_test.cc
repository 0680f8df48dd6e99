#include "validator/execution/contests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

Finding Contest(const std::string& message, double orders, bool looks) {
  Finding contest;
  contest.kind = FindingKind::kNondeterministic;
  contest.message = message;
  contest.statistics = {{.name = kContestPairs, .value = 9},
                        {.name = kContestOrders, .value = orders},
                        {.name = kContestLooks, .value = looks ? 1.0 : 0.0}};
  return contest;
}

OrderReport Report() {
  OrderReport report;
  report.contests = {Contest("ticket", 2, false), Contest("no order of it was kept", 0, true),
                     Contest("flag", 3, true)};
  report.orders.resize(5);
  return report;
}

TEST(Contests, OrdersLieContestByContest) {
  const OrderReport report = Report();
  for (const std::size_t order : {0u, 1u}) EXPECT_EQ(ContestOf(report, order)->message, "ticket");
  for (const std::size_t order : {2u, 4u}) EXPECT_EQ(ContestOf(report, order)->message, "flag");
  EXPECT_EQ(ContestOf(report, 5), nullptr);
}

TEST(Contests, WhoOnlyLooksIsAskedFirst) {
  EXPECT_THAT(OrdersToBlame(Report()), testing::ElementsAre(2, 0));
  EXPECT_THAT(OrdersToBlame(OrderReport{}), testing::IsEmpty());
}

// What a report says comes from a worker.
TEST(Contests, NumbersThatCannotBeAreNotBelieved) {
  OrderReport report = Report();
  report.contests[0].statistics[1].value = 1e300;
  EXPECT_EQ(ContestOf(report, 7), nullptr);
  EXPECT_THAT(OrdersToBlame(report), testing::ElementsAre(0));
  report.contests[0].statistics.clear();
  EXPECT_EQ(ContestOf(report, 0)->message, "flag");
}

}  // namespace
}  // namespace assay
