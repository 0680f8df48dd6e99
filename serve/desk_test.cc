#include "serve/desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "runs/signature.h"
#include "runs/testing/fakes.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

// Judges when it is let: `open` gates each call; what is asked is kept.
class DeskTest : public ::testing::Test {
 protected:
  ~DeskTest() override {
    Let(1000);
    desk_.reset();
  }
  void Open(DeskOptions options = {}) {
    desk_.reset();
    auto desk = Desk::Open(folder_.path(), options,
                           [this](const Call& call, unsigned) { return Judge(call); });
    ASSERT_TRUE(desk) << ToString(desk.error());
    desk_ = *std::move(desk);
  }
  Answer Judge(const Call& call) {
    std::unique_lock lock(mutex_);
    asked_.push_back(call.job.request);
    changed_.notify_all();
    changed_.wait(lock, call.stop, [&] { return let_ > 0; });
    if (call.stop.stop_requested())
      return {.outcome = "inconclusive", .reason = "stopped", .document = {}, .certificate = {}};
    --let_;
    if (call.job.request == "throw") throw std::runtime_error("oh");
    Answer answer{.outcome = "refuted",
                  .reason = "r",
                  .document = {{"of", call.job.request}},
                  .certificate = {}};
    if (call.job.request == "emit") {
      const Path fresh = call.vetted.string() + ".new";
      const std::string certificate =
          runs::SealedText({{"schema", "assay.certificate/1"},
                            {"sha256", {{"kernel.cu", Sha256Hex(std::string_view("k"))}}}});
      EXPECT_TRUE(MakeFolders(fresh));
      EXPECT_TRUE(WriteFileAtomically(fresh / "kernel.cu", "k"));
      EXPECT_TRUE(WriteFileAtomically(fresh / "certificate.json", certificate));
      answer.outcome = "accepted";
      answer.certificate = Sha256Hex(certificate);
    }
    return answer;
  }
  void Let(int calls) {
    const std::lock_guard lock(mutex_);
    let_ += calls;
    changed_.notify_all();
  }
  void WaitForCalls(std::size_t calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_.size() >= calls; });
  }
  std::uint64_t Submit(const std::string& client, const std::string& request,
                       const std::string& key = {}) {
    const auto jobs = desk_->Submit(client, {{.kind = "check", .request = request, .key = key}});
    EXPECT_TRUE(jobs) << (jobs ? "" : ToString(jobs.error()));
    return jobs ? jobs->front().number : 0;
  }
  // Returns the names of the events that were told.
  std::vector<std::string> WaitForEnd(const std::string& client, std::uint64_t job) {
    std::vector<std::string> names;
    std::uint64_t seen = 0;
    while (true) {
      const Desk::News news = desk_->Wait(client, job, seen, 1h);
      for (const Desk::Event& event : news.events) {
        names.push_back(event.name);
        seen = event.number;
      }
      if (news.over) return names;
    }
  }

  testing::TemporaryFolder folder_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> asked_;
  int let_ = 0;
  std::unique_ptr<Desk> desk_;
};

