#include "batch/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/digest.h"
#include "base/rng.h"
#include "base/text.h"
#include "batch/summarise.h"
#include "batch/testing/fakes.h"
#include "runs/folder.h"
#include "runs/testing/schema.h"

namespace assay::batch {
namespace {

using testing::BatchBench;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PlanOf;
using testing::Reply;

// A library of many fates: what an instance comes to follows from its name.
Result<runs::ModelReply> Fate(const std::string& instance, const models::ModelRequest& request) {
  if (instance.starts_with("gemm-T=f16"))
    return Fail(ErrorKind::kNetwork, "the server has gone", "http://server");
  if (instance.starts_with("softmax")) return Reply("refute race data_race");
  if (instance.starts_with("cumsum")) return Reply("inconclusive");
  if (request.name == "attempt-1") return Reply("refute compile compile_error");
  if (request.name == "attempt-2") return Reply("refute holdout wrong_value");
  return Reply("accept");
}

const std::vector<std::string> kOps = {"softmax", "rms_norm", "gemm", "cumsum"};

std::map<std::string, End> EndsOf(const Summary& summary) {
  std::map<std::string, End> ends;
  for (const InstanceRow& row : summary.instances) ends[row.instance] = row.end;
  return ends;
}

class BatchTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
};

TEST_F(BatchTest, EveryInstanceComesToItsEnd) {
  BatchBench bench(Fate);
  const auto outcome = bench.Run(PlanOf(kOps), folder_.path() / "b");
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  const Summary& summary = outcome->summary;
  ASSERT_EQ(summary.instances.size(), 12u);
  const auto ends = EndsOf(summary);
  EXPECT_EQ(ends.at("softmax-T=bf16-sm_90"), End::kRefuted);
  EXPECT_EQ(ends.at("rms_norm-T=f32-sm_90"), End::kAccepted);
  // One that its server failed stops no other.
  EXPECT_EQ(ends.at("gemm-T=f16-sm_90"), End::kFailed);
  EXPECT_EQ(ends.at("gemm-T=f32-sm_90"), End::kAccepted);
  EXPECT_EQ(ends.at("cumsum-T=bf16-sm_90"), End::kInconclusive);
  EXPECT_EQ(summary.totals.ends.at("accepted"), 5u);
  EXPECT_EQ(summary.totals.ends.at("failed"), 1u);
  EXPECT_EQ(ExitCode(summary), 3);
  const InstanceRow& row = summary.instances[3];
  EXPECT_EQ(row.instance, "rms_norm-T=bf16-sm_90");
  ASSERT_EQ(row.attempts.size(), 3u);
  EXPECT_EQ(row.attempts[1].gate, "holdout");
  EXPECT_EQ(row.attempts[1].finding, "wrong_value");
  EXPECT_EQ(row.tokens.output_tokens, 30u);
  EXPECT_EQ(row.gates.back().status, "passed");
  EXPECT_THAT(RenderTable(summary),
              HasSubstr("12 instances: 5 accepted, 3 refuted, 3 inconclusive, "
                        "1 failed"));
}

TEST_F(BatchTest, TheSummaryDoesNotDependOnTheNumberOfJobs) {
  BatchBench bench(Fate);
  const auto one = bench.Run(PlanOf(kOps), folder_.path() / "one", 1);
  const auto four = bench.Run(PlanOf(kOps), folder_.path() / "four", 4);
  ASSERT_TRUE(one && four);
  EXPECT_EQ(Compared(ToJson(one->summary)), Compared(ToJson(four->summary)));
  EXPECT_NE(ToJson(one->summary), ToJson(four->summary));  // times and names are elsewhere
}

TEST_F(BatchTest, WhatIsWrittenIsWhatTheSchemasSay) {
  BatchBench bench(Fate);
  const Path out = folder_.path() / "b";
  ASSERT_TRUE(bench.Run(PlanOf(kOps), out, 2));
  const auto schema = [](const std::string& name) {
    return testing::ReadSchema("batch/schemas/" + name + ".schema.json");
  };
  EXPECT_EQ(testing::Violation(schema("batch"), *ReadJsonFile((out / "batch.json").string()), "b"),
            "");
  const Json summary = *ReadJsonFile((out / "summary.json").string());
  EXPECT_EQ(testing::Violation(schema("batch_summary"), summary, "s"), "");
  const auto read = SummaryFromJson(summary, "s");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(ToJson(*read), summary);
  const Json event_schema = schema("batch_event");
  int events = 0;
  const std::string log = testing::Slurp(out / "events.jsonl");
  for (const std::string_view line : SplitLines(log)) {
    EXPECT_EQ(testing::Violation(event_schema, *ParseJson(line, "e"), "e"), "") << line;
    ++events;
  }
  EXPECT_EQ(events, 1 + 12 + 12 + 1);
}

TEST_F(BatchTest, AResumedBatchTriesAgainWhatFailedAndNothingElse) {
  std::atomic<bool> well = false;
  std::atomic<int> asked = 0;
  BatchBench bench([&](const std::string& instance, const models::ModelRequest& request) {
    ++asked;
    if (!well) return Fate(instance, request);
    return Reply("accept");
  });
  const Path out = folder_.path() / "b";
  ASSERT_TRUE(bench.Run(PlanOf({"gemm", "softmax"}), out));
  well = true;
  asked = 0;
  const auto again = bench.Run(PlanOf({"gemm", "softmax"}), out, 1, true);
  ASSERT_TRUE(again) << ToString(again.error());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(EndsOf(again->summary).at("gemm-T=f16-sm_90"), End::kAccepted);
  EXPECT_EQ(EndsOf(again->summary).at("softmax-T=f16-sm_90"), End::kRefuted);
  const std::string log = testing::Slurp(out / "events.jsonl");
  const auto nothing = bench.Run(PlanOf({"gemm", "softmax"}), out, 1, true);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->nothing_to_do);
  EXPECT_EQ(testing::Slurp(out / "events.jsonl"), log);
  EXPECT_EQ(Compared(ToJson(nothing->summary)), Compared(ToJson(again->summary)));
}

