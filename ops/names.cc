#include "ops/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace assay::ops {

bool IsIdentifier(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || digit(c); });
}

std::unexpected<Error> UnknownName(std::string_view what, std::string_view name,
                                   std::vector<std::string> known, std::string place) {
  std::ranges::sort(known);
  const std::string nearest = Nearest(name, known);
  std::string cure = known.empty()     ? fmt::format("there is no {} here", what)
                     : nearest.empty() ? fmt::format("known here: {}", fmt::join(known, ", "))
                                       : fmt::format("did you mean '{}'?", nearest);
  return Fail(ErrorKind::kMalformedInput, fmt::format("unknown {} '{}'", what, name),
              std::move(place), std::move(cure));
}

Result<Expression> ReadExpression(const Json& value, const std::string& place,
                                  const std::vector<std::string>& known_axes) {
  if (value.is_number_integer()) {
    ASSAY_TRY(const std::int64_t number, json_detail::Convert<std::int64_t>(value, place));
    return Expression::Parse(std::to_string(number), place);
  }
  if (!value.is_string()) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("must be an integer or an expression, not {}", value.type_name()),
                place);
  }
  ASSAY_TRY(Expression expression, Expression::Parse(value.get<std::string>(), place));
  for (const std::string& name : expression.names()) {
    if (std::ranges::find(known_axes, name) == known_axes.end()) {
      return UnknownName("axis", name, known_axes, place);
    }
  }
  return expression;
}

Result<std::vector<Expression>> ReadExpressions(const Json& value, const std::string& place,
                                                const std::vector<std::string>& known_axes,
                                                std::size_t at_most) {
  if (!value.is_array()) {
    return Fail(
        ErrorKind::kMalformedInput,
        fmt::format("must be an array of integers or expressions, not {}", value.type_name()),
        place);
  }
  if (value.size() > at_most) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("has {} entries, and at most {} are allowed", value.size(), at_most),
                place);
  }
  std::vector<Expression> expressions;
  for (std::size_t i = 0; i < value.size(); ++i) {
    ASSAY_TRY(Expression expression,
              ReadExpression(value[i], fmt::format("{}/{}", place, i), known_axes));
    expressions.push_back(std::move(expression));
  }
  return expressions;
}

Status CheckDType(const OpSpec& op, const std::string& dtype_name, const std::string& place) {
  if (ParseDType(dtype_name) || op.dtypes.contains(dtype_name)) return {};
  std::vector<std::string> known;
  for (const DType type : AllDTypes()) known.emplace_back(Name(type));
  for (const auto& [variable, choices] : op.dtypes) known.push_back(variable);
  return UnknownName("dtype", dtype_name, std::move(known), place);
}

std::vector<std::string> AxisNames(const OpSpec& op) {
  std::vector<std::string> names;
  for (const Axis& axis : op.axes) names.push_back(axis.name);
  return names;
}

}  // namespace assay::ops
