#include "rewards/rewarder.h"

#include <gtest/gtest.h>

#include "runs/testing/fakes.h"
#include "runs/testing/schema.h"

namespace assay::rewards {
namespace {

using testing::ReplyWith;
using testing::TemporaryFolder;

Result<ops::OpSpec> Find(const std::string& name) {
  if (name == "rms_norm") return testing::RmsNorm().op;
  return Fail(ErrorKind::kUsage, "no op '" + name + "'");
}

// The kernel says in a comment how it is to be judged.
struct Desk {
  int judged = 0;
  std::uint64_t seed = 0;

  Rewarder Make(const Path& cache = {}, runs::JudgeFacts facts = {}) {
    return Rewarder(
        [this](const ops::Instance& instance, const verdict::Candidate& candidate,
               std::uint64_t holdout_seed) {
          ++judged;
          seed = holdout_seed;
          const std::size_t at = candidate.kernel.find("// judge: ") + 10;
          return testing::VerdictOf(
              instance, candidate,
              candidate.kernel.substr(at, candidate.kernel.find('\n', at) - at));
        },
        &Find, std::move(facts), "sm_90", cache);
  }
};

std::string Line(const std::string& reply, const char* more = "") {
  return "{\"op\": \"rms_norm\"" + std::string(more) + ", \"reply\": " + Json(reply).dump() + "}";
}

TEST(Rewarder, ARewardForEachLineAsTheSchemaSays) {
  Desk desk;
  Rewarder rewarder = desk.Make();
  const Json schema = testing::ReadSchema("rewards/schemas/reward.schema.json");
  const std::pair<std::string, const char*> lines[] = {
      {Line(ReplyWith("accept"), ", \"id\": 7"), "accepted"},
      {Line(ReplyWith("refute race data_race"), ", \"id\": \"x\""), "refuted"},
      {Line(ReplyWith("inconclusive")), "inconclusive"},
      {Line(ReplyWith("internal")), "internal_error"},
      {Line("I cannot."), "refuted"},
      {"{\"op\": \"rms_norm\"}", "invalid"},
      {"not JSON", "invalid"},
      {Line(ReplyWith("accept"), ", \"binding\": \"T=f16\""), "accepted"},
      {Line(ReplyWith("accept"), ", \"binding\": {\"T\": \"f64\"}"), "invalid"},
      {Line(ReplyWith("accept"), ", \"op_digest\": \"other\""), "invalid"},
      {"{\"op\": \"../../etc\", \"reply\": \"\"}", "invalid"},
      {"{\"op\": \"nothing\", \"reply\": \"\"}", "invalid"},
      {"{\"op\": \"rms_norm\", \"kernel\": \"// judge: accept\\n\", \"launch\": {\"a\": 1}}",
       "accepted"},
      {"{\"op\": \"rms_norm\", \"kernl\": \"\", \"launch\": {}}", "invalid"}};
  std::uint64_t index = 0;
  for (const auto& [line, outcome] : lines) {
    const auto reward = rewarder.Reward(line, index);
    ASSERT_TRUE(reward);
    EXPECT_EQ(reward->outcome, outcome) << line << "\n" << reward->reason;
    EXPECT_EQ(reward->index, index++);
    EXPECT_EQ(testing::Violation(schema, ToJson(*reward), "reward"), "");
    EXPECT_EQ(reward->key, rewarder.KeyOfLine(line));
    EXPECT_EQ(reward->key.empty(), reward->outcome == "invalid");
  }
  EXPECT_EQ(rewarder.Reward(lines[1].first, 0)->id, "x");
  EXPECT_EQ(rewarder.Reward(lines[1].first, 0)->finding, "data_race");
  EXPECT_EQ(rewarder.Reward(lines[4].first, 0)->finding, "malformed_reply");
}

TEST(Rewarder, WhatIsKnownByItsKeyIsNotJudgedAgain) {
  TemporaryFolder folder;
  Desk desk;
  const std::string line = Line(ReplyWith("refute race data_race"));
  const Json first = ToJson(*desk.Make(folder.path()).Reward(line, 0));
  EXPECT_EQ(desk.judged, 1);
  Rewarder again = desk.Make(folder.path());
  EXPECT_EQ(ToJson(*again.Reward(line, 0)), first);
  EXPECT_EQ(desk.judged, 1);
  EXPECT_EQ(again.known(), 1u);
  // Anything that a verdict depends on makes it another judgement.
  const runs::JudgeFacts others[] = {
      {.versions = {{"assay", "2"}}}, {.effort = "thorough"}, {.seed = 2}};
  for (const runs::JudgeFacts& facts : others)
    (void)desk.Make(folder.path(), facts).Reward(line, 0);
  EXPECT_EQ(desk.judged, 4);
  (void)desk.Make(folder.path())
      .Reward(Line(ReplyWith("refute race data_race"), ", \"arch\": \"sm_80\""), 0);
  EXPECT_EQ(desk.judged, 5);
}

TEST(Rewarder, WhatWasNotDecidedOrIsDamagedIsJudgedAgain) {
  TemporaryFolder folder;
  Desk desk;
  const std::string open = Line(ReplyWith("inconclusive"));
  (void)desk.Make(folder.path()).Reward(open, 0);
  (void)desk.Make(folder.path()).Reward(open, 0);
  EXPECT_EQ(desk.judged, 2);
  const std::string line = Line(ReplyWith("accept"));
  (void)desk.Make(folder.path()).Reward(line, 0);
  for (const std::string& file : testing::FilesBelow(folder.path()))
    ASSERT_TRUE(WriteFileAtomically(folder.path() / file, "{\"schema\": \"assay.judgement/1\""));
  EXPECT_EQ(desk.Make(folder.path()).Reward(line, 0)->outcome, "accepted");
  EXPECT_EQ(desk.judged, 4);
}

TEST(Rewarder, TheHoldoutSeedFollowsFromTheKey) {
  Desk desk;
  const std::string line = Line(ReplyWith("accept"));
  (void)desk.Make().Reward(line, 0);
  const std::uint64_t seed = desk.seed;
  (void)desk.Make().Reward(line, 5);
  EXPECT_EQ(desk.seed, seed);
  (void)desk.Make({}, {.seed = 9}).Reward(line, 0);
  EXPECT_NE(desk.seed, seed);
}

TEST(Binding, IsReadAsExportsWriteIt) {
  EXPECT_EQ(*ParseBinding("T=bf16,U=f32", "b"),
            (std::map<std::string, std::string>{{"T", "bf16"}, {"U", "f32"}}));
  EXPECT_TRUE(ParseBinding("", "b")->empty());
  EXPECT_FALSE(ParseBinding("T", "b"));
}

}  // namespace
}  // namespace assay::rewards
