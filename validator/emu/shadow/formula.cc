#include "validator/emu/shadow/formula.h"

#include <cmath>
#include <numbers>

namespace assay::emu {
namespace {

using std::numbers::ln2;

Formula Add(const Operands& x) { return {x[0] + x[1], {1, 1}}; }
Formula Sub(const Operands& x) { return {x[0] - x[1], {1, -1}}; }
Formula Mul(const Operands& x) { return {x[0] * x[1], {x[1], x[0]}}; }
Formula Fma(const Operands& x) { return {std::fma(x[0], x[1], x[2]), {x[1], x[0], 1}}; }
Formula Div(const Operands& x) { return {x[0] / x[1], {1 / x[1], -x[0] / (x[1] * x[1])}}; }
Formula Rcp(const Operands& x) { return {1 / x[0], {-1 / (x[0] * x[0])}}; }
Formula Sqrt(const Operands& x) {
  const double root = std::sqrt(x[0]);
  return {root, {root == 0 ? 0 : 0.5 / root}};
}
Formula Rsqrt(const Operands& x) {
  const double value = 1 / std::sqrt(x[0]);
  return {value, {-0.5 * value / x[0]}};
}
Formula Ex2(const Operands& x) {
  const double value = std::exp2(x[0]);
  return {value, {value * ln2}};
}
Formula Lg2(const Operands& x) { return {std::log2(x[0]), {1 / (x[0] * ln2)}}; }
Formula Sin(const Operands& x) { return {std::sin(x[0]), {std::cos(x[0])}}; }
Formula Cos(const Operands& x) { return {std::cos(x[0]), {-std::sin(x[0])}}; }
Formula Tanh(const Operands& x) {
  const double value = std::tanh(x[0]);
  return {value, {1 - value * value}};
}
Formula Neg(const Operands& x) { return {-x[0], {-1}}; }
Formula Abs(const Operands& x) { return {std::fabs(x[0]), {std::signbit(x[0]) ? -1.0 : 1.0}}; }
Formula Min(const Operands& x) { return Extreme(x, 2, false); }
Formula Max(const Operands& x) { return Extreme(x, 2, true); }
/// copysign d, a, b: b with the sign of a.
Formula Copysign(const Operands& x) {
  const double value = std::copysign(x[1], x[0]);
  return {value, {0, std::signbit(value) == std::signbit(x[1]) ? 1.0 : -1.0}};
}

using ptx::Operation;
constexpr FormulaRow kRows[] = {
    {Operation::kSum, 2, Add},       {Operation::kDifference, 2, Sub},
    {Operation::kProduct, 2, Mul},   {Operation::kMultiplyAdd, 3, Fma},
    {Operation::kQuotient, 2, Div},  {Operation::kReciprocal, 1, Rcp},
    {Operation::kRoot, 1, Sqrt},     {Operation::kReciprocalRoot, 1, Rsqrt},
    {Operation::kExp2, 1, Ex2},      {Operation::kLog2, 1, Lg2},
    {Operation::kSine, 1, Sin},      {Operation::kCosine, 1, Cos},
    {Operation::kTanh, 1, Tanh},     {Operation::kNegation, 1, Neg},
    {Operation::kMagnitude, 1, Abs}, {Operation::kLeast, 2, Min},
    {Operation::kGreatest, 2, Max},  {Operation::kCopySign, 2, Copysign},
};

}  // namespace

const FormulaRow* FindFormula(Operation operation) {
  for (const FormulaRow& row : kRows) {
    if (row.operation == operation) return &row;
  }
  return nullptr;
}

Formula Extreme(const Operands& x, int count, bool largest) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < static_cast<std::size_t>(count); ++i) {
    // NaN loses, as in min and max without .NaN.
    if (std::isnan(x[chosen]) || (largest ? x[i] > x[chosen] : x[i] < x[chosen])) chosen = i;
  }
  Formula result{x[chosen], {}};
  result.derivative[chosen] = 1;
  return result;
}

}  // namespace assay::emu
