#include "runs/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runs/folder.h"
#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

class InventoryTest : public ::testing::Test {
 protected:
  Path Run(const std::string& name, const std::string& vetted = "") {
    const Path path = folder_.path() / name;
    auto run = RunFolder::Create(path, clock_, "go on");
    EXPECT_TRUE(run) << ToString(run.error());
    EXPECT_TRUE(run->Record(RunStarted{{{"instance", name}, {"model", "m"}}, "digest"}));
    EXPECT_TRUE(run->Record(AttemptsPlanned{{{1, DraftKind::kFirst, 0, {}}}}));
    EXPECT_TRUE(run->Record(ReplyReceived{1, {.text = testing::ReplyWith("accept")}, true}));
    EXPECT_TRUE(run->Record(
        AttemptJudged{1, testing::VerdictOf(testing::RmsNorm(), {}, "accept"), {}, vetted, ""}));
    EXPECT_TRUE(run->Record(RunStopped{verdict::Outcome::kAccepted, "done", false}));
    return path;
  }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
};

const CleaningStep& Of(const std::vector<CleaningStep>& steps, const Path& folder) {
  return *std::ranges::find(steps, folder,
                            [](const CleaningStep& step) { return step.run.folder; });
}

TEST_F(InventoryTest, ListsRunsWithWhatTheyHold) {
  Run("a");
  Run("deep/b", "vetted/x");
  std::ofstream(folder_.path() / "broken.txt") << "no run";
  const auto runs = ListRuns(folder_.path());
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ((*runs)[0].instance, "a");
  EXPECT_EQ((*runs)[0].state, "accepted");
  EXPECT_FALSE((*runs)[0].vetted);
  EXPECT_GT((*runs)[0].bytes, 0u);
  EXPECT_TRUE((*runs)[1].vetted);
}

TEST_F(InventoryTest, ARunThatAProcessWorksOnIsSeen) {
  const Path path = Run("a");
  const auto held = RunFolder::Open(path, clock_, "go on");
  ASSERT_TRUE(held);
  const auto runs = ListRuns(path);
  ASSERT_TRUE(runs);
  EXPECT_TRUE((*runs)[0].locked);
  EXPECT_EQ((*runs)[0].state, "running");
  const Status removed = RemoveRun(path);
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message, HasSubstr("works on"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(InventoryTest, AgeAndSizeDecideButNeverOverAVettedKernel) {
  const Path old = Run("old"), vetted = Run("vetted", "vetted/x"), fresh = Run("fresh");
  const auto runs = ListRuns(folder_.path());
  ASSERT_TRUE(runs);
  const auto now = Of(PlanCleaning(*runs, {}, {}), fresh).run.last + hours(1);
  std::vector<RunEntry> aged = *runs;
  for (RunEntry& run : aged) {
    if (run.folder != fresh) run.last -= hours(100);
  }
  const auto by_age = PlanCleaning(aged, {.older_than = hours(50), .keep_bytes = {}}, now);
  EXPECT_TRUE(Of(by_age, old).remove);
  EXPECT_FALSE(Of(by_age, vetted).remove);
  EXPECT_THAT(Of(by_age, vetted).why, HasSubstr("vetted"));
  EXPECT_FALSE(Of(by_age, fresh).remove);
  // The oldest goes first, and no more than has to.
  const std::uintmax_t all = aged[0].bytes + aged[1].bytes + aged[2].bytes;
  const auto by_size = PlanCleaning(aged, {.older_than = {}, .keep_bytes = all - 1}, now);
  EXPECT_TRUE(Of(by_size, old).remove);
  EXPECT_FALSE(Of(by_size, fresh).remove);
  const auto enough = PlanCleaning(aged, {.older_than = {}, .keep_bytes = all}, now);
  EXPECT_FALSE(Of(enough, old).remove);
}

TEST_F(InventoryTest, RemovingLooksAgain) {
  const Path plain = Run("plain"), vetted = Run("vetted", "vetted/x"), late = Run("late");
  // A kernel that was emitted after the plan was made, before its event.
  std::filesystem::create_directories(late / "vetted" / "kernel");
  const Path broken = Run("broken");
  std::ofstream(broken / "events.jsonl") << "{\n{\n{\n";
  EXPECT_TRUE(RemoveRun(plain));
  EXPECT_FALSE(std::filesystem::exists(plain));
  for (const Path& kept : {vetted, late, broken, folder_.path()}) {
    EXPECT_FALSE(RemoveRun(kept)) << kept;
    EXPECT_TRUE(std::filesystem::exists(kept));
  }
}

TEST_F(InventoryTest, LinksAreNoRuns) {
  const Path run = Run("run");
  std::filesystem::create_directory_symlink(run, folder_.path() / "link");
  const auto runs = ListRuns(folder_.path());
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->size(), 1u);
  EXPECT_FALSE(RemoveRun(folder_.path() / "link"));
  EXPECT_FALSE(RemoveRun(folder_.path() / "link" / ""));
  EXPECT_TRUE(std::filesystem::exists(run));
}

}  // namespace
}  // namespace assay::runs
