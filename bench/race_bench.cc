// What the race detector costs: nanoseconds for each warp-wide access, and shadow bytes for each
// byte of memory touched. Drives the detector as the emulator would, without an emulator; then whole
// kernels in the emulator, with race checking and without it (race_kernels.h). Prints one JSON
// document; numbers are for reading, no test looks at them.
//
//   build/release/bin/race_bench [SCENARIO|KERNEL] > race.json
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/race_kernels.h"
#include "validator/emu/race/race.h"

namespace assay::emu {
namespace {

constexpr RegionId kX = 1;
constexpr RegionId kY = 2;
constexpr RegionId kShared = 1000;

/// Counts what it passes on.
class Driver {
 public:
  explicit Driver(const RaceDetector::Shape& shape) : shape_(shape), race_(4ull << 30) {
    race_.BeginLaunch(shape);
  }

  void Access(WarpNumber warp, RegionId region, std::uint64_t base, std::uint64_t stride,
              std::uint32_t bytes, AccessKind kind, std::uint32_t pc, std::uint64_t modulo = 32) {
    for (std::uint64_t lane = 0; lane < kWarpSize; ++lane)
      offsets_[lane] = base + lane % modulo * stride;
    Pass(warp, region, bytes, kind, pc, false);
  }
  void Atomic(WarpNumber warp, RegionId region, std::uint64_t base, std::uint64_t stride,
              std::uint32_t pc) {
    for (std::uint64_t lane = 0; lane < kWarpSize; ++lane) offsets_[lane] = base + lane * stride;
    Pass(warp, region, 4, AccessKind::kReadWrite, pc, true);
  }
  void Sync(BlockNumber block) {
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w) {
      race_.OnBarrierArrive(block, 0, block * shape_.warps_per_block + w, kAllLanes, true);
    }
    race_.OnBarrierComplete(block, 0);
  }
  void WarpSync(WarpNumber warp) { race_.OnWarpBarrier(warp, kAllLanes); }
  void End(BlockNumber block) { race_.EndBlock(block, kShared + block); }
  RaceDetector& race() { return race_; }
  std::uint64_t accesses = 0;

 private:
  void Pass(WarpNumber warp, RegionId region, std::uint32_t bytes, AccessKind kind,
            std::uint32_t pc, bool atomic) {
    WarpAccess access;
    access.warp = warp;
    access.lanes = kAllLanes;
    access.region = region;
    access.offsets = offsets_.data();
    access.bytes = bytes;
    access.kind = kind;
    access.pc = pc;
    access.atomic = atomic;
    access.returns_value = !atomic;
    access.order = atomic ? Order::kRelaxed : Order::kWeak;
    access.scope = Scope::kGpu;
    race_.OnAccess(access);
    ++accesses;
  }
  RaceDetector::Shape shape_;
  RaceDetector race_;
  alignas(64) std::array<std::uint64_t, kWarpSize> offsets_{};
};

constexpr std::uint32_t kWarps = 8;

/// y[i] = f(x[i]) over `mib` MiB each, `bytes` a lane, starting `misalign` bytes into the buffers.
void Stream(Driver& d, std::uint32_t blocks, std::uint32_t bytes, std::uint64_t misalign) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      const std::uint64_t base = misalign + (std::uint64_t{b} * kWarps + w) * kWarpSize * bytes;
      d.Access(b * kWarps + w, kX, base, bytes, bytes, AccessKind::kRead, 1);
      d.Access(b * kWarps + w, kY, base, bytes, bytes, AccessKind::kWrite, 2);
    }
    d.End(b);
  }
}

/// A 32x32 tile through shared memory, padded: rows in, columns out, four rounds a block.
void Transpose(Driver& d, std::uint32_t blocks) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (int round = 0; round < 4; ++round) {
      for (std::uint32_t row = 0; row < 32; ++row) {
        d.Access(b * kWarps + row % kWarps, kShared + b, row * 132, 4, 4, AccessKind::kWrite, 1);
      }
      d.Sync(b);
      for (std::uint32_t column = 0; column < 32; ++column) {
        d.Access(b * kWarps + column % kWarps, kShared + b, column * 4, 132, 4, AccessKind::kRead,
                 2);
      }
      d.Sync(b);
    }
    d.End(b);
  }
}

/// The inner loop of a tiled product, 16x16 threads: one operand a broadcast to half warps, the
/// other a row read twice.
void Product(Driver& d, std::uint32_t blocks) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (std::uint32_t tile = 0; tile < 8; ++tile) {
      for (std::uint32_t w = 0; w < kWarps; ++w) {
        d.Access(b * kWarps + w, kShared + b, w * 128, 4, 4, AccessKind::kWrite, 1);
        d.Access(b * kWarps + w, kShared + b, 1024 + w * 128, 4, 4, AccessKind::kWrite, 2);
      }
      d.Sync(b);
      for (std::uint32_t w = 0; w < kWarps; ++w) {
        for (std::uint32_t k = 0; k < 16; ++k) {
          d.Access(b * kWarps + w, kShared + b, w * 128 + k * 4, 0, 4, AccessKind::kRead, 3 + k);
          d.Access(b * kWarps + w, kShared + b, 1024 + k * 64, 4, 4, AccessKind::kRead, 40 + k, 16);
        }
      }
      d.Sync(b);
    }
    d.End(b);
  }
}

