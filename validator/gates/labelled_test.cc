// Kernels whose folders say how they must come out, each with a twin that must come out the other way.
//
//   corpus/adversarial   written by people who had not read the judge, to slip through it or, the twin,
//                        to be wrongly refused by it. fingerprint: to tell an emulator from a GPU;
//                        memory: a fence too few, results that hang on who came first; campaign:
//                        right but for a corner. corpus/README.md names those that still slip through.
//   corpus/regress       what once slipped through, or was wrongly refused. Its README names those that
//                        stand elsewhere, since another program holds them.
//
// Each is judged by everything that is real, at standard effort where expect.json names no other.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"

namespace assay::gates {
namespace {

Path Corpus() { return Path(ASSAY_SOURCE_DIR) / "corpus"; }

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const char* const root : {"adversarial", "regress"}) {
    for (const std::string& name : FoldersBelow(Corpus() / root))
      folders.push_back(std::string(root) + "/" + name);
  }
  return folders;
}

class LabelledTest : public RealBenchTest<testing::TestWithParam<std::string>> {};

TEST_P(LabelledTest, ComesOutAsExpected) {
  const Path folder = Corpus() / GetParam();
  const auto about = ReadJsonFile((folder / "expect.json").string());
  ASSERT_TRUE(about) << ToString(about.error());
  const ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops", Corpus() / "regress" / "ops"}};
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
  ExpectOutcome(gatekeeper, instance, gatekeeper.Judge(instance, CandidateIn(folder)),
                about->at("expect").get<std::string>(), about->at("what").get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Corpus, LabelledTest, testing::ValuesIn(Share(Folders())), NameOfFolder);

}  // namespace
}  // namespace assay::gates
