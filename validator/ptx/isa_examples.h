// Instructions made up from the rows of the ISA table: each alternative of each slot occurs in one
// of them, and each optional operand both ways. Tests check with them that the parser, verifier and
// printer take every row, and that ptxas agrees; the coverage document asks the emulator.
#pragma once

#include <string>
#include <vector>

#include "validator/ptx/isa.h"

namespace assay::ptx {

/// Statements such as "add.sat.s32 %r0, %r1, %r2;", each of the given form.
std::vector<std::string> Examples(const Form& form);

/// A module whose kernel declares what examples use and holds `statements`.
std::string ExampleModule(const Form& form, const std::vector<std::string>& statements, int sm,
                          int ptx_version);

}  // namespace assay::ptx
