#include "validator/emu/shadow/pieces.h"

#include <utility>

namespace assay::emu {

std::size_t PieceMap::IndexOf(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (key * 0x9e3779b97f4a7c15ull) >> 20 & mask;
  while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & mask;
  return at;
}

const Piece* PieceMap::Find(std::uint64_t key) const {
  if (used_ == 0) return nullptr;
  const Slot& slot = slots_[IndexOf(key)];
  return slot.key == 0 || slot.piece.value == kExact ? nullptr : &slot.piece;
}

void PieceMap::Set(std::uint64_t key, const Piece& piece) {
  if (used_ == 0 && piece.value == kExact) return;
  Slot* slot = &slots_[IndexOf(key)];
  if (slot->key == 0) {
    if (piece.value == kExact) return;
    if (2 * (used_ + 1) > slots_.size()) {
      Grow();
      slot = &slots_[IndexOf(key)];
    }
    slot->key = key;
    ++used_;
  }
  slot->piece = piece;
}

void PieceMap::Grow() {
  std::size_t live = 0;
  for (const Slot& slot : slots_) live += slot.key != 0 && slot.piece.value != kExact ? 1 : 0;
  std::vector<Slot> old = std::exchange(slots_, {});
  // Places that were forgotten are left behind; only growth that is needed doubles the table.
  slots_.resize(4 * live > old.size() ? 2 * old.size() : old.size());
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.key == 0 || slot.piece.value == kExact) continue;
    slots_[IndexOf(slot.key)] = slot;
    ++used_;
  }
}

}  // namespace assay::emu
