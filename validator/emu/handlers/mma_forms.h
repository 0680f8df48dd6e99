// The shapes of mma, mma.sp and wmma.mma, their fragments tabulated, and what an instruction asks
// for beyond its shape.
//
// Tables are built once, when the first matrix instruction is resolved, and are immutable. Internal
// to mma.cc and mma_forms.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/exec.h"
#include "validator/emu/semantics/soft.h"

namespace assay::emu {

/// What kind of elements A and B have; one of these computes.
enum class MmaElements : u8 { kF16, kBF16, kTF32, kFp8, kF64, kByte, kNibble, kBit };
enum class MmaFamily : u8 { kMma, kSparse, kWmma };

/// A shape that exists for a family and an element type.
struct MmaShape {
  MmaFamily family;
  MmaElements elements;
  int m;
  int n;
  int k;
  bool operator==(const MmaShape&) const = default;
};
/// A fragment with its places looked up: index[lane * elements + e] is the position in a matrix by
/// columns. Single bits travel in words of 32.
struct MmaPlaces {
  int registers = 0;
  int per_register = 1;
  int bits = 16;
  int size = 0;  ///< Of the matrix, in elements.
  std::vector<std::uint16_t> index;
};

/// The fragments of a shape, by role. Accumulators of floating-point shapes have an f16 and an f32
/// variant.
struct MmaForm {
  MmaShape shape;
  MmaPlaces a;
  MmaPlaces b;
  MmaPlaces accumulator;
  MmaPlaces half_accumulator;
};

const MmaForm& MmaFormAt(std::size_t index);
/// The row of a shape, or -1.
int FindMmaForm(const MmaShape& shape);

/// What the instruction asks for beyond its shape; packed into Decoded::immediate.
struct MmaOptions {
  ptx::Type d{};
  ptx::Type a{};
  ptx::Type b{};
  ptx::Type c{};
  Round round = Round::kNearest;
  bool saturate = false;
  bool exclusive_or = false;
  bool a_column = false;
  bool b_column = false;
  u8 selector = 0;
};
std::uint64_t Pack(const MmaOptions& options);
MmaOptions UnpackMma(std::uint64_t packed);

/// Expands the stored half of A (16 by k / 2) to 16 by k, both by columns, with `absent` elsewhere.
/// A group's metadata are the positions, two bits each, of two stored units among four; units are
/// elements, or pairs of 4-bit elements. For tf32 a stored element counts as two neighbouring
/// halves, so that a group is one of two (9.7.14.6.1).
void ExpandSparse(const u32* lanes, const MmaForm& form, int selector, u32 absent,
                  const u32* stored, u32* dense);

}  // namespace assay::emu
