// corpus/timing: kernels that are fast only where they are timed, and the honest ones that they pretend to
// be. Each that the judge finds out without a clock must fall at the gate that its expect.json names;
// those that only timed calls give away ("speed") need a GPU (bench/gpu_speed.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "timing"; }

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const std::string& name : FoldersBelow(Root())) {
    const auto about = ReadJsonFile((Root() / name / "expect.json").string());
    if (about && about->value("gate", "") != "speed") names.push_back(name);
  }
  return names;
}

class TimingCorpusTest : public RealBenchTest<testing::TestWithParam<std::string>> {};

TEST_P(TimingCorpusTest, FallsAtTheGateThatIsNamed) {
  const Path folder = Root() / GetParam();
  const auto about = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(about) << ToString(about.error());
  const ops::Instance instance = InstanceOf(*about);
  Options options;
  options.effort = campaign::Effort::kQuick;
  options.seed = 1;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
  EXPECT_EQ(std::string(Name(judgement.verdict.outcome)), about->at("expect").get<std::string>())
      << RenderVerdict(judgement.verdict);
  if (!about->contains("gate")) return;
  const std::string gate = about->at("gate").get<std::string>();
  const auto found = std::ranges::find(judgement.verdict.gates, gate, &verdict::GateResult::gate);
  ASSERT_NE(found, judgement.verdict.gates.end());
  EXPECT_EQ(found->status, verdict::GateStatus::kRefuted) << RenderVerdict(judgement.verdict);
}
INSTANTIATE_TEST_SUITE_P(Corpus, TimingCorpusTest, testing::ValuesIn(Names()), NameOfFolder);

}  // namespace
}  // namespace assay::gates
