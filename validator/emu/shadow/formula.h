// What floating-point instructions compute, as functions of real numbers, with their derivatives.
//
// Evaluated twice for a result: at the actual operands (the difference from what the instruction
// returned is the rounding error that it added) and at their shadows. The derivatives at the actual
// operands say how the errors of the operands come through.
//
// Pure functions in FP64, one table; thread-safe.
//
//   const FormulaRow* const row = FindFormula(ptx::Operation::kMultiplyAdd);
//   const Formula f = row->evaluate(x);   // f.value = x0 * x1 + x2, f.derivative = {x1, x0, 1}
#pragma once

#include <array>

#include "validator/ptx/rules.h"

namespace assay::emu {

using Operands = std::array<double, 3>;

struct Formula {
  double value = 0;
  std::array<double, 3> derivative{};
};

struct FormulaRow {
  ptx::Operation operation;
  int operands;
  Formula (*evaluate)(const Operands& x);
  /// The least or the greatest: of two operands, or three; `operands` is two.
  bool extreme() const {
    return operation == ptx::Operation::kLeast || operation == ptx::Operation::kGreatest;
  }
};

/// Null: the operation has no formula.
const FormulaRow* FindFormula(ptx::Operation operation);
/// The least, or the largest, of `count` operands.
Formula Extreme(const Operands& x, int count, bool largest);

}  // namespace assay::emu
