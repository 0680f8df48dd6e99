#include "serve/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "runs/testing/fakes.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  Job MakeJob(std::uint64_t number, std::uint64_t group = 0) const {
    return {.number = number,
            .client = "c",
            .key = "k" + std::to_string(number),
            .group = group,
            .kind = "check",
            .request = R"({"a": "\n"})",
            .digest = "d"};
  }
  Journal::Opened Open(std::size_t keep = 100) {
    auto opened = Journal::Open(folder_.path(), keep);
    EXPECT_TRUE(opened) << ToString(opened.error());
    return *std::move(opened);
  }
  static Job Ended(Job job) {
    job.state = Job::State::kEnded;
    job.outcome = "accepted";
    job.reason = "r";
    job.document = "x";
    job.request.clear();
    return job;
  }
  Path File() const { return folder_.path() / "journal.jsonl"; }

  testing::TemporaryFolder folder_;
};

TEST_F(JournalTest, WhatWasWrittenIsReadAgain) {
  {
    auto opened = Open();
    EXPECT_TRUE(opened.jobs.empty());
    EXPECT_EQ(opened.next, 1u);
    const std::vector<Job> jobs = {MakeJob(1), MakeJob(2), MakeJob(3)};
    ASSERT_TRUE(opened.journal.Submitted(jobs));
    ASSERT_TRUE(opened.journal.Ended(Ended(jobs[1])));
    ASSERT_TRUE(opened.journal.Cancelled(3));
  }
  for (int i = 0; i < 3; ++i) {  // opening writes it anew
    const auto opened = Open();
    ASSERT_EQ(opened.jobs.size(), 3u);
    EXPECT_EQ(opened.jobs[0], MakeJob(1));
    EXPECT_EQ(opened.jobs[1], Ended(MakeJob(2)));
    EXPECT_EQ(opened.jobs[2].state, Job::State::kCancelled);
    EXPECT_EQ(opened.next, 4u);
  }
}

// Killed at the ends of lines, beside them and between them: whole lines count, and nothing else.
TEST_F(JournalTest, ATornEndIsDropped) {
  {
    auto opened = Open();
    ASSERT_TRUE(opened.journal.Submitted(std::vector<Job>{MakeJob(1)}));
    ASSERT_TRUE(opened.journal.Ended(Ended(MakeJob(1))));
    ASSERT_TRUE(opened.journal.Submitted(std::vector<Job>{MakeJob(2)}));
  }
  const std::string whole = testing::Slurp(File());
  std::set<std::size_t> sizes = {0, whole.size()};
  for (std::size_t at = 0; at < whole.size(); at = whole.find('\n', at) + 1)
    sizes.insert({at - (at > 0 ? 1 : 0), at, at + 1, at + 20});
  for (const std::size_t size : sizes) {
    std::ofstream(File(), std::ios::binary) << whole.substr(0, size);
    const auto lines =
        static_cast<std::size_t>(std::ranges::count(std::string_view(whole).substr(0, size), '\n'));
    const auto opened = Open();
    ASSERT_EQ(opened.jobs.size(), lines < 2 ? 0u : lines < 4 ? 1u : 2u) << size;
    if (lines >= 2) {
      EXPECT_EQ(opened.jobs[0].state, lines == 2 ? Job::State::kQueued : Job::State::kEnded);
    }
  }
}

TEST_F(JournalTest, DamageBeforeTheEndIsSaidWithItsPlace) {
  {
    auto opened = Open();
    ASSERT_TRUE(opened.journal.Submitted(std::vector<Job>{MakeJob(1)}));
  }
  const std::string whole = testing::Slurp(File());
  for (const char* const bad : {"{\"event\": \"ended\", \"number\": 7}", "nonsense", "[]",
                                "{\"event\": \"other\", \"number\": 1}"}) {
    std::ofstream(File(), std::ios::binary) << whole << bad << "\n" << whole;
    const auto opened = Journal::Open(folder_.path(), 100);
    ASSERT_FALSE(opened) << bad;
    EXPECT_THAT(ToString(opened.error()), HasSubstr("journal.jsonl:3"));
  }
}

TEST_F(JournalTest, OldJobsThatAreOverAreForgottenAndNumbersAreNotUsedAgain) {
  {
    auto opened = Open();
    const std::vector<Job> jobs = {MakeJob(1), MakeJob(2, 2), MakeJob(3, 2), MakeJob(4),
                                   MakeJob(5)};
    ASSERT_TRUE(opened.journal.Submitted(jobs));
    for (const std::size_t i : {1u, 3u, 4u}) ASSERT_TRUE(opened.journal.Ended(Ended(jobs[i])));
  }
  // 2 and 3 are a group of which 3 still waits; 1 waits as well.
  const auto opened = Open(1);
  EXPECT_EQ(opened.forgotten, (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(opened.jobs.size(), 3u);
  EXPECT_EQ(opened.next, 6u);
}

TEST_F(JournalTest, OneProcessHasIt) {
  const auto opened = Open();
  const auto second = Journal::Open(folder_.path(), 1);
  ASSERT_FALSE(second);
  EXPECT_THAT(ToString(second.error()), HasSubstr("another process"));
}

TEST_F(JournalTest, WrittenAnewItHoldsWhatIsWantedAndGoesOn) {
  auto opened = Open();
  ASSERT_TRUE(opened.journal.Submitted(std::vector<Job>{MakeJob(1), MakeJob(2)}));
  ASSERT_TRUE(opened.journal.Ended(Ended(MakeJob(1))));
  EXPECT_FALSE(opened.journal.Grown());
  Job big = MakeJob(3);
  big.request.assign(40u << 20, 'x');
  ASSERT_TRUE(opened.journal.Submitted(std::vector<Job>{big}));
  EXPECT_TRUE(opened.journal.Grown());
  const Job second = MakeJob(2);
  const std::vector<const Job*> kept = {&second};
  ASSERT_TRUE(opened.journal.Rewrite(kept, 9));
  EXPECT_FALSE(opened.journal.Grown());
  ASSERT_TRUE(opened.journal.Cancelled(2));
  EXPECT_FALSE(Journal::Open(folder_.path(), 1)) << "it is still locked";
  opened.journal = Journal(std::move(opened.journal));
  const std::string text = testing::Slurp(File());
  EXPECT_LT(text.size(), 1000u);
  EXPECT_THAT(text, HasSubstr("\"next\":9"));
  EXPECT_THAT(text, HasSubstr("cancelled"));
}

}  // namespace
}  // namespace assay::serve
