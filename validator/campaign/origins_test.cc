// Real candidates whose error comes from a known line, judged by everything that is real: the finding
// must name the line; where the formula is wrong it must say that rounding is not to blame; and replay
// must say the same.
#include "validator/campaign/origins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/minimise.h"
#include "validator/gates/gate.h"
#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/verdict/render.h"

namespace assay::campaign {
namespace {

using verdict::Candidate;
using verdict::Counterexample;
using verdict::GateResult;
using verdict::GateStatus;

class OriginsTest : public gates::RealBenchTest<> {
 protected:
  static ops::Instance InstanceOf(const std::string& op, const std::string& dtype) {
    return ops::MakeInstance(bench_->library.Find(op).value(), {{"T", dtype}}, "sm_90").value();
  }
  static Candidate Variant(const std::string& op, const std::string& variant) {
    return gates::CandidateIn(Path(ASSAY_SOURCE_DIR) / "corpus/precision" / op / "dishonest" /
                              variant);
  }

  /// The counterexample that a campaign would hand out for this case, or nothing when it passes.
  static std::vector<Counterexample> Counterexamples(const ops::Instance& instance,
                                                     const Candidate& candidate,
                                                     const cases::Case& value, bool shrink) {
    const gates::Options options;
    gates::Tools tools = bench_->tools();
    gates::GateContext context(instance, candidate, tools, options);
    for (const gates::Gate& gate : gates::AllGates()) {
      if (gate.stage >= gates::Stage::kCases) break;
      GateResult result;
      gate.run(context, result);
      EXPECT_NE(result.status, GateStatus::kRefuted) << gate.name << ": " << result.reason;
    }
    const cases::Probe probe{.case_ = value};
    const Wants wants{.max_steps = 2'000'000'000};
    const CaseRun run = context.CaseRunner().Run(probe, wants);
    EXPECT_FALSE(run.error) << ToString(*run.error);
    std::vector<Hit> hits;
    for (const Examiner& examiner : gates::Examiners()) {
      for (const Finding& finding : examiner.examine(run))
        hits.push_back({examiner.gate, probe, finding, wants});
    }
    if (hits.empty()) return {};
    if (shrink) return Minimise(context.Trial(), std::span(hits).first(1), 1).counterexamples;
    return {CounterexampleFor(context.Trial(), hits.front().gate, run, hits.front().finding)};
  }

  /// The first finding with an origin.
  static const Finding* Traced(const std::vector<Counterexample>& counterexamples) {
    for (const Counterexample& counterexample : counterexamples) {
      for (const Finding& finding : counterexample.findings) {
        if (!finding.origin.empty()) return &finding;
      }
    }
    return nullptr;
  }
};

std::string Block(const std::string& reply, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const std::size_t start = reply.find(fence) + fence.size();
  return reply.substr(start, reply.find("```", start) - start);
}

// The first attempt of the shipped transcript scatters a bf16 embedding's gradient with bf16 atomics.
class EmbeddingTest : public OriginsTest,
                      public testing::WithParamInterface<std::tuple<std::int64_t, const char*>> {};

TEST_P(EmbeddingTest, Bf16AtomicsAreRefutedAndTheirLineNamed) {
  const auto [tokens, ids] = GetParam();
  const std::string reply =
      ReadFile(Path(ASSAY_SOURCE_DIR) / "ops/embedding_rmsnorm_backward/transcript/1.md").value();
  const Candidate candidate{Block(reply, "cuda"), Block(reply, "json")};
  const ops::Instance instance = InstanceOf("embedding_rmsnorm_backward", "bf16");
  cases::Case value;
  value.axes = {{"tokens", tokens}, {"hidden", 4}, {"vocab", tokens == 512 ? 16 : 1024}};
  value.seed = 11;
  value.profiles["ids"] = {.kind = ids, .parameters = {}, .literal = {}};
  const std::vector<Counterexample> found =
      Counterexamples(instance, candidate, value, tokens > 512);
  ASSERT_FALSE(found.empty()) << "not refuted";
  const Finding* const finding = Traced(found);
  ASSERT_NE(finding, nullptr) << RenderCounterexample(found.front());
  ASSERT_FALSE(finding->origins.empty()) << finding->origin;
  EXPECT_EQ(finding->element->output, "grad_table");
  EXPECT_THAT(finding->origins.front().site.excerpt, testing::HasSubstr("atomicAdd(&grad_table"));
  EXPECT_EQ(finding->origins.front().site.file, "kernel.cu");
  EXPECT_GT(finding->origins.front().share, 0.6) << RenderCounterexample(found.front());
  EXPECT_THAT(RenderCounterexample(found.front()), testing::HasSubstr("atomicAdd(&grad_table"));
  // Replay says the same, to the byte.
  const auto replayed = gates::Gatekeeper(bench_->tools(), {}).Replay(instance, found.front());
  ASSERT_TRUE(replayed) << ToString(replayed.error());
  EXPECT_EQ(CompactJson(ToJson(*replayed)), CompactJson(ToJson(found.front())));
}
INSTANTIATE_TEST_SUITE_P(All, EmbeddingTest,
                         testing::Combine(testing::Values(512, 32768),
                                          testing::Values("zipf", "uniform")),
                         [](const auto& each) {
                           return std::string(std::get<1>(each.param)) +
                                  std::to_string(std::get<0>(each.param));
                         });

/// row_sum with `body` as what a thread does for its row, judged on one case.
class WordsTest : public OriginsTest {
 protected:
  static Finding Judged(const std::string& body) {
    const Candidate candidate{
        "extern \"C\" __global__ void row_sum(const float* x, float* y, long long rows, long long "
        "columns) {\n"
        "  const long long row = blockIdx.x * 128ll + threadIdx.x;\n"
        "  if (row >= rows) return;\n"
        "  x += row * columns;\n" +
            body + "}\n",
        Variant("row_sum", "scale").launch};
    cases::Case value;
    value.axes = {{"rows", 12}, {"columns", 300}};
    value.seed = 5;
    const std::vector<Counterexample> found =
        Counterexamples(InstanceOf("row_sum", "f32"), candidate, value, false);
    EXPECT_FALSE(found.empty()) << "not refuted";
    return found.empty() ? Finding{} : found.front().findings.front();
  }
};

TEST_F(WordsTest, ASkippedElementIsNoNarrowAccumulator) {
  const Finding finding = Judged(
      "  float sum = 0;\n"
      "  for (long long j = 1; j < columns; ++j) sum += x[j];\n"
      "  y[row] = sum;\n");
  EXPECT_EQ(finding.cause.find("narrower"), std::string::npos) << finding.cause;
}

TEST_F(WordsTest, ANarrowAccumulatorIsOne) {
  const Finding finding = Judged(
      "  float sum = 0;\n"
      "  for (long long j = 0; j < columns; ++j) {\n"
      "    sum = __uint_as_float((__float_as_uint(sum + x[j]) + 0x800u) & 0xfffff000u);\n"
      "  }\n"
      "  y[row] = sum;\n");
  EXPECT_NE(finding.cause.find("narrower"), std::string::npos)
      << finding.cause << "; " << finding.origin;
}

TEST_F(WordsTest, TheLineWhereTheFirstNanAroseIsNamed) {
  const Finding finding = Judged(
      "  float idle = -__uint_as_float(0x7f800000u);\n"
      "  if (columns > 1000) idle = 0;\n"
      "  float sum = idle - idle;\n"
      "  for (long long j = 0; j < columns; ++j) sum += x[j];\n"
      "  y[row] = sum;\n");
  EXPECT_EQ(finding.cause, "");
  EXPECT_NE(finding.origin.find("the first infinity or NaN that reaches it arises at line 7"),
            std::string::npos)
      << finding.origin;
}

TEST_F(WordsTest, WhatIsFiniteHasNoSuchLine) {
  const Finding finding = Judged("  y[row] = x[0] + 100 * x[1];\n");
  EXPECT_EQ(finding.origin.find("first infinity"), std::string::npos) << finding.origin;
}

struct Guilty {
  const char* op;
  const char* variant;
  const char* dtype;
  const char* line;  ///< Part of the source line that loses the precision; null: no rounding does.
};
constexpr Guilty kGuilty[] = {
    {"row_sum", "accumulator_bf16", "bf16", "value = __nv_bfloat16("},
    {"row_sum", "accumulator_f16", "f32", "value = __half("},
    {"row_sum", "truncate", "bf16", "__float2bfloat16_rz"},
    {"row_sum", "scale", "f32", nullptr},
    // Rounding the result is half of the error and more, and honest.
    {"row_sum", "scale", "bf16", nullptr},
    {"softmax", "scale", "bf16", nullptr},
    {"gemm", "scale", "f16", nullptr},
    {"scatter_add", "atomics_bf16", "bf16", "atomicAdd(&sums"},
    {"scatter_add", "accumulator_f16", "f32", "value = __half("},
    {"gemm", "accumulator_bf16", "bf16", "value = __nv_bfloat16("},
    {"gemm", "tf32", "f32", "& ~0x1fff"},
    {"gemm", "operands_bf16", "f32", "[i] = __float2bfloat16("},
    {"softmax", "accumulator_bf16", "f32", "value = __nv_bfloat16("},
    {"layer_norm", "accumulator_bf16", "f32", "value = __nv_bfloat16("},
    {"cross_entropy", "accumulator_f16", "f32", "value = __half("},
    {"cumsum", "accumulator_bf16", "bf16", "value = __nv_bfloat16("},
    {"attention", "accumulator_bf16", "bf16", "value = __nv_bfloat16("},
    {"attention", "no_softcap", "f32", nullptr},
};

ops::AxisValues AxesOf(std::string_view op) {
  if (op == "gemm") return {{"m", 4}, {"n", 4}, {"k", 400}};
  if (op == "layer_norm") return {{"tokens", 4}, {"hidden", 300}};
  if (op == "cross_entropy") return {{"tokens", 8}, {"vocab", 300}};
  if (op == "attention") return {{"heads", 2}, {"queries", 4}, {"keys", 60}, {"dim", 24}};
  if (op == "scatter_add") return {{"tokens", 512}, {"hidden", 8}, {"rows", 6}};
  return {{"rows", 6}, {"columns", 400}};
}

class LineTest : public OriginsTest, public testing::WithParamInterface<Guilty> {};

TEST_P(LineTest, IsNamed) {
  const Guilty& guilty = GetParam();
  const ops::Instance instance = InstanceOf(guilty.op, guilty.dtype);
  const Candidate candidate = Variant(guilty.op, guilty.variant);
  cases::Case value;
  value.axes = AxesOf(guilty.op);
  value.seed = 5;
  for (const ops::TensorSpec& input : instance.op.inputs) {
    if (input.is_scalar || !IsFloat(instance.TypeOf(input)) ||
        std::string(guilty.op) == "attention")
      continue;
    value.profiles[input.name] = {.kind = "uniform", .parameters = {}, .literal = {}};
  }
  const std::vector<Counterexample> found = Counterexamples(instance, candidate, value, false);
  ASSERT_FALSE(found.empty()) << "not refuted";
  const Finding* const finding = Traced(found);
  ASSERT_NE(finding, nullptr) << RenderCounterexample(found.front());
  if (guilty.line == nullptr) {
    EXPECT_TRUE(finding->origins.empty()) << RenderCounterexample(found.front());
    EXPECT_THAT(finding->origin, testing::HasSubstr("not a matter of rounding"));
    return;
  }
  ASSERT_FALSE(finding->origins.empty()) << RenderCounterexample(found.front());
  EXPECT_THAT(finding->origins.front().site.excerpt, testing::HasSubstr(guilty.line))
      << RenderCounterexample(found.front());
  EXPECT_GT(finding->origins.front().share, 0.5) << RenderCounterexample(found.front());
}
INSTANTIATE_TEST_SUITE_P(All, LineTest, testing::ValuesIn(kGuilty), [](const auto& each) {
  return std::string(each.param.op) + "_" + each.param.variant + "_" + each.param.dtype;
});

}  // namespace
}  // namespace assay::campaign
