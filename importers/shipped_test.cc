// What the importer makes of the shipped ops, written as torch functions (corpus/torch/shipped.py), against
// the references that were written by hand: the same truths, and bounds within a factor of two. What it
// made stands in corpus/torch/shipped, so that no torch is needed here; import_torch_test.py imports them
// again where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "validator/oracle/testing/bench_test.h"

namespace assay::importers {
namespace {

struct Sample {
  const char* op;
  ops::AxisValues axes;
};

class ShippedImports : public oracle::BenchTest<::testing::TestWithParam<Sample>> {};

// Both as an engine would be held to: nothing below what a dtype's own rounding allows.
void ExpectAlike(const oracle::OutputTruth& hand, const oracle::OutputTruth& imported,
                 const std::string& where) {
  ASSERT_EQ(hand.value.size(), imported.value.size()) << where;
  double scale = 0;
  for (const double value : hand.value) {
    if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
  }
  for (std::size_t i = 0; i < hand.value.size(); ++i) {
    const double a = hand.value[i], b = imported.value[i];
    if (std::isnan(a) || std::isinf(a)) {
      EXPECT_TRUE(std::isnan(a) ? std::isnan(b) : a == b) << where << " at " << i;
      continue;
    }
    ASSERT_LE(std::fabs(a - b), 1e-12 * scale) << where << " at " << i;
    const double one = hand.allowance[i], other = imported.allowance[i];
    if (!std::isfinite(one) && !std::isfinite(other)) continue;
    constexpr double kFactor = 2;
    ASSERT_LE(other, kFactor * one + 1e-300) << where << " at " << i << ": " << a;
    ASSERT_LE(one, kFactor * other + 1e-300) << where << " at " << i << ": " << a;
  }
}

TEST_P(ShippedImports, HaveTheTruthsOfTheReferencesWrittenByHand) {
  const Sample& sample = GetParam();
  const Path root(ASSAY_SOURCE_DIR);
  const auto hand = ops::LoadOp(root / "ops" / sample.op);
  const auto made = ops::LoadOp(root / "corpus/torch/shipped" / sample.op);
  ASSERT_TRUE(hand) << ToString(hand.error());
  ASSERT_TRUE(made) << ToString(made.error());
  // A function that computes in f32 whatever comes in has no binding for f32 of its own.
  for (const DType type : made->dtypes.at("T")) {
    const std::map<std::string, std::string> choice = {{"T", std::string(Name(type))}};
    const auto a = ops::MakeInstance(*hand, choice, "sm_90");
    const auto b = ops::MakeInstance(*made, choice, "sm_90");
    ASSERT_TRUE(a && b) << sample.op;
    for (const char* profile : {"normal", "integers"}) {
      cases::Case value;
      value.axes = sample.axes;
      value.seed = 11;
      for (const ops::TensorSpec& input : hand->inputs) {
        const bool filled = IsFloat(a->TypeOf(input)) && !input.is_scalar && !input.IsGenerated();
        if (filled && std::string_view(profile) != "normal")
          value.profiles[input.name].kind = profile;
      }
      const auto inputs = bench_->oracle().Materialise(*a, value);
      ASSERT_TRUE(inputs) << sample.op << ": " << ToString(inputs.error());
      const auto first = bench_->oracle().Evaluate(*a, value, *inputs);
      const auto second = bench_->oracle().Evaluate(*b, value, *inputs);
      ASSERT_TRUE(first) << sample.op << ": " << ToString(first.error());
      ASSERT_TRUE(second) << sample.op << ": " << ToString(second.error());
      for (const ops::TensorSpec& output : hand->outputs) {
        const std::string where = a->Id() + " " + profile + " " + output.name;
        const auto theirs = (*second)->outputs.find(output.name);
        ASSERT_NE(theirs, (*second)->outputs.end()) << where;
        ExpectAlike((*first)->outputs.find(output.name)->second, theirs->second, where);
      }
    }
  }
}

std::vector<Sample> Samples() {
  return {{"row_sum", {{"rows", 6}, {"columns", 115}}},
          {"softmax", {{"rows", 5}, {"columns", 71}}},
          {"cumsum", {{"rows", 3}, {"columns", 90}}},
          {"gemm", {{"m", 5}, {"n", 7}, {"k", 130}}},
          {"layer_norm", {{"tokens", 5}, {"hidden", 129}}},
          {"rms_norm", {{"tokens", 9}, {"hidden", 77}}},
          {"rms_norm_backward", {{"tokens", 20}, {"hidden", 33}}},
          {"cross_entropy", {{"tokens", 7}, {"vocab", 63}}},
          {"scatter_add", {{"tokens", 60}, {"hidden", 9}, {"rows", 6}}},
          {"embedding_rmsnorm_backward", {{"tokens", 20}, {"hidden", 17}, {"vocab", 5}}},
          {"moe_router", {{"tokens", 6}, {"hidden", 20}, {"experts", 13}, {"chosen", 4}}},
          {"attention", {{"heads", 2}, {"queries", 5}, {"keys", 23}, {"dim", 16}}},
          {"adamw", {{"n", 200}}},
          // Longer sums, and shorter ones.
          {"gemm", {{"m", 3}, {"n", 3}, {"k", 3}}},
          {"cross_entropy", {{"tokens", 3}, {"vocab", 600}}},
          {"moe_router", {{"tokens", 3}, {"hidden", 300}, {"experts", 5}, {"chosen", 5}}},
          {"attention", {{"heads", 2}, {"queries", 3}, {"keys", 150}, {"dim", 64}}}};
}

INSTANTIATE_TEST_SUITE_P(Ops, ShippedImports, ::testing::ValuesIn(Samples()), [](const auto& kind) {
  return std::string(kind.param.op) + "_" + std::to_string(kind.index);
});

// Each op of the library is among them.
TEST(ShippedLibrary, IsHeldToItsTorchFunctionsWhole) {
  std::vector<std::string> shipped, held;
  for (const auto& entry : std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "ops")) {
    if (std::filesystem::exists(entry.path() / "op.json"))
      shipped.push_back(entry.path().filename().string());
  }
  for (const Sample& sample : Samples()) held.emplace_back(sample.op);
  std::ranges::sort(shipped);
  std::ranges::sort(held);
  held.erase(std::ranges::unique(held).begin(), held.end());
  EXPECT_EQ(shipped, held);
}

}  // namespace
}  // namespace assay::importers
