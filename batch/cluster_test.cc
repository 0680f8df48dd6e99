#include "batch/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "batch/cluster_task.h"
#include "batch/slurm_executor.h"
#include "batch/testing/fakes.h"

namespace assay::batch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PlanOf;
using testing::Reply;

TEST(SlurmTest, TheScriptIsOneLineWithEveryWordQuoted) {
  const std::string script = SlurmScript({.command = {"/usr/bin/assay", "a'b; rm -rf /", "$x"}});
  EXPECT_EQ(script,
            "#!/bin/sh\nexec '/usr/bin/assay' 'a'\\''b; rm -rf /' '$x' "
            "\"$SLURM_ARRAY_TASK_ID\"\n");
}

TEST(SlurmTest, ResourcesBecomeArguments) {
  Submission submission{.name = "n", .tasks = 20, .at_once = 4, .after = {"17", "19"}};
  submission.resources = {.partition = "p", .cpus = 2, .memory = "8G", .minutes = 90, .gpus = 1};
  const auto words = SbatchArguments(submission);
  for (const char* const word :
       {"--array=0-19%4", "--requeue", "--gres=gpu:1", "--cpus-per-task=2", "--mem=8G", "--time=90",
        "--partition=p", "--dependency=afterany:17:19"})
    EXPECT_THAT(words, Contains(word));
  const auto plain = SbatchArguments({.name = "n", .tasks = 1});
  EXPECT_THAT(plain, Contains("--array=0-0"));
  for (const std::string& word : plain) EXPECT_THAT(word, Not(HasSubstr("gres")));
}

TEST(SlurmTest, ReadsTheQueue) {
  const auto active = ParseQueue(
      "17 0 RUNNING\n17 1 PENDING\n17 2 COMPLETING\n17 3 COMPLETED\n17 4 REQUEUED\n18 N/A "
      "PENDING\n\n");
  EXPECT_THAT(active,
              ElementsAre(TaskId{"17", 0}, TaskId{"17", 1}, TaskId{"17", 2}, TaskId{"17", 4}));
}

TEST(SlurmTest, ReadsTheAccounts) {
  const auto accounts = ParseAccounts(
      "17_0|COMPLETED|n1|00:01:30|01:02.500\n17_0.batch|COMPLETED|n1|00:01:30|01:02.500\n"
      "17_1|CANCELLED by 0|n2|1-00:00:01|00:00\nnonsense\n");
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts.at({"17", 0}).seconds, 90);
  EXPECT_EQ(accounts.at({"17", 0}).cpu_seconds, 62.5);
  EXPECT_EQ(accounts.at({"17", 1}).seconds, 86401);
  EXPECT_EQ(accounts.at({"17", 1}).state, "CANCELLED by 0");
}

TEST(SlurmTest, TasksShareTheLimits) {
  const auto share = ShareOf({.at_once = 8, .requests_per_minute = 60, .tokens_per_minute = 0}, 4);
  EXPECT_EQ(share.at_once, 2u);
  EXPECT_EQ(share.requests_per_minute, 15u);
  EXPECT_EQ(share.tokens_per_minute, 0u);
  EXPECT_EQ(ShareOf({.at_once = 2}, 100).at_once, 1u);
}

// A cluster in this process: each look at the queue runs one task to its end, or lets it die.
class OneByOne final : public Cluster {
 public:
  explicit OneByOne(std::function<void(const Submission&, const TaskId&)> run)
      : run_(std::move(run)) {}

  Result<std::string> Submit(const Submission& submission) override {
    const std::string job = std::to_string(17 + submissions.size());
    submissions.push_back(submission);
    for (std::size_t i = 0; i < submission.tasks; ++i) waiting_.push_back({job, i});
    return job;
  }
  Result<std::set<TaskId>> Active(const std::vector<std::string>&) override {
    const std::set<TaskId> active(waiting_.begin(), waiting_.end());
    if (!waiting_.empty() && !held) {
      const TaskId task = waiting_.front();
      waiting_.erase(waiting_.begin());
      run_(submissions[std::stoul(task.first) - 17], task);
    }
    return active;
  }
  Status Cancel(const std::vector<std::string>&) override {
    cancelled = true;
    waiting_.clear();
    return {};
  }
  std::map<TaskId, Account> Accounts(const std::vector<std::string>&) override { return {}; }

