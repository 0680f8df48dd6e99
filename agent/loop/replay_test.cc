// Runs of transcripts: a recorded run, replayed, takes the same course; a changed prompt is found
// out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"

namespace assay::loop {
namespace {

using ::testing::HasSubstr;
using testing::ReplyWith;

// A recorded run, replayed, takes the same course: same verdicts, same transcript, same usage.
class RecordReplayTest : public ::testing::TestWithParam<StrategyKind> {};

TEST_P(RecordReplayTest, ReplayIsTheSameRun) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  std::uint64_t entropy = 0;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.strategy = {.kind = GetParam(),
                      .attempts = 8,
                      .samples = 3,
                      .width = 2,
                      .stagnation = 2,
                      .optimize = false};
  const auto run = [&](const Path& out, const std::string& spec, models::Model* model) {
    request.out = out;
    request.model.spec = spec;
    Environment environment{.clock = clock,
                            .make_judges = testing::ScriptedJudges(),
                            .entropy = [&] { return ++entropy; },
                            .prompts = testing::PromptsFolder(),
                            .model = model};
    return Generate(request, environment);
  };
  testing::ScriptedModel model({ReplyWith("refute race data_race"), "nonsense",
                                ReplyWith("refute memory misaligned"),
                                ReplyWith("refute compile compile_error"),
                                ReplyWith("inconclusive"), ReplyWith("refute holdout wrong_value"),
                                ReplyWith("refute numeric wrong_value"), ReplyWith("accept")});
  const auto recorded = run(folder.path() / "a", "exec/scripted", &model);
  ASSERT_TRUE(recorded) << ToString(recorded.error());
  const std::string transcript = (folder.path() / "a" / "transcript.jsonl").string();
  const auto replayed = run(folder.path() / "b", "replay/" + transcript, nullptr);
  ASSERT_TRUE(replayed) << ToString(replayed.error());
  EXPECT_EQ(replayed->outcome, recorded->outcome);
  EXPECT_EQ(replayed->usage, recorded->usage);
  const auto below = [&](const char* name) {
    return testing::FilesBelow(folder.path() / name / "attempts");
  };
  ASSERT_EQ(below("a"), below("b"));
  for (const std::string& file : below("a")) {
    EXPECT_EQ(testing::Slurp(folder.path() / "a/attempts" / file),
              testing::Slurp(folder.path() / "b/attempts" / file))
        << file;
  }
  // Whose replies they are is recorded, not how they were had. When a verdict falls among the
  // replies is up to the threads that judge: the lines agree, not their order.
  const auto exchanges = [&](const char* name) {
    const std::string text = testing::Slurp(folder.path() / name / "transcript.jsonl");
    return testing::SortedLines(text.substr(text.find('\n')));
  };
  EXPECT_EQ(exchanges("a"), exchanges("b"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, RecordReplayTest,
                         ::testing::Values(StrategyKind::kRefine, StrategyKind::kRestart,
                                           StrategyKind::kBeam),
                         [](const auto& strategy) { return std::string(Name(strategy.param)); });

TEST(ReplayTest, AChangedPromptIsFoundOut) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.out = folder.path() / "a";
  testing::ScriptedModel model({ReplyWith("refute race data_race"), ReplyWith("accept")});
  Environment environment{.clock = clock,
                          .make_judges = testing::ScriptedJudges(),
                          .prompts = testing::PromptsFolder(),
                          .model = &model};
  ASSERT_TRUE(Generate(request, environment));
  std::filesystem::copy(testing::PromptsFolder(), folder.path() / "prompts",
                        std::filesystem::copy_options::recursive);
  ASSERT_TRUE(AppendLine(folder.path() / "prompts/repair.md", "And be quick."));
  environment.prompts = folder.path() / "prompts";
  environment.model = nullptr;
  request.out = folder.path() / "b";
  request.model.spec = "replay/" + (folder.path() / "a/transcript.jsonl").string();
  const auto outcome = Generate(request, environment);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("attempt-2"));
  EXPECT_THAT(outcome.error().message, HasSubstr("And be quick."));
}

}  // namespace
}  // namespace assay::loop
