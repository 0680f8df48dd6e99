// Small instances for tests, made without files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace assay::cases {

inline ops::Expression Parse(const std::string& text) {
  return ops::Expression::Parse(text, "test").value();
}

inline ops::Axis VariableAxis(std::string name, std::int64_t min, std::int64_t max) {
  ops::Axis axis;
  axis.name = std::move(name);
  axis.min = min;
  axis.max = max;
  return axis;
}

inline ops::TensorSpec FloatTensor(std::string name, std::vector<std::string> shape,
                                   std::string dtype = "f32") {
  ops::TensorSpec spec;
  spec.name = std::move(name);
  for (const std::string& extent : shape) spec.shape.push_back(Parse(extent));
  spec.dtype_name = std::move(dtype);
  return spec;
}

/// y[rows, columns] from x[rows, columns] and ids[rows] in [0, table); columns must be even.
inline ops::Instance GatherInstance() {
  ops::Instance instance;
  instance.op.name = "gather";
  instance.op.axes = {VariableAxis("rows", 1, 1 << 20), VariableAxis("columns", 1, 1 << 14),
                      VariableAxis("table", 1, 1 << 16)};
  instance.op.inputs = {FloatTensor("x", {"table", "columns"}), FloatTensor("ids", {"rows"}, "i64"),
                        FloatTensor("scale", {})};
  instance.op.inputs[1].domain.kind = ops::Domain::Kind::kIndex;
  instance.op.inputs[1].domain.of = "table";
  instance.op.inputs[2].is_scalar = true;
  instance.op.outputs = {FloatTensor("y", {"rows", "columns"})};
  instance.op.constraints = {Parse("columns % 2 == 0")};
  return instance;
}

}  // namespace assay::cases