TEST_F(DeskTest, AJobIsJudgedAndItsVerdictKept) {
  Open();
  Let(1);
  const std::uint64_t job = Submit("ann", "x");
  EXPECT_EQ(WaitForEnd("ann", job), (std::vector<std::string>{"state", "state", "ended"}));
  EXPECT_EQ(desk_->Find("ann", job)->outcome, "refuted");
  EXPECT_THAT(*desk_->Document("ann", job), HasSubstr("\"of\": \"x\""));
  Open();  // the next process
  EXPECT_THAT(*desk_->Document("ann", job), HasSubstr("\"of\": \"x\""));
  EXPECT_EQ(WaitForEnd("ann", job), (std::vector<std::string>{"ended"}));
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(DeskTest, ClientsSeeTheirOwnJobsAlone) {
  Open();
  Let(1);
  const std::uint64_t job = Submit("ann", "x");
  WaitForEnd("ann", job);
  EXPECT_FALSE(desk_->Find("bob", job));
  EXPECT_FALSE(desk_->Document("bob", job));
  EXPECT_FALSE(desk_->Cancel("bob", job));
  EXPECT_TRUE(desk_->Wait("bob", job, 0, 1h).over);
  EXPECT_TRUE(desk_->List("bob", 10).empty());
  EXPECT_EQ(desk_->List("ann", 10).size(), 1u);
}

TEST_F(DeskTest, WhatWasUnderWayIsJudgedAgain) {
  Open();
  const std::uint64_t first = Submit("ann", "x");
  const std::uint64_t second = Submit("ann", "y");
  WaitForCalls(1);
  Open();  // neither had ended
  Let(2);
  WaitForEnd("ann", first);
  WaitForEnd("ann", second);
  EXPECT_EQ(asked_, (std::vector<std::string>{"x", "x", "y"}));
}

TEST_F(DeskTest, AKeyIsOneJob) {
  Open();
  const std::uint64_t job = Submit("ann", "x", "k");
  EXPECT_EQ(Submit("ann", "x", "k"), job);
  EXPECT_NE(Submit("bob", "x", "k"), job);
  const auto other = desk_->Submit("ann", {{.kind = "check", .request = "y", .key = "k"}});
  ASSERT_FALSE(other);
  EXPECT_THAT(ToString(other.error()), HasSubstr("stands for another candidate"));
  Open();
  EXPECT_EQ(Submit("ann", "x", "k"), job);
}

TEST_F(DeskTest, AClientHasSoManyWaitingAndOthersTheirTurn) {
  Open({.waiting = 3});
  Submit("ann", "a1");
  WaitForCalls(1);
  Submit("ann", "a2");
  Submit("ann", "a3");
  const auto more = desk_->Submit("ann", {{.kind = "check", .request = "a4"}});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, ErrorKind::kLimit);
  const std::uint64_t bob = Submit("bob", "b1");
  Let(4);
  WaitForEnd("bob", bob);
  WaitForCalls(4);
  EXPECT_EQ(asked_[1], "a2");
  EXPECT_EQ(asked_[2], "b1");
  Let(10);
  for (const Job& job : desk_->List("ann", 10)) WaitForEnd("ann", job.number);
  Submit("ann", "a4");  // there is room again
}

TEST_F(DeskTest, CancelledWhileItWaitsAndWhileItRuns) {
  Open();
  const std::uint64_t running = Submit("ann", "x");
  WaitForCalls(1);
  const std::uint64_t waiting = Submit("ann", "y");
  EXPECT_TRUE(*desk_->Cancel("ann", waiting));
  EXPECT_TRUE(*desk_->Cancel("ann", running));
  EXPECT_FALSE(*desk_->Cancel("ann", running));
  Let(1);
  const std::uint64_t last = Submit("ann", "z");
  WaitForEnd("ann", last);
  EXPECT_EQ(asked_, (std::vector<std::string>{"x", "z"}));
  Open();
  EXPECT_EQ(desk_->Find("ann", running)->state, Job::State::kCancelled);
  EXPECT_EQ(desk_->Find("ann", waiting)->state, Job::State::kCancelled);
  EXPECT_EQ(WaitForEnd("ann", waiting), (std::vector<std::string>{"ended"}));
}

TEST_F(DeskTest, ABatchIsAGroupAllOrNone) {
  Open({.waiting = 4});
  Let(100);
  std::vector<Asked> asked;
  for (int i = 0; i < 3; ++i)
    asked.push_back({"reward", "r" + std::to_string(i), "k#" + std::to_string(i)});
  const auto jobs = desk_->Submit("ann", asked);
  ASSERT_TRUE(jobs);
  const std::uint64_t group = jobs->front().group;
  for (const Job& job : *jobs) WaitForEnd("ann", job.number);
  EXPECT_EQ(desk_->Group("ann", group).size(), 3u);
  EXPECT_TRUE(desk_->Group("bob", group).empty());
  EXPECT_EQ(desk_->Submit("ann", asked)->front().group, group) << "asked again";
  EXPECT_EQ(desk_->Submit("ann", asked)->front().number, jobs->front().number);
  asked.push_back({"reward", "r3", "k#3"});
  EXPECT_FALSE(desk_->Submit("ann", asked)) << "half of it is known";
  asked.assign(5, {"reward", "r", ""});
  EXPECT_FALSE(desk_->Submit("ann", asked)) << "more than may wait";
  EXPECT_EQ(desk_->List("ann", 100).size(), 3u);
}

