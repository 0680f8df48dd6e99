// The special function unit against an H200: whole binades by digest, all halves, and what holds of
// special values and symmetries.
#include "validator/emu/semantics/mufu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"

namespace assay::conformance {
namespace {

using namespace emu;
using Unit32 = void (*)(const float* in, float* out);
constexpr int kLanes = 32;
constexpr Unit32 kSin = &RunUnit<SinUnit<0>>;
constexpr Unit32 kCos = &RunUnit<SinUnit<1>>;

/// Results for the arguments first, first + 1, ... as bits, 32 a call of `use`.
template <class Use>
void ForBits(const std::string& name, u32 first, u32 count, const Use& use) {
  static const std::map<std::string, Unit32> kUnits = {{"rcp", &RunUnit<RcpUnit>},
                                                       {"rsqrt", &RunUnit<RsqrtUnit>},
                                                       {"sqrt", &RunUnit<SqrtUnit>},
                                                       {"ex2", &RunUnit<Exp2Unit>},
                                                       {"lg2", &RunUnit<Log2Unit>},
                                                       {"sin", kSin},
                                                       {"cos", kCos},
                                                       {"tanh", &RunUnit<TanhUnit>}};
  const Unit32 unit = kUnits.at(name.substr(0, name.find('.')));
  const std::string type = name.substr(name.rfind('.') + 1);
  const bool single = type == "f32";
  const bool half = type == "f16";
  const auto widen = [=](u32 bits) {
    return single ? FromBits(bits)
           : half ? Fp16::Widen(static_cast<u16>(bits))
                  : Bf16::Widen(static_cast<u16>(bits));
  };
  alignas(64) float lanes[kLanes];
  for (u32 at = 0; at < count; at += kLanes) {
    for (u32 i = 0; i < kLanes; ++i) lanes[i] = widen(first + at + i);
    unit(lanes, lanes);
    for (u32 i = 0; i < kLanes; ++i) {
      const u32 result = single ? ToBits(lanes[i])
                         : half ? u32{Cut<Fp16>(lanes[i])}
                                : u32{Cut<Bf16>(lanes[i])};
      use(first + at + i, result);
    }
  }
}

/// FNV-1a, a result at a time.
std::string DigestOf(const std::string& name, u32 first, u32 count) {
  u64 hash = 0xcbf29ce484222325;
  ForBits(name, first, count, [&](u32, u32 result) { hash = (hash ^ result) * 0x100000001b3; });
  char text[17] = {};
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(Mufu, WholeBinadesAreThoseRecorded) {
  const auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/mufu.json");
  ASSERT_TRUE(text) << ToString(text.error());
  const auto recorded = nlohmann::json::parse(*text, nullptr, false);
  ASSERT_TRUE(recorded.is_object());
  std::map<std::string, int> ranges;
  for (const auto& range : recorded["ranges"]) {
    const auto name = range[0].get<std::string>();
    const auto first = static_cast<u32>(std::stoul(range[1].get<std::string>(), nullptr, 16));
    EXPECT_EQ(DigestOf(name, first, range[2].get<u32>()), range[3].get<std::string>())
        << name << " from " << range[1];
    ++ranges[name];
  }
  EXPECT_EQ(ranges.size(), 12u) << "eight functions of f32, four of halves";
}

u32 Bits(const std::string& name, u32 argument) {
  u32 found = 0;
  ForBits(name + ".f32", argument, 1,
          [&](u32 bits, u32 result) { found = bits == argument ? result : found; });
  return found;
}

TEST(Mufu, SpecialValues) {
  constexpr u32 kNan = kNanF32;
  constexpr u32 kInf = kInfinityF32;
  constexpr u32 kMinus = kSignF32;
  struct Row {
    const char* name;
    u32 argument;
    u32 result;
  };
  const Row rows[] = {
      {"rcp", 0, kInf},
      {"rcp", kMinus, kInf | kMinus},
      {"rcp", 1, kInf},  // Subnormals are zeros.
      {"rcp", kInf | kMinus, kMinus},
      {"rcp", 0x7e800000, 0x00800000},  // 2^126: the last whose reciprocal is normal.
      {"rcp", 0x7e800001, 0},
      {"rsqrt", 0, kInf},
      {"rsqrt", kMinus, kInf | kMinus},
      {"rsqrt", kInf, 0},
      {"rsqrt", 0xbf800000, kNan},
      {"rsqrt", 0x40800000, 0x3f000000},
      {"sqrt", kMinus, kMinus},
      {"sqrt", kInf, kInf},
      {"sqrt", 0xbf800000, kNan},
      {"sqrt", 0x40800000, 0x40000000},
      {"ex2", kMinus, 0x3f800000},
      {"ex2", kInf, kInf},
      {"ex2", kInf | kMinus, 0},
      {"ex2", 0x43000000, kInf},        // 128
      {"ex2", 0xc2fc0000, 0x00800000},  // -126
      {"ex2", 0xc2fe0000, 0},           // -127
      {"lg2", 0, kInf | kMinus},
      {"lg2", kMinus, kInf | kMinus},
      {"lg2", 0x3f800000, 0},
      {"lg2", 0x40000000, 0x3f800000},
      {"lg2", 0x3f000000, 0xbf7ffffe},  // The chip's log2(0.5) is not -1.
      {"lg2", kInf, kInf},
      {"lg2", 0xbf800000, kNan},
      {"sin", 0, 0},
      {"sin", kMinus, kMinus},
      {"sin", kInf, kNan},
      {"cos", kMinus, 0x3f800000},
      {"cos", kInf | kMinus, kNan},
      {"tanh", 1, 1},  // Subnormals are kept.
      {"tanh", kMinus, kMinus},
      {"tanh", 0x41000000, 0x3f800000},
      {"tanh", kInf | kMinus, 0xbf800000},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Bits(row.name, row.argument), row.result)
        << row.name << " of " << std::hex << row.argument;
  }
  for (const char* const name : {"rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh"}) {
    EXPECT_EQ(Bits(name, 0x7f800001), kNan) << name;
    EXPECT_EQ(Bits(name, 0xffffffff), kNan) << name;
  }
}

/// Over arguments of all exponents: odd and even functions, and exponents that pass through.
TEST(Mufu, Symmetries) {
  for (u32 exponent = 1; exponent < 255; ++exponent) {
    for (u32 sample = 0; sample < 64; ++sample) {
      const u32 x = exponent << 23 | (sample * 0x9e3779b1u + exponent * 0x85ebca6bu) >> 9;
      for (const char* const name : {"rcp", "sin", "tanh"})
        ASSERT_EQ(Bits(name, x | kSignF32), Bits(name, x) ^ kSignF32) << name << std::hex << x;
      ASSERT_EQ(Bits("cos", x | kSignF32), Bits("cos", x)) << std::hex << x;
      if (exponent > 2) {
        ASSERT_EQ(Bits("rsqrt", x - (2u << 23)), Bits("rsqrt", x) + (1u << 23)) << std::hex << x;
        ASSERT_EQ(Bits("sqrt", x - (2u << 23)), Bits("sqrt", x) - (1u << 23)) << std::hex << x;
      }
    }
  }
}

TEST(Mufu, TheSquarerDropsItsLowColumns) {
  for (u32 x = 0; x < 1u << 17; ++x) {
    u64 sum = 0;
    for (u32 i = 0; i < 17; ++i) {
      for (u32 j = i; j < 17; ++j) {
        const u32 column = i == j ? 2 * i : i + j + 1;
        if (column >= 19 && (x >> i & x >> j & 1) != 0) sum += u64{1} << column;
      }
    }
    ASSERT_EQ(TruncatedSquare(static_cast<u16>(x >> 9), static_cast<u16>(x & 0x1ff)), sum >> 19)
        << x;
  }
}

}  // namespace
}  // namespace assay::conformance
