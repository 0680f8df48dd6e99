#include "tests/conformance/inputs.h"

#include <span>
#include <string_view>

#include "base/rng.h"

namespace assay::conformance {
namespace {

using u64 = std::uint64_t;

// Every draw is a statement of its own: the order of evaluation within an expression is the
// compiler's choice.
constexpr u64 kSeed = 20251120;

/// A floating-point kind by its fields, and patterns worth trying, as bits.
struct FloatKind {
  std::string_view name;
  int exponent;
  int fraction;
  std::span<const u64> extra;
};
// 2^31, 2^31-ish, 2^32, 2^63, 2^64, 255.5, 256, 127.5, 128.5, 65504, 65519, 65520, 448, 464, 480,
// 57344, 61440, 2^-14, 2^-15, 2^-24, 2^-25, 1.5 * 2^-25, ties of bf16, f16 and tf32.
constexpr u64 kF32Extra[] = {
    0x4f000000, 0x4effffff, 0x4f800000, 0x4f7fffff, 0x5f000000, 0x5effffff, 0x5f800000, 0x437f8000,
    0x43800000, 0x42ff0000, 0x43008000, 0x477fe000, 0x477fefff, 0x477ff000, 0x43e00000, 0x43e80000,
    0x43e7ffff, 0x43f00000, 0x47600000, 0x47700000, 0x38800000, 0x38000000, 0x33800000, 0x33000000,
    0x33400000, 0x3f808000, 0x3f818000, 0x3f807fff, 0x3f801000, 0x3f803000, 0x3f800fff, 0x3f801001,
    0x387fe000, 0x387ff000, 0x3b000000, 0x3a800000, 0x3ac00000, 0x37800000, 0x37000000, 0x40490fdb,
    0x42b17218, 0x43160000, 0xc3150000, 0xc2fc0000, 0xc2ff0000, 0x43000000, 0x42ffffff, 0x7f000000,
    0x7e800000, 0x7e800001};
constexpr u64 kF64Extra[] = {
    0x41dfffffffc00000, 0x41e0000000000000, 0x41efffffffe00000, 0x41f0000000000000,
    0x43dfffffffffffff, 0x43e0000000000000, 0x43efffffffffffff, 0x43f0000000000000,
    0xc1e0000000000000, 0xc3e0000000000000, 0x3ff0000010000000, 0x3ff0000030000000,
    0x3ff000000fffffff, 0x47efffffe0000000, 0x47effffff0000000, 0x47efffffefffffff,
    0x3810000000000000, 0x380fffffe0000000, 0x380ffffff0000000, 0x36a0000000000000,
    0x3690000000000000, 0x3690000000000001, 0x40effc0000000000, 0x40effe0000000000,
    0x3f10000000000000, 0x3e60000000000000, 0x3e70000000000001};
constexpr u64 kHalfExtra[] = {0x5bff, 0x5c00, 0x5800, 0x57ff, 0x5f00, 0x5f40, 0x5f3f, 0x7b80,
                              0x7bff, 0x1c00, 0x1800, 0x1400, 0x2400, 0x2000, 0x3800};
constexpr u64 kBf16Extra[] = {0x4f00, 0x4f80, 0x5f00, 0x5f80, 0x437f, 0x4380,
                              0x4300, 0x42ff, 0x3e80, 0xc2fc, 0x4300};
constexpr FloatKind kFloats[] = {{"f32", 8, 23, kF32Extra},
                                 {"f64", 11, 52, kF64Extra},
                                 {"f16", 5, 10, kHalfExtra},
                                 {"bf16", 8, 7, kBf16Extra}};

const FloatKind* FindFloat(std::string_view name) {
  for (const FloatKind& kind : kFloats) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

u64 SpecialFloat(const FloatKind& kind, Rng& rng) {
  const u64 one = u64{1} << kind.fraction;
  const u64 bias = ((u64{1} << (kind.exponent - 1)) - 1) << kind.fraction;
  const u64 infinity = ((u64{1} << kind.exponent) - 1) << kind.fraction;
  const u64 sign = rng.Below(2) << (kind.exponent + kind.fraction);
  const u64 magnitudes[] = {0,
                            0,
                            1,
                            one - 1,
                            one,
                            one + 1,
                            bias,
                            bias + 1,
                            bias - 1,
                            bias + one,
                            bias - one,
                            bias + one / 2,
                            bias + one + one / 4,
                            infinity - 1,
                            infinity,
                            infinity,
                            infinity + one / 2,
                            infinity + 1,
                            infinity + one - 1,
                            infinity + one / 4 + 3,
                            one / 2,
                            infinity - one,
                            bias + (one << 1) - 1};
  const u64 choice = rng.Below(std::size(magnitudes) + kind.extra.size());
  if (choice < std::size(magnitudes)) return sign | magnitudes[choice];
  const u64 extra = kind.extra[choice - std::size(magnitudes)];
  return extra ^ sign;
}

u64 RandomFloat(const FloatKind& kind, Rng& rng, u64 previous) {
  const int bits = 1 + kind.exponent + kind.fraction;
  const u64 mask = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
  const u64 bias = (u64{1} << (kind.exponent - 1)) - 1;
  const u64 fraction = rng.Next() & ((u64{1} << kind.fraction) - 1);
  const u64 sign = rng.Below(2) << (bits - 1);
  switch (rng.Below(4)) {
    case 0:
      return SpecialFloat(kind, rng);
    case 1:
      return rng.Next() & mask;
    case 2:
      return sign | (bias - 6 + rng.Below(12)) << kind.fraction | fraction;
    default: {
      // The previous register's value with an exponent near it, or the same number negated or a
      // neighbour.
      if (rng.Below(3) == 0) return ((previous ^ sign) + rng.Below(3) - 1) & mask;
      const u64 exponent = previous >> kind.fraction & ((u64{1} << kind.exponent) - 1);
      const u64 top = (u64{1} << kind.exponent) - 2;
      const u64 near = exponent + rng.Below(7);
      return sign | (near < 3 ? 0 : near - 3 > top ? top : near - 3) << kind.fraction | fraction;
    }
  }
}

u64 RandomInteger(int bits, Rng& rng, u64 previous) {
  const u64 mask = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
  const u64 top = u64{1} << (bits - 1);
  switch (rng.Below(4)) {
    case 0: {
      const u64 specials[] = {0,
                              1,
                              2,
                              mask,
                              top,
                              top - 1,
                              top + 1,
                              mask - 1,
                              0x7f,
                              0x80,
                              0xff,
                              0x100,
                              0x7fff,
                              0x8000,
                              0xffff,
                              0x10000,
                              0x7fffffff,
                              0x80000000,
                              0xffffffff,
                              0x100000000,
                              31,
                              32,
                              33,
                              63,
                              64,
                              0xaaaaaaaaaaaaaaaa,
                              0x5555555555555555,
                              0xffffff80,
                              0xffffffffffffff80,
                              0xffff8000,
                              0xffffffffffff8000};
      return specials[rng.Below(std::size(specials))] & mask;
    }
    case 1:
      return rng.Next() & mask;
    case 2: {
      const u64 value = rng.Next();
      const u64 shifted = value >> rng.Below(64);
      return (rng.Below(2) == 0 ? shifted : u64{0} - shifted) & mask;
    }
    default:
      return (previous + rng.Below(3) - 1) & mask;
  }
}

/// A matrix element in the class of its warp.
u64 MatrixElement(const FloatKind& kind, Rng& rng, int warp) {
  const u64 bias = (u64{1} << (kind.exponent - 1)) - 1;
  const u64 fraction = rng.Next() & ((u64{1} << kind.fraction) - 1);
  const u64 sign = rng.Below(2) << (kind.exponent + kind.fraction);
  if (warp == 0) {
    // 0 to 7 times a sign: powers of two with up to two fraction bits.
    const u64 steps = rng.Below(8);
    if (steps == 0) return 0;
    const int high = steps >= 4 ? 2 : steps >= 2 ? 1 : 0;
    const u64 rest = (steps ^ u64{1} << high) << (kind.fraction - high);
    return sign | (bias + static_cast<u64>(high)) << kind.fraction | rest;
  }
  if (warp == 1) return sign | (bias - 1 + rng.Below(2)) << kind.fraction | fraction;
  const u64 spread = kind.exponent <= 4 ? 6 : kind.exponent == 5 ? 12 : 30;
  const u64 wide = sign | (bias - spread + rng.Below(2 * spread)) << kind.fraction | fraction;
  if (warp == 2 || rng.Below(24) != 0) return wide;
  return SpecialFloat(kind, rng);
}

/// Half zeros and subnormals in warp 0, few but large terms in warp 1, near overflow in warp 2,
/// everything in warp 3.
u64 MatrixElementExtreme(const FloatKind& kind, Rng& rng, int warp) {
  const u64 top = (u64{1} << kind.exponent) - 1;
  const u64 bias = top / 2;
  const u64 fraction = rng.Next() & ((u64{1} << kind.fraction) - 1);
  const u64 sign = rng.Below(2) << (kind.exponent + kind.fraction);
  const u64 choice = rng.Below(4);
  if (choice == 0) return sign;
  if (choice == 1 && warp != 2) return sign | fraction;
  const u64 high = kind.exponent > 5 ? bias + bias / 2 : top - 1;
  if (warp == 2) return sign | (high - rng.Below(3)) << kind.fraction | fraction;
  if (warp == 1 && choice == 2) return sign | rng.Below(bias + 2) << kind.fraction | fraction;
  return sign | rng.Below(warp == 3 ? high : bias + 2) << kind.fraction | fraction;
}

constexpr FloatKind kMatrixFloats[] = {{"m.f32", 8, 23, {}},   {"m.f64", 11, 52, {}},
                                       {"m.f16x2", 5, 10, {}}, {"m.bf16x2", 8, 7, {}},
                                       {"m.tf32", 8, 10, {}},  {"m.fp8x4", 4, 3, {}}};

u64 MatrixRegister(std::string_view name, Rng& rng, int thread) {
  const bool extreme = name.starts_with("mz.");
  const auto element_of = extreme ? MatrixElementExtreme : MatrixElement;
  name.remove_prefix(extreme ? 3 : 2);
  for (const FloatKind& kind : kMatrixFloats) {
    if (kind.name.substr(2) != name) continue;
    const int warp = thread / 32 % 4;
    const int bits = 1 + kind.exponent + kind.fraction;
    // tf32 lies in the upper bits of a word; what is below must not matter, so some of it is set.
    if (name == "tf32") {
      const u64 upper = element_of(kind, rng, warp) << 13;
      return upper | (warp == 2 ? rng.Below(8192) : 0);
    }
    u64 value = 0;
    for (int shift = 0; shift < (bits == 64 ? 64 : 32); shift += bits)
      value |= element_of(kind, rng, warp) << shift;
    return value;
  }
  return 0;
}

u64 InputValue(std::string_view kind, Rng& rng, int thread, u64 previous) {
  if (kind == "pred") return rng.Below(2);
  if (kind == "n32") {
    // Shift amounts, positions and lengths.
    switch (rng.Below(4)) {
      case 0: {
        const u64 around = rng.Below(5) * 16;
        return (around + rng.Below(3) - 1) & 0xffffffff;
      }
      case 1:
        return rng.Below(3) == 0 ? rng.Next() & 0xffffffff : rng.Below(256);
      default:
        return rng.Below(70);
    }
  }
  if (kind == "lane") return rng.Below(32);
  if (kind == "offset") return static_cast<u64>(rng.Between(-20, 20)) & 0xffffffff;
  if (kind == "meta24") {
    // Two of four, in order, eight times.
    constexpr u64 kPairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    u64 value = 0;
    for (int i = 0; i < 8; ++i) value |= kPairs[rng.Below(6)] << (4 * i);
    return value;
  }
  if (kind == "meta12") {
    u64 value = 0;
    for (int i = 0; i < 8; ++i) value |= (rng.Below(2) == 0 ? u64{0x4} : u64{0xe}) << (4 * i);
    return value;
  }
  if (kind == "few") return rng.Below(3);
  if (kind == "few64") return rng.Below(3) << 33;
  if (kind.ends_with("tiny") || kind.ends_with("one")) {
    // Around the smallest normal, and around one: products and quotients at the edge of the
    // subnormals.
    const bool tiny = kind.ends_with("tiny");
    const FloatKind& base = *FindFloat(kind.substr(0, kind.size() - (tiny ? 4 : 3)));
    const u64 normal = u64{1} << base.fraction;
    const u64 one = ((u64{1} << (base.exponent - 1)) - 1) << base.fraction;
    const u64 sign = rng.Below(2) << (base.exponent + base.fraction);
    const u64 step = rng.Below(9) - 4;
    const u64 scale = tiny ? rng.Below(3) << base.fraction : rng.Below(4) == 0 ? normal : 0;
    return sign | ((tiny ? normal : one) + scale + step);
  }
  if (kind == "f32turn") {
    // Within two pi.
    const u64 sign = rng.Below(2) << 31;
    const double angle = rng.Unit() * 6.28318530717958;
    const float narrow = static_cast<float>(angle);
    return sign | __builtin_bit_cast(std::uint32_t, narrow);
  }
  if (kind == "f32small") {
    // The range of fp8, and beyond it on both sides.
    if (rng.Below(3) == 0) return RandomFloat(kFloats[0], rng, previous);
    const u64 sign = rng.Below(2) << 31;
    const u64 exponent = 127 - 18 + rng.Below(36);
    const u64 fraction = rng.Next() & 0x7fffff;
    return sign | exponent << 23 | (rng.Below(2) == 0 ? fraction : fraction & 0x700000);
  }
  if (kind == "f64nan") {
    if (rng.Below(3) == 0) return RandomFloat(kFloats[1], rng, previous);
    const u64 sign = rng.Below(2) << 63;
    const u64 payload = rng.Below(2) == 0 ? rng.Next() : rng.Below(4) + 1;
    return sign | 0x7ff0000000000000 | (payload & 0x000fffffffffffff) | (rng.Below(2) << 51);
  }
  if (kind.starts_with("m.") || kind.starts_with("mz.")) return MatrixRegister(kind, rng, thread);
  if (const FloatKind* const found = FindFloat(kind)) return RandomFloat(*found, rng, previous);
  if (kind == "f16x2" || kind == "bf16x2") {
    const FloatKind& half = kind == "f16x2" ? kFloats[2] : kFloats[3];
    const u64 low = RandomFloat(half, rng, previous & 0xffff);
    return low | RandomFloat(half, rng, previous >> 16) << 16;
  }
  if (kind == "u16x2" || kind == "s16x2") {
    const u64 low = RandomInteger(16, rng, previous & 0xffff);
    return low | RandomInteger(16, rng, previous >> 16) << 16;
  }
  const int bits = kind == "u16" || kind == "s16" ? 16 : kind == "u64" || kind == "s64" ? 64 : 32;
  return RandomInteger(bits, rng, previous);
}

}  // namespace

std::vector<std::vector<std::uint64_t>> InputsOf(const Form& form) {
  std::vector<std::vector<std::uint64_t>> values;
  Rng rng(DeriveSeed(kSeed, form.name));
  std::vector<u64> previous(static_cast<std::size_t>(form.threads), 0);
  for (const FormOperand& operand : form.sources) {
    for (int i = 0; i < operand.registers(); ++i) {
      std::vector<u64> lane_values;
      for (int thread = 0; thread < form.threads; ++thread) {
        const auto at = static_cast<std::size_t>(thread);
        lane_values.push_back(InputValue(operand.kind, rng, thread, previous[at]));
        previous[at] = lane_values.back();
      }
      values.push_back(std::move(lane_values));
    }
  }
  return values;
}

}  // namespace assay::conformance