TEST_F(DeskTest, AVettedFolderIsThereOnceTheJobHasEnded) {
  Open();
  Let(1);
  const std::uint64_t job = Submit("ann", "emit");
  WaitForEnd("ann", job);
  EXPECT_EQ(testing::Slurp(*desk_->Vetted("ann", job) / "kernel.cu"), "k");
  EXPECT_FALSE(desk_->Vetted("bob", job));
  // Killed between the record and the move.
  const Path vetted = *desk_->Vetted("ann", job);
  desk_.reset();
  std::filesystem::rename(vetted, vetted.string() + ".new");
  Open();
  EXPECT_EQ(testing::Slurp(*desk_->Vetted("ann", job) / "kernel.cu"), "k");
}

TEST_F(DeskTest, AJudgeThatThrowsEndsItsOwnJobAlone) {
  Open();
  Let(2);
  const std::uint64_t bad = Submit("ann", "throw");
  const std::uint64_t good = Submit("ann", "x");
  WaitForEnd("ann", bad);
  WaitForEnd("ann", good);
  EXPECT_EQ(desk_->Find("ann", bad)->outcome, "internal_error");
  EXPECT_EQ(desk_->Find("ann", good)->outcome, "refuted");
}

TEST_F(DeskTest, AVerdictThatWasChangedIsNotShown) {
  Open();
  Let(1);
  const std::uint64_t job = Submit("ann", "x");
  WaitForEnd("ann", job);
  ASSERT_TRUE(WriteFileAtomically(folder_.path() / "jobs" / (std::to_string(job) + ".json"), "{}"));
  EXPECT_FALSE(desk_->Document("ann", job));
}

// What mostly waits for a model holds up nobody who wants a kernel judged, nor the other way round.
TEST_F(DeskTest, ModelsAndJudgesDoNotWaitForEachOther) {
  Open({.judges = 1, .generations = 1});
  const std::uint64_t check = Submit("ann", "x");
  WaitForCalls(1);
  const auto run = desk_->Submit("ann", {{.kind = "generate", .request = "g"}});
  ASSERT_TRUE(run);
  WaitForCalls(2);  // both are under way
  const auto waiting = desk_->Submit("ann", {{.kind = "generate", .request = "h"}});
  EXPECT_TRUE(*desk_->Cancel("ann", waiting->front().number));
  Let(2);
  WaitForEnd("ann", check);
  WaitForEnd("ann", run->front().number);
  EXPECT_EQ(asked_, (std::vector<std::string>{"x", "g"}));
}

TEST_F(DeskTest, WhatWaitsIsBoundedInBytesAsWell) {
  Open({.waiting_bytes = 100, .all_bytes = 150});
  Submit("ann", std::string(60, 'x'));
  EXPECT_FALSE(desk_->Submit("ann", {{.kind = "check", .request = std::string(60, 'y')}}));
  Submit("bob", std::string(80, 'x'));
  EXPECT_FALSE(desk_->Submit("cid", {{.kind = "check", .request = std::string(60, 'y')}}))
      << "everybody's together";
  Let(2);
  for (const char* const client : {"ann", "bob"})
    WaitForEnd(client, desk_->List(client, 1).front().number);
  Submit("ann", std::string(90, 'x'));
}

// A service that runs for months: neither its memory nor its journal grows without end.
TEST_F(DeskTest, WhatIsLongOverIsForgottenWhileItRuns) {
  Open({.keep = 2, .waiting_bytes = 64u << 20});
  Let(100);
  std::vector<std::uint64_t> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(
        Submit("ann", std::string(12u << 20, static_cast<char>('a' + i)), "k" + std::to_string(i)));
    WaitForEnd("ann", jobs.back());
  }
  EXPECT_FALSE(desk_->Find("ann", jobs[0]));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "jobs" / "1.json"));
  EXPECT_TRUE(desk_->Find("ann", jobs[4]));
  EXPECT_LT(std::filesystem::file_size(folder_.path() / "journal.jsonl"), 40u << 20);
  EXPECT_EQ(Submit("ann", "new", "k0"), 6u) << "its key is free again, its number is not";
  WaitForEnd("ann", 6);
  Open();
  EXPECT_TRUE(desk_->Find("ann", 6));
}

TEST_F(DeskTest, JobsThatWereSubmittedAloneAreNoGroup) {
  Open();
  Let(2);
  WaitForEnd("ann", Submit("ann", "x"));
  EXPECT_TRUE(desk_->Group("ann", 0).empty());
}

}  // namespace
}  // namespace assay::serve
