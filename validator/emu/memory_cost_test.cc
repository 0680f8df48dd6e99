// What a run costs in memory, all monitors on: for what is touched, not for what is there.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "base/shared_memory.h"
#include "validator/emu/lazy_fill.h"
#include "validator/emu/race/race_driver.h"
#include "validator/emu/test_support.h"
#include "validator/emu/watch/defined_map.h"

namespace assay::emu {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

/// Runs `body` in a process of its own: its peak of resident memory in bytes, or -1 when it fails.
std::int64_t PeakOf(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0)
    return -1;
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// x is provided, y uninitialised, z zero: 2 GiB each, of which 256 blocks touch 4 KiB each.
bool RunSparse() {
  constexpr std::int64_t kElements = std::int64_t{1} << 29;
  constexpr std::uint32_t kBlocks = 256;
  auto program = Program::Load(TestRun::TestData("sparse.ptx"));
  if (!program) return false;
  Execution execution;
  std::vector<SharedMemory> memory;
  std::vector<std::span<std::byte>> spans;
  Launch launch;
  launch.entry = "sparse";
  launch.grid = {kBlocks, 1, 1};
  launch.block = {256, 1, 1};
  constexpr BufferFill kFills[] = {BufferFill::kProvided, BufferFill::kUninitialised,
                                   BufferFill::kZero};
  for (std::uint32_t i = 0; i < 3; ++i) {
    BufferSpec spec;
    spec.name = std::string(1, static_cast<char>('x' + i));
    spec.dtype = DType::kF32;
    spec.elements = kElements;
    spec.role = i == 0 ? BufferRole::kInput : BufferRole::kOutput;
    spec.fill = kFills[i];
    execution.buffers.push_back(spec);
    auto made = SharedMemory::Create(std::size_t{4} * kElements);
    if (!made) return false;
    memory.push_back(std::move(*made));
    spans.push_back(memory.back().bytes());
    launch.args.push_back(TestRun::Ptr(i));
  }
  launch.args.push_back(TestRun::Value(DType::kI64, kElements / kBlocks));
  execution.launches = {launch};
  const Report report = Run(**program, execution, spans);
  float last = 0;
  std::memcpy(&last, spans[2].data() + 4 * (std::size_t{255} * (kElements / kBlocks) + 1023), 4);
  const std::uint64_t unwritten = 4 * (std::uint64_t{kElements} - 256 * 1024);
  return report.stop == Stop::kCompleted && report.findings.empty() && last == 1.0f &&
         report.unwritten_bytes == std::vector<std::uint64_t>{0, unwritten, 0} &&
         report.first_unwritten == std::vector<std::int64_t>{-1, 1024, -1};
}

TEST(MemoryCost, LargeBuffersCostWhatIsTouched) {
  if (kInstrumented) GTEST_SKIP() << "a sanitizer's own memory would be measured";
  const std::int64_t peak = PeakOf(RunSparse);
  ASSERT_GE(peak, 0) << "the run went wrong";
  EXPECT_LT(peak, std::int64_t{200} << 20);
}

TEST(MemoryCost, UntouchedPagesReadAsTheyWereToBeFilled) {
  TestRun run(TestRun::TestData("sparse.ptx"));
  const auto x = run.Uninitialised("x", DType::kU32, 32 << 20, BufferRole::kWorkspace);
  const auto y = run.Zeros("y", DType::kU32, 32);
  run.execution.buffers[x].poison = 0xa5;
  run.execution.checks.initialisation = false;
  run.AddLaunch("unwritten", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(run.At(y, 31), 0xa5a5a5a5u);
  // Nobody knows what was written: all of it holds the poison in the end.
  EXPECT_EQ(run.At(x, (32u << 20) - 1), 0xa5a5a5a5u);
}

TEST(MemoryCost, LazyFillTouchesPagesOnce) {
  std::vector<std::byte> memory(3 * LazyFill::kPageBytes + 5);
  LazyFill fill(memory, 0x11);
  fill.Touch(LazyFill::kPageBytes - 2, 4);  // Across a page's end.
  EXPECT_EQ(memory[0], std::byte{0x11});
  EXPECT_EQ(memory[2 * LazyFill::kPageBytes - 1], std::byte{0x11});
  EXPECT_EQ(memory[2 * LazyFill::kPageBytes], std::byte{0});
  memory[0] = std::byte{7};
  fill.Touch(0, 1);
  EXPECT_EQ(memory[0], std::byte{7});
  fill.TouchAll();
  EXPECT_EQ(memory[0], std::byte{7});
  EXPECT_EQ(memory.back(), std::byte{0x11});
}

TEST(MemoryCost, ShadowIsAtMostEightBytesAByte) {
  // As a kernel does it: warp after warp, the same instructions, all of a buffer; written, then
  // read by others.
  constexpr std::uint64_t kBytes = 1 << 20;
  for (const std::uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    for (const bool scattered : {false, true}) {
      Driver driver({.warps_per_block = 8, .blocks = 1});
      DefinedMap defined(kBytes, false);
      const std::uint64_t row = std::uint64_t{width} * kWarpSize;
      const auto pass = [&](AccessKind kind, std::uint32_t pc, std::uint32_t turn) {
        for (std::uint64_t at = 0; at < kBytes; at += row) {
          WarpAccess access = driver.Make(static_cast<WarpNumber>((at / row + turn) % 8), kAllLanes,
                                          at, width, width);
          std::array<std::uint64_t, kWarpSize> mixed{};  // Every second element, then the others.
          for (std::uint64_t lane = 0; lane < kWarpSize; ++lane)
            mixed[lane] = at + width * (lane % 16 * 2 + lane / 16);
          if (scattered) access.offsets = mixed.data();
          access.pc = pc;
          driver.Go(access, kind, kWeakly);
          if (kind == AccessKind::kWrite) defined.Set(at, row, true);
        }
      };
      pass(AccessKind::kWrite, 1, 0);
      driver.Sync(0);
      pass(AccessKind::kRead, 2, 1);
      EXPECT_EQ(driver.count(), 0u);
      const std::uint64_t shadow = driver.race.shadow_bytes() + defined.page_bytes();
      EXPECT_LE(shadow, 8 * kBytes) << width << (scattered ? " scattered" : " in rows");
      EXPECT_GE(shadow, kBytes / 8) << "nothing was remembered";
    }
  }
}

TEST(MemoryCost, ShadowFollowsTouch) {
  Driver driver({.warps_per_block = 1, .blocks = 1});
  const std::uint64_t before = driver.race.shadow_bytes();
  driver.WriteRow(0, 0);
  driver.WriteRow(0, std::uint64_t{2} << 30);
  // Two pages, and an index over 2 GiB.
  EXPECT_LT(driver.race.shadow_bytes() - before, std::uint64_t{8} << 20);
}

}  // namespace
}  // namespace assay::emu
