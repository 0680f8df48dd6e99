// docs/ptx-coverage.md from the ISA table.
#pragma once

#include <functional>
#include <string>

#include "validator/ptx/isa.h"

namespace assay::ptx {

/// How many of a form's spellings (isa_examples.h) something takes.
struct Taken {
  std::size_t taken = 0;
  std::size_t tried = 0;
};

/// A Markdown document: one table a family, one line a form with its section of the manual and what
/// it needs. When `executes` is given, a column says whether the emulator runs the form ("yes",
/// "no", or how many of its spellings), and each family counts the forms that run in full.
std::string CoverageDocument(const std::function<Taken(const Form&)>& executes = {});

/// "arithmetic"
std::string_view Name(Family family);

}  // namespace assay::ptx
