#include "dataset/split.h"

#include <gtest/gtest.h>

#include "dataset/families.h"
#include "dataset/likes.h"
#include "dataset/testing/synthetic.h"
#include "runs/testing/fakes.h"

namespace assay::dataset {
namespace {

using testing::SyntheticRuns;
using testing::TemporaryFolder;

Corpus Filled(const Path& file, std::size_t attempts = 400) {
  auto corpus = Corpus::Open(file, Database::Access::kWrite);
  ASSAY_CHECK(corpus.has_value());
  for (const RunRecord& run : SyntheticRuns(3, attempts))
    ASSAY_CHECK(corpus->Ingest(run).has_value());
  return *std::move(corpus);
}

std::string Failure(const Status& status) { return status ? "" : status.error().message; }

TEST(Families, SistersAreOneFamily) {
  const auto families = FamiliesOf({"rms_norm", "rms_norm_backward", "layer_norm", "LayerNorm2d",
                                    "embedding_rmsnorm_backward", "scatter_add", "softmax", "gemm",
                                    "fused_linear", "attention", "hypot", "hypot_backward"});
  EXPECT_EQ(families.at("rms_norm"), "indexing+norm");
  EXPECT_EQ(families.at("scatter_add"), "indexing+norm");
  EXPECT_EQ(families.at("LayerNorm2d"), families.at("rms_norm_backward"));
  EXPECT_EQ(families.at("gemm"), families.at("fused_linear"));
  EXPECT_EQ(families.at("hypot"), families.at("hypot_backward"));
  EXPECT_NE(families.at("softmax"), families.at("gemm"));
  EXPECT_NE(families.at("attention"), families.at("rms_norm"));
  EXPECT_EQ(FamiliesOf({"a_one", "b_two"}).size(), 2u);
  EXPECT_EQ(FamiliesOf({"a_one", "b_two"}, {{"a_one", {"b_two"}}}).at("a_one"),
            FamiliesOf({"a_one", "b_two"}, {{"a_one", {"b_two"}}}).at("b_two"));
}

TEST(Split, NoFamilyAndNoNearDuplicateStraddles) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  const auto report = MakeSplit(corpus, {.test = 0.2, .validation = 0.2});
  ASSERT_TRUE(report) << ToString(report.error());
  EXPECT_EQ(Failure(CheckSplit(corpus, "default")), "");
  for (const std::string_view part : {kTrain, kValidation, kTest})
    EXPECT_GT(report->attempts.at(std::string(part)), 0u) << part;
  // Every pair, by the definition and without an index.
  const auto parts = *PartsOf(corpus, "default");
  const auto attempts = *corpus.Attempts();
  std::size_t withheld = 0;
  for (const AttemptRow& a : attempts) {
    withheld += parts.at(a.id) == kWithheld ? 1u : 0u;
    for (const AttemptRow& b : attempts) {
      const std::string& left = parts.at(a.id);
      const std::string& right = parts.at(b.id);
      if (left == right || left == kWithheld || right == kWithheld) continue;
      EXPECT_NE(a.target.op, b.target.op);
      EXPECT_NE(a.skeleton, b.skeleton);
      EXPECT_LT(Likeness(a.sketch, b.sketch), kAlike);
    }
  }
  EXPECT_GT(withheld, 0u);
  EXPECT_EQ(withheld, report->attempts.at(std::string(kWithheld)));
}

TEST(Split, IsAFunctionOfTheSeed) {
  TemporaryFolder folder;
  Corpus a = Filled(folder.path() / "a.sqlite", 100);
  Corpus b = Filled(folder.path() / "b.sqlite", 100);
  ASSERT_TRUE(MakeSplit(a, {.seed = 5}));
  ASSERT_TRUE(MakeSplit(b, {.seed = 5}));
  EXPECT_EQ(*PartsOf(a, "default"), *PartsOf(b, "default"));
  std::set<std::set<std::string>> choices;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    choices.insert(MakeSplit(b, {.seed = seed, .anew = true})->families.at("test"));
  EXPECT_GT(choices.size(), 1u);
}

TEST(Split, AnOpHeldOutStaysHeldOutAsTheCorpusGrows) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite", 60);
  ASSERT_TRUE(MakeSplit(corpus, {.hold_out = {"softmax"}}));
  ASSERT_TRUE(corpus.Ingest(testing::SyntheticRun(9, 9000, "log_softmax")));
  const Status old = CheckSplit(corpus, "default");
  EXPECT_NE(Failure(old).find("since the split"), std::string::npos);
  // Another seed, no --hold-out: the family of softmax has got a sister and tests all the same.
  const auto report = MakeSplit(corpus, {.seed = 77});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->families.at("test").contains("softmax"));
  EXPECT_EQ(Failure(CheckSplit(corpus, "default")), "");
  EXPECT_FALSE(MakeSplit(corpus, {.hold_out = {"sofmax"}}));
}

TEST(Split, TheCheckFires) {
  TemporaryFolder folder;
  Corpus corpus = Filled(folder.path() / "c.sqlite");
  EXPECT_NE(Failure(CheckSplit(corpus, "default")), "");
  ASSERT_TRUE(MakeSplit(corpus, {}));
  // A withheld attempt let into its part again.
  ASSERT_TRUE(corpus.db().Run(
      "UPDATE split_part SET part = 'train' WHERE part = 'withheld' AND attempt IN (SELECT a.id "
      "FROM "
      "attempt a JOIN instance i ON i.id = a.instance JOIN op o ON o.id = i.op JOIN split_op s ON "
      "s.op = o.name WHERE s.part = 'train')"));
  EXPECT_NE(Failure(CheckSplit(corpus, "default")).find("near-duplicate"), std::string::npos);
  ASSERT_TRUE(MakeSplit(corpus, {}));
  ASSERT_TRUE(
      corpus.db().Run("UPDATE split_part SET part = 'train' WHERE attempt = "
                      "(SELECT min(attempt) FROM split_part WHERE part = 'test')"));
  EXPECT_NE(Failure(CheckSplit(corpus, "default")).find("leaks"), std::string::npos);
}

}  // namespace
}  // namespace assay::dataset
