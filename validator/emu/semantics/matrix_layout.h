// Which lane and register holds which element of a matrix fragment: mma, wmma, ldmatrix, wgmma (PTX
// ISA 9.7.14, 9.7.15).
//
// All fragments but one are built from blocks of 8 rows by 4 E columns, E the elements of one
// register: lane 4 g + t holds row g, columns t E .. t E + E - 1. mma operand A stacks two such
// blocks (rows 0-7, 8-15) and repeats that along k; B is the same with columns in the place of
// rows; accumulators hold two neighbouring columns a lane. wmma uses the layouts of the mma
// instructions that it is made of: m32n8k16 two of m16n8k16 below each other, m16n16k16 two beside
// each other, m8n32k16 the transpose of m32n8k16. For wmma PTX leaves the layout open; this is the
// one of sm_80 to sm_90, read off an H200. The exception is mma.m8n8k4 on f16, which keeps Volta's
// layout of quad pairs.
//
//   const Fragment a = MmaFragment(Role::kA, 16, 8, 16, 16);
//   PlaceOf(a, 5, 2) is {9, 2}: of lane 5, the third element (low half of register 1)
//
// Pure functions, no state; meant to be tabulated where it matters.
#pragma once

#include <cstdint>

namespace assay::emu {

enum class Role : std::uint8_t { kA, kB, kAccumulator };

struct MatrixPlace {
  int row = 0;
  int column = 0;
  bool operator==(const MatrixPlace&) const = default;
};

/// The part of a matrix that each lane of a warp holds.
struct Fragment {
  Role role = Role::kA;
  int rows = 0;  ///< Of the matrix: m by k for A, k by n for B, m by n for accumulators.
  int columns = 0;
  int element_bits = 16;  ///< 1, 4, 8, 16, 32 or 64.
  int registers =
      0;  ///< A lane, of 32 bits (64 for f64); wmma's f16 fragments hold some elements twice.
  int elements_per_register = 1;
  bool transposed = false;    ///< wmma.m8n32k16.
  bool quad_pairs = false;    ///< mma.m8n8k4.f16.
  bool column_major = false;  ///< For quad pairs: the .row/.col of the operand.
  int elements() const { return registers * elements_per_register; }
};

/// The element'th of a lane's elements, lowest bits of the first register first.
constexpr MatrixPlace PlaceOf(const Fragment& fragment, int lane, int element);

namespace layout_internal {

/// Block layout: `wide` is the dimension along which 16 = 2 * 8 are stacked first (m for A and
/// accumulators, n for a lone B).
constexpr MatrixPlace OperandPlace(int lane, int element, int per_register, int outer, int k_size) {
  const int group = lane / 4;
  const int thread = lane % 4;
  const int reg = element / per_register;
  const int blocks = outer >= 16 ? 2 : 1;  // Of 8, stacked before k advances.
  const int registers_per_tile = blocks * (k_size / (4 * per_register));
  const int tile = reg / registers_per_tile;  // Of 16 (or 8).
  const int within = reg % registers_per_tile;
  return {tile * 8 * blocks + 8 * (within % blocks) + group,
          4 * per_register * (within / blocks) + thread * per_register + element % per_register};
}

/// Quad pairs: lanes {0-3, 16-19} hold rows or columns 0..7 of the first of four 8 by 8 by 4
/// products, and so on (9.7.14.5.1).
constexpr MatrixPlace QuadPairPlace(const Fragment& fragment, int lane, int element) {
  const int high = lane < 16 ? 0 : 4;
  if (fragment.role == Role::kAccumulator) {
    if (fragment.element_bits == 16) return {lane % 4 + high, element};
    return {(lane & 1) + (element & 2) + high, (element & 4) + (lane & 2) + (element & 1)};
  }
  // A by rows: the lane's row, four columns; A by columns: the lane's column, four rows. B the
  // other way about.
  const bool along_k = (fragment.role == Role::kA) != fragment.column_major;
  const int outer = along_k ? lane % 4 + high : element % 4 + high;
  const int k = along_k ? element : lane % 4;
  return fragment.role == Role::kA ? MatrixPlace{outer, k} : MatrixPlace{k, outer};
}

}  // namespace layout_internal

constexpr MatrixPlace PlaceOf(const Fragment& fragment, int lane, int element) {
  if (fragment.quad_pairs) return layout_internal::QuadPairPlace(fragment, lane, element);
  const int rows = fragment.transposed ? fragment.columns : fragment.rows;
  const int columns = fragment.transposed ? fragment.rows : fragment.columns;
  MatrixPlace place;
  if (fragment.role == Role::kAccumulator) {
    // Pairs of columns: rows 0-7, then 8-15 of a tile of 16 by 8; tiles along n, then along m.
    const int pair = element / 2;
    const int blocks = rows >= 16 ? 2 : 1;
    const int tile = pair / blocks;
    const int tiles_along_n = columns / 8;
    place = {tile / tiles_along_n * 16 + 8 * (pair % blocks) + lane / 4,
             tile % tiles_along_n * 8 + 2 * (lane % 4) + element % 2};
  } else {
    const bool is_a = (fragment.role == Role::kA) != fragment.transposed;
    const int outer = is_a ? rows : columns;
    const int k_size = is_a ? columns : rows;
    // wmma's f16 fragments are padded to eight registers by repetition.
    const int distinct = outer * k_size / 32;
    const MatrixPlace at = layout_internal::OperandPlace(
        lane, element % distinct, fragment.elements_per_register, is_a ? outer : 8, k_size);
    place = is_a ? at : MatrixPlace{at.column, at.row};
  }
  return fragment.transposed ? MatrixPlace{place.column, place.row} : place;
}

/// Of mma.mMnNkK; `bits` is the element's width. k is that of the stored matrix: half of the
/// shape's for a sparse A.
constexpr Fragment MmaFragment(Role role, int m, int n, int k, int bits) {
  Fragment fragment;
  fragment.role = role;
  fragment.rows = role == Role::kB ? k : m;
  fragment.columns = role == Role::kA ? k : n;
  fragment.element_bits = bits;
  fragment.elements_per_register = bits >= 32 ? 1 : 32 / bits;
  fragment.registers = fragment.rows * fragment.columns / 32 / fragment.elements_per_register;
  return fragment;
}

/// Of mma.m8n8k4 on f16: `bits` is 16, or 32 for an f32 accumulator.
constexpr Fragment QuadPairFragment(Role role, bool column_major, int bits) {
  Fragment fragment;
  fragment.role = role;
  fragment.rows = role == Role::kB ? 4 : 8;
  fragment.columns = role == Role::kA ? 4 : 8;
  fragment.element_bits = bits;
  fragment.elements_per_register = 32 / bits;
  fragment.registers = role == Role::kAccumulator ? 8 * bits / 32 : 2;
  fragment.quad_pairs = true;
  fragment.column_major = column_major;
  return fragment;
}
/// The quad pair, 0 to 3, that a lane belongs to in mma.m8n8k4: each computes a product of its own.
constexpr int QuadPairOf(int lane) { return lane % 16 / 4; }

/// Of wmma.load, wmma.store and wmma.mma.
constexpr Fragment WmmaFragment(Role role, int m, int n, int k, int bits) {
  Fragment fragment = MmaFragment(role, m, n, k, bits);
  fragment.transposed = m == 8 && n == 32;
  const bool f16_operand = role != Role::kAccumulator && bits == 16;
  // f16 operands always take eight registers; bf16, of the same width, do not (WmmaBf16Fragment).
  if (f16_operand) fragment.registers = 8;
  return fragment;
}
constexpr Fragment WmmaBf16Fragment(Role role, int m, int n, int k) {
  Fragment fragment = WmmaFragment(role, m, n, k, 16);
  if (role != Role::kAccumulator) fragment.registers = fragment.rows * fragment.columns / 64;
  return fragment;
}

/// ldmatrix/stmatrix .m8n8.b16: lane 8 j + i gives the address of row i of matrix j; register j of
/// each lane holds this pair of elements (element 0 or 1) of matrix j, or of its transpose with
/// .trans.
constexpr MatrixPlace LdmatrixPlace(int lane, int element, bool transposed) {
  const MatrixPlace place{lane / 4, 2 * (lane % 4) + element};
  return transposed ? MatrixPlace{place.column, place.row} : place;
}

/// wgmma.m64nNkK: accumulator i of a lane of warp 0 to 3 of the warpgroup.
constexpr MatrixPlace WgmmaAccumulatorPlace(int warp, int lane, int i) {
  return {16 * warp + 8 * (i / 2 % 2) + lane / 4, 8 * (i / 4) + 2 * (lane % 4) + i % 2};
}
/// wgmma operand A in registers: 16 rows a warp, as mma's A of the same k.
constexpr MatrixPlace WgmmaOperandPlace(int warp, int lane, int element, int k, int bits) {
  const MatrixPlace place = PlaceOf(MmaFragment(Role::kA, 16, 8, k, bits), lane, element);
  return {16 * warp + place.row, place.column};
}

}  // namespace assay::emu
