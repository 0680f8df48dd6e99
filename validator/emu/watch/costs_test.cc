// Counts of kernels made by hand, whose sectors, passes, products and waits can be counted on paper.
#include "validator/emu/watch/costs.h"

#include <gtest/gtest.h>

#include <string>

#include "validator/emu/count.h"
#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

constexpr std::string_view kHead = R"(.version 8.0
.target sm_80
.address_size 64
)";

Counted CountKernel(const std::string& body, const Execution& execution,
                    std::vector<std::vector<std::byte>>& storage, CountOptions options = {}) {
  auto program = Program::Load(std::string(kHead) + body);
  if (!program) {
    ADD_FAILURE() << ToString(program.error());
    return {};
  }
  std::vector<std::span<std::byte>> spans(storage.begin(), storage.end());
  if (options.l1_bytes.empty()) options.l1_bytes = {32 * 1024};
  Counted counted = Count(**program, execution, spans, options);
  EXPECT_EQ(counted.report.stop, Stop::kCompleted) << Show(counted.report);
  return counted;
}

/// y[i] = x[i * stride], for all threads.
constexpr std::string_view kCopy = R"(
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 stride)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  .reg .f32 %f<2>;
  ld.param.u64 %d1, [x];
  ld.param.u64 %d2, [y];
  ld.param.u32 %r1, [stride];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mul.lo.s32 %r6, %r5, %r1;
  mul.wide.s32 %d3, %r6, 4;
  add.s64 %d4, %d1, %d3;
  ld.global.f32 %f1, [%d4];
  mul.wide.s32 %d5, %r5, 4;
  add.s64 %d6, %d2, %d5;
  st.global.f32 [%d6], %f1;
  ret;
}
)";

LaunchCounts CountCopy(std::uint32_t blocks, std::int32_t stride) {
  const std::int64_t threads = std::int64_t{blocks} * 128;
  TestRun run{std::string(kHead) + std::string(kCopy)};
  const auto x = run.Zeros("x", DType::kF32, threads * stride, BufferRole::kInput);
  const auto y = run.Uninitialised("y", DType::kF32, threads);
  run.AddLaunch("copy", {blocks, 1, 1}, {128, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(stride)});
  std::vector<std::vector<std::byte>> storage;
  for (const BufferSpec& buffer : run.execution.buffers)
    storage.emplace_back(static_cast<std::size_t>(buffer.elements) * 4);
  Counted counted = CountKernel(std::string(kCopy), run.execution, storage);
  return counted.launches.empty() ? LaunchCounts{} : counted.launches[0];
}

TEST(Costs, ACoalescedCopyTouchesWhatItCopies) {
  const LaunchCounts counts = CountCopy(16, 1);
  constexpr std::uint64_t kElements = 16 * 128;
  EXPECT_EQ(counts.blocks, 16);
  EXPECT_EQ(counts.warps, 64);
  EXPECT_EQ(counts.loads.requests, 64);
  EXPECT_EQ(counts.loads.bytes, kElements * 4);
  EXPECT_EQ(counts.loads.sectors, kElements * 4 / 32);
  EXPECT_EQ(counts.loads.lines, kElements * 4 / 128);
  EXPECT_EQ(counts.stores.sectors, kElements * 4 / 32);
  EXPECT_EQ(counts.missed_sectors, kElements * 4 / 32);
  ASSERT_EQ(counts.buffers.size(), 2);
  EXPECT_EQ(counts.buffers[0].read, kElements * 4 / 32);
  EXPECT_EQ(counts.buffers[0].read_by_block, kElements * 4 / 32);
  EXPECT_EQ(counts.buffers[0].written, 0);
  EXPECT_EQ(counts.buffers[1].written, kElements * 4 / 32);
  EXPECT_TRUE(counts.sites.empty());
}

TEST(Costs, AStrideTouchesWhatLiesBetween) {
  for (const auto& [stride, sectors] : {std::pair{2, 8}, std::pair{8, 32}, std::pair{32, 32}}) {
    const LaunchCounts counts = CountCopy(4, stride);
    EXPECT_EQ(counts.loads.requests, 16);
    EXPECT_EQ(counts.loads.sectors, std::uint64_t{16} * static_cast<std::uint64_t>(sectors))
        << stride;
    EXPECT_EQ(counts.stores.sectors, 16 * 4);
    ASSERT_EQ(counts.sites.size(), 1) << stride;
    EXPECT_FALSE(counts.sites[0].shared);
    EXPECT_NE(counts.sites[0].site.instruction.find("ld.global"), std::string::npos);
    EXPECT_EQ(counts.sites[0].least, 16 * 4);
  }
}