/// A block reduction by warp barriers and shared memory.
void Reduce(Driver& d, std::uint32_t blocks) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      const std::uint64_t base = w * 128;
      d.Access(b * kWarps + w, kShared + b, base, 4, 4, AccessKind::kWrite, 1);
      for (std::uint32_t step = 0; step < 5; ++step) {
        d.WarpSync(b * kWarps + w);
        d.Access(b * kWarps + w, kShared + b, base, 4, 4, AccessKind::kRead, 2 + step);
        d.WarpSync(b * kWarps + w);
        d.Access(b * kWarps + w, kShared + b, base, 4, 4, AccessKind::kWrite, 12 + step);
      }
    }
    d.Sync(b);
    d.End(b);
  }
}

/// All blocks read one matrix that nobody writes.
void SharedOperand(Driver& d, std::uint32_t blocks) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      for (std::uint64_t line = 0; line < 64; ++line) {
        d.Access(b * kWarps + w, kX, line * 128, 4, 4, AccessKind::kRead, 1);
      }
    }
    if (b >= 3) d.End(b - 3);
  }
}

/// Adds to a gradient: rows that many blocks share.
void Gradient(Driver& d, std::uint32_t blocks) {
  for (BlockNumber b = 0; b < blocks; ++b) {
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      for (std::uint64_t line = 0; line < 32; ++line) {
        d.Atomic(b * kWarps + w, kY, (b % 7) * 4096 + line * 128, 4, 1);
      }
    }
    if (b >= 3) d.End(b - 3);
  }
}

struct Scenario {
  const char* name;
  std::uint32_t blocks;
  std::uint64_t touched_bytes;  // Of memory, at most at a time; 0: not of interest.
  std::function<void(Driver&, std::uint32_t)> run;
};

}  // namespace
}  // namespace assay::emu

int main(int argc, char** argv) {
  using namespace assay::emu;
  const auto stream = [](std::uint32_t bytes, std::uint64_t misalign) {
    return [=](Driver& d, std::uint32_t blocks) { Stream(d, blocks, bytes, misalign); };
  };
  const std::vector<Scenario> scenarios = {
      {"stream_4_bytes", 8192, 8192ull * 256 * 8, stream(4, 0)},
      {"stream_2_bytes", 8192, 8192ull * 256 * 4, stream(2, 0)},
      {"stream_1_byte", 8192, 8192ull * 256 * 2, stream(1, 0)},
      {"stream_16_bytes", 2048, 2048ull * 256 * 32, stream(16, 0)},
      {"stream_4_bytes_misaligned", 8192, 8192ull * 256 * 8, stream(4, 20)},
      {"stream_2_bytes_misaligned", 8192, 8192ull * 256 * 4, stream(2, 6)},
      {"shared_transpose", 200, 32 * 132, Transpose},
      {"shared_product", 100, 2048, Product},
      {"shared_reduce", 1000, 1024, Reduce},
      {"operand_read_by_all_blocks", 400, 64 * 128, SharedOperand},
      {"gradient_atomics", 400, 7 * 4096, Gradient},
  };
  assay::Json out = assay::Json::array();
  for (const Scenario& scenario : scenarios) {
    if (argc > 1 && std::string(argv[1]) != scenario.name) continue;
    double best = 1e30;
    double first = 1e30;
    std::uint64_t accesses = 0;
    std::uint64_t shadow = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      // The first launch meets fresh memory, from the system as well; the second one is what a
      // longer run is like.
      const RaceDetector::Shape shape{.warps_per_block = kWarps, .blocks = scenario.blocks};
      Driver driver(shape);
      const std::clock_t fresh = std::clock();
      scenario.run(driver, scenario.blocks);
      const double first_took = static_cast<double>(std::clock() - fresh) * (1e9 / CLOCKS_PER_SEC);
      first = std::min(first, first_took / static_cast<double>(driver.accesses));
      driver.accesses = 0;
      driver.race().BeginLaunch(shape);
      // Processor time: the machine may be busy with other things.
      const std::clock_t start = std::clock();
      scenario.run(driver, scenario.blocks);
      const double took = static_cast<double>(std::clock() - start) * (1e9 / CLOCKS_PER_SEC);
      accesses = driver.accesses;
      shadow = driver.race().shadow_bytes();
      best = std::min(best, took / static_cast<double>(accesses));
      if (driver.race().exhausted() || !driver.race().races().empty()) {
        std::fprintf(stderr, "%s: unexpected races or limit\n", scenario.name);
        return 1;
      }
    }
    out.push_back({{"name", scenario.name},
                   {"accesses", accesses},
                   {"ns_per_warp_access", best},
                   {"ns_per_warp_access_first_launch", first},
                   {"shadow_bytes_per_byte",
                    static_cast<double>(shadow) / static_cast<double>(scenario.touched_bytes)}});
  }
  const assay::Json document = {{"detector", out},
                                {"kernels", assay::RaceKernelRows(argc > 1 ? argv[1] : "")}};
  std::printf("%s\n", document.dump(2).c_str());
}
