// The few words of JSON Schema that our published schemas use, for tests that hold what is written
// against them.
#pragma once

#include <string>

#include "base/json.h"

namespace assay::testing {

/// A schema by its path from the repository's root; `$ref` in it names files beside it.
Json ReadSchema(const std::string& path);

/// What is wrong with `value`, a line each, or nothing.
std::string Violation(const Json& schema, const Json& value, const std::string& place);

}  // namespace assay::testing
