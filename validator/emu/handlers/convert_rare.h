// cvt in all its forms, lane by lane (PTX ISA 9.7.9.21). Compiled once.
#pragma once

#include "validator/emu/exec.h"
#include "validator/emu/semantics/soft_convert.h"

namespace assay::emu {

/// Decoded::immediate of a cvt.
std::uint64_t PackConversion(const Conversion& how);
Conversion UnpackConversion(std::uint64_t packed);

/// One value, or a packed pair, a lane; registers of any width.
void ConvertRare(Warp& warp, const Decoded& op);

}  // namespace assay::emu
