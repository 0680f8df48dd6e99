// Names in ops and plans: what may be one, and errors about unknown ones that suggest the nearest
// known one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "ops/expression.h"
#include "ops/op.h"

namespace assay::ops {

/// A C identifier of at most 64 characters.
bool IsIdentifier(std::string_view text);

/// "unknown axis 'tokns'", with the nearest of `known` or the list of all as the cure.
std::unexpected<Error> UnknownName(std::string_view what, std::string_view name,
                                   std::vector<std::string> known, std::string place);

/// An integer or a string with an expression; its names must be among `known_axes`.
Result<Expression> ReadExpression(const Json& value, const std::string& place,
                                  const std::vector<std::string>& known_axes);

/// An array of expressions.
Result<std::vector<Expression>> ReadExpressions(const Json& value, const std::string& place,
                                                const std::vector<std::string>& known_axes,
                                                std::size_t at_most);

/// Fails unless `dtype_name` is a dtype or a binding variable of `op`.
Status CheckDType(const OpSpec& op, const std::string& dtype_name, const std::string& place);

std::vector<std::string> AxisNames(const OpSpec& op);

}  // namespace assay::ops
