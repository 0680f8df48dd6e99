#include "validator/emu/handlers/convert_rare.h"

#include <cstring>

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu {
namespace {

using enum Type;
using M = Mod;

/// A packed type's element, and how many bits apart two elements lie.
struct Packing {
  Type packed;
  Type element;
  int bits;
};
constexpr Packing kPackings[] = {
    {kF16x2, kF16, 16},
    {kBF16x2, kBF16, 16},
    {kE4M3x2, kE4M3, 8},
    {kE5M2x2, kE5M2, 8},
};
const Packing* PackingOf(Type type) {
  for (const Packing& packing : kPackings) {
    if (packing.packed == type) return &packing;
  }
  return nullptr;
}
const Packing* PackingOfElement(Type element) {
  for (const Packing& packing : kPackings) {
    if (packing.element == element) return &packing;
  }
  return nullptr;
}

u64 LoadRaw(Warp& warp, const DecodedOperand& operand, int lane) {
  const std::size_t bytes = operand.bits / 8u;
  u64 raw = 0;
  std::memcpy(&raw, LanesOf<std::byte>(warp, operand.slot) + static_cast<std::size_t>(lane) * bytes,
              bytes < 8 ? bytes : 8);
  return raw;
}
void StoreRaw(Warp& warp, const DecodedOperand& operand, int lane, u64 raw) {
  const std::size_t bytes = operand.bits / 8u;
  std::memcpy(LanesOf<std::byte>(warp, operand.slot) + static_cast<std::size_t>(lane) * bytes, &raw,
              bytes < 8 ? bytes : 8);
}

/// How a cvt's operands are packed. Decoded::aux.
enum class Shape : u32 {
  kScalar,      ///< d = a
  kPairToPack,  ///< d = {a, b}, a in the upper half
  kPackToPack,  ///< both halves of a
};

}  // namespace

std::uint64_t PackConversion(const Conversion& how) {
  return static_cast<u64>(how.source) | static_cast<u64>(how.destination) << 8 |
         static_cast<u64>(how.mode) << 16 | u64{how.integral} << 24 | u64{how.ftz} << 25 |
         u64{how.sat} << 26 | u64{how.satfinite} << 27 | u64{how.relu} << 28;
}

Conversion UnpackConversion(std::uint64_t packed) {
  const auto flag = [packed](int bit) { return (packed >> bit & 1) != 0; };
  return {.source = static_cast<Type>(packed & 0xff),
          .destination = static_cast<Type>(packed >> 8 & 0xff),
          .mode = static_cast<Round>(packed >> 16 & 0xff),
          .integral = flag(24),
          .ftz = flag(25),
          .sat = flag(26),
          .satfinite = flag(27),
          .relu = flag(28)};
}

void ConvertRare(Warp& warp, const Decoded& op) {
  const Conversion how = UnpackConversion(op.immediate);
  const Shape shape = static_cast<Shape>(op.aux);
  const Packing* const to = PackingOfElement(how.destination);
  const Packing* const from = PackingOfElement(how.source);
  for (int i = 0; i < kWarpSize; ++i) {
    if (!IsActive(warp.exec, i)) continue;
    const u64 a = LoadRaw(warp, op.operands[1], i);
    u64 result = 0;
    if (shape == Shape::kScalar) {
      result = ConvertScalar(a, how);
    } else if (shape == Shape::kPairToPack) {
      const u64 b = LoadRaw(warp, op.operands[2], i);
      result = ConvertScalar(a, how) << to->bits | ConvertScalar(b, how);
    } else {
      const u64 mask = (u64{1} << from->bits) - 1;
      result =
          ConvertScalar(a >> from->bits & mask, how) << to->bits | ConvertScalar(a & mask, how);
    }
    StoreRaw(warp, op.operands[0], i, result);
  }
}

namespace {

/// cvt.pack.sat: the clamped `a` above the clamped `b`, below them the low bits of nothing, or
/// above them those of `c` (9.7.9.22).
struct PackRow {
  Type type;
  int bits;
  bool is_signed;
};
constexpr PackRow kPackRows[] = {{kU16, 16, false}, {kS16, 16, true}, {kU8, 8, false},
                                 {kS8, 8, true},    {kU4, 4, false},  {kS4, 4, true},
                                 {kU2, 2, false},   {kS2, 2, true}};

void ConvertPack(Warp& warp, const Decoded& op) {
  const PackRow& row = kPackRows[op.aux];
  const s64 low = row.is_signed ? -(s64{1} << (row.bits - 1)) : 0;
  const s64 high = (s64{1} << (row.is_signed ? row.bits - 1 : row.bits)) - 1;
  const u32 mask = static_cast<u32>((u64{1} << row.bits) - 1);
  const auto clamp = [&](u64 raw) {
    const s64 value = static_cast<s32>(raw);
    return static_cast<u32>(value < low ? low : value > high ? high : value) & mask;
  };
  for (int i = 0; i < kWarpSize; ++i) {
    if (!IsActive(warp.exec, i)) continue;
    u32 result = clamp(LoadRaw(warp, op.operands[1], i)) << row.bits |
                 clamp(LoadRaw(warp, op.operands[2], i));
    if (op.operand_count == 4)
      result |= static_cast<u32>(LoadRaw(warp, op.operands[3], i) << (2 * row.bits));
    StoreRaw(warp, op.operands[0], i, result);
  }
}

Handler ResolvePack(const ptx::Instruction& instruction, Decoded& decoded) {
  const bool third = instruction.type(2) == kB32;
  if (instruction.mods.size() != 1 || !instruction.Has(M::kSat) || instruction.type(1) != kS32 ||
      instruction.types.size() != (third ? 3u : 2u) ||
      instruction.operands.size() != (third ? 4u : 3u)) {
    return nullptr;
  }
  for (std::size_t i = 0; i < std::size(kPackRows); ++i) {
    if (kPackRows[i].type != instruction.type() || (kPackRows[i].bits == 16) == third) continue;
    decoded.aux = static_cast<u32>(i);
    return ConvertPack;
  }
  return nullptr;
}

}  // namespace

Handler ResolveConvertRare(const ptx::Instruction& instruction, Decoded& decoded) {
  if (instruction.opcode == Opcode::kCvtPack) return ResolvePack(instruction, decoded);
  if (instruction.types.size() != 2) return nullptr;
  Conversion how;
  for (const Mod mod : instruction.mods) {
    switch (mod) {
      case M::kRn:
        how.mode = Round::kNearest;
        break;
      case M::kRz:
        how.mode = Round::kZero;
        break;
      case M::kRm:
        how.mode = Round::kDown;
        break;
      case M::kRp:
        how.mode = Round::kUp;
        break;
      case M::kRna:
        how.mode = Round::kAway;
        break;
      case M::kRni:
        how.mode = Round::kNearest;
        how.integral = true;
        break;
      case M::kRzi:
        how.mode = Round::kZero;
        how.integral = true;
        break;
      case M::kRmi:
        how.mode = Round::kDown;
        how.integral = true;
        break;
      case M::kRpi:
        how.mode = Round::kUp;
        how.integral = true;
        break;
      case M::kFtz:
        how.ftz = true;
        break;
      case M::kSat:
        how.sat = true;
        break;
      case M::kSatfinite:
        how.satfinite = true;
        break;
      case M::kRelu:
        how.relu = true;
        break;
      default:
        return nullptr;
    }
  }
  const Type to = instruction.type(0);
  const Type from = instruction.type(1);
  const Packing* const to_packing = PackingOf(to);
  const Packing* const from_packing = PackingOf(from);
  const std::size_t operands = instruction.operands.size();
  Shape shape = Shape::kScalar;
  if (to_packing == nullptr && from_packing == nullptr && operands == 2) {
    how.source = from;
    how.destination = to;
  } else if (to_packing != nullptr && from_packing == nullptr && operands == 3) {
    shape = Shape::kPairToPack;
    how.source = from;
    how.destination = to_packing->element;
  } else if (to_packing != nullptr && from_packing != nullptr && operands == 2) {
    shape = Shape::kPackToPack;
    how.source = from_packing->element;
    how.destination = to_packing->element;
  } else {
    return nullptr;
  }
  if (!IsConvertible(how.source) || !IsConvertible(how.destination)) return nullptr;
  decoded.immediate = PackConversion(how);
  decoded.aux = static_cast<u32>(shape);
  return ConvertRare;
}

}  // namespace assay::emu
