#include "validator/campaign/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace assay::campaign {
namespace {

Launch Over(std::vector<BlockRange> only) {
  Launch launch;
  launch.grid = {100, 2, 1};
  launch.only = std::move(only);
  return launch;
}

TEST(Blocks, OfASliceHoldTheFirstAndTheLastAndDoNotOverlap) {
  for (const std::uint64_t count : {2, 5, 9, 40, 500}) {
    const auto chosen = ChooseBlocks(10'000, count, 3);
    ASSERT_FALSE(chosen.empty()) << count;
    EXPECT_EQ(chosen.front().first, 0u) << count;
    EXPECT_EQ(chosen.back().first + chosen.back().count, 10'000u) << count;
    for (std::size_t i = 1; i < chosen.size(); ++i)
      EXPECT_GE(chosen[i].first, chosen[i - 1].first + chosen[i - 1].count) << count;
  }
  EXPECT_TRUE(ChooseBlocks(10, 10, 3).empty()) << "all";
  EXPECT_EQ(BlocksThatRun(Over({})), 200u);
  EXPECT_EQ(BlocksThatRun(Over({{0, 3}, {50, 2}})), 5u);
}

TEST(Blocks, OfASliceAreAmongThoseOfALargerOne) {
  // So a replay, which knows less of what blocks take, comes to what failed.
  for (const std::uint64_t all : {3, 10, 100, 1056, 1'000'000}) {
    std::set<std::uint64_t> smaller;
    for (std::uint64_t count = 1; count < std::min<std::uint64_t>(all, 400); ++count) {
      std::set<std::uint64_t> blocks;
      for (const BlockRange& range : ChooseBlocks(all, count, 11)) {
        for (std::uint64_t i = 0; i < range.count; ++i)
          EXPECT_TRUE(blocks.insert(range.first + i).second) << all << " " << count;
      }
      EXPECT_TRUE(std::ranges::includes(blocks, smaller)) << all << " " << count;
      EXPECT_LE(blocks.size(), count);
      EXPECT_LT(*blocks.rbegin(), all);
      EXPECT_TRUE(blocks.contains(all - 1)) << all << " " << count;
      smaller = std::move(blocks);
    }
  }
}

TEST(Blocks, OfAClusterRunTogether) {
  Launch launch = Over({{0, 3}, {50, 2}, {99, 1}, {198, 2}});
  launch.cluster = {4, 1, 1};
  EXPECT_EQ(BlocksThatRun(launch), 16u);
  launch.cluster = {4, 2, 1};
  EXPECT_EQ(BlocksThatRun(launch), 24u);
}

TEST(Blocks, ThreadsOfABlockThatRun) {
  Launch launch;
  launch.block = {8, 12, 1};
  EXPECT_EQ(ThreadsThatRun(launch), 96u);
  launch.threads = {{0, 1}, {40, 3}, {95, 32}, {200, 5}};
  EXPECT_EQ(ThreadsThatRun(launch), 5u) << "there are 96";
}

TEST(Blocks, MoreOfThemComeInOrderAndOnce) {
  const auto with = WithBlocks({{0, 3}, {50, 2}}, {1, 7, 51, 99, 100}, 100);
  ASSERT_EQ(with.size(), 4u);
  EXPECT_EQ(with[1].first, 7u);
  EXPECT_EQ(with[2].first, 50u);
  EXPECT_EQ(with[3].first, 99u);
  EXPECT_TRUE(WithBlocks({}, {1, 2}, 100).empty()) << "all run already";
}

TEST(Blocks, WhoWritesTheEndFollowsFromWhatABlockWrote) {
  // Four elements a block, ten blocks, two turns and a half.
  EXPECT_EQ(WriterOfTheEnd({36, 37, 38, 39, 76, 77, 78, 79}, 100, 9, 10), 4u);
  EXPECT_EQ(WriterOfTheEnd({36, 37, 38, 39}, 40, 9, 10), 9u);
  EXPECT_EQ(WriterOfTheEnd({20, 21, 22, 23, 36, 37, 38, 39}, 100, 5, 10), 4u)
      << "of two blocks, the first one tells";
  EXPECT_EQ(WriterOfTheEnd({30, 31, 32}, 100, 9, 10), std::nullopt)
      << "not one block after the other";
  EXPECT_EQ(WriterOfTheEnd({}, 100, 9, 10), std::nullopt);
}

TEST(Blocks, AUnitOfTurnsMayBeAClusters) {
  ops::LaunchPlan plan;
  ops::KernelPlan& kernel = plan.kernels.emplace_back();
  kernel.grid = {*ops::Expression::Parse("4 * min(rows, 132)", "grid"),
                 ops::Expression::Constant(1), ops::Expression::Constant(1)};
  const std::set<std::uint64_t> last = LastOfTurns(plan, {{"rows", 132 + 7}});
  for (const std::uint64_t block : {24u, 25u, 26u, 27u}) EXPECT_TRUE(last.contains(block)) << block;
}

TEST(Blocks, WhoWritesTheEndFollowsFromACappedGrid) {
  ops::LaunchPlan plan;
  ops::KernelPlan& kernel = plan.kernels.emplace_back();
  kernel.grid = {*ops::Expression::Parse("min(ceil_div(rows, 4), 2112)", "grid"),
                 ops::Expression::Constant(1), ops::Expression::Constant(1)};
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 4 * 2112 + 1}}), (std::set<std::uint64_t>{0}));
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 4 * 2112 + 9}}), (std::set<std::uint64_t>{2}));
  // Below the cap there are no turns.
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 4 * 1500}}).empty());
  // Nor where the smallest shape has as many blocks as this one.
  kernel.grid[0] = *ops::Expression::Parse("min(ceil_div(rows, 128) * 64, 264)", "grid");
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 1}}).empty());
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 512}}).empty());
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 640}}), (std::set<std::uint64_t>{319 - 264}));
  // Nor where a length is compared with what makes no cap: blocks grow with it.
  kernel.grid[0] = *ops::Expression::Parse("(1 - (rows <= 16)) * ceil_div(rows, 64)", "grid");
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 8191}}).empty());
  kernel.grid[0] = *ops::Expression::Parse("(rows <= 16) * rows + (rows > 16) * 16", "grid");
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 8190}}), (std::set<std::uint64_t>{8189 % 16}));
  // Along y, at the end of x: rows 300 to 304 are the second turn of five of the 300.
  kernel.grid = {*ops::Expression::Parse("ceil_div(columns, 64)", "grid"),
                 *ops::Expression::Parse("min(rows, 300)", "grid"), ops::Expression::Constant(1)};
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 305}, {"columns", 640}}),
            (std::set<std::uint64_t>{9 + 10 * 4}));
}

