// Register files that are large: what nobody has written is the same whatever lay there before, and is told of as ever.
#include "validator/emu/frame_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// One warp whose file has 600 registers; `%r599` is stored after `body`.
TestRun Kernel(const std::string& body) {
  std::string text =
      ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 y) {\n"
      "  .reg .b32 %r<600>; .reg .b64 %d<4>; .reg .pred %p<2>;\n"
      "  ld.param.u64 %d1, [y]; mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d1, "
      "%d2;\n"
      "  setp.lt.u32 %p1, %r0, 5;\n";
  // All of them are named, and hold what tells one run from another.
  for (int reg = 1; reg < 598; ++reg)
    text += fmt::format("  add.u32 %r{}, %r{}, 7;\n", reg, reg - 1);
  return TestRun(text + body + "\n  st.global.u32 [%d3], %r599; ret;\n}\n");
}

/// The words that it stores, by lane.
std::vector<std::uint32_t> WordsOf(const std::string& body, Report* report = nullptr) {
  TestRun run = Kernel(body);
  const auto y = run.Zeros("y", DType::kU32, 32);
  run.AddLaunch("k", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(y)});
  const Report ran = run.Run();
  EXPECT_EQ(ran.stop, Stop::kCompleted) << Show(ran);
  if (report != nullptr) *report = ran;
  std::vector<std::uint32_t> words(32);
  std::memcpy(words.data(), run.Bytes(y).data(), 32 * sizeof(std::uint32_t));
  return words;
}

TEST(LargeFrames, WhatNobodyWroteIsTheSameWhateverWasThere) {
  constexpr std::uint32_t kUnset = 0x6b6b6b6b;
  const std::string dirty = "mov.u32 %r598, 9; mov.u32 %r599, 9;";
  WordsOf(dirty);
  Report report;
  EXPECT_EQ(WordsOf("", &report), std::vector<std::uint32_t>(32, kUnset));
  EXPECT_FALSE(report.findings.empty());
  WordsOf(dirty);
  const std::vector<std::uint32_t> some = WordsOf("@%p1 mov.u32 %r599, 3;");
  EXPECT_EQ(some[4], 3u);
  EXPECT_EQ(some[5], kUnset);
  // What other lanes take out of a register that only some of them have written.
  WordsOf(dirty);
  const std::vector<std::uint32_t> taken = WordsOf(
      "@!%p1 bra over; mov.u32 %r598, 3;\nover:\n"
      "  shfl.sync.idx.b32 %r599, %r598, 20, 31, 0xffffffff;");
  EXPECT_EQ(taken[0], kUnset);
}

TEST(LargeFrames, WhatWasWrittenIsThereAndNothingIsSaid) {
  Report report;
  const std::vector<std::uint32_t> words = WordsOf("add.u32 %r599, %r597, 1;", &report);
  EXPECT_EQ(words[3], 3u + 597 * 7 + 1);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
}

TEST(FrameMemoryTest, WhatIsTakenIsAlignedAndApart) {
  FrameMemory memory;
  std::byte* const a = memory.Take(1000);
  std::byte* const b = memory.Take(std::size_t{9} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 128, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 128, 0u);
  EXPECT_TRUE(b + (std::size_t{9} << 20) <= a || b >= a + 1000);
  std::memset(b, 1, std::size_t{9} << 20);
  memory.Clear();
  EXPECT_NE(memory.Take(1000), nullptr);
}

}  // namespace
}  // namespace assay::emu
