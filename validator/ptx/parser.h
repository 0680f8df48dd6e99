// Text to Module.
//
// Parse accepts what NVRTC, nvcc, Triton and Numba write for sm_70 to sm_90a, and hand-written PTX
// in the same dialect (PTX ISA 4 to 11). It resolves every name to an index, flattens nested scopes
// (a name that would then occur twice gets a `$2`), joins .loc directives into chains of inlined
// frames, and picks each instruction's row of the ISA table (isa.h). It does not check types: call
// Verify (verifier.h) before anything relies on the module.
//
// Malformed text gives kMalformedInput; an instruction or feature outside of what Assay covers
// kUnsupported; counts, sizes or depths beyond kLimits kLimit. Each names "file:line:column", shows
// the line with a caret, and says what to do where that is known.
//
// Cost: linear in the text, a few milliseconds for 5,000 lines; memory at most some hundred bytes a
// token. Thread-safety: a pure function.
//
//   ASSAY_TRY(const ptx::Module module, ptx::Parse(text, "kernel.ptx"));
//   ASSAY_TRY_VOID(ptx::Verify(module));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "validator/ptx/module.h"

namespace assay::ptx {

/// Bounds on what one text may ask for. Real modules stay far below each.
struct Limits {
  std::size_t text_bytes = std::size_t{32} << 20;
  /// Declared, in the whole module. A compiler names each register at least once, so a module has
  /// no more of them than bytes, but for a few: that keeps memory linear in the text.
  std::uint64_t registers = std::uint64_t{1} << 20;
  std::uint64_t registers_of_small_text = 1u << 14;
  std::uint64_t variable_bytes = std::uint64_t{1} << 40;  ///< Of one variable.
  /// In the whole module; of a small text, and for each byte of text (`0,` may be 16 bytes of
  /// .b128).
  std::uint64_t initialiser_bytes_of_small_text = 1u << 16;
  std::uint64_t initialiser_bytes_per_byte = 8;
  /// Branch targets in all brx.idx, which each hold their list; of a small text, plus one for each
  /// byte.
  std::uint64_t branch_targets_of_small_text = 1u << 16;
  int nesting = 64;  ///< Of scopes, braces and parentheses.
  std::size_t vector_elements = 256;
  std::uint64_t files = 1u << 16;  ///< The highest .file index.
};
inline constexpr Limits kLimits;

/// `file` is how messages name the text.
Result<Module> Parse(std::string_view text, std::string_view file);

}  // namespace assay::ptx
