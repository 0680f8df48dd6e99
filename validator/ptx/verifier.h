// Is the module consistent? Everything that runs PTX relies on this.
//
// After Verify has passed: no index in the module is out of range; every instruction is a row of
// the ISA table (`form` is set) and its operands have the number, kinds, classes and widths that
// the row asks for (isa.h); guards are predicates; branch targets lie in the function; calls pass
// what the callee or the prototype declares; constants that select behaviour (sizes of copies,
// numbers of barriers, truth tables, selectors) have values that the manual allows; variables have
// sizes that are multiples of their types, and initialisers inside them. Which PTX version or
// architecture an instruction needs is not checked: ptxas does that.
//
// Errors name "file:line" of the PTX text and show the instruction. A form that the table lacks is
// kUnsupported, a wrong operand kMalformedInput.
//
// Cost: linear, some 100 ns an instruction. Thread-safety: a pure function.
#pragma once

#include <string_view>

#include "base/error.h"
#include "validator/ptx/module.h"

namespace assay::ptx {

/// `file` is how messages name the text.
Status Verify(const Module& module, std::string_view file = "ptx");

}  // namespace assay::ptx
