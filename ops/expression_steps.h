// The steps of an expression, for whoever writes it down in another language (loaders/).
//
// In postfix order: operands first, then what is done with them. `&&` and `||` come after both of
// their sides, and whoever writes them out must not evaluate the right one where the left one
// decides. Read by the parser that made the expression: there is one grammar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/expression.h"

namespace assay::ops {

struct ExpressionStep {
  enum class Kind : std::uint8_t {
    kLiteral,  ///< `value`
    kName,     ///< `name`
    kNegate,   ///< Of one operand, as kNot.
    kNot,      ///< 1 where it is 0, else 0.
    kAdd,      ///< Of two operands, as all that follow.
    kSubtract,
    kMultiply,
    kDivide,     ///< Truncates.
    kRemainder,  ///< Has the sign of the first operand.
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kMin,
    kMax,
    kCeilDiv,
    kRoundUp,
    kAnd,
    kOr,
  } kind = Kind::kLiteral;
  std::int64_t value = 0;
  std::string name;
};

std::vector<ExpressionStep> StepsOf(const Expression& expression);

}  // namespace assay::ops