TEST(Costs, WhatAllBlocksReadIsCountedOnce) {
  const LaunchCounts counts = CountCopy(8, 0 + 1);
  const LaunchCounts same = [] {
    // Every thread of every block reads the first element.
    std::string body(kCopy);
    body.replace(body.find("mul.lo.s32 %r6, %r5, %r1;"), 25, "mov.u32 %r6, 0;          ");
    TestRun run{std::string(kHead) + body};
    const auto x = run.Zeros("x", DType::kF32, 8, BufferRole::kInput);
    const auto y = run.Uninitialised("y", DType::kF32, 8 * 128);
    run.AddLaunch("copy", {8, 1, 1}, {128, 1, 1},
                  {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(1)});
    std::vector<std::vector<std::byte>> storage = {std::vector<std::byte>(32),
                                                   std::vector<std::byte>(8 * 128 * 4)};
    return CountKernel(body, run.execution, storage).launches.at(0);
  }();
  EXPECT_EQ(counts.buffers[0].read, counts.buffers[0].read_by_block);
  EXPECT_EQ(same.buffers[0].read, 1);
  EXPECT_EQ(same.buffers[0].read_by_block, 8);
  EXPECT_EQ(same.loads.sectors, 32);  // One a request,
  EXPECT_EQ(same.missed_sectors, 8);  // of which the first of each block misses.
}

/// Lane i reads the word at i * stride of shared memory.
LaunchCounts CountBanks(std::int32_t stride) {
  const std::string body = R"(
.visible .entry banks(.param .u32 stride)
{
  .shared .align 16 .b8 tile[8192];
  .reg .b32 %r<8>;
  .reg .f32 %f<2>;
  ld.param.u32 %r1, [stride];
  mov.u32 %r2, %tid.x;
  mul.lo.s32 %r3, %r2, %r1;
  shl.b32 %r4, %r3, 2;
  mov.u32 %r5, tile;
  add.s32 %r6, %r5, %r4;
  ld.shared.f32 %f1, [%r6];
  ret;
}
)";
  Execution execution;
  Launch launch;
  launch.entry = "banks";
  launch.block = {32, 1, 1};
  launch.args = {TestRun::Int(stride)};
  execution.launches = {launch};
  std::vector<std::vector<std::byte>> storage;
  return CountKernel(body, execution, storage).launches.at(0);
}

TEST(Costs, BankConflictsByStride) {
  for (const auto& [stride, passes] :
       {std::pair{0, 1}, std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 1}, std::pair{8, 8},
        std::pair{16, 16}, std::pair{32, 32}, std::pair{33, 1}}) {
    const LaunchCounts counts = CountBanks(stride);
    EXPECT_EQ(counts.shared.requests, 1);
    EXPECT_EQ(counts.shared.wavefronts, static_cast<std::uint64_t>(passes)) << stride;
    EXPECT_EQ(counts.shared.least_wavefronts, 1);
    EXPECT_EQ(counts.sites.size(), passes > 1 ? 1 : 0) << stride;
  }
}

LaunchCounts CountPlain(const std::string& registers, const std::string& code,
                        const std::string& globals = {}) {
  const std::string body =
      globals + ".visible .entry plain()\n{\n" + registers + code + "  ret;\n}\n";
  Execution execution;
  Launch launch;
  launch.entry = "plain";
  launch.block = {32, 1, 1};
  execution.launches = {launch};
  std::vector<std::vector<std::byte>> storage;
  return CountKernel(body, execution, storage).launches.at(0);
}

std::uint64_t Of(const LaunchCounts& counts, Pipe pipe) {
  return counts.pipes[static_cast<std::size_t>(pipe)];
}

TEST(Costs, InstructionsByUnit) {
  const LaunchCounts counts =
      CountPlain("  .reg .f32 %f<8>;\n  .reg .b32 %r<8>;\n  .reg .b64 %d<8>;\n  .reg .f64 %g<4>;\n",
                 "  mov.f32 %f1, 0f3f800000;\n  mov.b32 %r1, 3;\n  mov.b64 %d1, 3;\n  mov.f64 %g1, "
                 "0d3ff0000000000000;\n"
                 "  fma.rn.f32 %f2, %f1, %f1, %f1;\n"
                 "  add.f32 %f3, %f2, %f2;\n"
                 "  ex2.approx.ftz.f32 %f4, %f1;\n"
                 "  add.s32 %r2, %r1, %r1;\n"
                 "  add.s64 %d2, %d1, %d1;\n"
                 "  fma.rn.f64 %g2, %g1, %g1, %g1;\n"
                 "  cvt.rzi.s32.f32 %r3, %f3;\n");
  EXPECT_EQ(Of(counts, Pipe::kFma), 2);
  EXPECT_EQ(Of(counts, Pipe::kSpecial), 1);
  EXPECT_EQ(Of(counts, Pipe::kAlu), 3);  // A sum of 64 bits is two; copies are none.
  EXPECT_EQ(Of(counts, Pipe::kDouble), 1);
  EXPECT_EQ(Of(counts, Pipe::kConvert), 1);
  EXPECT_EQ(Of(counts, Pipe::kMemory), 0);
  EXPECT_EQ(counts.thread_instructions, 12 * 32);
}

