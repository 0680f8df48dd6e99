// Which shadow value each 16-bit piece of a register or of memory belongs to.
//
// Values move in pieces: a pack of two bf16, the upper half of an f32 that is its truncation to bf16,
// a vector load of four halves. So a piece is 16 bits wide and knows its value, which part of it it
// is, and the bits that it had. A piece whose bits are no longer those in the register or in memory
// was overwritten by something that the tracker does not follow: it means nothing then, and the
// number that is there stands for itself.
//
// Memory is keyed by place (host address / 2, or a tag and an offset for local memory): equal keys
// are equal places, nothing else is read from them.
//
// Deterministic: iteration order never reaches a result. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/shadow/ledger.h"

namespace assay::emu {

struct Piece {
  ValueId value = kExact;
  std::uint16_t bits = 0;
  std::uint8_t part = 0;      ///< 0: the lowest 16 bits of the value.
  SiteId split = kOtherSite;  ///< Where it last moved without its other parts, if it did.
};

/// A hash table from places to pieces.
class PieceMap {
 public:
  PieceMap() : slots_(kFewest) {}
  /// Null when the place has no piece.
  const Piece* Find(std::uint64_t key) const;
  /// Forgets the place when piece.value is kExact.
  void Set(std::uint64_t key, const Piece& piece);
  bool empty() const { return used_ == 0; }
  std::uint64_t bytes() const { return slots_.size() * sizeof(Slot); }
  template <class Visit>
  void ForEach(Visit visit) {
    for (Slot& slot : slots_) {
      if (slot.key != 0 && slot.piece.value != kExact) visit(slot.piece.value);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  ///< 0: free. No place has it.
    Piece piece;
  };
  static constexpr std::size_t kFewest = 1024;
  std::size_t IndexOf(std::uint64_t key) const;
  void Grow();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace assay::emu
