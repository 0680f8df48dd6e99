// corpus/words: wrong kernels, a folder of them for each word that a finding may say of its cause.
// A judgement must refute each one, say of it what expect.json has under "says", and none of what
// it has under "never": words that are true of a kernel's neighbour in kind, and would send whoever
// repairs this one the wrong way (docs/prompts.md, "What words promise").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "words"; }

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Root())) {
    if (entry.path().filename() == "expect.json")
      names.push_back(std::filesystem::relative(entry.path().parent_path(), Root()).string());
  }
  std::ranges::sort(names);
  return names;
}

class WordsTest : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { bench_ = RealBench::Make().release(); }
  static void TearDownTestSuite() {
    delete bench_;
    bench_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(bench_->fault, ""); }
  static RealBench* bench_;
};
RealBench* WordsTest::bench_ = nullptr;

TEST_P(WordsTest, SaysWhatIsWrong) {
  const Path folder = Root() / GetParam();
  const auto json = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(json) << ToString(json.error());
  const ops::Instance instance =
      ops::MakeInstance(bench_->library.Find(json->at("op").get<std::string>()).value(),
                        json->at("dtypes").get<std::map<std::string, std::string>>(), "sm_90")
          .value();
  Options options;
  options.seed = 1;
  // Where a shape has to be huge, "effort" says so.
  options.effort =
      json->contains("effort") ? campaign::Effort::kStandard : campaign::Effort::kQuick;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(
      instance, {ReadFile(folder / "kernel.cu").value(), ReadFile(folder / "launch.json").value()});
  const std::string text = RenderVerdict(judgement.verdict);
  EXPECT_EQ(judgement.verdict.outcome, verdict::Outcome::kRefuted) << text;
  const auto says = json->at("says").get<std::vector<std::string>>();
  const auto never = json->at("never").get<std::vector<std::string>>();
  EXPECT_FALSE(says.empty() && never.empty()) << "a kernel about which anything may be said";
  for (const std::string& words : says) EXPECT_THAT(text, testing::HasSubstr(words));
  for (const std::string& words : never) EXPECT_THAT(text, testing::Not(testing::HasSubstr(words)));
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '/', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Corpus, WordsTest, testing::ValuesIn(Names()), TestName);

}  // namespace
}  // namespace assay::gates
