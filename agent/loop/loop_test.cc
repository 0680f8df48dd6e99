// The loop, end to end, with a scripted model and a scripted judge.
#include "agent/loop/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "agent/testing/fakes.h"

namespace assay::loop {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReplyWith;

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() { request_.out = folder_.path() / "run"; }

  Result<RunOutcome> Run(models::Model& model) {
    Environment environment{.clock = clock_,
                            .make_judges = testing::ScriptedJudges(on_assess_, judges_),
                            .observe = [this](const Notice& notice) { Observe(notice); },
                            .interrupted = interrupted_,
                            .entropy = [this] { return ++entropy_; },
                            .prompts = testing::PromptsFolder(),
                            .model = &model};
    return Generate(request_, environment);
  }

  void Observe(const Notice& notice) {
    if (const auto* began = std::get_if<AttemptBegan>(&notice))
      log_.push_back("attempt " + std::to_string(began->attempt) + " " + began->why);
    if (const auto* judged = std::get_if<Judged>(&notice))
      log_.push_back("judged " + std::to_string(judged->attempt) + " " +
                     std::string(verdict::Name(judged->verdict->outcome)));
    if (std::holds_alternative<RunEnded>(notice)) log_.push_back("ended");
  }

  std::string InRun(const std::string& file) { return testing::Slurp(request_.out / file); }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
  GenerateRequest request_{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  std::function<void(const verdict::Candidate&, const JudgeContext&)> on_assess_;
  std::function<bool()> interrupted_;
  int judges_ = 1;
  std::atomic<std::uint64_t> entropy_ = 1000;  // Judges ask side by side.
  std::vector<std::string> log_;
};

TEST_F(LoopTest, RefinesUntilAccepted) {
  testing::ScriptedModel model({ReplyWith("refute precision precision_row"),
                                ReplyWith("refute race data_race"), ReplyWith("accept")});
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->outcome, verdict::Outcome::kAccepted);
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 3);
  EXPECT_EQ(outcome->usage.input_tokens, 300u);
  EXPECT_EQ(outcome->usage.output_tokens, 150u);
  EXPECT_THAT(
      log_, ElementsAre("attempt 1 first", "judged 1 refuted", "attempt 2 repair of 1",
                        "judged 2 refuted", "attempt 3 repair of 2", "judged 3 accepted", "ended"));
  // One conversation: system, task, reply, finding, reply, finding.
  ASSERT_EQ(model.asked.size(), 3u);
  EXPECT_EQ(model.asked[2].conversation.messages.size(), 6u);
  EXPECT_EQ(model.asked[2].conversation.messages[2].text,
            ReplyWith("refute precision precision_row"));
  EXPECT_THAT(model.asked[2].conversation.messages[5].text, HasSubstr("data_race"));
  EXPECT_THAT(model.asked[2].conversation.messages[5].text,
              HasSubstr("attempt 1: refuted, precision_row"));
  // Only the Gatekeeper can make what emission takes: a scripted judge emits nothing.
  EXPECT_FALSE(outcome->vetted);
  EXPECT_FALSE(std::filesystem::exists(request_.out / "vetted"));
}

TEST_F(LoopTest, LeavesTheFolderThatTheDesignNames) {
  testing::ScriptedModel model({ReplyWith("refute race data_race"), ReplyWith("accept")});
  ASSERT_TRUE(Run(model));
  EXPECT_THAT(
      testing::FilesBelow(request_.out),
      ElementsAre("attempts/1/counterexample.json", "attempts/1/kernel.cu",
                  "attempts/1/launch.json", "attempts/1/prompt.md", "attempts/1/reply.md",
                  "attempts/1/verdict.json", "attempts/2/kernel.cu", "attempts/2/launch.json",
                  "attempts/2/prompt.md", "attempts/2/reply.md", "attempts/2/verdict.json",
                  "events.jsonl", "run.json", "transcript.jsonl"));
  EXPECT_THAT(InRun("attempts/1/kernel.cu"), HasSubstr("__global__"));
  EXPECT_THAT(InRun("attempts/2/prompt.md"), HasSubstr("Attempt 1 was refuted (gate: race)"));
  EXPECT_THAT(InRun("run.json"), HasSubstr("rms_norm-T=bf16-sm_90"));
}

TEST_F(LoopTest, EndsRefutedWhenAttemptsAreExhausted) {
  request_.strategy.attempts = 2;
  testing::ScriptedModel model(
      {ReplyWith("refute race data_race"), ReplyWith("refute memory out_of_bounds")});
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 1);
  EXPECT_EQ(outcome->attempts, 2);
  EXPECT_TRUE(outcome->resumable);
}

TEST_F(LoopTest, AnUndecidedCandidateIsNotCalledRefuted) {
  request_.strategy.attempts = 2;
  testing::ScriptedModel model(
      {ReplyWith("inconclusive"), ReplyWith("refute memory out_of_bounds")});
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 2);
  EXPECT_THAT(model.asked[1].conversation.messages.back().text,
              HasSubstr("foo.bar is not covered"));
}

