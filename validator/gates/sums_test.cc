// What the last blocks add (campaign/sums.cc), where no grid can be cut and the whole one takes too long:
// families of kernels that are wrong past 2^31 or 2^32 elements, and right ones beside them.
#include "validator/campaign/sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "validator/campaign/decisions.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/reach.h"
#include "validator/gates/gate.h"
#include "validator/gates/testing/real_bench.h"

namespace assay::gates {
namespace {

using verdict::Candidate;

constexpr const char* kFamilies[] = {"scatter_add_rows", "scatter_add_turns", "scatter_add_runs",
                                     "embedding_rmsnorm_backward_tokens"};

class SumsTest : public RealBenchTest<testing::TestWithParam<const char*>> {
 protected:
  /// Where the candidate's numbers outgrow their formats.
  static std::vector<ops::AxisValues> PastLimits(GateContext& context) {
    const campaign::Trial& trial = context.Trial();
    const campaign::Decisions decisions(trial.instance, trial.plan, trial.compiled);
    campaign::ReachRequest request;
    request.cost = [](const ops::AxisValues&) { return 1.0; };
    request.steps = request.pair_steps = 1e6;
    request.shapes = 1;
    return campaign::CasesThatReach(trial.instance, decisions, request).past_limits;
  }

  static campaign::CaseRun RunAt(GateContext& context, const ops::AxisValues& axes) {
    const auto value = campaign::CaseOfSums(context.Trial(), axes, "huge", 1);
    EXPECT_TRUE(value);
    cases::Probe probe;
    if (value) probe.case_ = *value;
    probe.ends_only = true;
    campaign::Wants wants;
    wants.part_steps = campaign::kMostLimitSteps;
    return context.CaseRunner().Run(probe, wants);
  }

  static bool IsRefuted(const campaign::CaseRun& run) {
    return !run.report.findings.empty() || (run.comparison && !run.comparison->numeric.empty());
  }
};

TEST_P(SumsTest, FindWhatComesRoundAndNothingElse) {
  const Path folder = Path(ASSAY_SOURCE_DIR) / "corpus" / "large" / "families" / GetParam();
  const Json json = ReadJsonFile((folder / "variants.json").string()).value();
  const ops::Instance instance = InstanceOf(json);
  Tools tools = bench_->tools();
  const Options options;
  const Candidate right = CandidateIn(folder);
  GateContext of_right(instance, right, tools, options);
  verdict::GateResult format;
  RunFormatGate(of_right, format);
  ASSERT_EQ(format.status, verdict::GateStatus::kPassed) << format.reason;
  EXPECT_TRUE(PastLimits(of_right).empty());
  for (const Json& wrong : json.at("wrong")) {
    if (wrong.contains("open")) continue;
    const std::string name = wrong.at("name");
    Candidate candidate = right;
    for (const Json& edit : wrong.at("edits")) {
      const std::string text = edit.at(0);
      const std::size_t at = candidate.kernel.find(text);
      ASSERT_NE(at, std::string::npos) << name;
      candidate.kernel.replace(at, text.size(), edit.at(1).get<std::string>());
    }
    GateContext context(instance, candidate, tools, options);
    RunFormatGate(context, format);
    ASSERT_EQ(format.status, verdict::GateStatus::kPassed) << name << ": " << format.reason;
    bool refuted = false;
    std::string said;
    std::vector<ops::AxisValues> shapes = PastLimits(context);
    for (std::size_t i = shapes.size(); i-- > 0;) {
      const ops::AxisValues few = campaign::WithFewTermsEach(instance.op, shapes[i]);
      if (few != shapes[i]) shapes.push_back(few);
    }
    for (const ops::AxisValues& axes : shapes) {
      const campaign::CaseRun run = RunAt(context, axes);
      ASSERT_FALSE(run.error) << name << ": " << ToString(*run.error);
      refuted = refuted || IsRefuted(run);
      said += cases::Describe(run.probe.case_, instance) + ": " + run.left_out + "\n";
      const campaign::CaseRun same = RunAt(of_right, axes);
      ASSERT_FALSE(same.error) << name << ": " << ToString(*same.error);
      EXPECT_FALSE(IsRefuted(same)) << name;
      EXPECT_NE(same.left_out, "") << name;
    }
    EXPECT_TRUE(refuted) << name << "\n" << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, SumsTest, testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace assay::gates