TEST(Costs, MatrixProductsAreCounted) {
  const std::string registers = "  .reg .b32 %r<8>;\n  .reg .f32 %f<10>;\n";
  std::string code;
  for (int i = 1; i <= 6; ++i) code += "  mov.b32 %r" + std::to_string(i) + ", 0;\n";
  for (int i = 1; i <= 8; ++i) code += "  mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
  const std::string product =
      "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, "
      "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};\n";
  const LaunchCounts counts = CountPlain(registers, code + product + product);
  EXPECT_EQ(counts.products[static_cast<std::size_t>(MatrixType::kHalf)], 2u * 16 * 8 * 16);
  EXPECT_EQ(counts.group_products[static_cast<std::size_t>(MatrixType::kHalf)], 0);
  EXPECT_EQ(Of(counts, Pipe::kMatrix), 2);
}

TEST(Costs, ChainsWaitAndWhatIsIndependentDoesNot) {
  std::string chain = "  mov.f32 %f1, 0f3f800000;\n";
  std::string beside = chain;
  for (int i = 0; i < 100; ++i) {
    chain += "  add.f32 %f1, %f1, %f1;\n";
    beside += "  add.f32 %f" + std::to_string(2 + i) + ", %f1, %f1;\n";
  }
  const std::string registers = "  .reg .f32 %f<110>;\n";
  const LaunchCounts waits = CountPlain(registers, chain);
  const LaunchCounts runs = CountPlain(registers, beside);
  EXPECT_GE(waits.longest_path, 99 * 4);
  EXPECT_LE(waits.longest_path, 110 * 4);
  EXPECT_LE(runs.longest_path, 110);
  EXPECT_EQ(waits.path_cycles, waits.longest_path);
}

// A load behind a store waits for what the store waits for, unless it cannot read what is stored.
TEST(Costs, LoadsKeepTheirPlaceBehindStores) {
  const auto path = [](const std::string& space, const std::string& from) {
    std::string code = "  mov.u64 %d1, scratch;\n  mov.u64 %d2, " + from + ";\n";
    for (int i = 0; i < 20; ++i) {
      code += "  ld." + space + ".f32 %f1, [%d2];\n  add.f32 %f2, %f1, %f1;\n";
      code += "  st.global.f32 [%d1], %f2;\n";
    }
    return CountPlain("  .reg .f32 %f<4>;\n  .reg .b64 %d<4>;\n", code,
                      ".global .align 16 .b8 scratch[1024];\n.shared .align 16 .b8 near[1024];\n")
        .longest_path;
  };
  EXPECT_GT(path("global", "scratch"), 3 * path("shared", "near"));
}

// ptxas makes a predicate of a short way round: loads behind it need not wait for what is in it.
TEST(Costs, AShortWayRoundEndsNothing) {
  const std::string registers = "  .reg .f32 %f<90>;\n  .reg .b64 %d<4>;\n  .reg .pred %p<4>;\n";
  const auto path = [&](int within) {
    std::string code =
        "  mov.u64 %d1, scratch;\n  setp.eq.u64 %p1, %d1, 0;\n  mov.f32 %f0, 0f00000000;\n";
    for (int i = 0; i < 8; ++i) {
      const std::string end = "$round" + std::to_string(i);
      code += "  @%p1 bra " + end + ";\n  ld.global.f32 %f1, [%d1];\n";
      for (int j = 0; j < within; ++j) code += "  add.f32 %f0, %f0, %f1;\n";
      code += end + ":\n";
    }
    return CountPlain(registers, code, ".global .align 16 .b8 scratch[1024];\n").longest_path;
  };
  // Eight sums behind loads that are all under way, against eight loads one after another.
  EXPECT_LT(3 * path(1), path(30));
  EXPECT_GT(path(30), 8u * 30u);
}

TEST(Costs, ARunWithoutCountingIsAsBefore) {
  const std::string text = std::string(kHead) + std::string(kCopy);
  TestRun run{text};
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(256, 3.0));
  const auto y = run.Uninitialised("y", DType::kF32, 256);
  run.AddLaunch("copy", {2, 1, 1}, {128, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(1)});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted);
  EXPECT_EQ(run.At(y, 255), 3.0);
  std::vector<std::vector<std::byte>> storage = {run.Bytes(x), std::vector<std::byte>(1024)};
  const Counted counted = CountKernel(std::string(kCopy), run.execution, storage);
  EXPECT_EQ(counted.report.counters.steps, report.counters.steps);
  EXPECT_EQ(storage[1], run.Bytes(y));
}

}  // namespace
}  // namespace assay::emu
