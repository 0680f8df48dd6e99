// Macros by which a source can tell who compiles it.
//
// What is judged must be what is shipped: a kernel that is another one under nvcc, another version, at
// another hour or in another file than under the judge was not judged at all. So names that compilers
// predefine for themselves, and questions what a compiler has, may not occur anywhere in a candidate;
// and conditions may only ask for what the target fixes (`__CUDA_ARCH__`), what the judge promises
// (`ASSAY_...`), and what the source itself defines. `##` may not have pieces from which such names
// could be put together.
//
// Linear in the tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "validator/policy/source_scan.h"

namespace assay::policy {

struct MacroUse {
  std::uint32_t line = 0;
  std::string what;  ///< "__CUDACC_RTC__", "__has_include"
  bool operator==(const MacroUse&) const = default;
};

/// Each use of such a macro in the order of the text, each name once a line.
std::vector<MacroUse> CompilerMacros(std::span<const SourceToken> tokens, bool with_features);

}  // namespace assay::policy
