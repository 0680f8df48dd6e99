// Handlers of mov, selp and slct (PTX ISA 9.7.9.1, 9.7.6, 9.7.7). mov also packs and unpacks
// vectors and moves predicates.
#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/integer.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

template <class T>
inline T Same(T a) {
  return a;
}

void Move128(Warp& warp, const Decoded& op) {
  const u64* const a = LanesOf<u64>(warp, op.a);
  u64* const d = LanesOf<u64>(warp, op.d);
  for (int i = 0; i < 2 * kWarpSize; ++i) d[i] = IsActive(warp.exec, i / 2) ? a[i] : d[i];
}

void MovePredicate(Warp& warp, const Decoded& op) {
  WritePredicate(warp, op.operands[0], PredicateOf(warp, op.operands[1]));
}

/// The bytes of an operand's lane: lanes of 16-bit registers lie 2 bytes apart, of 128-bit ones 16.
[[gnu::always_inline]] inline std::byte* BytesOf(Warp& warp, const DecodedOperand& operand) {
  return LanesOf<std::byte>(warp, operand.slot);
}

/// mov.b64 d, {a, b}: elements of `aux` bytes each are laid side by side, the first lowest. Sources
/// may be the destination.
template <int kElementBytes>
void Pack(Warp& warp, const Decoded& op) {
  const int count = op.operand_count - 1;
  const int stride = kElementBytes * count;
  alignas(64) std::byte packed[16 * kWarpSize];
  for (int e = 0; e < count; ++e) {
    const DecodedOperand& element = op.operands[1 + e];
    const std::byte* const from = BytesOf(warp, element);
    const int from_stride = element.bits / 8;
    for (int i = 0; i < kWarpSize; ++i) {
      __builtin_memcpy(packed + i * stride + e * kElementBytes, from + i * from_stride,
                       kElementBytes);
    }
  }
  std::byte* const to = BytesOf(warp, op.operands[0]);
  if (warp.exec == kAllLanes) {
    __builtin_memcpy(to, packed, static_cast<std::size_t>(stride) * kWarpSize);
    return;
  }
  for (int i = 0; i < kWarpSize; ++i) {
    if (IsActive(warp.exec, i))
      __builtin_memcpy(to + i * stride, packed + i * stride, static_cast<std::size_t>(stride));
  }
}

/// mov.b64 {d, e}, a. A destination may be the sink. The source is copied first: it may be one of
/// the destinations.
template <int kElementBytes>
void Unpack(Warp& warp, const Decoded& op) {
  const int count = op.destinations;
  const int stride = kElementBytes * count;
  alignas(64) std::byte packed[16 * kWarpSize];
  __builtin_memcpy(packed, BytesOf(warp, op.operands[count]),
                   static_cast<std::size_t>(stride) * kWarpSize);
  for (int e = 0; e < count; ++e) {
    const DecodedOperand& element = op.operands[e];
    if (element.kind != DecodedOperand::Kind::kSlot) continue;
    std::byte* const to = BytesOf(warp, element);
    const int to_stride = element.bits / 8;  // 8-bit elements lie in 16-bit lanes.
    for (int i = 0; i < kWarpSize; ++i) {
      if (!IsActive(warp.exec, i)) continue;
      __builtin_memset(to + i * to_stride, 0, static_cast<std::size_t>(to_stride));
      __builtin_memcpy(to + i * to_stride, packed + i * stride + e * kElementBytes, kElementBytes);
    }
  }
}

template <class T>
void Select(Warp& warp, const Decoded& op) {
  const T* const a = LanesOf<T>(warp, op.operands[1].slot);
  const T* const b = LanesOf<T>(warp, op.operands[2].slot);
  const LaneMask mask = PredicateOf(warp, op.operands[3]);
  ForLanes<T>(warp, op.operands[0].slot, [=](int i) { return IsActive(mask, i) ? a[i] : b[i]; });
}
constexpr LaneHandler kSelect16{Select<u16>, 3};
constexpr LaneHandler kSelect32{Select<u32>, 3};
constexpr LaneHandler kSelect64{Select<u64>, 3};

/// a if c >= 0, else b; with f32 conditions -0 counts as 0 and NaN selects b.
template <class T>
inline T SlctS32(T a, T b, s32 c) {
  return c >= 0 ? a : b;
}
template <class T, bool kFtz>
inline T SlctF32(T a, T b, float c) {
  return FlushIf<kFtz>(c) >= 0.0f ? a : b;
}

#define SLCT_ROWS(TYPE, T)                                            \
  {Opcode::kSlct, {TYPE, kS32}, {}, Map<SlctS32<T>>},                 \
      {Opcode::kSlct, {TYPE, kF32}, {}, Map<SlctF32<T, false>>}, {    \
    Opcode::kSlct, {TYPE, kF32}, Mods(M::kFtz), Map<SlctF32<T, true>> \
  }
#define MOVE_ROWS(TYPE, T) {Opcode::kMov, {TYPE}, {}, Map<Same<T>>}
#define SELECT_ROWS(TYPE, HANDLER) {Opcode::kSelp, {TYPE}, {}, HANDLER}