TEST_F(BatchTest, TheBatchesLimitHoldsForAllAndIsGoneOnFrom) {
  BatchBench bench(Fate);
  Plan plan = PlanOf({"rms_norm", "layer_norm"});
  plan.budget.tokens = 45;
  const Path out = folder_.path() / "b";
  const auto stopped = bench.Run(plan, out);
  ASSERT_TRUE(stopped) << ToString(stopped.error());
  EXPECT_EQ(stopped->summary.totals.tokens.output_tokens, 50u);  // no request after the limit
  EXPECT_THAT(stopped->summary.measured.stopped, HasSubstr("limit of 45 tokens"));
  EXPECT_EQ(stopped->summary.totals.ends.at("waiting"), 4u);
  EXPECT_EQ(ExitCode(stopped->summary), 2);
  // What was spent counts when it goes on.
  const auto same = bench.Run(plan, out, 1, true);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->summary.totals.tokens.output_tokens, 50u);
  plan.budget.tokens = 0;
  const auto whole = bench.Run(plan, out, 1, true);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->summary.totals.ends.at("accepted"), 6u);
  EXPECT_EQ(whole->summary.totals.tokens.output_tokens, 180u);
}

TEST_F(BatchTest, AnInterruptionLeavesABatchThatGoesOn) {
  std::atomic<bool> stop = false;
  BatchBench bench([&](const std::string& instance, const models::ModelRequest& request) {
    if (instance.starts_with("rms_norm-T=f16") && request.name == "attempt-2") stop = true;
    return Fate(instance, request);
  });
  bench.interrupted = [&] { return stop.load(); };
  const Path out = folder_.path() / "b";
  const auto stopped = bench.Run(PlanOf({"rms_norm", "layer_norm"}), out);
  ASSERT_TRUE(stopped) << ToString(stopped.error());
  EXPECT_EQ(stopped->summary.measured.stopped, "interrupted");
  EXPECT_GT(stopped->summary.totals.ends.at("waiting"), 0u);
  bench.interrupted = {};
  const auto whole = bench.Run(PlanOf({"rms_norm", "layer_norm"}), out, 1, true);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->summary.totals.ends.at("accepted"), 6u);
  EXPECT_EQ(whole->summary.measured.starts, 2u);
  const auto fresh = BatchBench(Fate).Run(PlanOf({"rms_norm", "layer_norm"}), folder_.path() / "c");
  EXPECT_EQ(Compared(ToJson(whole->summary)), Compared(ToJson(fresh->summary)));
}

