#include "ops/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace assay::ops {
namespace {

using ::testing::HasSubstr;

OpSpec SmallOp() {
  OpSpec op;
  op.name = "small";
  for (const char* name : {"tokens", "hidden"}) {
    Axis axis;
    axis.name = name;
    op.axes.push_back(axis);
  }
  op.dtypes["T"] = {DType::kBF16};
  TensorSpec x;
  x.name = "x";
  x.dtype_name = "T";
  op.inputs.push_back(x);
  x.name = "y";
  op.outputs.push_back(x);
  return op;
}

constexpr std::string_view kGood = R"json({
  "schema": "assay.launch/1",
  "kernels": [
    {"entry": "rms<float, 256>", "grid": ["ceil_div(tokens, 4)"], "block": [32, "4"],
     "shared_bytes": "hidden * 4", "args": ["x", "scratch", "y", "tokens"]},
    {"entry": "rest", "grid": ["hidden - 5", 2], "block": 64, "args": []}
  ],
  "workspace": [{"name": "scratch", "dtype": "f32", "shape": ["tokens", "hidden"], "init": "zero"}]
})json";

Result<ResolvedPlan> ReadPlan(std::string_view text, const AxisValues& axes) {
  const Instance instance = *MakeInstance(SmallOp(), {}, "sm_90");
  ASSAY_TRY(const Json document, ParseJson(text, "launch.json"));
  ASSAY_TRY(const LaunchPlan plan, ParseLaunchPlan(document, "launch.json", instance.op));
  return Resolve(plan, instance, axes);
}

std::string Broken(std::string_view from, std::string_view to,
                   const AxisValues& axes = {{"tokens", 9}, {"hidden", 8}}) {
  std::string text(kGood);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto plan = ReadPlan(text, axes);
  return plan ? "no error" : ToString(plan.error());
}

TEST(LaunchPlan, Resolves) {
  const auto plan = ReadPlan(kGood, {{"tokens", 9}, {"hidden", 8}});
  ASSERT_TRUE(plan.has_value()) << ToString(plan.error());
  ASSERT_EQ(plan->kernels.size(), 2u);
  EXPECT_EQ(plan->kernels[0].entry, "rms<float, 256>");
  EXPECT_EQ(plan->kernels[0].grid, (std::array<std::uint32_t, 3>{3, 1, 1}));
  EXPECT_EQ(plan->kernels[0].block, (std::array<std::uint32_t, 3>{32, 4, 1}));
  EXPECT_EQ(plan->kernels[0].shared_bytes, 32u);
  EXPECT_EQ(plan->kernels[1].block, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(plan->workspace[0].elements, 72);
  EXPECT_TRUE(plan->workspace[0].zero);
}

TEST(LaunchPlan, EmptyGridsAreLeftOut) {
  const auto plan = ReadPlan(kGood, {{"tokens", 9}, {"hidden", 5}});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->kernels.size(), 1u);
}

TEST(LaunchPlan, ErrorsNamePlaceAndCure) {
  EXPECT_THAT(
      Broken("\"scratch\", \"y\"", "\"scrach\", \"y\""),
      HasSubstr("/kernels/0/args/1: unknown argument 'scrach'\n  fix: did you mean 'scratch'?"));
  EXPECT_THAT(
      Broken("ceil_div(tokens, 4)", "tokens / (hidden - 8)"),
      HasSubstr(
          "launch.json: /kernels/0/grid/0, column 8: 'tokens / (hidden - 8)' divides 9 by zero"));
  EXPECT_THAT(Broken("ceil_div(tokens, 4)", "ceil_div(token, 4)"),
              HasSubstr("did you mean 'tokens'?"));
  EXPECT_THAT(Broken("hidden - 5", "hidden - 9"),
              HasSubstr("/kernels/1/grid/0: grid.x comes to -1"));
  EXPECT_THAT(Broken("[32, \"4\"]", "[512, 4]"), HasSubstr("the block has 2048 threads"));
  EXPECT_THAT(Broken("[32, \"4\"]", "[0]"), HasSubstr("block.x comes to 0"));
  EXPECT_THAT(Broken("[32, \"4\"]", "[1, 1, 1, 1]"),
              HasSubstr("has 4 entries, and at most 3 are allowed"));
  EXPECT_THAT(Broken("[32, \"4\"]", "[1.5]"), HasSubstr("must be an integer or an expression"));
  EXPECT_THAT(Broken("\"hidden - 5\", 2", "1, 65536"), HasSubstr("grid.y comes to 65536"));
  EXPECT_THAT(Broken("hidden * 4", "hidden * 100000"), HasSubstr("shared_bytes comes to 800000"));
  EXPECT_THAT(Broken("\"zero\"", "\"zeros\""), HasSubstr("unknown init 'zeros'"));
  EXPECT_THAT(Broken("\"name\": \"scratch\"", "\"name\": \"x\""),
              HasSubstr("the name 'x' is taken"));
  EXPECT_THAT(Broken("\"dtype\": \"f32\"", "\"dtype\": \"float\""),
              HasSubstr("unknown dtype 'float'"));
  EXPECT_THAT(Broken("\"shape\": [\"tokens\", \"hidden\"]", "\"shape\": [9999999999, 9999999999]"),
              HasSubstr("more elements than 63 bits"));
  EXPECT_THAT(Broken("\"shape\": [\"tokens\", \"hidden\"]", "\"shape\": [9999999999999]"),
              HasSubstr("GiB"));
  EXPECT_THAT(Broken("\"rest\"", "\"x; system(1)\""), HasSubstr("is not the name of a kernel"));
  EXPECT_THAT(Broken("\"rest\"", "\"\""), HasSubstr("is not the name of a kernel"));
  EXPECT_THAT(Broken("\"workspace\"", "\"options\": [\"-I/\"], \"workspace\""),
              HasSubstr("unknown key 'options'"));
  EXPECT_THAT(Broken("\"block\": 64,", ""), HasSubstr("the key 'block' is missing"));
  EXPECT_THAT(Broken("assay.launch/1", "1"), HasSubstr("unknown schema"));
  EXPECT_THAT(Broken("\"block\": 64,", "\"block\": 64, \"cluster\": [2],"),
              HasSubstr("is no multiple of cluster.x"));
}

TEST(LaunchPlan, NotAPlanAtAll) {
  for (const std::string_view text : {"[]", "null", "{}", R"({"schema": "assay.launch/1"})",
                                      R"({"schema": "assay.launch/1", "kernels": []})",
                                      R"({"schema": "assay.launch/1", "kernels": [1]})",
                                      R"({"schema": "assay.launch/1", "kernels": {"a": 1}})"}) {
    EXPECT_FALSE(ReadPlan(text, {{"tokens", 1}, {"hidden", 1}}).has_value()) << text;
  }
}

}  // namespace
}  // namespace assay::ops
