// TMA and wgmma through NVRTC and the emulator. An H200 gives the same results for these kernels
// (2026-11-20, driver 580.159.04).
#include <numeric>

#include "tests/libraries_fixture.h"

namespace assay {
namespace {

class Hopper : public Libraries {
 protected:
  Argument Map(std::uint32_t buffer, DType dtype, std::vector<std::uint64_t> shape,
               std::vector<std::uint32_t> box, int swizzle) {
    Argument argument;
    argument.kind = Argument::Kind::kTensorMap;
    argument.name = "map";
    argument.buffer = buffer;
    argument.map = {.dtype = dtype,
                    .shape = shape,
                    .strides = {},
                    .box = std::move(box),
                    .swizzle = static_cast<std::uint8_t>(swizzle)};
    std::uint64_t bytes = SizeOf(dtype);
    for (std::size_t d = 0; d + 1 < shape.size(); ++d)
      argument.map.strides.push_back(bytes *= shape[d]);
    return argument;
  }
};

TEST_P(Hopper, BoxesAreSwizzledAndCutAtTheTensorsEdge) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  constexpr int kWidth = 96;
  constexpr int kHeight = 40;
  Values in(kWidth * kHeight);
  std::iota(in.begin(), in.end(), 1.0);
  const auto source = In(DType::kU16, in);
  for (int swizzle = 0; swizzle < 4; ++swizzle) {
    const int width = swizzle == 0 ? 24 : 8 << swizzle;
    constexpr int kRows = 16;
    for (const auto& [x, y] : {std::pair{8, 5}, {-8, -2}, {88, 35}, {8, -2}}) {
      SCOPED_TRACE(std::to_string(swizzle) + " at " + std::to_string(x) + ", " + std::to_string(y));
      const auto out = Out(DType::kU16, static_cast<std::size_t>(width * kRows));
      ASSERT_NO_FATAL_FAILURE(Run("raw_tile", {1, 1, 1}, {64, 1, 1},
                                  {Map(source, DType::kU16, {kWidth, kHeight},
                                       {static_cast<std::uint32_t>(width), kRows}, swizzle),
                                   Pointer(out), Int(x), Int(y), Int(width * kRows)},
                                  false, 32768));
      const Values got = Of(out);
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < width; ++c) {
          const bool inside = x + c >= 0 && x + c < kWidth && y + r >= 0 && y + r < kHeight;
          const int value = inside ? (y + r) * kWidth + x + c + 1 : 0;
          const int byte = (r * width + c) * 2;
          const int chunk = byte / 16 * 16 ^ ((byte >> 7) & ((1 << swizzle) - 1)) << 4;
          ASSERT_EQ(got[static_cast<std::size_t>((chunk | (byte & 15)) / 2)], value)
              << r << ", " << c;
        }
      }
    }
  }
}

TEST_P(Hopper, AnInnermostCoordinateOffTheSixteenBytesIsRefuted) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  const auto source = In(DType::kU16, Values(96 * 40, 1.0));
  const auto out = Out(DType::kU16, 24 * 16);
  const Report report = Launched(
      "raw_tile", {1, 1, 1}, {64, 1, 1},
      {Map(source, DType::kU16, {96, 40}, {24, 16}, 0), Pointer(out), Int(3), Int(5), Int(24 * 16)},
      32768);
  EXPECT_EQ(report.stop, Stop::kFault);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_NE(report.findings[0].message.find("innermost dimension"), std::string::npos)
      << Show(report);
}

TEST_P(Hopper, AMapLargerThanItsBufferIsRefuted) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  const auto source = In(DType::kU16, Values(96 * 39, 1.0));
  const auto out = Out(DType::kU16, 24 * 16);
  const Report report = Launched(
      "raw_tile", {1, 1, 1}, {64, 1, 1},
      {Map(source, DType::kU16, {96, 40}, {24, 16}, 0), Pointer(out), Int(8), Int(5), Int(24 * 16)},
      32768);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, FindingKind::kLaunchFailure) << Show(report);
}

TEST_P(Hopper, BoxesAreStoredAndAdded) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  const Values in = Random(256, 1000);
  const auto source = In(DType::kF32, in);
  for (const int add : {0, 1}) {
    const auto out = Out(DType::kF32, 64 * 20, BufferFill::kZero);
    ASSERT_NO_FATAL_FAILURE(
        Run("store_tile", {1, 1, 1}, {256, 1, 1},
            {Map(source, DType::kF32, {32, 8}, {32, 8}, 0),
             Map(out, DType::kF32, {64, 20}, {32, 8}, 0), Int(48), Int(15), Int(add)}));
    const Values got = Of(out);
    for (std::size_t y = 0; y < 20; ++y) {
      for (std::size_t x = 0; x < 64; ++x) {
        const bool inside = x >= 48 && y >= 15;
        ASSERT_EQ(got[y * 64 + x], inside ? 2 * in[(y - 15) * 32 + x - 48] : 0) << x << ", " << y;
      }
    }
  }
}

