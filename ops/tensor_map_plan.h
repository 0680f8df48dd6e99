// Tensor maps in a launch plan: what cp.async.bulk.tensor (TMA) must know of a tensor.
//
//   "tensor_maps": [{"name": "a_map", "tensor": "a", "shape": ["k", "m"], "strides": ["k * 2"],
//                    "box": [64, 128], "swizzle": "128B", "fill": "zero"}]
//
// As in cuTensorMapEncodeTiled dimension 0 is the innermost, strides are bytes and begin with
// dimension 1; left out, the tensor is packed. Elements are those of the tensor. A kernel takes the map
// by its name as a `const __grid_constant__ CUtensorMap` argument.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "ops/expression.h"

namespace assay::ops {

struct TensorMapPlan {
  std::string name;
  std::string tensor;  ///< Of the op, or a workspace or buffer.
  std::vector<Expression> shape;
  std::vector<Expression> strides;  ///< Empty: packed.
  std::vector<Expression> box;
  std::uint8_t swizzle = 0;  ///< 0 to 3: none, 32, 64, 128 bytes.
  bool fill_nan = false;
};

struct ResolvedTensorMap {
  std::string name;
  std::string tensor;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;  ///< Empty: packed.
  std::vector<std::uint32_t> box;
  std::uint8_t swizzle = 0;
  bool fill_nan = false;
};

/// The list at "tensor_maps" (may be missing); `tensors` may be named by them. Adds the maps' names to
/// `arguments`, where they must be new.
Result<std::vector<TensorMapPlan>> ReadTensorMaps(ObjectReader& reader,
                                                  const std::vector<std::string>& axes,
                                                  const std::vector<std::string>& tensors,
                                                  std::vector<std::string>& arguments);

/// Evaluates the expressions; an extent that is negative or too large is an error.
Result<ResolvedTensorMap> ResolveTensorMap(const TensorMapPlan& plan, const AxisValues& axes);

}  // namespace assay::ops
