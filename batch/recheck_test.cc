#include "batch/recheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "batch/testing/fakes.h"

namespace assay::batch {
namespace {

using ::testing::HasSubstr;

class RecheckTest : public ::testing::Test {
 protected:
  // A kernel that a judge of these versions vetted; `words` is what today's judge will say.
  void Vet(const std::string& op, const std::string& words,
           const std::map<std::string, std::string>& versions) {
    const Plan plan = testing::PlanOf({op}, DtypeChoice::kDefault);
    const ops::Instance& instance = plan.tasks[0].request.instance;
    const Path vetted = folder_.path() / "vetted" / op;
    ASSERT_TRUE(MakeFolders(vetted));
    ASSERT_TRUE(WriteFileAtomically(vetted / "kernel.cu", words));
    ASSERT_TRUE(WriteFileAtomically(vetted / "launch.json", "{}"));
    const runs::JudgeFacts facts{.versions = versions};
    ASSERT_TRUE(runs::KeepRecord(runs::Store(request_.store),
                                 {.key = runs::KeyOf({.instance = instance,
                                                      .judge = facts,
                                                      .prompts_digest = "p",
                                                      .model = {},
                                                      .options = {}}),
                                  .instance = instance.Id(),
                                  .op = op,
                                  .binding = runs::BindingWords(instance),
                                  .arch = instance.arch},
                                 vetted, op));
  }

  RecheckOutcome Run(const std::string& name, bool resume = false) {
    request_.folder = folder_.path() / name;
    request_.resume = resume;
    auto outcome = RunRecheck(
        request_, {.clock = clock_,
                   .library = library_,
                   .judge =
                       [this](const ops::Instance& instance, const verdict::Candidate& candidate,
                              const runs::JudgeFacts&) {
                         ++judged_;
                         return testing::VerdictOf(instance, candidate, candidate.kernel);
                       },
                   .interrupted = interrupted_});
    EXPECT_TRUE(outcome) << ToString(outcome.error());
    return outcome ? *std::move(outcome) : RecheckOutcome{};
  }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
  ops::Library library_{{Path(ASSAY_SOURCE_DIR) / "ops"}};
  RecheckRequest request_{.store = folder_.path() / "store",
                          .jobs = 2,
                          .judge = {{"assay-worker sha256", "new"}, {"nvrtc", "13.1"}}};
  std::function<bool()> interrupted_;
  std::atomic<int> judged_ = 0;
};

TEST_F(RecheckTest, SaysWhichVerdictsChangedAndWhatCameBetween) {
  Vet("softmax", "refute race data_race", {{"assay-worker sha256", "old"}, {"nvrtc", "13.1"}});
  Vet("gemm", "accept", {{"assay-worker sha256", "new"}, {"nvrtc", "13.0"}});
  Vet("cumsum", "refute race data_race", request_.judge);
  const RecheckOutcome outcome = Run("r");
  ASSERT_EQ(outcome.summary.drift.size(), 3u);
  const DriftRow& cumsum = outcome.summary.drift[0];
  EXPECT_FALSE(cumsum.drifted);  // the very same judge: the verdict stands, unasked
  EXPECT_TRUE(cumsum.changed.empty());
  const DriftRow& gemm = outcome.summary.drift[1];
  EXPECT_FALSE(gemm.drifted);
  EXPECT_EQ(gemm.after, "accepted");
  ASSERT_EQ(gemm.changed.size(), 1u);
  EXPECT_EQ(gemm.changed[0].cause, "toolkit");
  EXPECT_EQ(gemm.changed[0].before, "13.0");
  const DriftRow& softmax = outcome.summary.drift[2];
  EXPECT_TRUE(softmax.drifted);
  EXPECT_EQ(softmax.after, "refuted");
  EXPECT_EQ(softmax.gate, "race");
  EXPECT_EQ(softmax.finding, "data_race");
  ASSERT_EQ(softmax.changed.size(), 1u);
  EXPECT_EQ(softmax.changed[0].cause, "judge");
  EXPECT_EQ(judged_, 2);
  EXPECT_EQ(ExitCodeOfRecheck(outcome.summary), 1);
  // Judged is judged.
  const RecheckOutcome again = Run("r2");
  EXPECT_EQ(judged_, 2);
  EXPECT_EQ(Compared(ToJson(again.summary)), Compared(ToJson(outcome.summary)));
}

TEST_F(RecheckTest, NothingDriftsWhereNoVerdictChanged) {
  Vet("gemm", "accept", {{"assay-worker sha256", "old"}});
  EXPECT_EQ(ExitCodeOfRecheck(Run("r").summary), 0);
}

TEST_F(RecheckTest, AnOpThatIsGoneIsADrift) {
  Vet("gemm", "accept", request_.judge);
  library_ = ops::Library({folder_.path()});
  const RecheckOutcome outcome = Run("r");
  ASSERT_EQ(outcome.summary.drift.size(), 1u);
  EXPECT_TRUE(outcome.summary.drift[0].drifted);
  EXPECT_EQ(outcome.summary.drift[0].after, "");
  EXPECT_THAT(outcome.summary.drift[0].reason, HasSubstr("no such op"));
  EXPECT_EQ(judged_, 0);
}

TEST_F(RecheckTest, GoesOnWhereItWasInterrupted) {
  for (const char* op : {"gemm", "softmax", "cumsum", "rms_norm"})
    Vet(op, "accept", {{"nvrtc", "12.0"}});
  request_.jobs = 1;
  interrupted_ = [this] { return judged_ == 2; };
  const RecheckOutcome stopped = Run("r");
  EXPECT_EQ(stopped.summary.drift.size(), 2u);
  EXPECT_EQ(stopped.summary.measured.stopped, "interrupted");
  interrupted_ = {};
  const RecheckOutcome whole = Run("r", true);
  EXPECT_EQ(whole.summary.drift.size(), 4u);
  EXPECT_EQ(judged_, 4);
}

TEST_F(RecheckTest, OnlyTheNamedOps) {
  Vet("gemm", "accept", {{"nvrtc", "12.0"}});
  Vet("softmax", "accept", {{"nvrtc", "12.0"}});
  request_.ops = {"gemm"};
  EXPECT_EQ(Run("r").summary.drift.size(), 1u);
  request_.ops = {"attention"};
  request_.folder = folder_.path() / "r2";
  const auto none = RunRecheck(request_, {.clock = clock_, .library = library_, .judge = {}});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no vetted kernel"));
}

}  // namespace
}  // namespace assay::batch
