// Where the elements of wmma.load's and wmma.store's fragments lie in memory (PTX ISA 9.7.14.4).
//
// A fragment is spread over the registers of a warp's lanes. Elements that share a register may
// follow each other in memory, or not: `pieces()` says in how many accesses a register goes, Place()
// where each of them is, lane by lane. Addresses are computed, nothing is accessed or checked.
//
// Tables are built once, when the first such instruction is resolved, and are immutable. Thread-safe.
//
//   const FragmentInMemory memory(warp, op, address_operand);
//   for (int r = 0; r < memory.registers(); ++r)
//     for (int p = 0; p < memory.pieces(); ++p) memory.Place(r, p, addresses);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/memory.h"
#include "validator/emu/semantics/matrix_layout.h"

namespace assay::emu {

/// The space that a matrix instruction names, or that of generic addresses.
ptx::Space FragmentSpace(const ptx::Instruction& in);

/// Sets decoded.aux to the row of the fragment that `in` (wmma.load, wmma.store) is about; false
/// when there is none.
bool FindFragment(const ptx::Instruction& in, Role role, Decoded& decoded);
/// The fragment in row `index`.
const Fragment& FragmentAt(std::size_t index);

/// A fragment in memory as a whole: `lines` of `line_bytes`, `stride` bytes apart.
struct FragmentLines {
  std::uint64_t address = 0;
  std::uint64_t stride = 0;
  std::uint32_t lines = 0;
  std::uint32_t line_bytes = 0;

  std::uint64_t bytes() const { return (lines - 1) * stride + line_bytes; }
};

/// A fragment in memory: which registers are one piece there, and where each element lies.
class FragmentInMemory {
 public:
  /// `op.operands[address_at]` is the address; the last operand is the stride where there are more
  /// than address and registers.
  FragmentInMemory(CoreWarp& warp, const Decoded& op, std::size_t address_at);

  int registers() const { return fragment_.registers; }
  /// Accesses that a register takes, and the bytes of each.
  int pieces() const { return together_ ? 1 : per_register_; }
  std::uint32_t piece_bytes() const {
    return static_cast<std::uint32_t>(together_ ? per_register_ * bits_ : bits_) / 8;
  }
  /// Fills in the addresses of one piece of register `reg`, for all lanes.
  void Place(int reg, int piece, std::uint64_t* addresses) const;
  /// Nothing where lanes disagree about address or stride, or not every piece is aligned to its bytes.
  std::optional<FragmentLines> Lines() const;
  /// By register, piece and lane: the piece's line times TileRead::kPitch, plus its byte in the line.
  std::span<const std::uint16_t> PlacesInLines() const;

 private:
  const Fragment& fragment_;
  const std::vector<std::uint8_t>& rows_;
  const std::vector<std::uint8_t>& columns_;
  const std::vector<std::uint16_t> (&in_lines_)[2];
  LaneAccess base_;
  std::uint32_t stride_[kWarpSize];
  int bits_ = 16;
  int per_register_ = 1;
  bool column_major_ = false;
  bool together_ = false;
};

}  // namespace assay::emu
