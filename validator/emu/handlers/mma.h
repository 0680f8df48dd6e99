// mma, mma.sp and wmma.mma: the forms covered, their fragments, and the handler (PTX ISA 9.7.14).
#pragma once

#include "validator/emu/exec.h"

namespace assay::emu {

Handler ResolveMma(const ptx::Instruction& instruction, Decoded& decoded);

}  // namespace assay::emu
