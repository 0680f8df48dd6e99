// Integer expressions over axis names: shapes, constraints, grid sizes.
//
// Grammar: + - * / % (floor is not needed: operands are non-negative in practice; / truncates),
// comparison (== != < <= > >=, value 0 or 1), && || !, parentheses, integer literals, axis names,
// and the functions min max ceil_div round_up. 64-bit arithmetic, checked: overflow, division by
// zero and unknown names are errors that name the column, never wrapped values.
//
// A parsed Expression is an immutable value (a small postfix program); Evaluate is linear in its
// length. Thread-safe. && and || do not evaluate their right side when the left one decides, so `n
// == 0 || 8 % n == 0` is safe. A default-constructed Expression is 1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace assay::ops {

/// Values of axes (and of integer scalars) by name.
using AxisValues = std::map<std::string, std::int64_t, std::less<>>;

class Expression {
 public:
  /// `place` is where the text stands, e.g. "launch.json: /kernels/0/grid/0". Length and nesting
  /// are limited.
  static Result<Expression> Parse(std::string_view text, std::string place);
  static Expression Constant(std::int64_t value);

  Result<std::int64_t> Evaluate(const AxisValues& values) const;
  /// Names that occur in it, sorted, each once.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& text() const { return text_; }
  const std::string& place() const { return place_; }
  /// Both operands of each comparison, minimum and maximum, in the order written: where they change
  /// sides, the expression has a kink. Nothing for those that are not evaluated at `values`.
  using Kink = std::optional<std::pair<std::int64_t, std::int64_t>>;
  std::vector<Kink> Kinks(const AxisValues& values) const;
  /// Dividend and divisor of each `/` and ceil_div, likewise: one tile, or several.
  std::vector<Kink> Quotients(const AxisValues& values) const;
  /// Integer literals that occur in it (tile sizes: case generation aims at their neighbours).
  std::vector<std::int64_t> Literals() const;

 private:
  struct Token {
    std::uint8_t code = 0;
    std::int64_t value = 0;  // literal, or index into names_
    std::uint32_t column = 0;
  };
  /// Operands of the tokens that `of` holds for.
  std::vector<Kink> OperandsOf(bool (*of)(std::uint8_t code), const AxisValues& values) const;
  /// `operands`, by token, may be null.
  Result<std::int64_t> Run(const AxisValues& values, std::vector<Kink>* operands) const;

  std::string text_ = "1";
  std::string place_;
  std::vector<Token> program_ = {{0, 1, 1}};  // code 0: a literal
  std::vector<std::string> names_;
};

}  // namespace assay::ops
