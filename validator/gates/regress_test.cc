// corpus/regress: what once slipped through the judge, or was wrongly refused by it, each with the
// twin that must come out the other way. Each is judged by everything that is real (at standard
// effort, where expect.json names no other) and must come out as its expect.json says; what refutes
// a kernel is found again from its counterexample alone.
//
// Its README names those that stand elsewhere, since another program holds them; that table holds.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using verdict::Outcome;

Path Root() { return Path(ASSAY_SOURCE_DIR) / "corpus" / "regress"; }

class RegressTest : public RealBenchTest<testing::TestWithParam<std::string>> {};

TEST_P(RegressTest, ComesOutAsExpected) {
  const Path folder = Root() / GetParam();
  const auto about = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(about) << ToString(about.error());
  const ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops", Root() / "ops"}};
  const ops::Instance instance =
      ops::MakeInstance(library.Find(about->at("op").get<std::string>()).value(),
                        about->at("dtypes").get<std::map<std::string, std::string>>(),
                        about->value("arch", "sm_90"))
          .value();
  Options options;
  options.seed = 1;
  if (about->value("effort", "standard") == "quick") options.effort = campaign::Effort::kQuick;
  options.holdout_seed = [] { return 20'261'122; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
  const std::string text = RenderVerdict(judgement.verdict);
  ASSERT_EQ(std::string(Name(judgement.verdict.outcome)), about->at("expect").get<std::string>())
      << about->at("what").get<std::string>() << '\n'
      << text;
  EXPECT_TRUE(judgement.verdict.ledger.Balanced()) << text;
  EXPECT_EQ(judgement.vetted.has_value(), judgement.verdict.outcome == Outcome::kAccepted);
  if (judgement.verdict.outcome != Outcome::kRefuted) return;
  const verdict::Counterexample& first = *judgement.verdict.Counterexamples().front();
  const auto again = gatekeeper.Replay(instance, first);
  ASSERT_TRUE(again) << ToString(again.error());
  ASSERT_FALSE(again->findings.empty()) << text;
  EXPECT_EQ(again->findings.front().kind, first.findings.front().kind) << text;
}

INSTANTIATE_TEST_SUITE_P(Corpus, RegressTest, testing::ValuesIn(FoldersBelow(Root())),
                         NameOfFolder);

}  // namespace
}  // namespace assay::gates