TEST_F(LoopTest, AReplyWithoutCandidateIsRefutedByTheFormatGateAndRepaired) {
  testing::ScriptedModel model({"I would rather talk about the weather.", "", ReplyWith("accept")});
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_THAT(model.asked[1].conversation.messages.back().text,
              HasSubstr("the reply holds no code block"));
  EXPECT_THAT(model.asked[2].conversation.messages.back().text, HasSubstr("the reply is empty"));
  // No service takes an empty message.
  for (const runs::Message& message : model.asked[2].conversation.messages)
    EXPECT_FALSE(message.text.empty());
  EXPECT_THAT(InRun("attempts/1/verdict.json"), HasSubstr("malformed_reply"));
}

TEST_F(LoopTest, ACutReplyIsContinuedAndJoined) {
  const std::string whole = ReplyWith("accept");
  const std::size_t half = whole.size() / 2;
  int calls = 0;
  testing::ScriptedModel model([&](const models::ModelRequest&) -> Result<runs::ModelReply> {
    runs::ModelReply reply;
    reply.text = calls == 0 ? whole.substr(0, half) : whole.substr(half);
    reply.stop = calls++ == 0 ? runs::StopReason::kLength : runs::StopReason::kEnd;
    reply.usage.output_tokens = 10;
    return reply;
  });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 1);
  EXPECT_EQ(outcome->usage.output_tokens, 20u);
  EXPECT_EQ(model.asked[1].name, "attempt-1.2");
  EXPECT_EQ(model.asked[1].conversation.messages.size(), 4u);
  EXPECT_EQ(InRun("attempts/1/reply.md"), whole);
}

TEST_F(LoopTest, ARefusalIsTold) {
  testing::ScriptedModel model(
      [n = 0](const models::ModelRequest&) mutable -> Result<runs::ModelReply> {
        runs::ModelReply reply;
        reply.text = n == 0 ? "I cannot help with that." : ReplyWith("accept");
        reply.stop = n++ == 0 ? runs::StopReason::kRefusal : runs::StopReason::kEnd;
        return reply;
      });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_THAT(InRun("attempts/1/verdict.json"), HasSubstr("declined"));
}

TEST_F(LoopTest, AModelThatFailsForGoodLeavesAResumableRun) {
  testing::ScriptedModel broken({ReplyWith("refute race data_race")});
  const auto failed = Run(broken);
  ASSERT_FALSE(failed);
  EXPECT_EQ(ExitCodeOf(failed.error()), 3);
  request_.resume = true;
  testing::ScriptedModel well({ReplyWith("accept")});
  const auto outcome = Run(well);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 2);
  ASSERT_EQ(well.asked.size(), 1u);
  EXPECT_EQ(well.asked[0].name, "attempt-2");
}

TEST_F(LoopTest, AFinishedRunResumesToTheSameEndWithoutAskingOrJudging) {
  testing::ScriptedModel model({ReplyWith("refute race data_race"), ReplyWith("accept")});
  ASSERT_TRUE(Run(model));
  const std::string verdict = InRun("attempts/2/verdict.json");
  std::filesystem::remove_all(request_.out / "attempts");
  request_.resume = true;
  on_assess_ = [](const auto&, const auto&) { FAIL() << "judged again"; };
  testing::ScriptedModel silent(std::vector<std::string>{});
  const auto outcome = Run(silent);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_TRUE(silent.asked.empty());
  // All files follow from the events.
  EXPECT_EQ(InRun("attempts/2/verdict.json"), verdict);
}

TEST_F(LoopTest, MoreAttemptsContinueAnExhaustedRun) {
  request_.strategy.attempts = 1;
  testing::ScriptedModel first({ReplyWith("refute race data_race")});
  ASSERT_EQ(Run(first)->ExitCode(), 1);
  request_.resume = true;
  request_.strategy.attempts = 2;
  testing::ScriptedModel second({ReplyWith("accept")});
  EXPECT_EQ(Run(second)->ExitCode(), 0);
}

TEST_F(LoopTest, ANewRunDoesNotOverwriteAnOldOne) {
  testing::ScriptedModel model({ReplyWith("accept"), ReplyWith("accept")});
  ASSERT_TRUE(Run(model));
  const auto again = Run(model);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().cure, HasSubstr("--resume"));
  EXPECT_EQ(ExitCodeOf(again.error()), 3);
}

TEST_F(LoopTest, InterruptionLeavesAResumableRun) {
  bool pressed = false;
  interrupted_ = [&] { return pressed; };
  testing::ScriptedModel model([&](const models::ModelRequest&) -> Result<runs::ModelReply> {
    pressed = true;
    runs::ModelReply reply;
    reply.text = ReplyWith("accept");
    return reply;
  });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 2);
  EXPECT_TRUE(outcome->resumable);
  EXPECT_EQ(outcome->reason, "interrupted");
  // The answer had arrived: it is not asked for again.
  pressed = false;
  request_.resume = true;
  testing::ScriptedModel silent(std::vector<std::string>{});
  const auto resumed = Run(silent);
  ASSERT_TRUE(resumed) << ToString(resumed.error());
  EXPECT_EQ(resumed->ExitCode(), 0);
}