  std::vector<Submission> submissions;
  bool cancelled = false;
  bool held = false;  ///< Nothing runs.

 private:
  std::function<void(const Submission&, const TaskId&)> run_;
  std::vector<TaskId> waiting_;
};

std::string After(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::ranges::find(words, option);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

class ClusterTest : public ::testing::Test {
 protected:
  Result<BatchOutcome> Run(const Plan& plan, bool resume = false) {
    Purse purse(plan.budget, {}, {}, clock_);
    SlurmExecutor executor(
        cluster_, {.clock = clock_, .command = {"assay", "batch"}, .interrupted = interrupted_});
    Observer nobody;
    BatchEnvironment environment{.clock = clock_,
                                 .executor = executor,
                                 .observer = nobody,
                                 .purse = purse,
                                 .prompts = testing::PromptsFolder(),
                                 .interrupted = interrupted_};
    return RunBatch({.plan = plan, .folder = batch_, .resume = resume}, environment);
  }

  Result<TaskEnd> RunTask(const std::string& digest, std::size_t index, const TaskId& task,
                          const std::string& node = "n1") {
    ASSAY_TRY(const Plan plan,
              PlanOfTask(batch_, digest, ops::Library({Path(ASSAY_SOURCE_DIR) / "ops"}), {}));
    Limiters limiters(plan.limits, clock_);
    Purse purse({}, {}, {}, clock_);
    const RunTools tools{
        .clock = clock_,
        .limiters = limiters,
        .purse = purse,
        .make_judges = testing::ScriptedJudges(),
        .make_model =
            [this](const loop::GenerateRequest& request) -> Result<std::unique_ptr<models::Model>> {
          return std::make_unique<testing::ScriptedModel>(
              [this, id = request.instance.Id()](const models::ModelRequest& asked) {
                ++asked_[id];
                return Reply(asked.name == "attempt-1" ? "refute race data_race" : "accept");
              });
        },
        .prompts = testing::PromptsFolder()};
    return RunClusterTask({.batch = batch_,
                           .digest = digest,
                           .index = index,
                           .job = task.first,
                           .number = task.second,
                           .node = node},
                          plan, tools, cluster_);
  }

  void OnTask(const Submission& submission, const TaskId& task) {
    const auto instances = ReadArray(batch_ / "tasks" / After(submission.command, "--array"));
    ASSERT_TRUE(instances);
    const std::size_t index = instances->at(task.second);
    if (const auto death = dies_.find(index); death != dies_.end()) {
      dies_.erase(death);
      return;
    }
    const auto end = RunTask(After(submission.command, "--batch-digest"), index, task);
    ASSERT_TRUE(end) << ToString(end.error());
  }

  testing::TemporaryFolder folder_;
  Path batch_ = folder_.path() / "b";
  FakeClock clock_;
  std::function<bool()> interrupted_;
  std::map<std::string, int> asked_;
  std::multiset<std::size_t> dies_;  // instances whose next task ends without a result
  OneByOne cluster_{
      [this](const Submission& submission, const TaskId& task) { OnTask(submission, task); }};
};

TEST_F(ClusterTest, LeadersInOneArrayAndFollowersInTheNext) {
  const auto outcome = Run(PlanOf({"softmax", "rms_norm"}));
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->summary.totals.ends.at("accepted"), 6u);
  ASSERT_EQ(cluster_.submissions.size(), 2u);
  EXPECT_EQ(cluster_.submissions[0].tasks, 2u);
  EXPECT_TRUE(cluster_.submissions[0].after.empty());
  EXPECT_EQ(cluster_.submissions[1].tasks, 4u);
  EXPECT_THAT(cluster_.submissions[1].after, ElementsAre("17"));
  for (const auto& [instance, count] : asked_) EXPECT_EQ(count, 2) << instance;
  EXPECT_THAT(outcome->summary.measured.instances[0].where, HasSubstr("slurm 17_0 on n1"));
  const auto accounting = ReadJsonFile((batch_ / "accounting.json").string());
  ASSERT_TRUE(accounting);
  EXPECT_EQ(accounting->at("source"), "tasks");
  EXPECT_EQ(accounting->at("tasks").size(), 6u);
  // The same as in threads.
  testing::BatchBench bench([](const std::string&, const models::ModelRequest& asked) {
    return Reply(asked.name == "attempt-1" ? "refute race data_race" : "accept");
  });
  const auto local = bench.Run(PlanOf({"softmax", "rms_norm"}), folder_.path() / "local", 2);
  EXPECT_EQ(Compared(ToJson(local->summary)), Compared(ToJson(outcome->summary)));
}

