// docs/ptx-coverage.md from the ISA table.
#pragma once

#include <functional>
#include <string>

#include "validator/ptx/isa.h"

namespace assay::ptx {

/// A Markdown document: one table a family, one line a form with its section of the manual and what
/// it needs. When `executes` is given, a column says whether the emulator runs the form, and each
/// family counts them.
std::string CoverageDocument(const std::function<bool(const Form&)>& executes = {});

/// "arithmetic"
std::string_view Name(Family family);

}  // namespace assay::ptx
