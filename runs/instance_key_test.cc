#include "runs/instance_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/digest.h"
#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using ::testing::ElementsAre;

JudgeFacts Judge() {
  return {.versions = {{"assay-worker sha256", "w1"}, {"nvrtc", "13.0"}}, .seed = 1};
}

InstanceKey Key(const ops::Instance& instance, const JudgeFacts& judge = Judge(),
                const std::string& prompts = "p", const std::string& model = "openai/m",
                int attempts = 8) {
  return KeyOf({.instance = instance,
                .judge = judge,
                .prompts_digest = prompts,
                .model = {{"model", model}},
                .options = {{"attempts", attempts}}});
}

TEST(InstanceKeyTest, EveryPartCounts) {
  const ops::Instance instance = testing::RmsNorm();
  EXPECT_EQ(Key(instance).digest(), Key(instance).digest());
  ops::Instance other_op = instance;
  other_op.op.digest = "other";
  ops::Instance other_arch = instance;
  other_arch.arch = "sm_80";
  ops::Instance other_dtype = instance;
  other_dtype.binding.begin()->second = DType::kF16;
  JudgeFacts other_judge = Judge();
  other_judge.versions["assay-worker sha256"] = "w2";
  JudgeFacts other_seed = Judge();
  other_seed.seed = 2;
  std::set<std::string> digests = {Key(instance).digest()};
  for (const InstanceKey& key :
       {Key(other_op), Key(other_arch), Key(other_dtype), Key(instance, other_judge),
        Key(instance, other_seed), Key(instance, Judge(), "q"),
        Key(instance, Judge(), "p", "openai/n"), Key(instance, Judge(), "p", "openai/m", 9)}) {
    EXPECT_TRUE(digests.insert(key.digest()).second);
  }
  EXPECT_EQ(digests.size(), 9u);
}

TEST(InstanceKeyTest, ChangesHaveTheirCause) {
  const ops::Instance instance = testing::RmsNorm();
  ops::Instance other = instance;
  other.op.digest = "other";
  JudgeFacts judge = Judge();
  judge.versions = {{"assay-worker sha256", "w2"}, {"nvrtc", "13.1"}, {"driver", "1"}};
  const auto changes = ChangesOf(Key(instance), Key(other, judge, "q"));
  std::vector<std::string> causes;
  for (const Change& change : changes)
    causes.push_back(change.part + ": " + std::string(CauseOf(change.part)));
  EXPECT_THAT(causes,
              ElementsAre("op: op", "prompts: options", "version assay-worker sha256: judge",
                          "version driver: judge", "version nvrtc: toolkit"));
  EXPECT_EQ(changes[3].before, "");
  EXPECT_EQ(changes[4].before, "13.0");
  EXPECT_EQ(changes[4].after, "13.1");
  // What the model was told is no part of a verdict.
  EXPECT_TRUE(JudgementChanges(Key(instance), Key(instance, Judge(), "q", "openai/n", 9)).empty());
  EXPECT_EQ(JudgementChanges(Key(instance), Key(other, judge, "q")).size(), 4u);
}

class InstanceRecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeFolders(vetted_));
    ASSERT_TRUE(WriteFileAtomically(vetted_ / "kernel.cu", "kernel"));
    const Json certificate = {{"sha256", {{"kernel.cu", Sha256Hex("kernel")}, {"prompts", "p"}}}};
    ASSERT_TRUE(WriteFileAtomically(vetted_ / "certificate.json", PrettyJson(certificate)));
    record_ = {.key = Key(instance_),
               .instance = instance_.Id(),
               .op = "rms_norm",
               .binding = BindingWords(instance_),
               .arch = "sm_90",
               .certificate = Sha256Hex(PrettyJson(certificate)),
               .vetted = vetted_.string(),
               .author = "a model"};
    ASSERT_TRUE(KeepRecord(store_, record_, vetted_, "runs/x"));
  }
  testing::TemporaryFolder folder_;
  Path vetted_ = folder_.path() / "runs/x/vetted/y";
  Store store_{folder_.path() / "store"};
  ops::Instance instance_ = testing::RmsNorm();
  InstanceRecord record_;
};

TEST_F(InstanceRecordTest, IsFoundByItsKeyAndRestored) {
  const auto found = FindRecord(store_, record_.key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->files.at("kernel.cu"), Sha256Hex("kernel"));
  EXPECT_EQ(found->author, "a model");
  EXPECT_EQ(AllRecords(store_).size(), 1u);
  std::filesystem::remove_all(vetted_);
  const Status restored = Restore(store_, *found, vetted_);
  ASSERT_TRUE(restored) << ToString(restored.error());
  EXPECT_EQ(testing::Slurp(vetted_ / "kernel.cu"), "kernel");
  // One that is there is only held to its certificate.
  EXPECT_TRUE(Restore(store_, *found, vetted_));
  ASSERT_TRUE(WriteFileAtomically(vetted_ / "kernel.cu", "another"));
  EXPECT_FALSE(Restore(store_, *found, vetted_));
}

TEST_F(InstanceRecordTest, IsNotFoundWhereSomethingIsAmiss) {
  EXPECT_FALSE(FindRecord(store_, Key(instance_, Judge(), "other prompts")));
  const std::string text = *store_.GetRecord(record_.key.digest(), kInstanceKind);
  // A record under a key that is not its own.
  const std::string other = Key(instance_, Judge(), "other prompts").digest();
  ASSERT_TRUE(store_.PutRecord(other, kInstanceKind, text));
  EXPECT_FALSE(FindRecord(store_, Key(instance_, Judge(), "other prompts")));
  // A name that leads out of the folder.
  std::string hostile = text;
  hostile.replace(hostile.find("\"kernel.cu\""), 11, "\"../x/k.cu\"");
  ASSERT_TRUE(store_.PutRecord(record_.key.digest(), kInstanceKind, hostile));
  EXPECT_FALSE(FindRecord(store_, record_.key));
  // A blob that has gone.
  ASSERT_TRUE(store_.PutRecord(record_.key.digest(), kInstanceKind, text));
  ASSERT_TRUE(FindRecord(store_, record_.key));
  std::filesystem::remove(store_.FileOf(Sha256Hex("kernel")));
  EXPECT_FALSE(FindRecord(store_, record_.key));
}

}  // namespace
}  // namespace assay::runs
