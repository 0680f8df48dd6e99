#include "bench/race_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "validator/emu/emulator.h"

namespace assay {
namespace {

/// Kernels take two buffers of 32-bit elements, zeroed outputs both, and one number.
struct KernelCase {
  const char* entry;
  std::uint32_t threads;
  DType dtype = DType::kI32;
  /// What grows: the kernel's number or the grid.
  enum class Grows : std::uint8_t { kNumber, kGrid, kTiles } grows = Grows::kNumber;
  std::uint32_t fixed;  ///< The other of the two; for tiles, what one block makes of the matrix.
  std::vector<std::uint32_t> sizes;
  /// Which module it is in. kBeside: that of the others, beside a strong access of block scope, so
  /// that a block's accesses may matter to another one of its block alone. kNarrow: one where they
  /// do.
  enum class In : std::uint8_t { kSync, kPipelines, kBeside, kNarrow } in = In::kSync;
};

std::vector<KernelCase> Cases() {
  using Grows = KernelCase::Grows;
  using In = KernelCase::In;
  return {
      {"lock_fence", 32, DType::kI32, Grows::kNumber, 64, {50, 100, 200, 400}},
      {"lock_acquire", 32, DType::kI32, Grows::kNumber, 64, {50, 100, 200, 400}},
      {"lock_acquire", 32, DType::kI32, Grows::kGrid, 50, {32, 64, 128, 256}},
      {"lock_lanes", 64, DType::kI32, Grows::kNumber, 1, {200, 400, 800}},
      {"ticket", 64, DType::kI32, Grows::kNumber, 64, {50, 100, 200, 400}},
      {"ticket", 64, DType::kI32, Grows::kGrid, 16, {256, 512, 1024, 2048}},
      {"flag_chain", 64, DType::kI32, Grows::kGrid, 4, {256, 512, 1024, 2048}},
      {"readers", 128, DType::kI32, Grows::kGrid, 16, {1024, 2048, 4096, 8192}},
      {"readers", 1024, DType::kI32, Grows::kNumber, 32, {64, 128, 256}},
      {"tiled_gemm16", 256, DType::kF32, Grows::kTiles, 16, {128, 256, 512}},
      {"tiled_gemm64", 256, DType::kF32, Grows::kTiles, 64, {128, 256, 512}},
      {"naive_gemm", 256, DType::kF32, Grows::kTiles, 16, {128, 256}},
      {"pipeline", 160, DType::kI32, Grows::kNumber, 8, {64, 128, 256}, In::kPipelines},
      {"copies", 256, DType::kI32, Grows::kNumber, 8, {64, 128, 256}, In::kPipelines},
      {"lock_fence", 32, DType::kI32, Grows::kGrid, 50, {64, 128, 256}, In::kBeside},
      {"lock_acquire", 32, DType::kI32, Grows::kGrid, 50, {64, 128, 256}, In::kBeside},
      {"ticket", 64, DType::kI32, Grows::kGrid, 16, {512, 1024, 2048}, In::kBeside},
      {"lock_lanes", 64, DType::kI32, Grows::kNumber, 1, {200, 400}, In::kBeside},
      {"lock_both", 256, DType::kI32, Grows::kGrid, 20, {8, 16, 32}, In::kNarrow},
      {"lock_warps", 256, DType::kI32, Grows::kGrid, 20, {8, 16, 32}, In::kNarrow},
      {"lock_warps", 256, DType::kI32, Grows::kNumber, 8, {20, 40, 80}, In::kNarrow},
      {"lock_warps", 1024, DType::kI32, Grows::kNumber, 8, {20, 40, 80}, In::kNarrow},
      {"lock_shared", 256, DType::kI32, Grows::kNumber, 8, {20, 40, 80}, In::kNarrow},
      {"lock_turns", 32, DType::kI32, Grows::kGrid, 20, {8, 16, 32}, In::kNarrow},
      {"lock_turns", 32, DType::kI32, Grows::kNumber, 8, {20, 40, 80}, In::kNarrow},
  };
}

struct Timed {
  double seconds = 1e30;
  std::string error;
  std::uint64_t steps = 0;
};

Timed Run(const emu::Program& program, const KernelCase& bench, std::uint32_t size, bool race) {
  using Grows = KernelCase::Grows;
  Execution execution;
  execution.limits.max_steps = 1ull << 60;
  execution.checks.race = race;
  Launch launch;
  launch.entry = bench.entry;
  launch.block = {bench.threads, 1, 1};
  const std::uint32_t tiles = size / bench.fixed;
  launch.grid = {bench.grows == Grows::kNumber ? bench.fixed
                 : bench.grows == Grows::kGrid ? size
                                               : tiles * tiles,
                 1, 1};
  const std::uint32_t number = bench.grows == Grows::kGrid ? bench.fixed : size;
  const std::int64_t elements =
      bench.grows == Grows::kTiles
          ? std::int64_t{2} * size * size
          : std::max<std::int64_t>(
                std::int64_t{launch.grid[0]} * std::max(number, bench.threads) + 2,
                std::int64_t{number} * 32);
  std::vector<std::vector<std::byte>> storage;
  for (std::uint32_t i = 0; i < 2; ++i) {
    BufferSpec spec;
    spec.name = i == 0 ? "first" : "second";
    spec.dtype = bench.dtype;
    spec.elements = std::max<std::int64_t>(elements, 4096);
    spec.role = BufferRole::kOutput;
    spec.fill = BufferFill::kZero;
    execution.buffers.push_back(spec);
    storage.emplace_back(4 * static_cast<std::size_t>(spec.elements));
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = i;
    launch.args.push_back(argument);
  }
  Argument n;
  n.dtype = DType::kI32;
  n.bytes.resize(4);
  std::memcpy(n.bytes.data(), &number, 4);
  launch.args.push_back(n);
  execution.launches = {launch};
  const std::vector<std::span<std::byte>> spans(storage.begin(), storage.end());
  Timed best;
  // The processor's clock may go in steps of some milliseconds: short runs are timed together.
  constexpr double kLongEnough = 0.15;
  double total = 0;
  for (int rounds = 1; rounds == 1 || total < kLongEnough; ++rounds) {
    const std::clock_t start = std::clock();
    const Report report = emu::Run(program, execution, spans);
    total += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    best.seconds = total / rounds;
    best.steps = report.counters.steps;
    if (report.stop != Stop::kCompleted || !report.findings.empty())
      best.error = report.reason + (report.findings.empty() ? "" : report.findings.front().message);
  }
  return best;
}

constexpr const char* kNarrowKernel = R"(
.visible .entry narrow(.param .u64 place)
{
.reg .b32 %r<2>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [place];
ld.relaxed.cta.global.u32 %r1, [%rd1];
ret;
}
)";

Result<std::shared_ptr<const emu::Program>> LoadKernels(KernelCase::In in) {
  using In = KernelCase::In;
  const char* const file = in == In::kPipelines ? "pipeline.ptx"
                           : in == In::kNarrow  ? "narrow.ptx"
                                                : "sync.ptx";
  auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/bench/kernels/" + file);
  if (!text) return std::unexpected(text.error());
  if (in == In::kBeside) *text += kNarrowKernel;
  return emu::Program::Load(*text);
}

double Rounded(double value) { return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr); }

}  // namespace

