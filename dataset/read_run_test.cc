#include "dataset/read_run.h"

#include <gtest/gtest.h>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"
#include "dataset/testing/synthetic.h"
#include "runs/judgement.h"

namespace assay::dataset {
namespace {

using testing::ReplyWith;
using testing::TemporaryFolder;

// A run as generate leaves it: refuted, without code, accepted.
Path MakeRun(const Path& folder) {
  FakeClock clock;
  loop::GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.out = folder;
  testing::ScriptedModel model(
      {ReplyWith("refute race data_race"), "no code", ReplyWith("accept")});
  loop::Environment environment{.clock = clock,
                                .make_judges = testing::ScriptedJudges(),
                                .prompts = testing::PromptsFolder(),
                                .versions = {{"assay", "0.1.0"}},
                                .model = &model};
  const auto outcome = loop::Generate(request, environment);
  ASSAY_CHECK(outcome.has_value(), outcome ? "" : ToString(outcome.error()));
  return folder;
}

TEST(ReadRun, ARunIsWhatItsFolderSays) {
  TemporaryFolder folder;
  const auto record =
      ReadRun(MakeRun(folder.path() / "run"), {.licence = "CC0-1.0", .provenance = "a test"});
  ASSERT_TRUE(record) << ToString(record.error());
  EXPECT_EQ(record->name, "run");
  EXPECT_EQ(record->licence, "CC0-1.0");
  EXPECT_EQ(record->outcome, "accepted");
  EXPECT_EQ(record->judge.at("assay"), "0.1.0");
  EXPECT_FALSE(record->request.contains("model_options"));
  ASSERT_EQ(record->attempts.size(), 3u);
  const AttemptRecord& first = record->attempts[0];
  EXPECT_EQ(first.kind, "first");
  EXPECT_EQ(first.target.op, "rms_norm");
  EXPECT_EQ(first.target.binding.at("T"), "bf16");
  EXPECT_EQ(first.prompt.back().role, "user");
  EXPECT_TRUE(first.kernel);
  EXPECT_EQ(first.verdict.Counterexamples().size(), 1u);
  EXPECT_FALSE(record->attempts[1].kernel);
  EXPECT_EQ(record->attempts[1].parent, 1);
  // The repair's prompt holds what was answered before it.
  EXPECT_GT(record->attempts[2].prompt.size(), first.prompt.size());
}

TEST(ReadRun, ACopyAndATornLogAreTheSameRun) {
  TemporaryFolder folder;
  const Path run = MakeRun(folder.path() / "runs/one");
  const Path copy = folder.path() / "runs/batch/copy";
  ASSERT_TRUE(MakeFolders(copy));
  std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
  // The copy was made while the run went on: its log ends in half a line after the first verdict.
  const std::string log = testing::Slurp(run / "events.jsonl");
  const std::size_t judged = log.find('\n', log.find("attempt_judged")) + 1;
  ASSERT_TRUE(WriteFileAtomically(copy / "events.jsonl", log.substr(0, judged + 40)));
  EXPECT_EQ(ReadRun(copy, {})->identity, ReadRun(run, {})->identity);
  EXPECT_EQ(ReadRun(copy, {})->attempts.size(), 1u);

  auto corpus = Corpus::Open(folder.path() / "c.sqlite", Database::Access::kWrite);
  ASSERT_TRUE(corpus);
  const auto report = IngestFrom(*corpus, folder.path() / "runs", {});
  ASSERT_TRUE(report) << ToString(report.error());
  EXPECT_EQ(report->added.runs, 1u);
  EXPECT_EQ(report->added.attempts, 3u);
  EXPECT_EQ(report->added.known, 1u);
  EXPECT_TRUE(corpus->Check());

  // Into another corpus, twice; and the first one's content is all there.
  auto other = Corpus::Open(folder.path() / "d.sqlite", Database::Access::kWrite);
  ASSERT_TRUE(other);
  EXPECT_EQ(IngestFrom(*other, folder.path() / "c.sqlite", {})->added.attempts, 3u);
  EXPECT_EQ(IngestFrom(*other, folder.path() / "c.sqlite", {})->added.attempts, 0u);
  EXPECT_EQ(*other->Fingerprint(), *corpus->Fingerprint());
}

TEST(ReadRun, ADamagedRunKeepsTheOthersNotOut) {
  TemporaryFolder folder;
  MakeRun(folder.path() / "runs/good");
  ASSERT_TRUE(MakeFolders(folder.path() / "runs/bad"));
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "runs/bad/events.jsonl", "{\"n\": 0}\n{}\n"));
  auto corpus = Corpus::Open(folder.path() / "c.sqlite", Database::Access::kWrite);
  const auto report = IngestFrom(*corpus, folder.path() / "runs", {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->added.runs, 1u);
  ASSERT_EQ(report->unreadable.size(), 1u);
  EXPECT_NE(report->unreadable[0].place.find("bad"), std::string::npos);
  EXPECT_FALSE(IngestFrom(*corpus, folder.path() / "nowhere", {}));
}

TEST(ReadRun, AJudgementOfATrainerIsARunOfOne) {
  TemporaryFolder folder;
  const RunRecord run = testing::SyntheticRun(1, 3, "softmax");
  const AttemptRecord& attempt = run.attempts.front();
  runs::Judged judged{.key = std::string(64, 'a'),
                      .op = "softmax",
                      .op_digest = attempt.target.op_digest,
                      .binding = attempt.target.binding,
                      .arch = "sm_90",
                      .judge = {{"assay", "0.1.0"}},
                      .verdict = attempt.verdict};
  judged.candidate = {*attempt.kernel, *attempt.launch};
  ASSERT_TRUE(runs::JudgementFolder(folder.path() / "cache").Keep(judged));
  auto corpus = Corpus::Open(folder.path() / "c.sqlite", Database::Access::kWrite);
  EXPECT_EQ(IngestFrom(*corpus, folder.path() / "cache", {})->added.attempts, 1u);
  EXPECT_EQ(IngestFrom(*corpus, folder.path() / "cache", {})->added.attempts, 0u);
  const auto rows = *corpus->Attempts();
  EXPECT_EQ(rows.at(0).run_kind, "rewards");
  EXPECT_EQ(rows.at(0).outcome, verdict::Name(attempt.verdict.outcome));
}

}  // namespace
}  // namespace assay::dataset