TEST_F(ClusterTest, ATaskThatLeftNoResultIsSubmittedAgainThreeTimesAtMost) {
  dies_ = {0, 1, 1, 1, 1, 1, 1};
  const auto outcome = Run(PlanOf({"softmax", "gemm"}, DtypeChoice::kDefault));
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->summary.instances[0].end, End::kAccepted);
  EXPECT_EQ(outcome->summary.instances[1].end, End::kFailed);
  EXPECT_THAT(outcome->summary.instances[1].reason, HasSubstr("without a result"));
  EXPECT_TRUE(outcome->summary.instances[1].resumable);
}

TEST_F(ClusterTest, CancellationLeavesNoTaskAndTheBatchGoesOn) {
  int looks = 0;
  interrupted_ = [&] { return ++looks > 2; };
  const auto stopped = Run(PlanOf({"softmax", "gemm", "cumsum"}, DtypeChoice::kDefault));
  ASSERT_TRUE(stopped) << ToString(stopped.error());
  EXPECT_TRUE(cluster_.cancelled);
  EXPECT_EQ(stopped->summary.measured.stopped, "interrupted");
  EXPECT_GT(stopped->summary.totals.ends.at("waiting"), 0u);
  interrupted_ = {};
  const auto whole = Run(PlanOf({"softmax", "gemm", "cumsum"}, DtypeChoice::kDefault), true);
  ASSERT_TRUE(whole) << ToString(whole.error());
  EXPECT_EQ(whole->summary.totals.ends.at("accepted"), 3u);
  for (const auto& [instance, count] : asked_) EXPECT_EQ(count, 2) << instance;
}

TEST_F(ClusterTest, AShellThatWasKilledFindsItsTasksAgain) {
  // The shell ends after it has submitted; the tasks run without it.
  cluster_.held = true;
  clock_.Advance(std::chrono::seconds(1));
  const Plan plan = PlanOf({"softmax", "gemm"}, DtypeChoice::kDefault);
  int looks = 0;
  interrupted_ = [&] { return ++looks > 0; };
  {
    // As a killed process would leave it: submitted, nothing cancelled.
    class Kept final : public Cluster {
     public:
      explicit Kept(Cluster& cluster) : cluster_(cluster) {}
      Result<std::string> Submit(const Submission& submission) override {
        return cluster_.Submit(submission);
      }
      Result<std::set<TaskId>> Active(const std::vector<std::string>&) override {
        return std::set<TaskId>{};
      }
      Status Cancel(const std::vector<std::string>&) override { return {}; }
      std::map<TaskId, Account> Accounts(const std::vector<std::string>&) override { return {}; }

     private:
      Cluster& cluster_;
    } kept(cluster_);
    Purse purse({}, {}, {}, clock_);
    SlurmExecutor executor(kept,
                           {.clock = clock_, .command = {"assay"}, .interrupted = interrupted_});
    Observer nobody;
    BatchEnvironment environment{.clock = clock_,
                                 .executor = executor,
                                 .observer = nobody,
                                 .purse = purse,
                                 .prompts = testing::PromptsFolder(),
                                 .interrupted = interrupted_};
    ASSERT_TRUE(RunBatch({.plan = plan, .folder = batch_}, environment));
  }
  EXPECT_EQ(cluster_.submissions.size(), 1u);
  interrupted_ = {};
  cluster_.held = false;
  const auto whole = Run(plan, true);
  ASSERT_TRUE(whole) << ToString(whole.error());
  EXPECT_EQ(whole->summary.totals.ends.at("accepted"), 2u);
  EXPECT_EQ(cluster_.submissions.size(), 1u);  // nothing was submitted twice
}

