// The policy on what a kernel may use, as tables: one row a rule, with the reason and the cure that
// the author is told.
//
// Two views are checked, because neither sees all: the source (includes, pragmas, attributes, macros
// that tell compilers apart, host constructs), as the preprocessor reads it, and what is known of the
// parsed PTX (whatever macros, headers and inline assembly turned into). Findings are located by
// source line in both.
//
// Linear; any bytes are acceptable as a source. PTX is hostile text and is parsed in the compile
// worker alone.
#pragma once

#include <string_view>
#include <vector>

#include "validator/findings/finding.h"
#include "validator/ptx/facts/facts.h"

namespace assay::policy {

/// kForbiddenConstruct findings, in the order of lines. `arch`: the target that is judged. Only for one
/// that names its features (sm_90a) may a source ask for them: for sm_90 it would be another kernel
/// than the one that its users compile for sm_90a.
std::vector<Finding> CheckSourcePolicy(std::string_view source, std::string_view arch = "sm_90");
/// The same. None for a program that has a `fault` does not mean that nothing is forbidden.
std::vector<Finding> CheckPtxPolicy(const facts::Facts& program);

}  // namespace assay::policy
