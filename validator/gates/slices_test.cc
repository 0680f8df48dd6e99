// Slices: that judging some blocks of a case says what judging all of it says, and that ops whose
// constant extents leave no small case are judged like any others (corpus/large).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/rng.h"
#include "validator/campaign/parts.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/gates/gate.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"
#include "validator/verdict/render.h"

namespace assay::gates {
namespace {

using verdict::Candidate;
using verdict::Outcome;

class SlicesTest : public RealBenchTest<> {};

// Runs `count` random cases of a candidate both ways, and hands both runs to `check`, with the inputs.
template <class Check>
void RunBothWays(RealBench& bench, const std::string& op, const Candidate& candidate, int count,
                 Check check) {
  const ops::Instance instance =
      ops::MakeInstance(bench.library.Find(op).value(), {}, "sm_90").value();
  Tools tools = bench.tools();
  const Options options;
  GateContext context(instance, candidate, tools, options);
  verdict::GateResult format;
  RunFormatGate(context, format);
  ASSERT_EQ(format.status, verdict::GateStatus::kPassed) << format.reason;
  const auto shapes =
      cases::GenerateShapes(instance, {.max_elements = 1 << 15, .count = 60, .seed = 7});
  ASSERT_TRUE(shapes) << ToString(shapes.error());
  Rng rng(DeriveSeed(11, op));
  for (int i = 0; i < count; ++i) {
    cases::Probe probe;
    probe.case_ =
        cases::MakeCase(instance, *cases::FindRecipe(i % 2 == 0 ? "exact" : "plain"),
                        (*shapes)[rng.Below(shapes->size())].axes, rng.Below(1000), "random");
    campaign::Wants wants;
    wants.keep_outputs = true;
    wants.slice_steps = 3;  // as few blocks as there may be
    // Known to be dear, rightly or by far too much, or not known.
    constexpr std::uint64_t kEstimates[] = {0, 1'000, 350'000'000};
    wants.block_steps = kEstimates[i % 3];
    const campaign::CaseRun whole = context.CaseRunner().Run(probe, wants);
    probe.ends_only = true;
    const campaign::CaseRun slice = context.CaseRunner().Run(probe, wants);
    ASSERT_FALSE(whole.error) << ToString(*whole.error);
    ASSERT_FALSE(slice.error) << ToString(*slice.error);
    const auto inputs = tools.oracle.Materialise(instance, probe.case_);
    ASSERT_TRUE(inputs) << ToString(inputs.error());
    check(whole, slice, *inputs, cases::Describe(probe.case_, instance));
  }
}

constexpr std::size_t kNoBuffer = SIZE_MAX;

TEST_F(SlicesTest, HoldTheBitsOfWholeRunsAndFindNothingWhereTheyFindNothing) {
  int all = 0, all_judged = 0, all_cut = 0;
  for (const char* op : {"rms_norm", "softmax", "gemm", "cumsum", "attention", "cross_entropy",
                         "layer_norm", "row_sum", "scatter_add", "embedding_rmsnorm_backward",
                         "rms_norm_backward", "moe_router", "adamw"}) {
    int cut = 0, judged = 0;
    const Candidate candidate = CandidateIn(Path(ASSAY_SOURCE_DIR) / "ops" / op / "naive");
    const ops::OpSpec spec = bench_->library.Find(op).value();
    RunBothWays(
        *bench_, op, candidate, 16,
        [&](const auto& whole, const auto& slice, const auto& inputs, const std::string& text) {
          ++all;
          EXPECT_TRUE(whole.report.findings.empty()) << op << " " << text;
          EXPECT_TRUE(slice.report.findings.empty()) << op << " " << text;
          if (!slice.left_out.empty()) return;
          ASSERT_TRUE(slice.comparison) << op << " " << text;
          EXPECT_TRUE(slice.comparison->numeric.empty()) << op << " " << text;
          ++judged;
          cut += std::ranges::any_of(slice.parts,
                                     [](const auto& part) { return part.run < part.all; });
          for (const auto& [name, tensor] : slice.kept) {
            const Tensor& other = whole.kept.find(name)->second;
            const std::string& updates = spec.FindOutput(name)->updates;
            const auto written =
                updates.empty()
                    ? campaign::WrittenElements(tensor.memory, SizeOf(tensor.dtype), 0xff,
                                                slice.report, kNoBuffer)
                    : campaign::ChangedElements(tensor, inputs.inputs.find(updates)->second);
            for (const std::int64_t i : written)
              ASSERT_EQ(std::memcmp(tensor.Element(i), other.Element(i), SizeOf(tensor.dtype)), 0)
                  << op << " " << text << " " << name << " " << i;
          }
        });
    // Most are judged; and where blocks are independent, some of them in part.
    EXPECT_GE(judged, 12) << op;
    const bool independent = std::string_view(op) != "scatter_add" &&
                             std::string_view(op) != "embedding_rmsnorm_backward";
    if (independent) {
      EXPECT_GE(cut, 3) << op;
    }
    all_judged += judged;
    all_cut += cut;
  }
  EXPECT_GE(all, 200);
  std::printf("slices against whole runs: %d cases, %d judged both ways, %d of them in part\n", all,
              all_judged, all_cut);
}

TEST_F(SlicesTest, FindWhatWholeRunsFindWhereEveryBlockIsWrong) {
  Candidate candidate = CandidateIn(Path(ASSAY_SOURCE_DIR) / "ops" / "row_sum" / "naive");
  const std::string right = "y[row] = T(sum)";
  const std::size_t at = candidate.kernel.find(right);
  ASSERT_NE(at, std::string::npos);
  candidate.kernel.replace(at, right.size(), "y[row] = T(2 * sum + 1)");
  int found = 0;
  RunBothWays(*bench_, "row_sum", candidate, 20,
              [&](const auto& whole, const auto& slice, const auto&, const std::string& text) {
                ASSERT_TRUE(whole.comparison && slice.comparison) << text;
                // A whole run tells errors that rounding in a narrower type could explain apart.
                const bool wrong =
                    !whole.comparison->numeric.empty() || !whole.comparison->precision.empty();
                EXPECT_EQ(wrong, !slice.comparison->numeric.empty()) << text;
                if (!wrong) return;
                ++found;
                EXPECT_TRUE(slice.comparison->numeric[0].element) << text;
              });
  EXPECT_GE(found, 15);
}

TEST_F(SlicesTest, OutputsLeftUnwrittenShowWhereAllBlocksRan) {
  Candidate candidate = CandidateIn(Path(ASSAY_SOURCE_DIR) / "ops" / "row_sum" / "naive");
  const std::string right = "if (threadIdx.x == 0) y[row]";
  const std::size_t at = candidate.kernel.find(right);
  ASSERT_NE(at, std::string::npos);
  candidate.kernel.replace(at, right.size(), "if (threadIdx.x == 0 && row != rows - 1) y[row]");
  int found = 0;
  RunBothWays(*bench_, "row_sum", candidate, 12,
              [&](const auto& whole, const auto& slice, const auto&, const std::string& text) {
                ASSERT_EQ(whole.outputs.size(), 1u);
                EXPECT_GT(whole.outputs[0].unwritten_bytes, 0u) << text;
                // The last block leaves the output's end unwritten, so that all of them run.
                if (!slice.left_out.empty()) return;
                ASSERT_EQ(slice.outputs.size(), 1u) << text;
                found += slice.outputs[0].unwritten_bytes > 0;
              });
  EXPECT_GE(found, 8);
}

// One slice of `candidate` at `axes`.
campaign::CaseRun Slice(RealBench& bench, const std::string& op,
                        const std::map<std::string, std::string>& dtypes,
                        const Candidate& candidate, const ops::AxisValues& axes) {
  const ops::Instance instance =
      ops::MakeInstance(bench.library.Find(op).value(), dtypes, "sm_90").value();
  Tools tools = bench.tools();
  const Options options;
  GateContext context(instance, candidate, tools, options);
  verdict::GateResult format;
  RunFormatGate(context, format);
  EXPECT_EQ(format.status, verdict::GateStatus::kPassed) << format.reason;
  cases::Probe probe;
  probe.case_ = cases::MakeCase(instance, *cases::FindRecipe("plain"), axes, 7, "random");
  probe.ends_only = true;
  campaign::CaseRun run = context.CaseRunner().Run(probe, {});
  EXPECT_FALSE(run.error) << ToString(*run.error);
  return run;
}

Candidate Edited(const std::string& op, const std::string& text, const std::string& other) {
  Candidate candidate = CandidateIn(Path(ASSAY_SOURCE_DIR) / "ops" / op / "naive");
  const std::size_t at = candidate.kernel.find(text);
  EXPECT_NE(at, std::string::npos);
  candidate.kernel.replace(at, text.size(), other);
  return candidate;
}

// A quarter of a million blocks, which all together are too dear,
ops::AxisValues ManyRows() { return {{"rows", 1 << 20}, {"columns", 1024}}; }
// and if they store as often, so are their skeletons.
constexpr const char* kOften = "for (volatile int i = 0; i < 32; i = i + 1) ";

TEST_F(SlicesTest, AnEndThatNobodyIsKnownToWriteIsSaid) {
  const std::string store = "if (threadIdx.x == 0) y[row]";
  const std::string no_end =
      std::string(kOften) + "if (threadIdx.x == 0 && row != rows - 1) y[row]";
  const campaign::CaseRun right =
      Slice(*bench_, "row_sum", {}, Edited("row_sum", store, store), ManyRows());
  EXPECT_EQ(right.left_out, "");
  ASSERT_TRUE(right.comparison);
  EXPECT_TRUE(right.comparison->numeric.empty());
  const campaign::CaseRun unwritten =
      Slice(*bench_, "row_sum", {}, Edited("row_sum", store, no_end), ManyRows());
  EXPECT_NE(unwritten.left_out.find("the end of an output seems unwritten"), std::string::npos)
      << unwritten.left_out;
}

TEST_F(SlicesTest, WhatIsWrongBesideAnUnknownEndIsFound) {
  const campaign::CaseRun run =
      Slice(*bench_, "row_sum", {},
            Edited("row_sum", "if (threadIdx.x == 0) y[row] = T(sum)",
                   std::string(kOften) +
                       "if (threadIdx.x == 0 && row != rows - 1) y[row] = T(2.0f * sum + 1.0f)"),
            ManyRows());
  EXPECT_EQ(run.left_out, "");
  ASSERT_TRUE(run.comparison);
  EXPECT_FALSE(run.comparison->numeric.empty());
}

// Inputs repeat a pattern here, which no file holds whole: a copy of them must be one all the same.
TEST_F(SlicesTest, OverwrittenTensorsAreJudgedInPart) {
  const ops::AxisValues many = {{"n", 5'000'000}};
  const std::string rule = "p - rate * decay * p - rate";
  for (const char* dtype : {"bf16", "f32"}) {
    const campaign::CaseRun right =
        Slice(*bench_, "adamw", {{"T", dtype}}, Edited("adamw", rule, rule), many);
    EXPECT_EQ(right.left_out, "") << dtype;
    ASSERT_TRUE(right.comparison) << dtype;
    EXPECT_TRUE(right.comparison->numeric.empty()) << dtype;
    EXPECT_TRUE(right.report.findings.empty()) << dtype;
  }
  const campaign::CaseRun wrong =
      Slice(*bench_, "adamw", {{"T", "f32"}},
            Edited("adamw", "const float g = static_cast<float>(grad[i])",
                   "const float g = static_cast<float>(grad[i & 0xffff])"),
            many);
  ASSERT_TRUE(wrong.comparison);
  EXPECT_FALSE(wrong.comparison->numeric.empty());
}

TEST_F(SlicesTest, GeneratedInputsAreJudgedInPart) {
  const ops::AxisValues many = {{"tokens", 70'000}, {"hidden", 40}};
  const std::string scale = "rstd[token]";
  const campaign::CaseRun right = Slice(*bench_, "rms_norm_backward", {{"T", "bf16"}},
                                        Edited("rms_norm_backward", scale, scale), many);
  EXPECT_EQ(right.left_out, "");
  ASSERT_TRUE(right.comparison);
  EXPECT_TRUE(right.comparison->numeric.empty());
  const campaign::CaseRun wrong =
      Slice(*bench_, "rms_norm_backward", {{"T", "bf16"}},
            Edited("rms_norm_backward", scale, "rstd[token & 0xffff]"), many);
  ASSERT_TRUE(wrong.comparison);
  EXPECT_FALSE(wrong.comparison->numeric.empty());
}

struct Expectation {
  std::string op;
  std::map<std::string, std::string> dtypes;
  std::vector<std::string> gates;    ///< That may refute it; empty: none does.
  std::string outcome = "accepted";  ///< Where there are none.
};

Expectation ReadExpectation(const Path& path) {
  const Json json = ReadJsonFile(path.string()).value();
  Expectation expectation{.op = json.at("op"), .dtypes = json.at("dtypes"), .gates = {}};
  if (json.contains("gates")) expectation.gates = json.at("gates");
  if (json.contains("outcome")) expectation.outcome = json.at("outcome");
  return expectation;
}

class LargeTest : public SlicesTest, public testing::WithParamInterface<std::string> {};

TEST_P(LargeTest, IsJudgedLikeAnyOther) {
  const Path corpus = Path(ASSAY_SOURCE_DIR) / "corpus" / "large";
  const Path folder = corpus / "kernels" / GetParam();
  const Expectation expectation = ReadExpectation(folder / "expect.json");
  const ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops", corpus / "ops"}};
  const ops::Instance instance =
      ops::MakeInstance(library.Find(expectation.op).value(), expectation.dtypes, "sm_90").value();
  Options options;
  options.holdout_seed = [] { return 20'260'101; };
  Gatekeeper gatekeeper(bench_->tools(), options);
  const Judgement judgement = gatekeeper.Judge(instance, CandidateIn(folder));
  const std::string text = RenderVerdict(judgement.verdict);
  EXPECT_TRUE(judgement.verdict.ledger.Balanced()) << text;
  if (expectation.gates.empty()) {
    EXPECT_EQ(Name(judgement.verdict.outcome), expectation.outcome) << text;
    return;
  }
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted) << text;
  const auto all = judgement.verdict.Counterexamples();
  EXPECT_TRUE(std::ranges::any_of(all, [&](const verdict::Counterexample* each) {
    return std::ranges::find(expectation.gates, each->gate) != expectation.gates.end();
  })) << text;
  // What was found can be found again from the counterexample alone.
  const auto again = gatekeeper.Replay(instance, *all.front());
  ASSERT_TRUE(again) << ToString(again.error());
  ASSERT_FALSE(again->findings.empty()) << text;
  EXPECT_EQ(again->findings.front().kind, all.front()->findings.front().kind);
}

std::vector<std::string> Kernels() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "corpus" / "large" / "kernels"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Corpus, LargeTest, testing::ValuesIn(Share(Kernels())),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace assay::gates