class ClaimTest : public ClusterTest {
 protected:
  void SetUp() override {
    cluster_.held = true;
    interrupted_ = [] { return true; };
    ASSERT_TRUE(Run(PlanOf({"softmax"}, DtypeChoice::kDefault)));
    for (const auto& entry : std::filesystem::directory_iterator(batch_ / "tasks")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("batch-")) digest_ = name.substr(6, 64);
    }
    ASSERT_EQ(digest_.size(), 64u);
  }
  void Claim(const std::string& job, std::size_t number) {
    ASSERT_TRUE(WriteFileAtomically(
        batch_ / "tasks/0.claim.0",
        CompactJson({{"job", job}, {"number", number}, {"node", "n9"}, {"sister", ""}})));
  }
  std::string digest_;
};

TEST_F(ClaimTest, WhatHasAResultIsNotRunAgain) {
  EXPECT_EQ(*RunTask(digest_, 0, {"17", 0}), TaskEnd::kRan);
  EXPECT_EQ(asked_.begin()->second, 2);
  EXPECT_EQ(*RunTask(digest_, 0, {"99", 0}), TaskEnd::kDoneBefore);
  EXPECT_EQ(asked_.begin()->second, 2);
  EXPECT_EQ(LatestClaim(batch_, 0)->generation, 0);
}

TEST_F(ClaimTest, AClaimOfATaskThatLivesIsLeftToIt) {
  ASSERT_TRUE(cluster_.Submit({.tasks = 1}));
  const std::string alive = std::to_string(16 + cluster_.submissions.size());
  Claim(alive, 0);
  EXPECT_EQ(*RunTask(digest_, 0, {"99", 0}), TaskEnd::kElsewhere);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(ClaimTest, AClaimOfATaskThatIsNoMoreIsTakenOver) {
  Claim("12", 3);
  EXPECT_EQ(*RunTask(digest_, 0, {"99", 0}), TaskEnd::kRan);
  EXPECT_EQ(LatestClaim(batch_, 0)->generation, 1);
  EXPECT_EQ(LatestClaim(batch_, 0)->job, "99");
}

TEST_F(ClaimTest, ARequeuedTaskGoesOnWithItsOwn) {
  ASSERT_TRUE(cluster_.Submit({.tasks = 1}));
  const std::string job = std::to_string(16 + cluster_.submissions.size());
  Claim(job, 0);  // of its first life; the queue shows its second
  EXPECT_EQ(*RunTask(digest_, 0, {job, 0}, "n2"), TaskEnd::kRan);
  EXPECT_EQ(LatestClaim(batch_, 0)->node, "n2");
}

TEST_F(ClaimTest, APlanThatIsNotTheSubmittedOneIsRefused) {
  const Path file = batch_ / "tasks" / ("batch-" + digest_ + ".json");
  ASSERT_TRUE(WriteFileAtomically(file, testing::Slurp(file) + " "));
  const auto end = RunTask(digest_, 0, {"17", 0});
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("not the one that was submitted"));
}

}  // namespace
}  // namespace assay::batch
