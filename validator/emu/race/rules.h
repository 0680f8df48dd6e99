// When do two accesses of different threads conflict? (PTX ISA, memory consistency model: conflict,
// morally strong, data race.)
//
// Pure functions of the two accesses' traits; happens-before is asked elsewhere (order.h,
// shadow.cc).
#pragma once

#include <bit>
#include <cstdint>

#include "validator/emu/race/order.h"
#include "validator/emu/race/sync.h"

namespace assay::emu {

/// What matters of an access besides who made it, when, and where. Eight bytes, compared as one.
struct Traits {
  static constexpr std::uint8_t kAtomic = 1;
  static constexpr std::uint8_t kReadOnlyPath = 2;
  static constexpr std::uint8_t kAsync = 4;

  AccessKind kind = AccessKind::kRead;
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
  std::uint8_t flags = 0;
  std::uint16_t bytes = 0;  ///< A lane's width: maps the bytes of a coalesced line to lanes.
  std::uint16_t element_bytes = 0;  ///< Size of one scalar access.

  bool operator==(const Traits& other) const {
    return std::bit_cast<std::uint64_t>(*this) == std::bit_cast<std::uint64_t>(other);
  }
  bool atomic() const { return (flags & kAtomic) != 0; }
  bool read_only_path() const { return (flags & kReadOnlyPath) != 0; }
  bool async() const { return (flags & kAsync) != 0; }
  bool strong() const { return atomic() || order != Order::kWeak; }
  bool reads() const { return kind != AccessKind::kWrite; }
  bool writes() const { return kind != AccessKind::kRead; }
  Reach reach() const { return order == Order::kVolatile ? Reach::kDevice : ReachOf(scope); }
};
static_assert(sizeof(Traits) == 8);

enum class Conflict : std::uint8_t { kNone, kWeak, kScope, kSize, kReadOnly };

/// Atomics of less than 32 bits are made of a compare-and-swap of the word around them, on which the
/// device's memory works as a whole; cuda::atomic_ref<short> does, next to plain strong loads and
/// stores of the part. The manual calls that mixed sizes; here it is none.
inline bool IsWordAround(AccessKind kind, bool atomic, std::uint32_t bytes,
                         std::uint32_t other_bytes) {
  return atomic && kind == AccessKind::kReadWrite && bytes == 4 && other_bytes <= 2;
}

/// How two overlapping accesses of different threads stand to each other, if neither is ordered
/// before the other.
inline Conflict ConflictOf(const Traits& a, BlockNumber a_block, const Traits& b,
                           BlockNumber b_block, std::uint32_t a_cluster, std::uint32_t b_cluster) {
  if (!a.writes() && !b.writes()) return Conflict::kNone;
  if (a.read_only_path() || b.read_only_path()) return Conflict::kReadOnly;
  if (!a.strong() || !b.strong()) return Conflict::kWeak;
  const Reach needed = a_block == b_block       ? Reach::kBlock
                       : a_cluster == b_cluster ? Reach::kCluster
                                                : Reach::kDevice;
  if (a.reach() < needed || b.reach() < needed) return Conflict::kScope;
  if (a.element_bytes == b.element_bytes ||
      IsWordAround(a.kind, a.atomic(), a.element_bytes, b.element_bytes) ||
      IsWordAround(b.kind, b.atomic(), b.element_bytes, a.element_bytes)) {
    return Conflict::kNone;
  }
  return Conflict::kSize;
}

/// True when the two do not conflict, whosever they are.
inline bool NeverConflict(const Traits& a, const Traits& b) {
  return a.element_bytes == b.element_bytes && a.strong() && b.strong() &&
         a.reach() == Reach::kDevice && b.reach() == Reach::kDevice &&
         !((a.flags | b.flags) & Traits::kReadOnlyPath);
}

/// True when whatever conflicts with `old` conflicts with `later` as well, scopes between blocks
/// left aside: `old` may then be forgotten once it is ordered before `later`, because an access
/// that is not ordered after `old` is not ordered after `later` either. Of strong accesses in
/// different blocks a third one, of narrow scope, may conflict with one and not with the other
/// (CellRules::InsertWrite).
inline bool Outdoes(const Traits& later, const Traits& old) {
  if (old.read_only_path()) return later.read_only_path();
  if (old.writes() && !later.writes()) return false;
  if (!later.strong()) return true;
  // A word that is no atomic conflicts with its parts.
  const bool lenient = IsWordAround(later.kind, later.atomic(), later.element_bytes, 1) &&
                       !IsWordAround(old.kind, old.atomic(), old.element_bytes, 1);
  return old.strong() && old.element_bytes == later.element_bytes && !lenient &&
         later.reach() <= old.reach();
}

}  // namespace assay::emu
