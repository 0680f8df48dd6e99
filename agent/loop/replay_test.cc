// Runs of transcripts: a recorded run, replayed, takes the same course, judged by seeds of its own; a changed prompt is found out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"
#include "base/text.h"
#include "runs/transcript.h"

namespace assay::loop {
namespace {

using ::testing::HasSubstr;
using testing::ReplyWith;

// A verdict but for the seeds that its gates drew; any other text as it is.
std::string WithoutSeeds(const std::string& text) {
  auto verdict = ParseJson(text, "verdict.json");
  if (!verdict || !verdict->is_object() || !verdict->contains("gates")) return text;
  for (Json& gate : (*verdict)["gates"]) gate.erase("seeds");
  return PrettyJson(*verdict);
}

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
    EXPECT_EQ(WithoutSeeds(testing::Slurp(folder.path() / "a/attempts" / file)),
              WithoutSeeds(testing::Slurp(folder.path() / "b/attempts" / file)))
        << file;
  }
  // Whose replies they are is recorded, not how they were had. When a verdict falls among the
  // replies is up to the threads that judge: the lines agree, not their order. The seeds differ.
  const auto exchanges = [&](const char* name) {
    const std::string text = testing::Slurp(folder.path() / name / "transcript.jsonl");
    std::string asked;
    for (const std::string_view line :
         SplitLines(std::string_view(text).substr(text.find('\n') + 1))) {
      if (line.find("holdout_seeds") == std::string_view::npos) asked += std::string(line) + "\n";
    }
    return testing::SortedLines(asked);
  };
  EXPECT_EQ(exchanges("a"), exchanges("b"));
  const auto seeds = [&](const char* name) {
    std::set<std::uint64_t> drawn;
    const auto written = runs::ReadTranscript(folder.path() / name / "transcript.jsonl");
    EXPECT_TRUE(written);
    for (const auto& [attempt, values] : written->holdout_seeds)
      drawn.insert(values.begin(), values.end());
    return drawn;
  };
  const std::set<std::uint64_t> first = seeds("a");
  ASSERT_FALSE(first.empty());
  for (const std::uint64_t seed : seeds("b")) EXPECT_FALSE(first.contains(seed)) << seed;
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