TEST(Blocks, NoTurnsFollowFromWhereAnotherKernelTakesOver) {
  ops::LaunchPlan plan;
  for (const char* const grid :
       {"(rows <= 1024) * ceil_div(rows, 64)", "(rows > 1024) * ceil_div(rows, 128)"}) {
    plan.kernels.emplace_back().grid = {*ops::Expression::Parse(grid, "grid"),
                                        ops::Expression::Constant(128),
                                        ops::Expression::Constant(1)};
  }
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 1095}}).empty());
}

TEST(Blocks, OfAKernelThatDoesNotRunNobodyComesToTheEnd) {
  ops::LaunchPlan plan;
  plan.kernels.emplace_back().grid = {
      *ops::Expression::Parse("(n <= 2147483648) * min(ceil_div(n, 1024), 1056)", "grid"),
      ops::Expression::Constant(1), ops::Expression::Constant(1)};
  plan.kernels.emplace_back().grid = {
      *ops::Expression::Parse("(n > 2147483648) * 32", "grid"),
      *ops::Expression::Parse("min(ceil_div(n, 32768), 65535)", "grid"),
      ops::Expression::Constant(1)};
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  EXPECT_EQ(LastOfTurns(plan, {{"n", kMost}}), (std::set<std::uint64_t>{991}));
}

TEST(Blocks, ANumberThatChoosesAKernelIsNoCap) {
  ops::LaunchPlan plan;
  plan.kernels.emplace_back().grid = {
      *ops::Expression::Parse("(hidden > 1024) * min(tokens, 1056)", "grid"),
      ops::Expression::Constant(1), ops::Expression::Constant(1)};
  EXPECT_EQ(LastOfTurns(plan, {{"tokens", 1'048'576}, {"hidden", 4097}}),
            (std::set<std::uint64_t>{1023}));
}

TEST(Blocks, TheLastOfManyHasTheNumberOfAnotherIn16Bits) {
  ops::LaunchPlan plan;
  plan.kernels.emplace_back().grid = {*ops::Expression::Parse("rows", "grid"),
                                      ops::Expression::Constant(1), ops::Expression::Constant(1)};
  EXPECT_EQ(LastOfTurns(plan, {{"rows", 65'536 + 8}}), (std::set<std::uint64_t>{7}));
  EXPECT_TRUE(LastOfTurns(plan, {{"rows", 65'536}}).empty());
}

TEST(Blocks, APlanOfSeveralKernelsHasAPathForEachLength) {
  ops::OpSpec op;
  ops::Axis& rows = op.axes.emplace_back();
  rows.name = "rows";
  rows.kind = ops::Axis::Kind::kVariable;
  rows.min = 1;
  rows.max = 1 << 20;
  ops::LaunchPlan plan;
  for (const char* const grid :
       {"(rows <= 1024) * ceil_div(rows, 64)", "(rows > 1024) * ceil_div(rows, 128)"}) {
    plan.kernels.emplace_back().grid = {*ops::Expression::Parse(grid, "grid"),
                                        ops::Expression::Constant(128),
                                        ops::Expression::Constant(1)};
  }
  EXPECT_EQ(PathAt(op, plan, {{"rows", 1024}}), (std::vector<bool>{true, false}));
  EXPECT_EQ(PathAt(op, plan, {{"rows", 1025}}), (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace assay::campaign
