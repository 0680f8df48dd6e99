// Which forms of the ISA table the emulator executes, found out by loading examples of each.
//
// A form's spellings (ptx/isa_examples.h) go through Program::Load, one at a time, so that the
// answer comes from the tables that decide at run time and from nothing written by hand. Costs
// about a second for the whole table.
//
//   std::string document = emu::PtxCoverage();             // docs/ptx-coverage.md
#pragma once

#include <string>
#include <vector>

#include "validator/ptx/isa.h"

namespace assay::emu {

/// The spellings of `form` that Load refuses, each with the reason: "add.foo %r0; kernel.ptx:9:
/// ...".
std::vector<std::string> RefusedSpellings(const ptx::Form& form);

/// docs/ptx-coverage.md, with the column "executes".
std::string PtxCoverage();

}  // namespace assay::emu