TEST_F(LoopTest, ATokenLimitEndsTheRunAfterJudgingWhatWasPaidFor) {
  request_.budget.tokens = 100'000;
  testing::ScriptedModel model([](const models::ModelRequest&) -> Result<runs::ModelReply> {
    runs::ModelReply reply;
    reply.text = ReplyWith("refute race data_race");
    reply.usage.output_tokens = 60'000;
    return reply;
  });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 2);
  EXPECT_TRUE(outcome->resumable);
  EXPECT_EQ(outcome->attempts, 2);
  EXPECT_THAT(outcome->reason, HasSubstr("100000 tokens"));
}

TEST_F(LoopTest, ADollarLimitNeedsAPrice) {
  request_.budget.usd = 1;
  request_.model.spec = "openai/nobody-knows-it";
  testing::ScriptedModel model({ReplyWith("accept")});
  const auto outcome = Run(model);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(ToString(outcome.error()), HasSubstr("--prices"));
}

TEST_F(LoopTest, SamplesAreAskedAtOnceAndTheBestIsRefined) {
  request_.strategy.samples = 3;
  testing::ScriptedModel model({ReplyWith("refute compile compile_error"),
                                ReplyWith("refute precision precision_row"),
                                ReplyWith("refute memory out_of_bounds"), ReplyWith("accept")});
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 4);
  EXPECT_THAT(log_, Contains("attempt 4 repair of 2"));
  EXPECT_EQ(model.asked[0].conversation, model.asked[2].conversation);
}

TEST_F(LoopTest, AnAcceptedSampleCancelsTheOthers) {
  request_.strategy.samples = 3;
  request_.strategy.attempts = 3;
  // Replies come one a Poll; the judgement of the first is waited for before the second is given.
  std::mutex mutex;
  std::condition_variable changed;
  bool judged = false;
  on_assess_ = [&](const auto&, const auto&) {
    const std::lock_guard lock(mutex);
    judged = true;
    changed.notify_all();
  };
  testing::ScriptedModel model(
      [&, n = 0](const models::ModelRequest&) mutable -> Result<runs::ModelReply> {
        if (n++ > 0) {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return judged; });
        }
        runs::ModelReply reply;
        reply.text = ReplyWith("accept");
        return reply;
      });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_GE(outcome->attempts, 1);
}

TEST_F(LoopTest, SeveralJudgesWorkAtOnce) {
  request_.strategy.samples = 4;
  request_.strategy.attempts = 4;
  judges_ = 2;
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool met = false;
  // Two judgements must be under way at the same time, or this never ends.
  on_assess_ = [&](const auto&, const auto&) {
    std::unique_lock lock(mutex);
    if (++inside == 2) met = true;
    changed.notify_all();
    changed.wait(lock, [&] { return met; });
  };
  testing::ScriptedModel model(std::vector<std::string>(4, ReplyWith("refute race data_race")));
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->attempts, 4);
  EXPECT_TRUE(met);
}

TEST_F(LoopTest, TheJudgeGetsCounterexamplesOfAncestorsButNoHoldoutOnes) {
  std::vector<std::size_t> known;
  on_assess_ = [&](const auto&, const JudgeContext& context) {
    known.push_back(context.regressions.size());
  };
  testing::ScriptedModel model({ReplyWith("refute race data_race"),
                                ReplyWith("refute holdout wrong_value"),
                                ReplyWith("refute memory out_of_bounds"), ReplyWith("accept")});
  ASSERT_TRUE(Run(model));
  EXPECT_THAT(known, ElementsAre(0u, 1u, 1u, 2u));
}

TEST_F(LoopTest, AHoldoutCaseIsNeverTold) {
  testing::ScriptedModel model({ReplyWith("refute holdout wrong_value"),
                                ReplyWith("refute race data_race"), ReplyWith("accept")});
  ASSERT_TRUE(Run(model));
  for (const models::ModelRequest& request : {model.asked[1], model.asked[2]}) {
    for (const runs::Message& message : request.conversation.messages) {
      EXPECT_THAT(message.text, Not(HasSubstr("424242")));
      EXPECT_THAT(message.text, Not(HasSubstr("the holdout gate found")));
    }
  }
  EXPECT_THAT(model.asked[1].conversation.messages.back().text, HasSubstr("wrong_value"));
}

TEST_F(LoopTest, AnInternalErrorOfTheJudgeEndsTheRun) {
  testing::ScriptedModel model({ReplyWith("internal"), ReplyWith("accept")});
  const auto outcome = Run(model);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ExitCodeOf(outcome.error()), 4);
}

TEST_F(LoopTest, AnAttemptWhoseSampleFailsDoesNotLoseAnAcceptedOne) {
  request_.strategy.samples = 2;
  testing::ScriptedModel model(
      [n = 0](const models::ModelRequest& request) mutable -> Result<runs::ModelReply> {
        if (n++ == 1) return Fail(ErrorKind::kNetwork, "gone", request.name);
        runs::ModelReply reply;
        reply.text = ReplyWith("accept");
        return reply;
      });
  const auto outcome = Run(model);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
}

}  // namespace
}  // namespace assay::loop
