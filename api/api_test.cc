// The public headers as a program outside of the tree uses them: nothing else of Assay is included or linked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "assay/generate.h"
#include "assay/judge.h"
#include "assay/ops.h"
#include "assay/runs.h"

namespace {

using namespace assay::api;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kSource = ASSAY_SOURCE_DIR;

Environment Here() {
  return Environment::FromSourceTree(kSource, fs::path(ASSAY_BINARY_DIR) / "bin");
}

TEST(Api, OpsAreListedAndDescribed) {
  EXPECT_THAT(ListOps(Here()), Contains(Field(&OpEntry::name, "rms_norm")));
  const auto op = FindOp(Here(), "rms_norm");
  ASSERT_TRUE(op.has_value());
  EXPECT_EQ(op->folder, kSource / "ops/rms_norm");
  EXPECT_FALSE(op->axes.empty());
  EXPECT_FALSE(op->outputs.empty());
  EXPECT_FALSE(op->dtypes.at("T").empty());
  const auto missing = FindOp(Here(), "rms_norn");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(ToString(missing.error()), HasSubstr("did you mean 'rms_norm'?"));
}

TEST(Api, AnEnvironmentWithoutItsPartsIsSaidSo) {
  Environment lacking = Here();
  lacking.worker = "/nonexistent/assay-worker";
  auto judge = Judge::Make(lacking);
  ASSERT_TRUE(judge.has_value()) << ToString(judge.error());
  const auto verdict = judge->Check({.op = "row_sum"}, {"", ""});
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(verdict.error().place, HasSubstr("/nonexistent"));
  lacking.bubblewrap = "/nonexistent/bwrap";
  EXPECT_FALSE(Judge::Make(lacking).has_value());
}

TEST(Api, AReplayedRunIsReadAndItsCounterexampleRunsAgain) {
  const fs::path folder = fs::path(testing::TempDir()) / "assay_api_test";
  fs::remove_all(folder);
  const std::string op = "embedding_rmsnorm_backward";
  int steps = 0;
  const auto generated =
      Generate(Here(),
               {.question = {.op = op, .effort = Effort::kQuick},
                .model = {.name = "replay/" + (kSource / "ops" / op / "transcript.jsonl").string()},
                .out = folder},
               {.progress = [&steps](const Progress&) { ++steps; }});
  ASSERT_TRUE(generated.has_value()) << ToString(generated.error());
  EXPECT_EQ(generated->outcome, Outcome::kAccepted) << generated->reason;
  ASSERT_TRUE(generated->vetted.has_value());
  EXPECT_TRUE(fs::exists(*generated->vetted / "kernel.cu"));

  const auto runs = ListRuns(folder);
  ASSERT_TRUE(runs.has_value());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().state, "accepted");
  const auto record = ReadRun(folder);
  ASSERT_TRUE(record.has_value()) << ToString(record.error());
  ASSERT_EQ(static_cast<int>(record->attempts.size()), generated->attempts);
  EXPECT_EQ(record->outcome, Outcome::kAccepted);
  const RunAttempt& first = record->attempts.front();
  ASSERT_TRUE(first.candidate && first.verdict);
  EXPECT_EQ(first.verdict->outcome, Outcome::kRefuted);
  ASSERT_FALSE(first.verdict->counterexamples.empty());
  const Counterexample& recorded = first.verdict->counterexamples.front();
  EXPECT_THAT(recorded.findings.front().text, HasSubstr(recorded.findings.front().kind));

  auto judge = Judge::Make(Here());
  ASSERT_TRUE(judge.has_value()) << ToString(judge.error());
  const auto replayed = judge->Replay(recorded.json);
  ASSERT_TRUE(replayed.has_value()) << ToString(replayed.error());
  ASSERT_FALSE(replayed->findings.empty());
  EXPECT_EQ(replayed->findings.front().kind, recorded.findings.front().kind);
  EXPECT_FALSE(judge->Replay("{}").has_value());
  fs::remove_all(folder);
}

}  // namespace
