#include "batch/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch/testing/fakes.h"
#include "runs/testing/schema.h"

namespace assay::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ops::Library Ops() { return ops::Library({Path(ASSAY_SOURCE_DIR) / "ops"}); }

Result<Plan> Read(const std::string& text, const Settings& base = {}) {
  ASSAY_TRY(const Json json, ParseJson(text, "plan.json"));
  return ReadPlan(json, "plan.json", Ops(), base, {});
}

std::vector<std::string> Ids(const Plan& plan) {
  std::vector<std::string> ids;
  for (const Task& task : plan.tasks) ids.push_back(task.id());
  return ids;
}

constexpr const char* kWhole = R"({
  "schema": "assay.batch_plan/1",
  "defaults": {"model": "cheap", "dtypes": "all", "attempts": 6, "budget": {"usd": 0.5}},
  "models": {"cheap": {"model": "openai/gpt-5-mini"},
             "own": {"model": "openai/gpt-5-mine", "base_url": "http://localhost:8000/v1", "temperature": 0.2}},
  "ops": [{"op": "softmax"},
          {"op": "gemm", "model": "own", "dtypes": [{"T": "f16"}], "archs": ["sm_80", "sm_90"], "priority": 10,
           "attempts": 24, "strategy": "beam", "effort": "thorough", "budget": {"tokens": 1000}},
          {"op": "cumsum", "model": "replay/x.jsonl", "dtypes": "default", "seed": 9}],
  "budget": {"usd": 20, "seconds": 3600}, "share": false,
  "limits": {"requests": 3, "requests_per_minute": 50, "tokens_per_minute": 9000},
  "resources": {"partition": "gpu", "cpus": 2, "memory": "8G", "minutes": 90, "gpus": 1}
})";

TEST(PlanTest, ReadsAllThatItMaySay) {
  const auto plan = Read(kWhole);
  ASSERT_TRUE(plan) << ToString(plan.error());
  EXPECT_THAT(Ids(*plan),
              ElementsAre("softmax-T=bf16-sm_90", "softmax-T=f16-sm_90", "softmax-T=f32-sm_90",
                          "gemm-T=f16-sm_80", "gemm-T=f16-sm_90", "cumsum-T=bf16-sm_90"));
  const Task& soft = plan->tasks[0];
  EXPECT_EQ(soft.request.model.spec, "openai/gpt-5-mini");
  EXPECT_EQ(soft.request.strategy.attempts, 6);
  EXPECT_EQ(soft.request.budget.usd, 0.5);
  const Task& gemm = plan->tasks[3];
  EXPECT_EQ(gemm.request.model.base_url, "http://localhost:8000/v1");
  EXPECT_EQ(gemm.priority, 10);
  EXPECT_EQ(gemm.request.strategy.kind, loop::StrategyKind::kBeam);
  EXPECT_EQ(gemm.request.effort, campaign::Effort::kThorough);
  EXPECT_EQ(gemm.request.budget.tokens, 1000u);
  EXPECT_EQ(gemm.request.budget.usd, 0.5);  // what it does not say, the defaults say
  EXPECT_EQ(plan->tasks[5].request.model.spec, "replay/x.jsonl");
  EXPECT_EQ(plan->tasks[5].request.seed, 9u);
  EXPECT_EQ(plan->budget.usd, 20);
  EXPECT_FALSE(plan->share);
  EXPECT_EQ(plan->limits.tokens_per_minute, 9000u);
  EXPECT_EQ(plan->resources.gpus, 1u);
  EXPECT_TRUE(CheckPlan(*plan)) << ToString(CheckPlan(*plan).error());
  EXPECT_EQ(testing::Violation(testing::ReadSchema("batch/schemas/batch_plan.schema.json"),
                               *ParseJson(kWhole, "p"), "p"),
            "");
}

TEST(PlanTest, SaysWhereItIsWrongAndWhatWasMeant) {
  struct Row {
    const char* what;
    const char* text;
    const char* place;
    const char* cure;
  };
  const Row rows[] = {
      {"schema", R"({"schema": "assay.batch_plan/2", "ops": []})", "/schema", "assay.batch_plan/1"},
      {"key", R"({"schema": "assay.batch_plan/1", "ops": [], "opps": []})", "/opps", "ops"},
      {"key of an op", R"({"schema": "assay.batch_plan/1", "ops": [{"op": "gemm", "atempts": 3}]})",
       "/ops/0/atempts", "attempts"},
      {"key of a budget", R"({"schema": "assay.batch_plan/1", "ops": [], "budget": {"eur": 3}})",
       "/budget/eur", ""},
      {"model",
       R"({"schema": "assay.batch_plan/1", "models": {"cheap": {"model": "openai/x"}}, "ops": [{"op": "gemm", "model": "chaep"}]})",
       "/ops/0/model", "did you mean 'cheap'"},
      {"word", R"({"schema": "assay.batch_plan/1", "ops": [{"op": "gemm", "strategy": "refin"}]})",
       "/ops/0/strategy", "did you mean 'refine'"},
      {"dtypes", R"({"schema": "assay.batch_plan/1", "ops": [{"op": "gemm", "dtypes": "every"}]})",
       "/ops/0/dtypes", "bf16"},
      {"op", R"({"schema": "assay.batch_plan/1", "ops": [{"op": "gem", "model": "exec/x"}]})",
       "/ops/0", "gemm"},
      {"a flag for the cluster",
       R"({"schema": "assay.batch_plan/1", "ops": [], "resources": {"partition": "--wrap=x"}})",
       "/resources/partition", ""},
      {"attempts", R"({"schema": "assay.batch_plan/1", "ops": [{"op": "gemm", "attempts": 0}]})",
       "/ops/0/attempts", ""}};
  for (const Row& row : rows) {
    const auto plan = Read(row.text);
    ASSERT_FALSE(plan) << row.what;
    EXPECT_THAT(plan.error().place, HasSubstr(row.place)) << row.what;
    EXPECT_THAT(plan.error().cure, HasSubstr(row.cure)) << row.what;
  }
}

