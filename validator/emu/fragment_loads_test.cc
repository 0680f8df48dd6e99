// wmma.load of whole tiles: each register holds the elements that the layout says, and what is wrong
// with a part of the tile is named by the element (or the piece of a register) that it is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// Elements from line to line: the lines do not touch.
constexpr std::size_t kPitch = 40;
constexpr std::size_t kLanes = 32;

struct LoadCase {
  std::string what;   ///< "a.sync.aligned.row"
  std::string shape;  ///< "m16n16k16"
  std::string type;
  Fragment fragment;
  bool column_major = false;

  std::size_t registers() const { return static_cast<std::size_t>(fragment.registers); }
  /// Halves of 16 bits that an element takes.
  std::size_t halves() const { return static_cast<std::size_t>(fragment.element_bits) / 16; }
  std::size_t lines() const {
    return static_cast<std::size_t>(column_major ? fragment.columns : fragment.rows);
  }
  std::size_t line() const {
    return static_cast<std::size_t>(column_major ? fragment.rows : fragment.columns);
  }
  /// Halves from the tile's first to its last.
  std::size_t extent() const { return ((lines() - 1) * kPitch + line()) * halves(); }
  /// The half of the tile that half `h` of register `r` of a lane holds.
  std::size_t Source(std::size_t lane, std::size_t r, std::size_t h) const {
    const auto per = static_cast<std::size_t>(fragment.elements_per_register);
    const MatrixPlace at =
        PlaceOf(fragment, static_cast<int>(lane), static_cast<int>(r * per + h / halves()));
    const auto row = static_cast<std::size_t>(at.row);
    const auto column = static_cast<std::size_t>(at.column);
    const std::size_t index = column_major ? column * kPitch + row : row * kPitch + column;
    return index * halves() + h % halves();
  }
  /// Does one access load a whole register?
  bool together() const { return Source(0, 0, 1) == Source(0, 0, 0) + 1; }
};

std::vector<LoadCase> AllCases() {
  struct Size {
    int m, n, k;
  };
  std::vector<LoadCase> all;
  for (const auto& [m, n, k] : {Size{16, 16, 16}, Size{32, 8, 16}, Size{8, 32, 16}}) {
    const std::string shape = fmt::format("m{}n{}k{}", m, n, k);
    for (const bool column : {false, true}) {
      const auto add = [&](const char* matrix, const char* type, const Fragment& fragment) {
        all.push_back({fmt::format("{}.sync.aligned.{}", matrix, column ? "col" : "row"), shape,
                       type, fragment, column});
      };
      add("a", "f16", WmmaFragment(Role::kA, m, n, k, 16));
      add("b", "f16", WmmaFragment(Role::kB, m, n, k, 16));
      add("b", "bf16", WmmaBf16Fragment(Role::kB, m, n, k));
      add("c", "f16", WmmaFragment(Role::kAccumulator, m, n, k, 16));
      add("c", "f32", WmmaFragment(Role::kAccumulator, m, n, k, 32));
    }
  }
  return all;
}

struct Loaded {
  Report report;
  std::vector<double> out;  ///< By lane, register and half.
};

/// Halves 0 .. extent - 1 of a shared tile of `size` halves get their number, but for `hole`; the
/// fragment at `shift` bytes is loaded, and its registers are stored.
Loaded Load(const LoadCase& c, std::optional<std::size_t> hole, std::size_t size,
            std::size_t shift = 0) {
  std::string registers;
  std::string stores;
  for (std::size_t r = 0; r < c.registers(); ++r) {
    registers += fmt::format("{}%w{}", r == 0 ? "" : ", ", r);
    stores += fmt::format("  st.global.b32 [%rd1+{}], %w{};\n", 4 * r, r);
  }
  TestRun run(fmt::format(
      R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry loads(.param .u64 out, .param .u64 x, .param .u32 extent, .param .u32 hole)
{{
  .reg .pred %p<3>;
  .reg .b16 %h<2>;
  .reg .b32 %r<10>;
  .reg .b32 %w<8>;
  .reg .b64 %rd<6>;
  .shared .align 32 .b8 tile[{}];
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [x];
  ld.param.u32 %r1, [extent];
  ld.param.u32 %r2, [hole];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, tile;
NEXT:
  setp.ge.u32 %p1, %r4, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r4, 2;
  add.s64 %rd3, %rd2, %rd3;
  ld.global.b16 %h1, [%rd3];
  shl.b32 %r6, %r4, 1;
  add.u32 %r6, %r5, %r6;
  setp.ne.u32 %p2, %r4, %r2;
  @%p2 st.shared.b16 [%r6], %h1;
  add.u32 %r4, %r4, 32;
  bra NEXT;
DONE:
  bar.sync 0;
  mov.u32 %r7, {};
  add.u32 %r5, %r5, {};
  wmma.load.{}.{}.shared.{} {{{}}}, [%r5], %r7;
  mul.lo.u32 %r3, %r3, {};
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd1, %rd1, %rd3;
{}  ret;
}}
)",
      2 * size, kPitch, shift, c.what, c.shape, c.type, registers, c.registers(), stores));
  const std::size_t outputs = kLanes * c.registers() * 2;
  const std::uint32_t out = run.Zeros("out", DType::kF16, static_cast<std::int64_t>(outputs));
  std::vector<double> x;
  for (std::size_t i = 0; i < size; ++i) x.push_back(static_cast<double>(i % 2048));
  const std::uint32_t in = run.Buffer("x", DType::kF16, x);
  run.AddLaunch("loads", {1, 1, 1}, {kLanes, 1, 1},
                {TestRun::Ptr(out), TestRun::Ptr(in),
                 TestRun::Int(static_cast<std::int32_t>(std::min(c.extent(), size))),
                 TestRun::Int(hole ? static_cast<std::int32_t>(*hole) : -1)});
  Loaded loaded{.report = run.Run(), .out = {}};
  for (std::size_t i = 0; i < outputs; ++i) loaded.out.push_back(run.At(out, i));
  return loaded;
}