TEST_F(BatchTest, OnlyOneProcessWorksOnABatch) {
  const Path out = folder_.path() / "b";
  SystemClock clock;
  const auto first = BatchFolder::Create(out, clock);
  ASSERT_TRUE(first);
  ASSERT_TRUE((*first)->Record(BatchStarted{Json::object()}));
  const auto second = BatchFolder::Open(out, clock);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another process"));
  EXPECT_TRUE(BatchFolder::Look(out));  // who only looks needs no lock
}

TEST_F(BatchTest, ATornLastLineIsCutOffAndOtherDamageIsSaid) {
  BatchBench bench(Fate);
  const Path out = folder_.path() / "b";
  ASSERT_TRUE(bench.Run(PlanOf({"rms_norm"}), out));
  const std::string log = testing::Slurp(out / "events.jsonl");
  ASSERT_TRUE(WriteFileAtomically(out / "events.jsonl", log.substr(0, log.size() - 5)));
  EXPECT_TRUE(bench.Run(PlanOf({"rms_norm"}), out, 1, true));
  std::string damaged = log;
  damaged[log.find("instance_started")] = 'X';
  ASSERT_TRUE(WriteFileAtomically(out / "events.jsonl", damaged));
  const auto refused = bench.Run(PlanOf({"rms_norm"}), out, 1, true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().place, HasSubstr("events.jsonl:2"));
}

// A vetted kernel in the store, as if an earlier batch had made it.
void Vet(const Plan& plan, std::size_t index, const BatchBench& bench, const Path& vetted) {
  const auto prompts = prompts::PromptLibrary::Load(testing::PromptsFolder());
  const auto keys = KeysOf(plan, bench.judge, prompts->digest());
  ASSERT_TRUE(keys);
  ASSERT_TRUE(MakeFolders(vetted));
  const std::string kernel = "__global__ void of_the_leader();\n";
  ASSERT_TRUE(WriteFileAtomically(vetted / "kernel.cu", kernel));
  ASSERT_TRUE(WriteFileAtomically(vetted / "launch.json", "{}"));
  const std::string certificate = PrettyJson(
      {{"sha256", {{"kernel.cu", Sha256Hex(kernel)}, {"launch.json", Sha256Hex("{}")}}}});
  ASSERT_TRUE(WriteFileAtomically(vetted / "certificate.json", certificate));
  const ops::Instance& instance = plan.tasks[index].request.instance;
  ASSERT_TRUE(runs::KeepRecord(runs::Store(bench.store),
                               {.key = (*keys)[index],
                                .instance = instance.Id(),
                                .op = instance.op.name,
                                .binding = runs::BindingWords(instance),
                                .arch = instance.arch,
                                .certificate = Sha256Hex(certificate),
                                .vetted = vetted.string()},
                               vetted, "a run"));
}

TEST_F(BatchTest, WhatIsUpToDateIsLeftAlone) {
  BatchBench bench(Fate);
  bench.store = folder_.path() / "store";
  const Plan plan = PlanOf({"rms_norm"}, DtypeChoice::kDefault);
  Vet(plan, 0, bench, folder_.path() / "vetted");
  const Path out = folder_.path() / "b";
  const auto outcome = bench.Run(plan, out);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_TRUE(outcome->nothing_to_do);
  EXPECT_FALSE(std::filesystem::exists(out));
  ASSERT_EQ(outcome->summary.instances.size(), 1u);
  EXPECT_TRUE(outcome->summary.instances[0].up_to_date);
  EXPECT_EQ(outcome->summary.instances[0].end, End::kAccepted);
  EXPECT_EQ(ExitCode(outcome->summary), 0);
  // Another judge, or another model: it is made.
  bench.judge["assay"] = "newer";
  const auto made = bench.Run(plan, out);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->nothing_to_do);
  EXPECT_FALSE(made->summary.instances[0].up_to_date);
}

