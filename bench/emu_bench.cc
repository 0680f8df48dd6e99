// Speed of the emulator: retired thread-level instructions a second, one core, monitors off and on.
// Prints one JSON document.
//
//   emu_bench [KERNEL ...]      all kernels when none is named
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "validator/emu/emulator.h"

namespace assay {
namespace {

/// Processor time of this process: other programs on the machine do not count.
struct Clock {
  using time_point = double;
  static double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
};

struct Buffer {
  const char* name;
  DType dtype;
  std::int64_t elements;
  bool output;
};

/// One kernel, and what it computes as plain C++ for scale.
struct BenchCase {
  const char* entry;
  Dim3 grid;
  Dim3 block;
  std::vector<Buffer> buffers;
  std::int32_t n;
  std::function<void(std::vector<std::vector<std::byte>>&)> host;
};

template <class T>
T* As(std::vector<std::byte>& bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

std::vector<BenchCase> Cases() {
  std::vector<BenchCase> cases;
  cases.push_back({"fma_chain",
                   {32, 1, 1},
                   {256, 1, 1},
                   {{"out", DType::kF32, 32 * 256, true}},
                   4096,
                   [](auto& b) {
                     for (int t = 0; t < 32 * 256; ++t) {
                       float a = static_cast<float>(t % 256);
                       for (int i = 0; i < 4096; ++i) a = std::fmaf(a, 0.999f, 0.5f);
                       As<float>(b[0])[t] = a;
                     }
                   }});
  cases.push_back({"copy16",
                   {64, 1, 1},
                   {256, 1, 1},
                   {{"x", DType::kF32, 1 << 23, false}, {"y", DType::kF32, 1 << 23, true}},
                   1 << 21,
                   [](auto& b) { std::memcpy(b[1].data(), b[0].data(), b[0].size()); }});
  cases.push_back({"reduce",
                   {256, 1, 1},
                   {256, 1, 1},
                   {{"x", DType::kF32, 256 * 8192, false}, {"out", DType::kF32, 256, true}},
                   8192,
                   [](auto& b) {
                     for (int r = 0; r < 256; ++r) {
                       float sum = 0;
                       for (int i = 0; i < 8192; ++i) sum += As<float>(b[0])[r * 8192 + i];
                       As<float>(b[1])[r] = sum;
                     }
                   }});
  const auto gemm = [](auto& b) {
    constexpr int n = 256;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) As<float>(b[2])[i * n + j] = 0;
      for (int k = 0; k < n; ++k) {
        for (int j = 0; j < n; ++j)
          As<float>(b[2])[i * n + j] += As<float>(b[0])[i * n + k] * As<float>(b[1])[k * n + j];
      }
    }
  };
  cases.push_back({"tiled_gemm",
                   {4, 4, 1},
                   {256, 1, 1},
                   {{"a", DType::kF32, 256 * 256, false},
                    {"b", DType::kF32, 256 * 256, false},
                    {"c", DType::kF32, 256 * 256, true}},
                   256,
                   gemm});
  cases.push_back({"mma_gemm",
                   {8, 16, 1},
                   {128, 1, 1},
                   {{"a", DType::kF16, 256 * 256, false},
                    {"b", DType::kF16, 256 * 256, false},
                    {"c", DType::kF32, 256 * 256, true}},
                   256,
                   [](auto& b) {
                     constexpr int n = 256;
                     for (int i = 0; i < n; ++i) {
                       for (int j = 0; j < n; ++j) {
                         float sum = 0;
                         for (int k = 0; k < n; ++k) {
                           sum += F16ToFloat(As<std::uint16_t>(b[0])[i * n + k]) *
                                  F16ToFloat(As<std::uint16_t>(b[1])[j * n + k]);
                         }
                         As<float>(b[2])[i * n + j] = sum;
                       }
                     }
                   }});
  cases.push_back({"histogram",
                   {64, 1, 1},
                   {256, 1, 1},
                   {{"x", DType::kU32, 1 << 20, false}, {"bins", DType::kU32, 256, true}},
                   1 << 20,
                   [](auto& b) {
                     for (int i = 0; i < 1 << 20; ++i)
                       ++As<std::uint32_t>(b[1])[As<std::uint32_t>(b[0])[i] % 256];
                   }});
  cases.push_back({"divergent",
                   {64, 1, 1},
                   {256, 1, 1},
                   {{"x", DType::kU32, 1 << 15, false}, {"y", DType::kU32, 1 << 15, true}},
                   1 << 15,
                   [](auto& b) {
                     for (int i = 0; i < 1 << 15; ++i) {
                       std::uint32_t v = As<std::uint32_t>(b[0])[i] % 1000 + 1, steps = 0;
                       while (v != 1 && steps < 100) {
                         v = v % 2 != 0 ? 3 * v + 1 : v / 2;
                         ++steps;
                       }
                       As<std::uint32_t>(b[1])[i] = steps;
                     }
                   }});
  return cases;
}

struct Mode {
  const char* name;
  Checks checks;
};

Checks Only(bool initialisation, bool race) {
  Checks checks;
  checks.initialisation = initialisation;
  checks.race = race;
  checks.barrier = true;
  return checks;
}

double Seconds(Clock::time_point start) { return Clock::now() - start; }

Json Measure(const emu::Program& program, const BenchCase& bench) {
  Execution execution;
  execution.limits.max_steps = 1ull << 60;
  Launch launch;
  launch.entry = bench.entry;
  launch.grid = bench.grid;
  launch.block = bench.block;
  std::vector<std::vector<std::byte>> storage;
  for (std::uint32_t i = 0; i < bench.buffers.size(); ++i) {
    const Buffer& buffer = bench.buffers[i];
    BufferSpec spec;
    spec.name = buffer.name;
    spec.dtype = buffer.dtype;
    spec.elements = buffer.elements;
    spec.role = buffer.output ? BufferRole::kOutput : BufferRole::kInput;
    spec.fill = buffer.output ? BufferFill::kZero : BufferFill::kProvided;
    execution.buffers.push_back(spec);
    storage.emplace_back(SizeOf(buffer.dtype) * static_cast<std::size_t>(buffer.elements));
    for (std::int64_t e = 0; e < buffer.elements && !buffer.output; ++e) {
      StoreFromDouble(
          buffer.dtype,
          static_cast<double>(e * 7919 % 10007) / (IsFloat(buffer.dtype) ? 10007.0 : 1.0),
          storage.back().data() + static_cast<std::size_t>(e) * SizeOf(buffer.dtype));
    }
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = i;
    launch.args.push_back(argument);
  }
  Argument n;
  n.dtype = DType::kI32;
  n.bytes.resize(4);
  std::memcpy(n.bytes.data(), &bench.n, 4);
  launch.args.push_back(n);
  execution.launches = {launch};
  const std::vector<std::span<std::byte>> spans(storage.begin(), storage.end());

  Json result = {{"kernel", bench.entry}};
  for (const Mode& mode :
       {Mode{"off", Only(false, false)}, Mode{"initialisation", Only(true, false)},
        Mode{"race", Only(false, true)}, Mode{"all", Only(true, true)}}) {
    execution.checks = mode.checks;
    double best = 1e30;
    Report report;
    for (int round = 0; round < 3; ++round) {
      const auto start = Clock::now();
      report = emu::Run(program, execution, spans);
      best = std::min(best, Seconds(start));
      if (best > 2) break;
    }
    if (report.stop != Stop::kCompleted || !report.findings.empty()) {
      result["error"] = report.reason + (report.findings.empty() ? "" : report.findings[0].message);
    }
    result["steps"] = report.counters.steps;
    result[fmt::format("{}_instructions_per_second", mode.name)] =
        static_cast<double>(report.counters.steps) / best;
  }
  const auto start = Clock::now();
  bench.host(storage);
  result["host_seconds"] = Seconds(start);
  return result;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  using namespace assay;
  auto text = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/bench/kernels/speed.ptx");
  if (!text) {
    fmt::print(stderr, "{}\n", ToString(text.error()));
    return 3;
  }
  auto program = emu::Program::Load(*text);
  if (!program) {
    fmt::print(stderr, "{}\n", ToString(program.error()));
    return 3;
  }
  Json results = Json::array();
  for (const BenchCase& bench : Cases()) {
    const bool wanted =
        argc < 2 || std::any_of(
                        argv + 1, argv + argc,
                        [&](const char* name) { return std::string(name) == bench.entry; });
    if (!wanted) continue;
    results.push_back(Measure(**program, bench));
    fmt::print(stderr, "{}\n", CompactJson(results.back()));
  }
  fmt::print("{}", PrettyJson({{"schema", "assay.bench/1"}, {"results", results}}));
  return 0;
}
