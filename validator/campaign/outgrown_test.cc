#include "validator/campaign/outgrown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "validator/campaign/testing/decisions.h"

namespace assay::campaign {
namespace {

using ::testing::ElementsAre;
using testing::Given;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ops::AxisValues Shape(std::int64_t rows, std::int64_t columns) {
  return {{"rows", rows}, {"columns", columns}, {"table", 2}};
}

/// As many shapes as a judgement has, of which the program's one number comes to that.
void Observe(Outgrowing& outgrowing, std::uint8_t digits,
             const std::function<std::int64_t(std::int64_t, std::int64_t)>& most) {
  for (const std::int64_t rows : {1, 3, 9, 30, 70, 100, 300, 1000}) {
    for (const std::int64_t columns : {1, 5, 8, 33, 65, 200, 600}) {
      outgrowing.Add(Shape(rows, columns),
                     {{.ptx_line = 40,
                       .which = 0,
                       .digits = digits,
                       .line = 14,
                       .most = static_cast<std::uint64_t>(most(rows, columns))}});
    }
  }
}

TEST(OutgrowingTest, AnIndexOfAllElementsOutgrowsItsFormatWhereTheseDo) {
  const Given given("rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 31,
          [](std::int64_t rows, std::int64_t columns) { return rows * columns - 1; });
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 14u);
  EXPECT_THAT(found[0].along, ::testing::UnorderedElementsAre("rows", "columns"));
  EXPECT_GT(found[0].axes.at("rows") * found[0].axes.at("columns"), std::int64_t{1} << 31);
  EXPECT_FALSE(outgrowing.IsSeen(found[0]));
  EXPECT_THAT(outgrowing.Unseen(), HasSubstr("line 14"));
  // A run beyond that in which it was computed has shown what becomes of it.
  outgrowing.Add(found[0].axes,
                 {{.ptx_line = 40, .which = 0, .digits = 31, .line = 14, .most = 5}});
  EXPECT_THAT(outgrowing.Unseen(), IsEmpty());
}

TEST(OutgrowingTest, NotOneThatIsWholeAsFarAsTheOpGoes) {
  const Given given("rows", {});
  for (const auto& most : std::vector<std::function<std::int64_t(std::int64_t, std::int64_t)>>{
           [](std::int64_t, std::int64_t columns) { return columns - 1; },  // Within a row.
           [](std::int64_t rows, std::int64_t) { return rows - 1; },
           [](std::int64_t, std::int64_t) { return 1023; },  // A thread's.
           // A hash, or a number that comes round: as large at one shape as at another.
           [](std::int64_t rows, std::int64_t columns) {
             return (rows * 2654435761 + columns * 40503) % 4294967296;
           }}) {
    Outgrowing outgrowing(given.instance, given.plan);
    Observe(outgrowing, 32, most);
    EXPECT_THAT(outgrowing.Find(), IsEmpty());
  }
}

TEST(OutgrowingTest, RowsKeptInSixteenBits) {
  const Given given("rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 16, [](std::int64_t rows, std::int64_t) { return rows - 1; });
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].along, ElementsAre("rows"));
  EXPECT_EQ(found[0].axes.at("rows"), 73'728);
}

TEST(OutgrowingTest, NotWhereThePlanTakesAnotherKernel) {
  Given given("(rows * columns < 1000000000) * rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 31,
          [](std::int64_t rows, std::int64_t columns) { return rows * columns - 1; });
  EXPECT_THAT(outgrowing.Find(), IsEmpty());
}

}  // namespace
}  // namespace assay::campaign