TEST_F(BatchTest, AVettedFolderThatHasGoneIsWrittenAgainFromTheStore) {
  BatchBench bench(Fate);
  bench.store = folder_.path() / "store";
  const Plan plan = PlanOf({"rms_norm"}, DtypeChoice::kDefault);
  Vet(plan, 0, bench, folder_.path() / "vetted");
  std::filesystem::remove_all(folder_.path() / "vetted");
  const Path out = folder_.path() / "b";
  const auto outcome = bench.Run(plan, out);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_FALSE(outcome->nothing_to_do);
  const InstanceRow& row = outcome->summary.instances[0];
  EXPECT_TRUE(row.up_to_date);
  EXPECT_EQ(testing::Slurp(out / row.vetted / "kernel.cu"), "__global__ void of_the_leader();\n");
}

TEST_F(BatchTest, FollowersAreShownTheLeadersKernel) {
  std::mutex mutex;
  std::map<std::string, std::string> first;
  BatchBench bench([&](const std::string& instance, const models::ModelRequest& request) {
    const std::lock_guard lock(mutex);
    first.emplace(instance, request.conversation.messages[1].text);
    return Reply("accept");
  });
  bench.store = folder_.path() / "store";
  const Plan plan = PlanOf({"rms_norm"});
  Vet(plan, 0, bench, folder_.path() / "vetted");
  const auto outcome = bench.Run(plan, folder_.path() / "b", 2);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(first.size(), 2u);
  for (const auto& [instance, prompt] : first) {
    EXPECT_THAT(prompt, HasSubstr("of_the_leader")) << instance;
    EXPECT_THAT(prompt, HasSubstr("rms_norm-T=bf16-sm_90"));
  }
  EXPECT_EQ(outcome->summary.instances[1].sister, "rms_norm-T=bf16-sm_90");
  // Who does not share learns nothing.
  first.clear();
  Plan alone = PlanOf({"rms_norm"});
  alone.share = false;
  ASSERT_TRUE(bench.Run(alone, folder_.path() / "c"));
  EXPECT_EQ(first.size(), 3u);  // sharing is part of the key: even the leader is made
  for (const auto& [instance, prompt] : first)
    EXPECT_EQ(prompt.find("of_the_leader"), std::string::npos);
}

TEST_F(BatchTest, TheLeadersCounterexamplesRunFirstOnItsFollowers) {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> tried;  // by the gate that the case is of
  BatchBench bench([&](const std::string& instance, const models::ModelRequest& request) {
    if (!instance.ends_with("T=bf16-sm_90")) return Reply("accept");
    if (request.name == "attempt-1") return Reply("refute race data_race");
    if (request.name == "attempt-2") return Reply("refute holdout wrong_value");
    return Reply("accept");
  });
  int judged = 0;
  bench.on_assess = [&](const verdict::Candidate&, const loop::JudgeContext& context) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> gates;
    for (const verdict::Counterexample& known : context.regressions) gates.push_back(known.gate);
    tried[std::to_string(++judged)] = gates;
  };
  ASSERT_TRUE(bench.Run(PlanOf({"rms_norm"}), folder_.path() / "b"));
  ASSERT_EQ(judged, 5);
  EXPECT_THAT(tried["1"], IsEmpty());
  // Of the leader's two, the held-out case stays unknown to all.
  EXPECT_THAT(tried["4"], ElementsAre("race"));
  EXPECT_THAT(tried["5"], ElementsAre("race"));
}

TEST(InOrderTest, UrgentOnesFirstAndLeadersBeforeTheirFollowers) {
  Plan plan = PlanOf({"softmax", "gemm"});
  plan.tasks[4].priority = 7;  // a follower of gemm: its leader is as urgent
  EXPECT_THAT(InOrder(plan, {0, 1, 2, 3, 4, 5}), ElementsAre(3, 4, 0, 1, 2, 5));
  plan.share = false;
  EXPECT_THAT(InOrder(plan, {0, 1, 2, 3, 4, 5}), ElementsAre(4, 0, 1, 2, 3, 5));
}

