#include "validator/oracle/rows.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace assay::oracle {
namespace {

ops::OpSpec Shipped(const std::string& name) {
  return *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / name);
}

TEST(Rows, AreThoseOfAnAxisWhoseRowsAreDeclaredIndependent) {
  EXPECT_EQ(AxisOfRows(Shipped("moe_router")), "tokens");
  EXPECT_EQ(AxisOfRows(Shipped("rms_norm")), "tokens");
  EXPECT_EQ(AxisOfRows(Shipped("softmax")), "rows");
  // Sums over tokens have no rows of tokens; what is overwritten stays where it is.
  EXPECT_EQ(AxisOfRows(Shipped("scatter_add")), std::nullopt);
  EXPECT_EQ(AxisOfRows(Shipped("adamw")), std::nullopt);
  ops::OpSpec op = Shipped("moe_router");
  std::erase_if(op.properties, [](const auto& each) { return each.name == "independent_rows"; });
  EXPECT_EQ(AxisOfRows(op), std::nullopt);
}

TensorMap TwoOutputs() {
  TensorMap outputs;
  outputs.emplace("a", *Tensor::Create(DType::kF32, {5, 3}));
  outputs.emplace("b", *Tensor::Create(DType::kF32, {5}));
  return outputs;
}

TEST(Rows, CountWhenEveryOutputHasThemWhole) {
  const TensorMap outputs = TwoOutputs();
  // Of row 1 the last element of a is missing, of row 3 the one of b.
  const SparseElements written = {{"a", {0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14}}, {"b", {0, 1, 4}}};
  EXPECT_EQ(RowsWritten(outputs, written), (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(RowsWritten(outputs, {{"a", {0, 1, 2}}}).empty());
}

TEST(Rows, AreTakenInOrderAndOtherTensorsWhole) {
  const ops::OpSpec op = Shipped("moe_router");
  TensorMap inputs;
  Tensor& x = inputs.emplace("x", *Tensor::Create(DType::kF32, {4, 2})).first->second;
  Tensor& weight = inputs.emplace("weight", *Tensor::Create(DType::kF32, {3, 2})).first->second;
  for (std::int64_t i = 0; i < x.elements; ++i) x.Set(i, static_cast<double>(i));
  for (std::int64_t i = 0; i < weight.elements; ++i) weight.Set(i, static_cast<double>(10 + i));
  const auto taken = TakeRows(op.inputs, inputs, "tokens", {1, 3});
  ASSERT_TRUE(taken) << ToString(taken.error());
  const Tensor& rows = taken->find("x")->second;
  EXPECT_EQ(rows.shape, (Shape{2, 2}));
  EXPECT_EQ(rows.At(0), 2);
  EXPECT_EQ(rows.At(3), 7);
  EXPECT_FALSE(FirstDifference(taken->find("weight")->second, weight));
}

TEST(Rows, FindingsNameTheRowOfTheCase) {
  Comparison comparison;
  Finding finding;
  finding.message = "y[1, 2] is 3";
  finding.element =
      ElementPlace{.output = "y", .index = {1, 2}, .expected = 0, .got = 3, .allowance = 0};
  comparison.numeric.push_back(finding);
  NameRows({7, 90'000}, comparison);
  EXPECT_EQ(comparison.numeric[0].element->index, (std::vector<std::int64_t>{90'000, 2}));
  EXPECT_TRUE(comparison.numeric[0].message.contains("row 90000 of the case"));
}

}  // namespace
}  // namespace assay::oracle
