#include "dataset/corpus.h"

#include <gtest/gtest.h>

#include "dataset/schema.h"
#include "dataset/testing/synthetic.h"
#include "runs/testing/fakes.h"

namespace assay::dataset {
namespace {

using testing::SyntheticRun;
using testing::SyntheticRuns;
using testing::TemporaryFolder;

Corpus Make(const Path& file) {
  auto corpus = Corpus::Open(file, Database::Access::kWrite);
  ASSAY_CHECK(corpus.has_value(), corpus ? "" : ToString(corpus.error()));
  return *std::move(corpus);
}

Added IngestAll(Corpus& corpus, const std::vector<RunRecord>& runs) {
  Added added;
  for (const RunRecord& run : runs) {
    const auto each = corpus.Ingest(run);
    EXPECT_TRUE(each) << (each ? "" : ToString(each.error()));
    if (each) added += *each;
  }
  return added;
}

std::string FingerprintOf(Corpus& corpus) {
  const auto print = corpus.Fingerprint();
  return print ? *print : ToString(print.error());
}

TEST(Corpus, IngestingTwiceAddsNothing) {
  TemporaryFolder folder;
  Corpus corpus = Make(folder.path() / "c.sqlite");
  const auto runs = SyntheticRuns(1, 60);
  const Added first = IngestAll(corpus, runs);
  EXPECT_EQ(first.runs, runs.size());
  EXPECT_GE(first.attempts, 60u);
  const std::string print = FingerprintOf(corpus);
  const Added again = IngestAll(corpus, runs);
  EXPECT_EQ(again.runs, 0u);
  EXPECT_EQ(again.attempts, 0u);
  EXPECT_EQ(again.known, first.attempts);
  EXPECT_EQ(FingerprintOf(corpus), print);
  EXPECT_TRUE(corpus.Check());
}

TEST(Corpus, ARunThatHasGrownIsCompleted) {
  TemporaryFolder folder;
  Corpus whole = Make(folder.path() / "whole.sqlite");
  Corpus grown = Make(folder.path() / "grown.sqlite");
  const RunRecord run = SyntheticRun(1, 3, "softmax");
  ASSERT_GT(run.attempts.size(), 1u);
  RunRecord early = run;
  early.attempts.resize(1);
  early.outcome.clear();
  IngestAll(whole, {run});
  IngestAll(grown, {early, run});
  EXPECT_EQ(FingerprintOf(whole), FingerprintOf(grown));
}

TEST(Corpus, OrderDoesNotMatterAndWhatIsReadIsWhatWasWritten) {
  TemporaryFolder folder;
  Corpus corpus = Make(folder.path() / "c.sqlite");
  Corpus reversed = Make(folder.path() / "r.sqlite");
  auto runs = SyntheticRuns(2, 40);
  IngestAll(corpus, runs);
  std::ranges::reverse(runs);
  IngestAll(reversed, runs);
  EXPECT_EQ(FingerprintOf(corpus), FingerprintOf(reversed));
  std::size_t seen = 0;
  ASSERT_TRUE(corpus.EachRun([&](const RunRecord& read) -> Status {
    const auto wrote = std::ranges::find(runs, read.identity, &RunRecord::identity);
    EXPECT_NE(wrote, runs.end());
    EXPECT_EQ(read.attempts.size(), wrote->attempts.size());
    for (std::size_t i = 0; i < read.attempts.size(); ++i) {
      const AttemptRecord& a = read.attempts[i];
      const AttemptRecord& b = wrote->attempts[i];
      EXPECT_EQ(a.kernel, b.kernel);
      EXPECT_EQ(a.prompt, b.prompt);
      EXPECT_EQ(a.target, b.target);
      EXPECT_EQ(verdict::ToJson(a.verdict), verdict::ToJson(b.verdict));
    }
    ++seen;
    return {};
  }));
  EXPECT_EQ(seen, runs.size());
}

// The same kernel with other names and layout, refuted at the same place: a duplicate. Another
// finding, another target: none.
TEST(Corpus, DuplicatesAreFoundByNormalisedSourceAndFinding) {
  TemporaryFolder folder;
  Corpus corpus = Make(folder.path() / "c.sqlite");
  RunRecord run = SyntheticRun(1, 0, "softmax");
  while (run.attempts.front().verdict.outcome != verdict::Outcome::kRefuted)
    run = SyntheticRun(1, static_cast<int>(run.attempts.size()) + 100, "softmax");
  run.attempts.resize(1);
  const auto variant = [&](const char* identity, auto change) {
    RunRecord other = run;
    other.identity = identity;
    AttemptRecord& attempt = other.attempts.front();
    change(attempt);
    return other;
  };
  AttemptRecord& original = run.attempts.front();
  original.kernel = testing::SyntheticKernel(5, 4);
  original.launch = "{\"kernels\": [{\"entry\": \"run4\"}]}";
  const auto dressed = variant("dressed", [](AttemptRecord& attempt) {
    attempt.kernel = testing::SyntheticKernel(5, 777);
    attempt.launch = "{\"kernels\":[{\"entry\":\"run777\"}]}";
  });
  const auto moved = variant("moved", [](AttemptRecord& attempt) {
    for (auto& gate : attempt.verdict.gates) {
      for (auto& counterexample : gate.counterexamples)
        counterexample.findings.front().accesses.front().site.line = 5;
    }
  });
  const auto elsewhere =
      variant("elsewhere", [](AttemptRecord& attempt) { attempt.target.arch = "sm_80"; });
  const Added added = IngestAll(corpus, {run, dressed, moved, elsewhere});
  EXPECT_EQ(added.attempts, 4u);
  EXPECT_EQ(added.duplicates, 1u);
  int first = 0;
  const std::vector<AttemptRow> rows = *corpus.Attempts();
  for (const AttemptRow& row : rows) first += row.first ? 1 : 0;
  EXPECT_EQ(first, 3);
}

TEST(Corpus, WhatSaysLessThanItSeemsIsRefused) {
  TemporaryFolder folder;
  Corpus corpus = Make(folder.path() / "c.sqlite");
  RunRecord run = SyntheticRun(1, 3, "softmax");
  run.attempts.back().parent = 99;
  EXPECT_FALSE(corpus.Ingest(run));
  run = SyntheticRun(1, 3, "softmax");
  for (auto& gate : run.attempts.front().verdict.gates) gate.counterexamples.clear();
  EXPECT_FALSE(corpus.Ingest(run));
  EXPECT_TRUE(corpus.Attempts()->empty());
}

TEST(Corpus, DamageIsSeen) {
  TemporaryFolder folder;
  const Path file = folder.path() / "c.sqlite";
  Corpus corpus = Make(file);
  IngestAll(corpus, SyntheticRuns(1, 10));
  ASSERT_TRUE(corpus.Check());
  ASSERT_TRUE(corpus.db().Run(
      "UPDATE blob SET packed = (SELECT packed FROM blob b WHERE b.digest <> blob.digest LIMIT 1) "
      "WHERE digest = (SELECT reply FROM attempt LIMIT 1)"));
  EXPECT_FALSE(corpus.Check());
}

TEST(Schema, AFileOfTheFirstVersionIsBroughtUpToDate) {
  TemporaryFolder folder;
  const Path file = folder.path() / "old.sqlite";
  {
    Database db = *Database::Open(file, Database::Access::kWrite);
    ASSERT_TRUE(db.Script(Migrations()[0]));
    ASSERT_TRUE(db.Script("PRAGMA user_version = 1; PRAGMA application_id = 1095979865"));
    ASSERT_TRUE(db.Run("INSERT INTO op(name, digest) VALUES ('softmax', 'd')"));
  }
  EXPECT_FALSE(Corpus::Open(file, Database::Access::kRead));
  Corpus corpus = Make(file);
  EXPECT_EQ(**corpus.db().Number("PRAGMA user_version"),
            static_cast<std::int64_t>(Migrations().size()));
  EXPECT_EQ(**corpus.db().Text("SELECT name FROM op"), "softmax");
  EXPECT_TRUE(corpus.db().Number("SELECT count(*) FROM split"));
  EXPECT_TRUE(Corpus::Open(file, Database::Access::kRead));
}

TEST(Schema, OtherFilesAreRefused) {
  TemporaryFolder folder;
  const Path text = folder.path() / "text";
  ASSERT_TRUE(WriteFileAtomically(text, std::string(5000, 'x')));
  EXPECT_FALSE(Corpus::Open(text, Database::Access::kWrite));
  const Path other = folder.path() / "other.sqlite";
  {
    Database db = *Database::Open(other, Database::Access::kWrite);
    ASSERT_TRUE(db.Script("CREATE TABLE t(x)"));
  }
  EXPECT_FALSE(Corpus::Open(other, Database::Access::kWrite));
  const Path later = folder.path() / "later.sqlite";
  {
    Corpus corpus = Make(later);
    ASSERT_TRUE(corpus.db().Script("PRAGMA user_version = 1000"));
  }
  const auto opened = Corpus::Open(later, Database::Access::kWrite);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().cure.find("version"), std::string::npos);
  EXPECT_FALSE(Corpus::Open(folder.path() / "nothing", Database::Access::kRead));
}

}  // namespace
}  // namespace assay::dataset
