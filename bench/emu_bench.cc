// Speed of the emulator: retired thread-level instructions a second, on one core, and what each
// monitor costs. Prints one JSON document; the numbers are explained in docs/performance.md.
//
//   emu_bench [--mode MODE] [KERNEL ...]      all kernels when none is named; all modes and the host
//
// For each kernel: `instructions_per_second` by mode; `cost`, the time of each mode over that of
// `off`; `host_ratio`, the time over that of the same computation as plain C++ (this file's, -O2).
// Times are processor time, best of five.
#include <cpuid.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
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
                     std::vector<float> x(n * n), y(n * n);
                     for (std::size_t i = 0; i < n * n; ++i) {
                       x[i] = F16ToFloat(As<std::uint16_t>(b[0])[i]);
                       y[i] = F16ToFloat(As<std::uint16_t>(b[1])[i]);
                     }
                     for (std::size_t i = 0; i < n; ++i) {
                       for (std::size_t j = 0; j < n; ++j) {
                         float sum = 0;
                         for (std::size_t k = 0; k < n; ++k) sum += x[i * n + k] * y[j * n + k];
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

constexpr int kRounds = 5;
/// No more rounds after one as slow as this.
constexpr double kLongEnough = 2.0;

/// Which monitors watch. Bounds, alignment and write protection are checked in every mode.
struct Mode {
  const char* name;
  Checks checks;
};

Checks Only(bool Checks::* one) {
  Checks checks{.initialisation = false, .race = false, .barrier = false};
  if (one != nullptr) checks.*one = true;
  return checks;
}

std::vector<Mode> Modes() {
  return {{"off", Only(nullptr)},
          {"barrier", Only(&Checks::barrier)},
          {"coverage", Only(&Checks::coverage)},
          {"initialisation", Only(&Checks::initialisation)},
          {"race", Only(&Checks::race)},
          {"shadow_values", Only(&Checks::shadow_values)},
          {"all", Checks{}}};
}

double Seconds(Clock::time_point start) { return Clock::now() - start; }

/// Three digits: the rest is noise.
double Rounded(double value) { return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr); }

Json Measure(const emu::Program& program, const BenchCase& bench, std::string_view only) {
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

  double host = 1e30;
  for (int round = 0; round < kRounds && only.empty(); ++round) {
    const auto start = Clock::now();
    bench.host(storage);
    host = std::min(host, Seconds(start));
  }
  Json result = {{"kernel", bench.entry}};
  double off = 0;
  for (const Mode& mode : Modes()) {
    if (!only.empty() && only != mode.name) continue;
    execution.checks = mode.checks;
    double best = 1e30;
    Report report;
    for (int round = 0; round < kRounds && (round == 0 || best < kLongEnough); ++round) {
      const auto start = Clock::now();
      report = emu::Run(program, execution, spans);
      best = std::min(best, Seconds(start));
    }
    if (report.stop == Stop::kUnsupported) continue;
    if (report.stop != Stop::kCompleted || !report.findings.empty()) {
      result["error"] = report.reason + (report.findings.empty() ? "" : report.findings[0].message);
    }
    if (off == 0) off = best;
    result["instructions"] = report.counters.steps;
    result["instructions_per_second"][mode.name] =
        Rounded(static_cast<double>(report.counters.steps) / best);
    result["cost"][mode.name] = Rounded(best / off);
    if (only.empty()) result["host_ratio"][mode.name] = Rounded(best / host);
  }
  if (only.empty()) result["host_seconds"] = Rounded(host);
  return result;
}

std::string ProcessorName() {
  std::array<unsigned, 12> words{};  // The brand string: three leaves of 16 characters.
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const at = words.data() + std::size_t{4} * leaf;
    if (__get_cpuid(0x80000002u + leaf, at, at + 1, at + 2, at + 3) == 0) return "unknown";
  }
  std::string name(sizeof(words), '\0');
  std::memcpy(name.data(), words.data(), sizeof(words));
  name.resize(std::min(name.find('\0'), name.size()));
  return name.substr(0, name.find_last_not_of(' ') + 1);
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
  std::string_view mode;
  int first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--mode") {
    mode = argv[2];
    first = 3;
  }
  Json results = Json::array();
  for (const BenchCase& bench : Cases()) {
    const bool wanted =
        argc == first || std::any_of(argv + first, argv + argc, [&](const char* name) {
          return std::string_view(name) == bench.entry;
        });
    if (!wanted) continue;
    results.push_back(Measure(**program, bench, mode));
    fmt::print(stderr, "{}\n", CompactJson(results.back()));
  }
  fmt::print("{}", PrettyJson({{"schema", "assay.bench/1"},
                               {"processor", ProcessorName()},
                               {"results", results}}));
  return 0;
}
