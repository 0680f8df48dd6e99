// What an op must at least move and compute, and how near to that a kernel is asked to come: the
// part "speed" of op.json.
//
//   "speed": {"operations": "2 * m * n * k", "unit": "matrix", "bar": 0.3,
//             "moved": {"table": "min(tokens, vocab) * hidden"},
//             "library": {"m": "m", "n": "n", "k": "k"}}
//             "library": {"of": "softmax", "rows": "rows", "columns": "columns"}
//
// All of it may be missing. Every tensor is moved once, whole, but for those of which `moved` says
// how many elements; nothing is computed; nothing is asked. `unit` says which of a machine's rates
// the operations go by: "matrix" (tensor cores, where inputs are 16 bits wide) or "scalar". `library`:
// the op is a matrix product, row-major, that the vendor's library has; or the "softmax" or "sum" of
// each row of its first input, which its library of tensor operations has. `bar`: the share of the
// limit, over all workloads, that the speed gate asks for.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "ops/op.h"

namespace assay::ops {

struct SpeedContract {
  enum class Unit : std::uint8_t { kScalar, kMatrix } unit = Unit::kScalar;
  Expression operations = Expression::Constant(0);
  std::map<std::string, Expression, std::less<>> moved;  ///< Elements, by tensor.
  std::optional<std::array<Expression, 3>> product;      ///< m, n, k.
  struct Rows {
    std::string operation;  ///< "softmax" or "sum".
    Expression rows = Expression::Constant(1), columns = Expression::Constant(1);
  };
  std::optional<Rows> rows;
  double bar = 0;
};

/// `op` must have its axes and tensors.
Result<SpeedContract> ReadSpeed(const Json& object, const std::string& place, const OpSpec& op);

/// Of an op that was loaded: from its folder.
Result<SpeedContract> SpeedOf(const OpSpec& op);

/// What an op must do at a shape.
struct LeastWork {
  double bytes = 0;
  double operations = 0;
};
Result<LeastWork> LeastWorkOf(const Instance& instance, const SpeedContract& speed,
                              const AxisValues& axes);

}  // namespace assay::ops
