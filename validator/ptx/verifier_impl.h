// A piece of the verifier: verify_calls.cc for verifier.cc.
#pragma once

#include <string>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Empty when the call passes what its callee declares, else what is wrong.
std::string CallMismatch(const Module& module, const Function& function, const Instruction& in);

}  // namespace assay::ptx
