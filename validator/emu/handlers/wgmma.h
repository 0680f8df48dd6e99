// wgmma's operands in shared memory: matrix descriptors (PTX ISA 9.7.15.5.1) and what they name.
//
// A matrix lies in shared memory in chunks of 16 bytes. Along the dimension that is contiguous
// ("major") a chunk holds 16 bytes of elements; descriptors say how far chunks are apart, and which
// address bits are exchanged (swizzling), as TMA writes them. Internal to wgmma*.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/memory.h"

namespace assay::emu {

struct MatrixDescriptor {
  std::uint64_t start = 0;  ///< Byte addresses and distances.
  std::uint64_t leading = 0;
  std::uint64_t stride = 0;
  int base_offset = 0;  ///< Row of the swizzle pattern, of 128 bytes, at which the matrix begins.
  int swizzle = 0;      ///< Address bits exchanged: 0 to 3 (none, 32, 64, 128 bytes).
};
MatrixDescriptor UnpackDescriptor(std::uint64_t word);

/// Where a chunk lies. K-major: `outer` is the row of A or column of B, `k` counts chunks along k.
/// Otherwise `outer` counts chunks of 8 elements of 16 bits, and `k` is the element along k.
std::uint64_t ChunkAddress(const MatrixDescriptor& descriptor, bool k_major, int outer, int k);

/// A part of a matrix read from shared memory.
struct SharedMatrix {
  int outer = 0;  ///< Rows of A or columns of B.
  int k = 0;      ///< Elements along k.
  int element_bits = 16;
  bool k_major = true;
  int first = 0;  ///< The first row or column that is read.
};

/// Of what class undefined operands are (machine.h).
struct UndefinedClass {
  bool unset = false;            ///< Some are not initialised.
  std::uint32_t choice = kNoPc;  ///< Some are the machine's choice: the pc of one.
  void Add(bool chosen, std::uint32_t origin) {
    if (chosen) choice = origin;
    unset = unset || !chosen;
  }
};
/// Which rows of A or columns of B are undefined.
struct UndefinedOuter : UndefinedClass {
  std::vector<bool> at;
};

/// Reads elements to out[l * outer + i] (`by_columns`, for A) or out[i * k + l] (B), raw bits, low.
/// Rows or columns with undefined bytes are flagged in `undefined` (outer of them) when definedness
/// is tracked. Adds the race detector's tokens. False: faulted.
bool ReadShared(CoreWarp& warp, const Decoded& op, const MatrixDescriptor& descriptor,
                const SharedMatrix& matrix, bool by_columns, std::uint32_t* out,
                UndefinedOuter& undefined, std::vector<std::uint64_t>& tokens);

}  // namespace assay::emu