TEST(PlanTest, WhatCannotBeDoneIsRefusedBeforeAnythingIsDone) {
  Plan plan = testing::PlanOf({"gemm"});
  EXPECT_TRUE(CheckPlan(plan));
  plan.tasks.push_back(plan.tasks[0]);
  EXPECT_THAT(CheckPlan(plan).error().message, HasSubstr("twice"));
  EXPECT_THAT(CheckPlan(Plan{}).error().message, HasSubstr("no instance"));
  // A limit in dollars needs a price, of the batch as of an instance.
  plan = testing::PlanOf({"gemm"});
  for (Task& task : plan.tasks) task.request.model.spec = "openai/unheard-of";
  EXPECT_TRUE(CheckPlan(plan));
  plan.budget.usd = 3;
  EXPECT_THAT(CheckPlan(plan).error().message, HasSubstr("no price"));
  const auto none = AddOp(plan, Ops(), "gemm", Settings{});
  ASSERT_FALSE(none);  // neither a model nor a transcript
  EXPECT_THAT(none.error().message, HasSubstr("ships no transcript"));
}

TEST(PlanTest, ComesBackFromTheRecordAsItWas) {
  auto plan = Read(kWhole);
  ASSERT_TRUE(plan);
  const std::vector<std::string> keys(plan->tasks.size(), "k");
  const Json json = PlanToJson(*plan, keys, {{"assay", "1"}}, "p");
  const auto again = PlanFromJson(json, "batch.json", Ops(), {});
  ASSERT_TRUE(again) << ToString(again.error());
  EXPECT_EQ(PlanToJson(*again, keys, {{"assay", "1"}}, "p"), json);
}

TEST(TrustTest, WhatAFolderAsksForIsSaidAgainOrRefused) {
  Plan plan = *Read(kWhole);
  const models::ModelSpec cheap{.spec = "openai/gpt-5-mini"};
  const models::ModelSpec own{.spec = "openai/gpt-5-mine",
                              .base_url = "http://user:secret@localhost:8000/v1"};
  EXPECT_TRUE(TrustPlan(plan, {.models = {cheap, own}}));
  // The address as it was said, with what a record leaves out.
  EXPECT_EQ(plan.tasks[3].request.model.base_url, "http://user:secret@localhost:8000/v1");
  plan = *Read(kWhole);
  const auto refused = TrustPlan(plan, {.models = {cheap}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("openai/gpt-5-mine at http://localhost:8000/v1"));
  EXPECT_FALSE(TrustPlan(plan, {.models = {cheap, {.spec = "openai/gpt-5-mine"}}}));
  EXPECT_FALSE(TrustPlan(
      plan, {.models = {cheap, {.spec = "openai/gpt-5-mine", .base_url = "http://elsewhere/v1"}}}));

  Plan program = testing::PlanOf({"gemm"});
  for (Task& task : program.tasks) task.request.model.exec_variables = {"SECRET"};
  EXPECT_FALSE(TrustPlan(program, {.models = {{.spec = "exec/scripted"}}}));
  EXPECT_TRUE(TrustPlan(
      program, {.models = {{.spec = "exec/scripted", .exec_variables = {"SECRET", "OTHER"}}}}));
  program.budget.prices = "/etc/prices";
  EXPECT_FALSE(
      TrustPlan(program, {.models = {{.spec = "exec/scripted", .exec_variables = {"SECRET"}}}}));
  Plan open = testing::PlanOf({"gemm"});
  for (Task& task : open.tasks) task.request.model = {.spec = "replay/x"};
  EXPECT_TRUE(TrustPlan(open, {}));  // a transcript runs nothing and sends nothing
  open.tasks[0].request.unsafe_no_jail = true;
  EXPECT_FALSE(TrustPlan(open, {}));
  EXPECT_TRUE(TrustPlan(open, {.unsafe_no_jail = true}));
  for (Task& task : open.tasks) task.request.model.key_file = "/etc/shadow";
  EXPECT_FALSE(TrustPlan(open, {.unsafe_no_jail = true}));
}

TEST(TrustTest, AnOpThatIsNotTheLibrarysIsNamedAgain) {
  testing::TemporaryFolder folder;
  std::filesystem::copy(Path(ASSAY_SOURCE_DIR) / "ops/cumsum", folder.path() / "cumsum",
                        std::filesystem::copy_options::recursive);
  const std::string text = testing::Slurp(folder.path() / "cumsum/reference.cu");
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "cumsum/reference.cu", text + "\n// other\n"));
  Settings settings;
  settings.model.spec = "exec/x";
  Plan plan;
  const std::string place = (folder.path() / "cumsum").string();
  ASSERT_TRUE(AddOp(plan, Ops(), place, settings));
  const Json json = PlanToJson(plan, {"k"}, {}, "p");
  EXPECT_FALSE(PlanFromJson(json, "b", Ops(), {}));
  EXPECT_TRUE(PlanFromJson(json, "b", Ops(), {place}));
}

}  // namespace
}  // namespace assay::batch