constexpr HandlerRow kRows[] = {
    {Opcode::kMov, {kPred}, {}, {MovePredicate, 1}},
    MOVE_ROWS(kB16, u16),
    MOVE_ROWS(kU16, u16),
    MOVE_ROWS(kS16, u16),
    MOVE_ROWS(kF16, u16),
    MOVE_ROWS(kBF16, u16),
    MOVE_ROWS(kB8, u16),
    MOVE_ROWS(kU8, u16),
    MOVE_ROWS(kS8, u16),
    MOVE_ROWS(kB32, u32),
    MOVE_ROWS(kU32, u32),
    MOVE_ROWS(kS32, u32),
    MOVE_ROWS(kF32, u32),
    MOVE_ROWS(kF16x2, u32),
    MOVE_ROWS(kBF16x2, u32),
    MOVE_ROWS(kTF32, u32),
    MOVE_ROWS(kB64, u64),
    MOVE_ROWS(kU64, u64),
    MOVE_ROWS(kS64, u64),
    MOVE_ROWS(kF64, u64),
    MOVE_ROWS(kF32x2, u64),
    {Opcode::kMov, {kB128}, {}, {Move128, 1}},
    SELECT_ROWS(kB16, kSelect16),
    SELECT_ROWS(kU16, kSelect16),
    SELECT_ROWS(kS16, kSelect16),
    SELECT_ROWS(kF16, kSelect16),
    SELECT_ROWS(kBF16, kSelect16),
    SELECT_ROWS(kB32, kSelect32),
    SELECT_ROWS(kU32, kSelect32),
    SELECT_ROWS(kS32, kSelect32),
    SELECT_ROWS(kF32, kSelect32),
    SELECT_ROWS(kF16x2, kSelect32),
    SELECT_ROWS(kBF16x2, kSelect32),
    SELECT_ROWS(kB64, kSelect64),
    SELECT_ROWS(kU64, kSelect64),
    SELECT_ROWS(kS64, kSelect64),
    SELECT_ROWS(kF64, kSelect64),
    SELECT_ROWS(kF32x2, kSelect64),
    SLCT_ROWS(kB16, u16),
    SLCT_ROWS(kU16, u16),
    SLCT_ROWS(kS16, u16),
    SLCT_ROWS(kB32, u32),
    SLCT_ROWS(kU32, u32),
    SLCT_ROWS(kS32, u32),
    SLCT_ROWS(kF32, u32),
    SLCT_ROWS(kB64, u64),
    SLCT_ROWS(kU64, u64),
    SLCT_ROWS(kS64, u64),
    SLCT_ROWS(kF64, u64),
};

/// The common packs and unpacks: kCount parts of a lane each, all in registers of their own width.
template <class Whole, class Part, int kCount>
void PackParts(Warp& warp, const Decoded& op) {
  constexpr int kPartBits = kBits<Part>;
  const Part* parts[kCount];
  for (int e = 0; e < kCount; ++e) parts[e] = LanesOf<Part>(warp, op.operands[1 + e].slot);
  ForLanes<Whole>(warp, op.operands[0].slot, [&](int i) {
    Whole whole = 0;
    for (int e = 0; e < kCount; ++e)
      whole |= static_cast<Whole>(static_cast<Whole>(parts[e][i]) << (e * kPartBits));
    return whole;
  });
}
template <class Whole, class Part, int kCount>
void UnpackParts(Warp& warp, const Decoded& op) {
  constexpr int kPartBits = kBits<Part>;
  const Whole* const whole = LanesOf<Whole>(warp, op.operands[kCount].slot);
  for (int e = 0; e < kCount; ++e) {
    if (op.operands[e].kind != DecodedOperand::Kind::kSlot) continue;
    ForLanes<Part>(warp, op.operands[e].slot,
                   [=](int i) { return static_cast<Part>(whole[i] >> (e * kPartBits)); });
  }
}

struct VectorRow {
  int bytes;  ///< Of the whole.
  std::size_t elements;
  Handler pack;
  Handler unpack;
};
constexpr VectorRow kVectorRows[] = {
    {4, 2, PackParts<u32, u16, 2>, UnpackParts<u32, u16, 2>},
    {8, 2, PackParts<u64, u32, 2>, UnpackParts<u64, u32, 2>},
    {8, 4, PackParts<u64, u16, 4>, UnpackParts<u64, u16, 4>},
    {2, 2, Pack<1>, Unpack<1>},
    {4, 4, Pack<1>, Unpack<1>},
    {16, 2, Pack<8>, Unpack<8>},
    {16, 4, Pack<4>, Unpack<4>},
};

/// mov takes vectors of 2 or 4 elements for .b16 to .b128, and for the other types of those widths.
Handler VectorMove(bool pack, int bytes, std::size_t elements) {
  for (const VectorRow& row : kVectorRows) {
    if (row.bytes == bytes && row.elements == elements) return pack ? row.pack : row.unpack;
  }
  return nullptr;
}

}  // namespace

Handler ResolveMove(const ptx::Instruction& instruction, Decoded& decoded) {
  const VectorOperands vectors = VectorOperandsOf(instruction);
  if (vectors.any) {
    const bool pack = vectors.destination == 0 && vectors.source != 0;
    const bool unpack = vectors.destination != 0 && vectors.source == 0;
    if (pack == unpack || SignatureOf(instruction).opcode != Opcode::kMov) return nullptr;
    return VectorMove(pack, vectors.type_bytes, pack ? vectors.source : vectors.destination);
  }
  return FindHandler(kRows, instruction, decoded);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