std::string Label(const LoadCase& c) { return c.what + "." + c.shape + "." + c.type; }

TEST(FragmentLoads, EachRegisterHoldsItsElements) {
  for (const LoadCase& c : AllCases()) {
    const Loaded loaded = Load(c, std::nullopt, c.extent());
    ASSERT_EQ(loaded.report.stop, Stop::kCompleted) << Label(c) << ": " << Show(loaded.report);
    EXPECT_TRUE(loaded.report.findings.empty()) << Label(c) << ": " << Show(loaded.report);
    for (std::size_t i = 0; i < loaded.out.size(); ++i) {
      const std::size_t r = i / 2 % c.registers();
      const std::size_t source = c.Source(i / 2 / c.registers(), r, i % 2);
      ASSERT_EQ(loaded.out[i], static_cast<double>(source % 2048)) << Label(c) << " " << i;
    }
  }
}

TEST(FragmentLoads, AnUndefinedElementIsUndefinedWhereItIsLoaded) {
  for (const LoadCase& c : AllCases()) {
    for (const std::size_t hole : {std::size_t{0}, 5 * kPitch * c.halves() + 3, c.extent() - 1}) {
      // Registers are stored one after the other, so the first to hold it is named; what one access
      // loads is undefined as a whole.
      std::optional<std::size_t> named;
      for (std::size_t r = 0; r < c.registers() && !named; ++r) {
        for (std::size_t lane = 0; lane < kLanes && !named; ++lane) {
          for (std::size_t h = 0; h < 2 && !named; ++h) {
            if (c.Source(lane, r, h) == hole)
              named = (lane * c.registers() + r) * 2 + (c.together() ? 0 : h);
          }
        }
      }
      ASSERT_TRUE(named) << Label(c);
      const Loaded loaded = Load(c, hole, c.extent());
      ASSERT_FALSE(loaded.report.findings.empty()) << Label(c) << " " << hole;
      const Finding& finding = loaded.report.findings.front();
      EXPECT_EQ(finding.kind, FindingKind::kUninitialisedUse) << Show(loaded.report);
      EXPECT_THAT(finding.message, testing::HasSubstr(fmt::format("out[{}]", *named))) << Label(c);
    }
    // Between the lines nothing is loaded.
    EXPECT_TRUE(Load(c, c.line() * c.halves(), c.extent()).report.findings.empty()) << Label(c);
  }
}

TEST(FragmentLoads, APieceOutsideOfTheTileIsNamed) {
  for (const LoadCase& c : AllCases()) {
    const Loaded loaded = Load(c, std::nullopt, c.extent() - c.halves());
    ASSERT_EQ(loaded.report.stop, Stop::kFault) << Label(c);
    const Finding& finding = loaded.report.findings.front();
    EXPECT_EQ(finding.kind, FindingKind::kOutOfBounds) << Show(loaded.report);
    EXPECT_THAT(finding.message,
                testing::HasSubstr(fmt::format("read of {} bytes", c.together() ? 4 : 2)))
        << Label(c);
  }
}

TEST(FragmentLoads, AMisalignedPieceIsNamed) {
  for (const LoadCase& c : AllCases()) {
    const Loaded loaded = Load(c, std::nullopt, c.extent() + 1, 2);
    ASSERT_EQ(HasFinding(loaded.report, FindingKind::kMisaligned), c.together())
        << Label(c) << ": " << Show(loaded.report);
  }
}

}  // namespace
}  // namespace assay::emu
