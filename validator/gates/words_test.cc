// corpus/words: wrong kernels, a folder of them for each word that a finding may say of its cause.
// A judgement must refute each one, say of it what expect.json has under "says", and none of what
// it has under "never": words that are true of a kernel's neighbour in kind, and would send whoever
// repairs this one the wrong way (docs/prompts.md, "What words promise").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "words"; }

class WordsTest : public RealBenchTest<testing::TestWithParam<std::string>> {};

TEST_P(WordsTest, SaysWhatIsWrong) {
  const Path folder = Root() / GetParam();
  const auto json = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(json) << ToString(json.error());
  const ops::Instance instance = InstanceOf(*json);
  Options options;
  options.seed = 1;
  // Where a shape has to be huge, "effort" says so.
  options.effort =
      json->contains("effort") ? campaign::Effort::kStandard : campaign::Effort::kQuick;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
  const std::string text = RenderVerdict(judgement.verdict);
  EXPECT_EQ(judgement.verdict.outcome, verdict::Outcome::kRefuted) << text;
  const auto says = json->at("says").get<std::vector<std::string>>();
  const auto never = json->at("never").get<std::vector<std::string>>();
  EXPECT_FALSE(says.empty() && never.empty()) << "a kernel about which anything may be said";
  for (const std::string& words : says) EXPECT_THAT(text, testing::HasSubstr(words));
  for (const std::string& words : never) EXPECT_THAT(text, testing::Not(testing::HasSubstr(words)));
}

INSTANTIATE_TEST_SUITE_P(Corpus, WordsTest, testing::ValuesIn(Share(FoldersBelow(Root()))),
                         NameOfFolder);

}  // namespace
}  // namespace assay::gates
