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

using ptx::Opcode;
constexpr FormulaRow kRows[] = {
    {Opcode::kAdd, 2, Add},           {Opcode::kSub, 2, Sub},   {Opcode::kMul, 2, Mul},
    {Opcode::kFma, 3, Fma},           {Opcode::kMad, 3, Fma},   {Opcode::kDiv, 2, Div},
    {Opcode::kRcp, 1, Rcp},           {Opcode::kSqrt, 1, Sqrt}, {Opcode::kRsqrt, 1, Rsqrt},
    {Opcode::kEx2, 1, Ex2},           {Opcode::kLg2, 1, Lg2},   {Opcode::kSin, 1, Sin},
    {Opcode::kCos, 1, Cos},           {Opcode::kTanh, 1, Tanh}, {Opcode::kNeg, 1, Neg},
    {Opcode::kAbs, 1, Abs},           {Opcode::kMin, 2, Min},   {Opcode::kMax, 2, Max},
    {Opcode::kCopysign, 2, Copysign},
};

}  // namespace

const FormulaRow* FindFormula(Opcode opcode) {
  for (const FormulaRow& row : kRows) {
    if (row.opcode == opcode) return &row;
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
