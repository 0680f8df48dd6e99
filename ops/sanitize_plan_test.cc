#include "ops/sanitize_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/test_folder.h"

namespace assay::ops {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGood = R"json({
  "schema": "assay.launch/1",
  "options": ["-DN=4"],
  "kernels": [{"entry": "k", "grid": ["ceil_div(n, 256)"], "block": [256], "args": ["x", "y", "n", "a"]}],
  "buffers": {
    "x": {"dtype": "f32", "elements": 1024, "init": {"kind": "uniform", "low": -1, "high": 1, "seed": 7}},
    "y": {"dtype": "f32", "elements": 1024, "init": {"kind": "uninitialised"}, "save": "y.bin"},
    "z": {"dtype": "i32", "elements": 4, "init": {"kind": "file", "path": "z.bin"}}
  },
  "scalars": {"n": {"dtype": "i32", "value": 1000}, "a": {"dtype": "f32", "value": 0.5}}
})json";

Result<SanitizePlan> ReadPlan(std::string_view text) {
  ASSAY_TRY(const Json document, ParseJson(text, "launch.json"));
  return ParseSanitizePlan(document, "launch.json", "/somewhere");
}

std::string Broken(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto plan = ReadPlan(text);
  return plan ? "no error" : ToString(plan.error());
}

TEST(SanitizePlan, Reads) {
  const auto plan = ReadPlan(kGood);
  ASSERT_TRUE(plan.has_value()) << ToString(plan.error());
  EXPECT_EQ(plan->options, std::vector<std::string>{"-DN=4"});
  EXPECT_EQ(plan->kernels[0].grid[0], 4u);
  ASSERT_EQ(plan->buffers.size(), 3u);
  EXPECT_EQ(plan->buffers[1].save, Path("/somewhere/y.bin"));
  EXPECT_EQ(plan->buffers[1].role, SanitizeBuffer::Role::kOutput) << "what is kept is a result";
  EXPECT_EQ(plan->buffers[2].role, SanitizeBuffer::Role::kPlain);
  EXPECT_EQ(plan->buffers[2].init.path, Path("/somewhere/z.bin"));
  EXPECT_EQ(plan->scalars[0].Bytes(), (std::vector<std::uint8_t>{0xe8, 3, 0, 0}));
  EXPECT_EQ(plan->scalars[1].Bytes(), (std::vector<std::uint8_t>{0, 0, 0, 0x3f}));
}

TEST(SanitizePlan, ReadsTensorMaps) {
  std::string text(kGood);
  const std::string_view before = "\"scalars\"";
  text.insert(text.find(before), R"("tensor_maps": [
    {"name": "tiles", "tensor": "x", "shape": [32, "n / 50"], "strides": ["32 * 4"], "box": [8, 4],
     "swizzle": "32B", "fill": "nan"}], )");
  const auto at = text.find("\"x\", \"y\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 3, "\"tiles\"");
  const auto plan = ReadPlan(text);
  ASSERT_TRUE(plan.has_value()) << ToString(plan.error());
  ASSERT_EQ(plan->tensor_maps.size(), 1u);
  const ResolvedTensorMap& map = plan->tensor_maps[0];
  EXPECT_EQ(map.name, "tiles");
  EXPECT_EQ(map.tensor, "x");
  EXPECT_EQ(map.shape, (std::vector<std::uint64_t>{32, 20}));
  EXPECT_EQ(map.strides, (std::vector<std::uint64_t>{128}));
  EXPECT_EQ(map.box, (std::vector<std::uint32_t>{8, 4}));
  EXPECT_EQ(map.swizzle, 1);
  EXPECT_TRUE(map.fill_nan);

  for (const auto& [from, to] : {std::pair{"\"32B\"", "\"33B\""},
                                 {"\"tensor\": \"x\"", "\"tensor\": \"w\""},
                                 {"\"box\": [8, 4]", "\"box\": [8]"},
                                 {"[32, \"n / 50\"]", "[32, \"n / 0\"]"},
                                 {"\"name\": \"tiles\"", "\"name\": \"y\""}}) {
    std::string broken = text;
    const auto place = broken.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    broken.replace(place, std::strlen(from), to);
    const auto refused = ReadPlan(broken);
    ASSERT_FALSE(refused.has_value()) << to;
    EXPECT_THAT(ToString(refused.error()), HasSubstr("tensor_maps")) << to;
  }
}

TEST(SanitizePlan, ErrorsNamePlaceAndCure) {
  EXPECT_THAT(Broken("\"uniform\"", "\"unifrm\""),
              HasSubstr("/buffers/x/init/kind: unknown init kind 'unifrm'"));
  EXPECT_THAT(Broken("\"x\", \"y\"", "\"x\", \"w\""), HasSubstr("unknown argument 'w'"));
  EXPECT_THAT(Broken("ceil_div(n, 256)", "a"), HasSubstr("unknown axis 'a'"));
  EXPECT_THAT(Broken("\"value\": 1000", "\"value\": 3000000000"),
              HasSubstr("3000000000 does not fit i32"));
  EXPECT_THAT(Broken("\"elements\": 1024", "\"elements\": -1"), HasSubstr("/buffers/x/elements"));
  EXPECT_THAT(Broken("\"elements\": 1024", "\"elements\": 9223372036854775807"),
              HasSubstr("/buffers/x/elements"));
  EXPECT_THAT(Broken("\"n\": {\"dtype\"", "\"x\": {\"dtype\""), HasSubstr("the name 'x' is taken"));
  EXPECT_THAT(Broken("\"save\"", "\"sav\""), HasSubstr("did you mean 'save'?"));
}

TEST(SanitizePlan, FillsAreDeterministic) {
  TestFolder folder("sanitize-test");
  SanitizeBuffer buffer;
  buffer.name = "b";
  buffer.dtype = DType::kI32;
  buffer.elements = 4;
  std::array<std::int32_t, 4> out{};
  const auto bytes = std::as_writable_bytes(std::span(out));
  buffer.init.kind = BufferInit::Kind::kIota;
  ASSERT_TRUE(FillBuffer(buffer, bytes).has_value());
  EXPECT_EQ(out, (std::array<std::int32_t, 4>{0, 1, 2, 3}));
  buffer.init = {.kind = BufferInit::Kind::kUniform, .low = -2, .high = 2, .seed = 3};
  ASSERT_TRUE(FillBuffer(buffer, bytes).has_value());
  const auto first = out;
  for (const std::int32_t value : out) EXPECT_TRUE(value >= -2 && value <= 2);
  ASSERT_TRUE(FillBuffer(buffer, bytes).has_value());
  EXPECT_EQ(out, first);
  buffer.init = {.kind = BufferInit::Kind::kConstant, .value = 9};
  ASSERT_TRUE(FillBuffer(buffer, bytes).has_value());
  EXPECT_EQ(out[3], 9);
  buffer.init.kind = BufferInit::Kind::kFile;
  buffer.init.path = folder.path() / "z.bin";
  EXPECT_FALSE(FillBuffer(buffer, bytes).has_value());
  folder.Write("z.bin", std::string_view("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0", 16));
  ASSERT_TRUE(FillBuffer(buffer, bytes).has_value());
  EXPECT_EQ(out, (std::array<std::int32_t, 4>{1, 2, 3, 4}));
  folder.Write("z.bin", "short");
  EXPECT_THAT(ToString(FillBuffer(buffer, bytes).error()),
              HasSubstr("the file has 5 bytes, but 'b' needs 16"));
}

}  // namespace
}  // namespace assay::ops
