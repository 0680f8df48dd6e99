// corpus/adversarial: kernels written by people who had not read the judge, each to slip through it
// or, its twin, to be wrongly refused by it. fingerprint: to tell an emulator from a GPU; memory: a
// fence too few, results that hang on who came first; campaign: right but for a corner.
//
// Each is judged at standard effort by everything that is real, and must come out as its
// expect.json says. Kernels of the class that still slip through are not here: corpus/README.md
// names them.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "adversarial"; }

class AdversarialTest : public RealBenchTest<testing::TestWithParam<std::string>> {};

TEST_P(AdversarialTest, ComesOutAsExpected) {
  const Path folder = Root() / GetParam();
  const auto json = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(json) << ToString(json.error());
  const ops::Instance instance = InstanceOf(*json);
  Options options;
  options.seed = 1;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
  EXPECT_EQ(std::string(Name(judgement.verdict.outcome)), json->at("expect").get<std::string>())
      << json->at("what").get<std::string>() << '\n'
      << RenderVerdict(judgement.verdict);
  EXPECT_TRUE(judgement.verdict.outcome != verdict::Outcome::kAccepted || judgement.vetted);
}

INSTANTIATE_TEST_SUITE_P(Corpus, AdversarialTest, testing::ValuesIn(FoldersBelow(Root())),
                         NameOfFolder);

}  // namespace
}  // namespace assay::gates
