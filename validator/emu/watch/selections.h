// Which ways selections went: a select is a branch that the compiler made an instruction of.
//
// `selp` carries the difference between two ways of a kernel as a jump does. Who asks for coverage
// wants to know of those that always went the same way; so where monitors watch, a select notes its
// predicate before it runs, in Device::branch_sides beside those of branches.
#pragma once

#include "validator/emu/exec.h"

namespace assay::emu {

/// Decoded::monitored of a select.
void NoteSelection(Warp& warp, const Decoded& op);

}  // namespace assay::emu
