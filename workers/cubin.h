// Reads what a kernel needs from a cubin (an ELF file for the device): registers, stack, code and
// parameter bytes.
//
// The numbers come from the .nv.info sections, whose attributes are 4-byte records {format,
// attribute, 16-bit value or size}, those of format 4 followed by `size` bytes. Used: REGCOUNT
// (0x2f), FRAME_SIZE (0x11), MIN_STACK_SIZE (0x12), each {symbol, value}. Unlike ptxas's log, which
// text in a candidate's diagnostics can imitate, they come from the assembler alone.
//
// The file comes from a compiler that read hostile text: every offset is checked. Pure; cost linear
// in the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::workers {

struct CubinFunction {
  std::uint32_t registers = 0;
  std::uint32_t frame_bytes = 0;  ///< Its own stack frame.
  std::uint32_t stack_bytes = 0;  ///< With everything that it calls, where known.
  std::uint64_t code_bytes = 0;
  std::uint64_t constant_bytes = 0;  ///< Constant bank 0: parameters and driver constants.
  bool entry = false;                ///< Has parameters: a kernel, not a device function.
};

/// By mangled name. Fails on anything that is not a well-formed 64-bit device ELF.
Result<std::map<std::string, CubinFunction>> ReadCubin(std::string_view bytes);

}  // namespace assay::workers
