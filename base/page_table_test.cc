#include "base/page_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace assay {
namespace {

std::unique_ptr<int> Of(int value) { return std::make_unique<int>(value); }

std::vector<std::uint64_t> Numbers(const PageTable<int>& pages) {
  std::vector<std::uint64_t> numbers;
  pages.ForEach([&](std::uint64_t number, int) { numbers.push_back(number); });
  return numbers;
}

// Few numbers are written as null; of many the system's fresh memory stands for it.
class PageTables : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PageTables, HoldWhatWasPutAndNothingElse) {
  const std::uint64_t size = GetParam();
  PageTable<int> pages;
  pages.Reset(size);
  EXPECT_EQ(pages.size(), size);
  EXPECT_EQ(pages[size - 1], nullptr);
  pages.Put(size - 1, Of(7));
  pages.Put(3, Of(5));
  ASSERT_NE(pages[size - 1], nullptr);
  EXPECT_EQ(*pages[size - 1], 7);
  EXPECT_EQ(*pages[3], 5);
  EXPECT_EQ(pages[2], nullptr);
  EXPECT_EQ(pages.made(), 2u);
  EXPECT_EQ(Numbers(pages), (std::vector<std::uint64_t>{3, size - 1})) << "ascending";
  pages.Reset(size);
  EXPECT_EQ(pages.made(), 0u);
  EXPECT_EQ(pages[3], nullptr);
}

TEST_P(PageTables, GrowWithTheirPages) {
  const std::uint64_t size = GetParam();
  PageTable<int> pages;
  pages.Grow(8);
  pages.Put(5, Of(9));
  pages.Grow(size);
  EXPECT_EQ(pages.size(), size);
  EXPECT_EQ(*pages[5], 9);
  EXPECT_EQ(pages[size - 1], nullptr);
  pages.Grow(4);
  EXPECT_EQ(pages.size(), size) << "never shrinks";
}

TEST_P(PageTables, GiveTheirPagesAway) {
  PageTable<int> pages;
  pages.Reset(GetParam());
  pages.Put(6, Of(1));
  pages.Put(4, Of(2));
  PageTable<int> moved = std::move(pages);
  std::vector<int> taken;
  moved.TakeEach([&](const std::unique_ptr<int>& page) { taken.push_back(*page); });
  EXPECT_EQ(taken, (std::vector{1, 2}));
  EXPECT_EQ(moved.made(), 0u);
  EXPECT_EQ(moved[6], nullptr);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PageTables, ::testing::Values(9, 32'768, 32'769, 1 << 22));

}  // namespace
}  // namespace assay
