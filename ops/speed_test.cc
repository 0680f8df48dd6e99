#include "ops/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::ops {
namespace {

using ::testing::HasSubstr;

OpSpec Product() {
  OpSpec op;
  op.name = "product";
  for (const char* name : {"m", "n", "k"}) {
    Axis& axis = op.axes.emplace_back();
    axis.name = name;
  }
  const auto tensor = [](const char* name, const char* rows, const char* columns) {
    TensorSpec spec;
    spec.name = name;
    spec.dtype_name = "bf16";
    spec.shape = {Expression::Parse(rows, "test").value(),
                  Expression::Parse(columns, "test").value()};
    return spec;
  };
  op.inputs = {tensor("a", "m", "k"), tensor("b", "k", "n")};
  op.outputs = {tensor("c", "m", "n")};
  return op;
}

Result<SpeedContract> Read(const char* text) {
  return ReadSpeed(ParseJson(text, "test").value(), "op.json: /speed", Product());
}

TEST(SpeedContractTest, EveryTensorMovesOnceUnlessSaidOtherwise) {
  const Instance instance{.op = Product(), .binding = {}};
  const AxisValues axes = {{"m", 2}, {"n", 3}, {"k", 5}};
  const auto whole =
      LeastWorkOf(instance, Read(R"({"operations": "2 * m * n * k"})").value(), axes);
  ASSERT_TRUE(whole) << ToString(whole.error());
  EXPECT_EQ(whole->bytes, 2 * (10 + 15 + 6));
  EXPECT_EQ(whole->operations, 60);
  const auto less = LeastWorkOf(instance, Read(R"({"moved": {"b": "n"}})").value(), axes);
  EXPECT_EQ(less->bytes, 2 * (10 + 3 + 6));
  EXPECT_EQ(less->operations, 0);
}

TEST(SpeedContractTest, SaysWhatIsNoContract) {
  const auto wrong = [](const char* text) {
    const auto speed = Read(text);
    return speed ? "no error" : ToString(speed.error());
  };
  EXPECT_THAT(wrong(R"({"operations": "2 * q"})"), HasSubstr("'q'"));
  EXPECT_THAT(wrong(R"({"unit": "tensor"})"), HasSubstr("unit"));
  EXPECT_THAT(wrong(R"({"moved": {"d": "m"}})"), HasSubstr("no tensor 'd'"));
  EXPECT_THAT(wrong(R"({"bar": 1.5})"), HasSubstr("between 0 and 1"));
  EXPECT_THAT(wrong(R"({"library": {"m": "m", "n": "n"}})"), HasSubstr("k"));
  EXPECT_THAT(wrong(R"({"bars": 0.5})"), HasSubstr("bars"));
  EXPECT_THAT(wrong(R"({"library": {"of": "softmin", "rows": "m", "columns": "k"}})"),
              HasSubstr("softmax"));
  EXPECT_THAT(wrong(R"({"library": {"of": "softmax", "rows": "m"}})"), HasSubstr("columns"));
  EXPECT_THAT(wrong(R"({"library": {"of": "sum", "rows": "m", "columns": "k", "n": "n"}})"),
              HasSubstr("n"));
  EXPECT_EQ(wrong(R"({"library": {"of": "sum", "rows": "m", "columns": "k"}})"), "no error");
  EXPECT_EQ(wrong(R"({"unit": "matrix", "bar": 0.5, "library": {"m": "m", "n": "n", "k": "k"}})"),
            "no error");
}

TEST(SpeedContractTest, ShippedOpsHaveOne) {
  std::size_t found = 0;
  for (const Library::Entry& entry : Library({Path(ASSAY_SOURCE_DIR) / "ops"}).List()) {
    const auto op = LoadOp(entry.folder);
    ASSERT_TRUE(op) << ToString(op.error());
    const auto speed = SpeedOf(*op);
    ASSERT_TRUE(speed) << ToString(speed.error());
    EXPECT_GT(speed->bar, 0) << op->name;
    for (const Workload& workload : op->workloads) {
      const auto axes = ResolveAxes(*op, workload.axes);
      const auto work = LeastWorkOf(MakeInstance(*op, {}, "sm_90").value(), *speed, *axes);
      ASSERT_TRUE(work) << op->name << ": " << ToString(work.error());
      EXPECT_GT(work->bytes, 0) << op->name;
      EXPECT_GT(work->operations, 0) << op->name;
    }
    ++found;
  }
  EXPECT_GE(found, 13u);
}

}  // namespace
}  // namespace assay::ops
