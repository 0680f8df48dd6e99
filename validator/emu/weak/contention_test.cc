// What depends on who comes first is noted, with a line and two orders; what does not, is not.
#include "validator/emu/weak/contention.h"

#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

struct Result {
  Report report;
  std::vector<double> out;
};

Result Launched(const std::string& entry, const std::vector<double>& x, double first,
                const Schedule& schedule = {}, bool order = true) {
  TestRun run(TestRun::TestData("order.ptx"));
  const bool swaps = entry.ends_with("_by_swaps") || entry.ends_with("_by_exchanges");
  const bool floats =
      entry.starts_with("sum_floats") || entry == "sum_in_turn" || entry == "largest_by_swaps";
  const DType dtype = floats ? DType::kF32 : DType::kI32;
  const bool warp = entry.starts_with("sum_floats_of_a_warp");
  const auto n = static_cast<std::uint32_t>(x.size());
  const auto in = run.Buffer("x", dtype, x);
  const auto out =
      run.Buffer("out", dtype, std::vector<double>(x.size(), first), BufferRole::kOutput);
  const auto more =
      run.Buffer("more", DType::kI32, {entry == "first_come" ? -1.0 : 0.0}, BufferRole::kWorkspace);
  std::vector<Argument> args = {TestRun::Ptr(in), TestRun::Ptr(out), TestRun::Ptr(more)};
  if (entry == "first_come") args = {TestRun::Ptr(more), TestRun::Ptr(out)};
  if (entry.starts_with("sum_floats") || entry == "sum_integers" || swaps) args.pop_back();
  run.AddLaunch(entry, {warp ? 1 : n, 1, 1}, {warp ? n : 32, 1, 1}, args);
  run.execution.schedule = schedule;
  run.execution.checks.order = order;
  Result result{run.Run(), {}};
  EXPECT_EQ(result.report.stop, Stop::kCompleted) << Show(result.report);
  EXPECT_TRUE(result.report.findings.empty()) << Show(result.report);
  for (std::size_t i = 0; i < x.size(); ++i) result.out.push_back(run.At(out, i));
  return result;
}

const std::vector<double> kThirds = {1.0 / 3, 2.0 / 3, 4.0 / 3, 0.1, 7.7, 1e-3};
const std::vector<double> kWhole = {1, 2, 3, 4, 5, 6};

TEST(Contention, FloatSumsNameTheirLineAndTwoOrders) {
  const Report report = Launched("sum_floats", kThirds, 0).report;
  ASSERT_EQ(report.order.sums.size(), 1u);
  const Finding& sum = report.order.sums.front();
  EXPECT_EQ(sum.kind, FindingKind::kNondeterministic);
  EXPECT_EQ(sum.memory->buffer, "out");
  ASSERT_EQ(sum.accesses.size(), 2u);
  EXPECT_EQ(sum.accesses[0].site.line, 5u);
  EXPECT_NE(sum.accesses[0].thread, sum.accesses[1].thread);
  EXPECT_NE(sum.message.find("in one order and"), std::string::npos) << sum.message;
}

TEST(Contention, LanesOfOneInstructionAreUnorderedToo) {
  EXPECT_EQ(Launched("sum_floats_of_a_warp", kThirds, 0).report.order.sums.size(), 1u);
}

TEST(Contention, TwoTermsOntoZeroCommute) {
  EXPECT_TRUE(Launched("sum_floats", {1.0 / 3, 0.1}, 0).report.order.sums.empty());
  const std::vector<double> tiny = {0x1p-24, 0x1p-23};
  EXPECT_EQ(Launched("sum_floats", tiny, 1).report.order.sums.size(), 1u);
}

