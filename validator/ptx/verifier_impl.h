// Pieces of the verifier: verify_calls.cc and verify_values.cc for verifier.cc.
#pragma once

#include <string>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Empty when the call passes what its callee declares, else what is wrong.
std::string CallMismatch(const Module& module, const Function& function, const Instruction& in);

/// Empty when the constants of `in` have values that the manual allows, else what is wrong. The
/// operands fit the form.
std::string BadConstant(const Instruction& in);

}  // namespace assay::ptx
