#include "validator/campaign/in_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace assay::campaign {
namespace {

class InOrder : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, InOrder, ::testing::Values(0, 1, 2, 5));

TEST_P(InOrder, AllAreTakenInOrder) {
  std::vector<std::size_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  std::vector<std::size_t> places, things;
  MakeInOrder(
      100, GetParam(), 3, [](std::size_t i) { return i; },
      [&](std::size_t i, std::size_t thing) {
        places.push_back(i);
        things.push_back(thing);
        return true;
      });
  EXPECT_EQ(places, expected);
  EXPECT_EQ(things, expected);
}

TEST_P(InOrder, NoneIsTakenBehindTheLastAndLittleIsMade) {
  constexpr std::size_t kAhead = 3;
  std::atomic<std::size_t> made = 0;
  std::size_t taken = 0;
  MakeInOrder(
      1000, GetParam(), kAhead, [&](std::size_t i) { return ++made, i; },
      [&](std::size_t, std::size_t) { return ++taken < 10; });
  EXPECT_EQ(taken, 10);
  EXPECT_GE(made, 10);
  EXPECT_LE(made, GetParam() < 2 ? 10 : 9 + kAhead + GetParam());
}

TEST_P(InOrder, WhatIsBegunInAnotherOrderIsTakenInOrder) {
  std::vector<std::size_t> order(40);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i / 8 * 8 + (7 - i % 8);
  std::mutex mutex;
  std::vector<std::size_t> begun, places;
  MakeInOrder(
      order.size(), GetParam(), 8,
      [&](std::size_t i) {
        const std::lock_guard lock(mutex);
        begun.push_back(i);
        return i;
      },
      [&](std::size_t i, std::size_t thing) {
        EXPECT_EQ(i, thing);
        places.push_back(i);
        return true;
      },
      order);
  std::vector<std::size_t> expected(order.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(places, expected);
  ASSERT_EQ(begun.size(), order.size());
  EXPECT_LT(begun.front(), 8);
  // One thread works as it always did; two begin with the last of the first eight, or the one before.
  if (GetParam() == 2) {
    EXPECT_GE(begun.front(), 6);
  }
  if (GetParam() < 2) {
    EXPECT_EQ(begun, expected);
  }
  std::ranges::sort(begun);
  EXPECT_EQ(begun, expected);
}

TEST_P(InOrder, WhatIsThrownComesInItsTurn) {
  std::vector<std::size_t> places;
  const auto run = [&] {
    MakeInOrder(
        100, GetParam(), 8,
        [](std::size_t i) {
          if (i == 7) throw std::runtime_error("seven");
          return i;
        },
        [&](std::size_t i, std::size_t) {
          places.push_back(i);
          return true;
        });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(places, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_P(InOrder, NothingIsMadeOfNothing) {
  MakeInOrder(
      0, GetParam(), 1, [](std::size_t i) { return i; },
      [](std::size_t, std::size_t) -> bool { throw std::logic_error("there is nothing"); });
}

}  // namespace
}  // namespace assay::campaign
