// corpus/timing: kernels that are fast only where they are timed, and the honest ones that they pretend to
// be. Each that the judge finds out without a clock must fall at the gate that its expect.json names;
// those that only timed calls give away ("speed") need a GPU (bench/gpu_speed.py).
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

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "timing"; }

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Root())) {
    const auto about = ReadJsonFile((entry.path() / "expect.json").string());
    if (about && about->value("gate", "") != "speed") names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

class TimingCorpusTest : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { bench_ = RealBench::Make().release(); }
  static void TearDownTestSuite() {
    delete bench_;
    bench_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(bench_->fault, ""); }
  static RealBench* bench_;
};
RealBench* TimingCorpusTest::bench_ = nullptr;

TEST_P(TimingCorpusTest, FallsAtTheGateThatIsNamed) {
  const Path folder = Root() / GetParam();
  const auto about = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(about) << ToString(about.error());
  const ops::Instance instance =
      ops::MakeInstance(bench_->library.Find(about->at("op").get<std::string>()).value(),
                        {{"T", about->at("dtypes").at("T").get<std::string>()}}, "sm_90")
          .value();
  Options options;
  options.effort = campaign::Effort::kQuick;
  options.seed = 1;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(
      instance, {ReadFile(folder / "kernel.cu").value(), ReadFile(folder / "launch.json").value()});
  EXPECT_EQ(std::string(Name(judgement.verdict.outcome)), about->at("expect").get<std::string>())
      << RenderVerdict(judgement.verdict);
  if (!about->contains("gate")) return;
  const std::string gate = about->at("gate").get<std::string>();
  const auto found = std::ranges::find(judgement.verdict.gates, gate, &verdict::GateResult::gate);
  ASSERT_NE(found, judgement.verdict.gates.end());
  EXPECT_EQ(found->status, verdict::GateStatus::kRefuted) << RenderVerdict(judgement.verdict);
}
INSTANTIATE_TEST_SUITE_P(Corpus, TimingCorpusTest, testing::ValuesIn(Names()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace assay::gates