Json RaceKernelRows(std::string_view only) {
  Json rows = Json::array();
  using In = KernelCase::In;
  std::map<In, std::shared_ptr<const emu::Program>> programs;
  for (const In in : {In::kSync, In::kPipelines, In::kBeside, In::kNarrow}) {
    auto program = LoadKernels(in);
    if (!program) {
      fmt::print(stderr, "{}\n", ToString(program.error()));
      return rows;
    }
    programs[in] = *program;
  }
  for (const KernelCase& bench : Cases()) {
    if (!only.empty() && only != bench.entry) continue;
    const emu::Program& program = *programs.at(bench.in);
    double before = 0;
    for (const std::uint32_t size : bench.sizes) {
      const Timed without = Run(program, bench, size, false);
      const Timed with = Run(program, bench, size, true);
      Json row = {{"kernel", bench.entry},
                  {"grows", bench.grows == KernelCase::Grows::kGrid ? "grid" : "n"},
                  {"size", size},
                  {"threads", bench.threads},
                  {"instructions", with.steps},
                  {"seconds_without", Rounded(without.seconds)},
                  {"seconds_with", Rounded(with.seconds)},
                  {"cost", Rounded(with.seconds / without.seconds)}};
      if (bench.in == In::kBeside || bench.in == In::kNarrow) row["scopes"] = "narrow";
      if (before != 0) row["growth"] = Rounded(with.seconds / before);
      if (!with.error.empty()) row["error"] = with.error;
      before = with.seconds;
      fmt::print(stderr, "{}\n", CompactJson(row));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace assay