TEST_F(BatchTest, RequestsOfAllInstancesTogetherKeepTheLimit) {
  std::atomic<int> at_once = 0, most = 0;
  // A model that answers at the poll after the next: several would overlap if they could.
  class Slow final : public models::Model {
   public:
    Slow(std::atomic<int>& now, std::atomic<int>& peak) : now_(now), peak_(peak) {}
    void Start(models::Ticket ticket, models::ModelRequest) override {
      ticket_ = ticket;
      polls_ = 0;
      peak_ = std::max(peak_.load(), ++now_);
    }
    void Cancel(models::Ticket) override {}
    std::vector<models::ModelEvent> Poll(std::chrono::milliseconds) override {
      ::sched_yield();
      if (ticket_ == 0 || ++polls_ < 50) return {};
      models::ModelEvent event{.ticket = std::exchange(ticket_, 0)};
      event.reply = *Reply("accept");
      --now_;
      return {event};
    }
    void Wake() override {}

   private:
    std::atomic<int>& now_;
    std::atomic<int>& peak_;
    models::Ticket ticket_ = 0;
    int polls_ = 0;
  };
  Plan plan = PlanOf({"rms_norm", "softmax", "gemm", "cumsum"});
  plan.limits.at_once = 2;
  SystemClock clock;
  Limiters limiters(plan.limits, clock);
  Purse purse({}, {}, {}, clock);
  LocalExecutor executor(
      {.clock = clock,
       .limiters = limiters,
       .purse = purse,
       .make_judges = testing::ScriptedJudges(),
       .make_model = [&](const loop::GenerateRequest&) -> Result<std::unique_ptr<models::Model>> {
         return std::make_unique<Slow>(at_once, most);
       },
       .prompts = testing::PromptsFolder()},
      6);
  Observer nobody;
  BatchEnvironment environment{.clock = clock,
                               .executor = executor,
                               .observer = nobody,
                               .purse = purse,
                               .prompts = testing::PromptsFolder()};
  const auto outcome = RunBatch({.plan = plan, .folder = folder_.path() / "b"}, environment);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->summary.totals.ends.at("accepted"), 12u);
  EXPECT_EQ(most, 2);
}

// kill -9 at random points, then resumed until it is done: the summary of one that was left alone.
TEST_F(BatchTest, KilledAtRandomPointsItComesToTheSameEnd) {
  const auto fate = [](const std::string& instance, const models::ModelRequest& request) {
    if (instance.starts_with("gemm")) return Reply("accept");  // a failed one would be tried again
    return Fate(instance, request);
  };
  const Plan plan = PlanOf(kOps);
  const auto whole = BatchBench(fate).Run(plan, folder_.path() / "whole", 2);
  ASSERT_TRUE(whole);
  const auto size = [](const Path& file) -> off_t {
    struct stat info{};
    return ::stat(file.c_str(), &info) == 0 ? info.st_size : 0;
  };
  const off_t length = size(folder_.path() / "whole/events.jsonl");
  Rng rng(11);
  int kills = 0;
  for (int round = 0; kills < 10; ++round) {
    const Path out = folder_.path() / ("killed-" + std::to_string(round));
    while (true) {
      const off_t before = size(out / "events.jsonl");
      const off_t target =
          before + static_cast<off_t>(rng.Below(static_cast<std::uint64_t>(length) / 3));
      std::uint64_t turns = rng.Below(3000);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        const bool begun = testing::Slurp(out / "events.jsonl").find('\n') != std::string::npos &&
                           std::filesystem::exists(out / "events.jsonl");
        const auto outcome = BatchBench(fate).Run(plan, out, 2, begun);
        if (!outcome) std::fprintf(stderr, "%s\n", ToString(outcome.error()).c_str());
        ::_exit(outcome ? 0 : 1);
      }
      int status = 0;
      bool killed = false;
      while (::waitpid(child, &status, WNOHANG) == 0) {
        if (killed || size(out / "events.jsonl") < target || turns-- > 0) {
          ::sched_yield();
          continue;
        }
        ::kill(child, SIGKILL);
        killed = true;
      }
      if (!WIFSIGNALED(status)) {
        ASSERT_EQ(status, 0);
        break;
      }
      ++kills;
    }
    const auto summary = ReadJsonFile((out / "summary.json").string());
    ASSERT_TRUE(summary);
    EXPECT_EQ(Compared(*summary), Compared(ToJson(whole->summary)));
    // No attempt was judged twice, in any of its runs.
    for (const InstanceRow& row : whole->summary.instances) {
      const auto events = runs::RunFolder::ReadEvents(out / "runs" / row.instance);
      ASSERT_TRUE(events);
      std::set<int> judged;
      for (const runs::StampedEvent& event : *events) {
        if (const auto* verdict = std::get_if<runs::AttemptJudged>(&event.event)) {
          EXPECT_TRUE(judged.insert(verdict->attempt).second) << row.instance;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::batch
