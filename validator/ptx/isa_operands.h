// One operand against its rule; internal to isa_match.cc, which knows which rule that is.
#pragma once

#include <string_view>

#include "validator/ptx/isa.h"

namespace assay::ptx {

/// Empty when the operand fits, else what is wrong with it: "has the wrong type or width".
std::string_view OperandProblem(const OperandRule& rule, const Module& module,
                                const Function& function, const Instruction& in,
                                const Operand& operand);
/// The same for the parts of a call. Their types are the verifier's to check.
std::string_view CallProblem(const Instruction& in);

}  // namespace assay::ptx