TEST(Contention, ExactSumsAndIntegersDoNotDepend) {
  EXPECT_TRUE(Launched("sum_floats", kWhole, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("sum_integers", kWhole, 0).report.order.sums.empty());
  EXPECT_EQ(Launched("sum_integers", kWhole, 0).report.order.pairs, 0u);
}

TEST(Contention, SumsInTurnHaveOneOrder) {
  for (const Policy policy : {Policy::kSequential, Policy::kPermuted})
    EXPECT_TRUE(Launched("sum_in_turn", kThirds, 0, {policy, 5}).report.order.sums.empty());
}

TEST(Contention, LoopsAroundASwapAreSums) {
  const Report report = Launched("sum_floats_by_swaps", kThirds, 0).report;
  ASSERT_EQ(report.order.sums.size(), 1u);
  const Finding& sum = report.order.sums.front();
  EXPECT_EQ(sum.accesses[0].site.line, 46u);
  EXPECT_NE(sum.message.find("puts what was computed of floats into out[0]"), std::string::npos)
      << sum.message;
  EXPECT_EQ(Launched("sum_floats_of_a_warp_by_swaps", kThirds, 0).report.order.sums.size(), 1u);
  EXPECT_EQ(Launched("sum_floats_by_exchanges", kThirds, 0).report.order.sums.size(), 1u);
}

// The other orders are computed on the warp that runs: the result is the plain one's.
TEST(Contention, ComputingOtherOrdersChangesNothing) {
  for (const std::string entry : {"sum_floats_by_swaps", "sum_floats_of_a_warp_by_swaps",
                                  "sum_floats_by_exchanges", "largest_by_swaps"})
    EXPECT_EQ(Launched(entry, kThirds, 0).out, Launched(entry, kThirds, 0, {}, false).out) << entry;
}

TEST(Contention, SwapsThatCommuteAreNone) {
  EXPECT_TRUE(Launched("sum_floats_by_swaps", kWhole, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("sum_floats_by_swaps", {1.0 / 3, 0.1}, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("sum_floats_by_exchanges", kWhole, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("largest_by_swaps", kThirds, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("sum_integers_by_swaps", kWhole, 0).report.order.sums.empty());
  EXPECT_TRUE(Launched("first_come", kWhole, 0).report.order.sums.empty());
}

TEST(Contention, NobodyAsksNobodyCounts) {
  const Report report = Launched("sum_floats", kThirds, 0, {}, false).report;
  EXPECT_EQ(report.order, OrderReport{});
}

TEST(Contention, PlacesByArrivalAreContests) {
  const Result plain = Launched("compact", kWhole, 0);
  EXPECT_EQ(plain.report.order.pairs, kWhole.size() - 1);
  ASSERT_EQ(plain.report.order.contests.size(), 1u);
  EXPECT_EQ(plain.report.order.contests[0].accesses[0].site.line, 29u);
  ASSERT_EQ(plain.report.order.orders.size(), kWhole.size() - 1);
}

// Both outcomes of each pair are real: the other order is run, and shows in the result.
TEST(Contention, EachPairCanBeTurnedRound) {
  for (const std::string entry : {"compact", "first_come"}) {
    const Result plain = Launched(entry, kWhole, 0);
    ASSERT_FALSE(plain.report.order.orders.empty()) << entry;
    int held = 0;
    int differ = 0;
    for (const OrderPair& pair : plain.report.order.orders) {
      const Schedule turned{.hold = pair};
      const Result other = Launched(entry, kWhole, 0, turned);
      EXPECT_EQ(other.out, Launched(entry, kWhole, 0, turned).out) << "must replay";
      held += other.report.order.held ? 1 : 0;
      differ += other.out != plain.out ? 1 : 0;
    }
    EXPECT_EQ(held, static_cast<int>(plain.report.order.orders.size())) << entry;
    EXPECT_GT(differ, 0) << entry;
  }
}

TEST(Contention, APairThatHasOneOrderIsLetGo) {
  const Result plain = Launched("sum_in_turn", kThirds, 0);
  for (const OrderPair& pair : plain.report.order.orders)
    EXPECT_EQ(Launched("sum_in_turn", kThirds, 0, {.hold = pair}).out, plain.out);
}

}  // namespace
}  // namespace assay::emu
