// Module back to text.
//
// For a module that Verify accepts, Parse(Print(module)) equals it in everything but line numbers
// of the PTX text. Scopes were flattened by the parser, so declarations stand at the head of each
// body; directives that carry no meaning here (.pragma, debug sections other than the names of
// inlined functions) are gone. Modifiers come in the manual's order.
//
// Cost: linear. Thread-safety: pure functions.
//
//   fmt::print("{}", ptx::Print(module));
//   ptx::PrintInstruction(module, function, function.body[7])  ==  "@%p1 bra $L__BB0_2"
#pragma once

#include <string>

#include "validator/ptx/module.h"

namespace assay::ptx {

std::string Print(const Module& module);

/// One instruction without its semicolon. Safe for any contents: an index out of range prints as
/// `?`.
std::string PrintInstruction(const Module& module, const Function& function, const Instruction& in);

}  // namespace assay::ptx
