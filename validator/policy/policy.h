// The policy on what a kernel may use, as tables: one row a rule, with the reason and the cure that
// the author is told.
//
// Two views are checked, because neither sees all: the source (includes, pragmas, attributes, host
// constructs) without comments and strings, and the PTX (whatever macros, headers and inline
// assembly turned into). Findings are located by source line in both.
//
// Linear in the text; any bytes are acceptable.
#pragma once

#include <string_view>
#include <vector>

#include "validator/findings/finding.h"

namespace assay::policy {

/// kForbiddenConstruct findings, in the order of lines.
std::vector<Finding> CheckSourcePolicy(std::string_view source);
std::vector<Finding> CheckPtxPolicy(std::string_view ptx);

}  // namespace assay::policy