TEST_P(Hopper, WarpgroupProductsReadEverySwizzle) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  for (const std::uint32_t span : {32u, 64u, 128u}) {
    SCOPED_TRACE(span);
    const int swizzle = span == 32 ? 1 : span == 64 ? 2 : 3;
    constexpr std::size_t kK = 128;
    const Values a = Random(64 * kK, 6, 1);
    const Values b = Random(64 * kK, 6, 2);
    const auto along = Out(DType::kF32, 64 * 64);
    const auto map = [&](const Values& values, std::uint64_t x, std::uint64_t y,
                         std::uint32_t rows) {
      return Map(In(DType::kF16, values), DType::kF16, {x, y}, {span / 2, rows}, swizzle);
    };
    ASSERT_NO_FATAL_FAILURE(Run("along_k_" + std::to_string(span), {1, 1, 1}, {128, 1, 1},
                                {map(a, kK, 64, 64), map(b, kK, 64, 64), Pointer(along), Int(kK)}));
    Values got = Of(along);
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t j = 0; j < 64; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < kK; ++l) sum += a[i * kK + l] * b[j * kK + l];
        ASSERT_EQ(got[i * 64 + j], sum) << i << ", " << j;
      }
    }
    const auto across = Out(DType::kF32, 64 * 128);
    ASSERT_NO_FATAL_FAILURE(
        Run("across_k_" + std::to_string(span), {1, 1, 1}, {128, 1, 1},
            {map(Values(a.begin(), a.begin() + 64 * 32), 64, 32, 32),
             map(Values(b.begin(), b.begin() + 128 * 32), 128, 32, 32), Pointer(across)}));
    got = Of(across);
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t j = 0; j < 128; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < 32; ++l) sum += a[l * 64 + i] * b[l * 128 + j];
        ASSERT_EQ(got[i * 128 + j], sum) << i << ", " << j;
      }
    }
  }
}

TEST_P(Hopper, WarpgroupProductsReadPlainCores) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  const Values a = Random(64 * 16, 9, 1);
  const Values b = Random(64 * 16, 9, 2);
  const auto left = In(DType::kF16, a);
  const auto right = In(DType::kF16, b);
  for (const char* const entry : {"plain_along_k", "plain_across_k"}) {
    const auto out = Out(DType::kF32, 64 * 64);
    ASSERT_NO_FATAL_FAILURE(
        Run(entry, {1, 1, 1}, {128, 1, 1}, {Pointer(left), Pointer(right), Pointer(out)}));
    const Values got = Of(out);
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t j = 0; j < 64; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < 16; ++l) sum += a[i * 16 + l] * b[j * 16 + l];
        ASSERT_EQ(got[i * 64 + j], sum) << entry << " " << i << ", " << j;
      }
    }
  }
}

/// The base offset of a descriptor is the row at which the swizzle pattern begins, as read off an
/// H200 for every start within a pattern.
TEST_P(Hopper, MatricesMayBeginWithinASwizzlePattern) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  for (int swizzle = 1; swizzle <= 3; ++swizzle) {
    const auto span = std::uint64_t{16} << swizzle;
    for (const auto& [start, base] : {std::pair{0u, 0u},
                                      {128u, 1u},
                                      {384u, 3u},
                                      {896u, 7u},
                                      {128u, 0u},
                                      {0u, 2u},
                                      {160u, 1u}}) {
      SCOPED_TRACE(std::to_string(span) + ": " + std::to_string(start) + ", " +
                   std::to_string(base));
      const auto out = Out(DType::kF32, 128);
      ASSERT_NO_FATAL_FAILURE(Run("chunks_read", {1, 1, 1}, {128, 1, 1},
                                  {Pointer(out), Int(static_cast<int>(start)),
                                   Int(static_cast<int>(base)), Int(4 - swizzle)},
                                  false, 32768));
      for (std::uint64_t i = 0; i < 128; ++i) {
        const std::uint64_t at = start + i % 64 % 8 * span + i % 64 / 8 * 1024 + i / 64 * 16;
        const std::uint64_t row = (at / 128 - base) & ((1u << swizzle) - 1);
        ASSERT_EQ(Of(out)[i], static_cast<double>((at ^ row << 4) / 16)) << i;
      }
    }
  }
}

