// The ways through a function: which instruction may follow which, and which registers may be read before anything has
// been moved to them.
//
// Cost: linear, but for deep nests of loops. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Instructions that may follow each instruction of a verified function.
std::vector<std::vector<InstructionIndex>> ControlFlow(const Function& function);

/// By number: may a thread read it before it has written it? A register that is live where the function begins (Aho et al.,
/// Compilers, 9.2.5); a guarded instruction may write nothing. All of them where there are too many to tell.
std::vector<bool> MayBeUnset(const Function& function);

}  // namespace assay::ptx
