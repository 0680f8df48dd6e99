// The committed schemas (runs/schema) against what a run really writes.
#include "runs/testing/schema.h"

#include <gtest/gtest.h>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::loop {
namespace {

using testing::ReplyWith;
using testing::Violation;

Json Schema(const std::string& name) { return testing::ReadSchema("runs/schema/" + name); }

TEST(SchemaTest, ARunIsWhatTheSchemasSay) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.out = folder.path() / "run";
  request.model.temperature = 0.5;
  request.sister = prompts::Sister{"rms_norm-T=f32-sm_90", {"kernel", "{}"}};
  testing::ScriptedModel broken({ReplyWith("refute race data_race"), "no code"});
  Environment environment{.clock = clock,
                          .make_judges = testing::ScriptedJudges(),
                          .prompts = testing::PromptsFolder(),
                          .versions = {{"assay", "0.1.0"}},
                          .model = &broken};
  ASSERT_FALSE(Generate(request, environment));
  testing::ScriptedModel well({ReplyWith("accept")});
  environment.model = &well;
  request.resume = true;
  ASSERT_TRUE(Generate(request, environment));

  EXPECT_EQ(Violation(Schema("run.schema.json"), *ReadJsonFile((request.out / "run.json").string()),
                      "run.json"),
            "");
  for (const std::string name : {"event", "transcript"}) {
    const Json schema = Schema(name + ".schema.json");
    const std::string text =
        testing::Slurp(request.out / (name == "event" ? "events.jsonl" : "transcript.jsonl"));
    std::size_t number = 0;
    for (const std::string_view line : SplitLines(text)) {
      EXPECT_EQ(Violation(schema, *ParseJson(line, name), name + ":" + std::to_string(++number)),
                "");
    }
    EXPECT_GT(number, 5u);
  }
}

TEST(SchemaTest, TheReaderSeesWhatIsWrong) {
  Json run = {{"type", "run_stopped"}, {"n", 0},       {"time", ""},       {"ms", 0},
              {"outcome", "accepted"}, {"reason", ""}, {"resumable", true}};
  const Json schema = Schema("event.schema.json");
  EXPECT_EQ(Violation(schema, run, "e"), "");
  run["surprise"] = 1;
  EXPECT_NE(Violation(schema, run, "e"), "");
  run.erase("surprise");
  run["outcome"] = "fine";
  EXPECT_NE(Violation(schema, run, "e"), "");
}

}  // namespace
}  // namespace assay::loop
