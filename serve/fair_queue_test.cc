#include "serve/fair_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::serve {
namespace {

std::vector<std::uint64_t> All(FairQueue& queue) {
  std::vector<std::uint64_t> jobs;
  while (const auto job = queue.Pop()) jobs.push_back(*job);
  return jobs;
}

TEST(FairQueue, ClientsTakeTurnsAndKeepTheirOwnOrder) {
  FairQueue queue;
  for (std::uint64_t job = 1; job <= 5; ++job) queue.Push("busy", job);
  queue.Push("late", 10);
  queue.Push("late", 11);
  EXPECT_EQ(All(queue), (std::vector<std::uint64_t>{1, 10, 2, 11, 3, 4, 5}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, WhoComesWaitsForOneJobOfEach) {
  FairQueue queue;
  queue.Push("a", 1);
  queue.Push("a", 2);
  EXPECT_EQ(queue.Pop(), 1u);
  queue.Push("b", 3);
  EXPECT_EQ(All(queue), (std::vector<std::uint64_t>{2, 3}));
}

TEST(FairQueue, WhatIsRemovedIsNotRun) {
  FairQueue queue;
  queue.Push("a", 1);
  queue.Push("a", 2);
  queue.Push("b", 3);
  EXPECT_FALSE(queue.Remove("b", 1));
  EXPECT_TRUE(queue.Remove("a", 1));
  EXPECT_TRUE(queue.Remove("b", 3));
  EXPECT_FALSE(queue.Remove("b", 3));
  EXPECT_EQ(All(queue), (std::vector<std::uint64_t>{2}));
}

}  // namespace
}  // namespace assay::serve