/// FNV-1a of what an H200 returned for the same inputs (2026-11-20, driver 580.159.04).
struct SparseProduct {
  const char* entry;
  int fill;                   ///< How the kernel fills its operands.
  std::uint64_t recorded[4];  ///< By seed.
};
TEST_P(Hopper, SparseProductsAreThoseOfAnH200) {
  ASSERT_NO_FATAL_FAILURE(Load("sparse"));
  constexpr SparseProduct kProducts[] = {
      {"halves_of_pair_0",
       2,
       {0xe256ea324210bfda, 0xce3b6667cf2e1c7a, 0x622c205185165443, 0x4871fe9d18f54d5a}},
      {"halves_of_pair_1",
       2,
       {0x2a457dc04e673232, 0xb26b1b67697f21dd, 0x029cd9d708d1f9fa, 0x3b68ee5f75bdd10d}},
      {"words_of_pair_0",
       259,
       {0x3bbfda8d23634ac2, 0x7fbf18d4db2f82c3, 0x4513a487b2d13b9a, 0x9fee7b7ec3b52e1a}},
      {"words_of_pair_1",
       259,
       {0x3360dee6a340d7f3, 0x91c9b778a9548608, 0xb62edb9eb36dca4d, 0x7e0190ae70022653}},
      {"fp8", 4, {0xd9e30092b80c87a9, 0x7f3a97eaaead451b, 0xe358bbd5e0c6c600, 0xc7c9d4174bf5f261}},
      {"bytes",
       8,
       {0xeabb08193d6ca85d, 0xba7215ba2f6019b5, 0x05e337a695dffee1, 0x7533b2973e68b8b7}},
      {"halves_of_pair_0",
       5,
       {0x9253b0f17240e185, 0x817e3351ac1893ef, 0xd4d43519b409944d, 0x72f1da1d15d49ee4}},
      {"words_of_pair_0",
       262,
       {0xa48f8ea985528a80, 0xd278c944fc42e394, 0x0bb25a49bceeacdf, 0x01cc2fa6195a3a95}},
      {"fp8", 7, {0x04c147ea22f9e334, 0xfc78ee7d59487aca, 0x7055763907b9760d, 0xb36c611da3dfbe3a}},
      {"bytes",
       1,
       {0xb1423a32a3e2326f, 0x799491bcb030a7c2, 0x9376c608088e78d0, 0x65403431db1e698c}},
  };
  for (const SparseProduct& product : kProducts) {
    for (int seed = 0; seed < 4; ++seed) {
      const auto out = Out(DType::kU32, 512);
      ASSERT_NO_FATAL_FAILURE(
          Run(product.entry, {1, 1, 1}, {128, 1, 1}, {Pointer(out), Int(seed), Int(product.fill)}));
      std::uint64_t hash = 0xcbf29ce484222325;
      for (const double word : Of(out)) {
        for (int b = 0; b < 32; b += 8)
          hash = (hash ^ (static_cast<std::uint64_t>(word) >> b & 0xff)) * 0x100000001b3;
      }
      EXPECT_EQ(hash, product.recorded[seed]) << product.entry << ", seed " << seed;
    }
  }
}

/// A map made of zeros by tensormap.replace; an H200 reads the same box.
TEST_P(Hopper, KernelsMayMakeTheirOwnMaps) {
  ASSERT_NO_FATAL_FAILURE(Load("hopper"));
  Values in(48 * 40);
  std::iota(in.begin(), in.end(), 0.0);
  const auto source = In(DType::kU16, in);
  const auto map = Out(DType::kU8, 128, BufferFill::kZero);
  const auto out = Out(DType::kU16, 128);
  ASSERT_NO_FATAL_FAILURE(Run("own_map", {1, 1, 1}, {32, 1, 1},
                              {Pointer(source), Pointer(map), Pointer(out), Int(1), Int(96)}));
  const Values got = Of(out);
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 16; ++x) {
      const bool inside = x < 8 && y < 4;
      ASSERT_EQ(got[y * 16 + x], inside ? static_cast<double>((y + 16) * 48 + x + 32) : 0)
          << x << ", " << y;
    }
  }
  for (const auto& [type, stride] : {std::pair{1, 100}, {12, 96}}) {
    const Report report =
        Launched("own_map", {1, 1, 1}, {32, 1, 1},
                 {Pointer(source), Pointer(map), Pointer(out), Int(type), Int(stride)}, 0);
    EXPECT_EQ(report.stop, type == 12 ? Stop::kUnsupported : Stop::kFault) << report.reason;
    EXPECT_EQ(report.findings.empty(), type == 12);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Hopper, testing::Values("sm_90a"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace assay
