// NVIDIA's device libraries as kernels use them: compiled afresh by NVRTC in its jail, run by the
// emulator with all monitors, which must find nothing, and compared with the same computation here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/rng.h"
#include "validator/emu/emulator.h"
#include "validator/engine/toolbox.h"

namespace assay {
namespace {

/// Values of a buffer, as numbers.
using Values = std::vector<double>;

class Libraries : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    if (toolbox_ != nullptr) return;
    auto toolbox = engine::Toolbox::Create({});
    if (toolbox) toolbox_ = toolbox->release();
  }
  static void TearDownTestSuite() {
    delete toolbox_;
    toolbox_ = nullptr;
  }

  /// Compiles tests/libraries/NAME.cu for this architecture.
  void Load(const std::string& name) {
    ASSERT_NE(toolbox_, nullptr) << "no jail: assay doctor says what is missing";
    const auto source =
        ReadFile(std::string(ASSAY_SOURCE_DIR) + "/tests/libraries/" + name + ".cu");
    ASSERT_TRUE(source);
    engine::CompileRequest request;
    request.source = *source;
    request.file_name = name + ".cu";
    request.arch = GetParam();
    request.want_cubin = false;
    const auto outcome = toolbox_->compiler().Compile(request);
    ASSERT_TRUE(outcome) << ToString(outcome.error());
    for (const engine::Diagnostic& diagnostic : outcome->diagnostics) {
      EXPECT_NE(diagnostic.severity, engine::Diagnostic::Severity::kError)
          << diagnostic.file << ":" << diagnostic.line << ": " << diagnostic.message;
    }
    ASSERT_EQ(outcome->kind, engine::CompileOutcome::Kind::kCompiled) << outcome->detail;
    const auto program = emu::Program::Load(outcome->kernel.ptx);
    ASSERT_TRUE(program) << ToString(program.error());
    program_ = *program;
  }

  std::uint32_t In(DType dtype, const Values& values) {
    const std::uint32_t index =
        Add(dtype, values.size(), BufferRole::kInput, BufferFill::kProvided);
    for (std::size_t i = 0; i < values.size(); ++i)
      StoreFromDouble(dtype, values[i], storage_[index].data() + i * SizeOf(dtype));
    return index;
  }
  std::uint32_t Out(DType dtype, std::size_t elements,
                    BufferFill fill = BufferFill::kUninitialised) {
    return Add(dtype, elements, BufferRole::kOutput, fill);
  }

  static Argument Pointer(std::uint32_t buffer) {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.buffer = buffer;
    return argument;
  }
  static Argument Int(std::int32_t value) {
    Argument argument;
    argument.dtype = DType::kI32;
    argument.bytes.resize(4);
    std::memcpy(argument.bytes.data(), &value, 4);
    return argument;
  }

  /// Runs one kernel under every scheduling policy, the plain one last, so that its results stay.
  void Run(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> args,
           bool cooperative = false, std::uint64_t shared = 0) {
    ASSERT_NE(program_, nullptr);
    Launch launch;
    launch.entry = entry;
    launch.grid = grid;
    launch.block = block;
    launch.shared_bytes = shared;
    launch.cooperative = cooperative;
    launch.args = std::move(args);
    execution_.launches = {launch};
    using Policy = Schedule::Policy;
    for (const Policy policy :
         {Policy::kReversed, Policy::kPermuted, Policy::kPriorities, Policy::kSequential}) {
      execution_.schedule = {.policy = policy, .seed = 7};
      const std::vector<std::span<std::byte>> spans(storage_.begin(), storage_.end());
      const Report report = emu::Run(*program_, execution_, spans);
      ASSERT_EQ(report.stop, Stop::kCompleted) << entry << ": " << report.reason << Show(report);
      ASSERT_TRUE(report.findings.empty()) << entry << Show(report);
    }
  }

  /// One launch under the plain schedule, whatever comes of it.
  Report Launched(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> args,
                  std::uint64_t shared) {
    Launch launch;
    launch.entry = entry;
    launch.grid = grid;
    launch.block = block;
    launch.shared_bytes = shared;
    launch.args = std::move(args);
    execution_.launches = {launch};
    execution_.schedule = {};
    const std::vector<std::span<std::byte>> spans(storage_.begin(), storage_.end());
    return emu::Run(*program_, execution_, spans);
  }

  static std::string Show(const Report& report) {
    std::string text;
    for (const Finding& finding : report.findings) {
      text += "\n  " + std::string(Name(finding.kind)) + ": " + finding.message;
      for (const Access& access : finding.accesses) {
        text += "\n    " + access.what + " " + access.site.file + ":" +
                std::to_string(access.site.line) + " " + access.site.instruction;
      }
    }
    return text;
  }

  Values Of(std::uint32_t buffer) const {
    const DType dtype = execution_.buffers[buffer].dtype;
    Values values;
    for (std::size_t i = 0; i * SizeOf(dtype) < storage_[buffer].size(); ++i)
      values.push_back(LoadAsDouble(dtype, storage_[buffer].data() + i * SizeOf(dtype)));
    return values;
  }

  /// Integers from -limit to limit.
  static Values Random(std::size_t count, int limit, std::uint64_t seed = 1) {
    Rng rng(seed);
    Values values(count);
    for (double& value : values)
      value = static_cast<double>(rng.Below(2 * static_cast<std::uint64_t>(limit) + 1)) - limit;
    return values;
  }

 private:
  std::uint32_t Add(DType dtype, std::size_t elements, BufferRole role, BufferFill fill) {
    BufferSpec spec;
    spec.name = "buffer" + std::to_string(storage_.size());
    spec.dtype = dtype;
    spec.elements = static_cast<std::int64_t>(elements);
    spec.role = role;
    spec.fill = fill;
    execution_.buffers.push_back(spec);
    storage_.emplace_back(SizeOf(dtype) * elements);
    return static_cast<std::uint32_t>(storage_.size() - 1);
  }

  static engine::Toolbox* toolbox_;
  std::shared_ptr<const emu::Program> program_;
  Execution execution_;
  std::vector<std::vector<std::byte>> storage_;
};
engine::Toolbox* Libraries::toolbox_ = nullptr;

double SumOf(const Values& values, std::size_t first, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0);
}

// --- CUB
TEST_P(Libraries, CubBlockReduce) {
  ASSERT_NO_FATAL_FAILURE(Load("cub"));
  const Values in = Random(3 * 128, 1000);
  const auto out = Out(DType::kI32, 9);
  ASSERT_NO_FATAL_FAILURE(
      Run("block_reduce", {3, 1, 1}, {128, 1, 1}, {Pointer(In(DType::kI32, in)), Pointer(out)}));
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(Of(out)[i], SumOf(in, i / 3 * 128, 128)) << i;
}

TEST_P(Libraries, CubBlockScan) {
  ASSERT_NO_FATAL_FAILURE(Load("cub"));
  const Values in = Random(2 * 512, 50);
  const auto out = Out(DType::kI32, in.size());
  ASSERT_NO_FATAL_FAILURE(
      Run("block_scan", {2, 1, 1}, {128, 1, 1}, {Pointer(In(DType::kI32, in)), Pointer(out)}));
  for (std::size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(Of(out)[i], SumOf(in, i / 512 * 512, i % 512)) << i;
}

TEST_P(Libraries, CubBlockRadixSort) {
  ASSERT_NO_FATAL_FAILURE(Load("cub"));
  Values keys = Random(512, 1'000'000'000);
  for (double& key : keys) key += 1'000'000'000;
  Values values(512);
  std::iota(values.begin(), values.end(), 0.0);
  const auto sorted_keys = Out(DType::kU32, 512);
  const auto sorted_values = Out(DType::kI32, 512);
  ASSERT_NO_FATAL_FAILURE(Run("block_radix_sort", {1, 1, 1}, {128, 1, 1},
                              {Pointer(In(DType::kU32, keys)), Pointer(In(DType::kI32, values)),
                               Pointer(sorted_keys), Pointer(sorted_values)}));
  std::ranges::stable_sort(values, {}, [&](double v) { return keys[static_cast<std::size_t>(v)]; });
  EXPECT_EQ(Of(sorted_values), values);
  std::ranges::sort(keys);
  EXPECT_EQ(Of(sorted_keys), keys);
}

TEST_P(Libraries, CubWarpAlgorithms) {
  ASSERT_NO_FATAL_FAILURE(Load("cub"));
  const Values in = Random(256, 1000);
  const auto maximum = Out(DType::kI32, 8);
  const auto sums = Out(DType::kI32, 256);
  const auto eights = Out(DType::kI32, 32);
  ASSERT_NO_FATAL_FAILURE(
      Run("warp_algorithms", {2, 1, 1}, {128, 1, 1},
          {Pointer(In(DType::kI32, in)), Pointer(maximum), Pointer(sums), Pointer(eights)}));
  for (std::size_t w = 0; w < 8; ++w) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(32 * w);
    EXPECT_EQ(Of(maximum)[w], *std::max_element(begin, begin + 32));
  }
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(Of(sums)[i], SumOf(in, i / 32 * 32, i % 32 + 1)) << i;
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(Of(eights)[i], SumOf(in, 8 * i, 8)) << i;
}

// --- cooperative groups
TEST_P(Libraries, CooperativeTiles) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  const Values in = Random(192, 1000);
  const auto sums = Out(DType::kI32, 12);
  const auto scans = Out(DType::kI32, 192);
  ASSERT_NO_FATAL_FAILURE(Run("tiles", {2, 1, 1}, {96, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(sums), Pointer(scans)}));
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(Of(sums)[i], SumOf(in, 16 * i, 16));
  for (std::size_t i = 0; i < 192; ++i)
    EXPECT_EQ(Of(scans)[i], SumOf(in, i / 16 * 16, i % 16 + 1)) << i;
}

TEST_P(Libraries, CooperativeCoalescedThreads) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  Values in = Random(128, 1000);
  Values odd;
  std::ranges::copy_if(in, std::back_inserter(odd),
                       [](double v) { return (static_cast<int>(v) & 1) != 0; });
  const auto kept = Out(DType::kI32, odd.size());
  const auto count = Out(DType::kI32, 1, BufferFill::kZero);
  ASSERT_NO_FATAL_FAILURE(Run("compact", {2, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(kept), Pointer(count)}));
  Values got = Of(kept);
  std::ranges::sort(got);
  std::ranges::sort(odd);
  EXPECT_EQ(got, odd);
  EXPECT_EQ(Of(count)[0], static_cast<double>(odd.size()));
}

TEST_P(Libraries, CooperativeGridSync) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  const Values in = Random(640, 1000);
  const auto partial = Out(DType::kI32, 10);
  const auto total = Out(DType::kI32, 640);
  ASSERT_NO_FATAL_FAILURE(Run("grid_sum", {10, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(partial), Pointer(total)},
                              true));
  EXPECT_EQ(Of(total), Values(640, SumOf(in, 0, 640)));
}

TEST_P(Libraries, CooperativeMemcpyAsync) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  const Values in = Random(256, 1000);
  const auto out = Out(DType::kI32, 256);
  ASSERT_NO_FATAL_FAILURE(
      Run("copy_async", {2, 1, 1}, {128, 1, 1}, {Pointer(In(DType::kI32, in)), Pointer(out)}));
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(Of(out)[i], in[i / 128 * 128 + 127 - i % 128]) << i;
}

TEST_P(Libraries, CooperativeLabeledPartition) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  const Values in = Random(64, 1000);
  const auto sizes = Out(DType::kI32, 64);
  ASSERT_NO_FATAL_FAILURE(
      Run("labels", {1, 1, 1}, {64, 1, 1}, {Pointer(In(DType::kI32, in)), Pointer(sizes)}));
  const auto label = [&](std::size_t i) { return static_cast<int>(in[i]) & 3; };
  for (std::size_t i = 0; i < 64; ++i) {
    int same = 0;
    for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) same += label(i) == label(j);
    EXPECT_EQ(Of(sizes)[i], same) << i;
  }
}

// --- barriers and pipelines
TEST_P(Libraries, BarrierProducerConsumer) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const Values in = Random(7 * 32, 1000);
  const auto out = Out(DType::kI32, in.size());
  ASSERT_NO_FATAL_FAILURE(Run("producer_consumer", {1, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(out), Int(7)}));
  for (std::size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(Of(out)[i], 2 * in[i / 32 * 32 + 31 - i % 32]) << i;
}

TEST_P(Libraries, PipelineOfABlock) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const Values in = Random(5 * 128, 100);
  const auto out = Out(DType::kF32, 128);
  ASSERT_NO_FATAL_FAILURE(Run("pipelined", {1, 1, 1}, {128, 1, 1},
                              {Pointer(In(DType::kF32, in)), Pointer(out), Int(5)}));
  for (std::size_t i = 0; i < 128; ++i) {
    double sum = 0;
    for (std::size_t tile = 0; tile < 5; ++tile) sum += in[tile * 128 + (i + 1) % 128];
    EXPECT_EQ(Of(out)[i], sum) << i;
  }
}

TEST_P(Libraries, PipelineOfAThread) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const Values in = Random(4 * 256, 100);
  const auto out = Out(DType::kF32, 256);
  ASSERT_NO_FATAL_FAILURE(Run("private_pipeline", {1, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kF32, in)), Pointer(out), Int(4)}));
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(Of(out)[i], in[i] + in[256 + i] + in[512 + i] + in[768 + i]) << i;
}

TEST_P(Libraries, MemcpyAsyncWithABarrier) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const Values in = Random(512, 1000);
  const auto out = Out(DType::kI32, 512);
  ASSERT_NO_FATAL_FAILURE(Run("copy_with_barrier", {2, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(out)}));
  for (std::size_t i = 0; i < 512; ++i)
    EXPECT_EQ(Of(out)[i], in[i / 256 * 256 + 255 - i % 256]) << i;
}

TEST_P(Libraries, AtomicRefSpanArray) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const Values in = Random(100, 1000);
  const auto histogram = Out(DType::kI32, 8, BufferFill::kZero);
  const auto largest = Out(DType::kI32, 1, BufferFill::kZero);
  const auto sums = Out(DType::kI32, 100);
  ASSERT_NO_FATAL_FAILURE(Run("references", {2, 1, 1}, {64, 1, 1},
                              {Pointer(In(DType::kI32, in)), Int(100), Pointer(histogram),
                               Pointer(largest), Pointer(sums)}));
  Values counts(8);
  for (const double v : in) ++counts[static_cast<std::size_t>(static_cast<int>(v) & 7)];
  EXPECT_EQ(Of(histogram), counts);
  EXPECT_EQ(Of(largest)[0], *std::ranges::max_element(in));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(Of(sums)[i], in[i] + in[(i + 1) % 100] + in[(i + 2) % 100] + in[(i + 3) % 100]);
  }
}

// --- wmma: small integers, so that every sum is exact
struct Product {
  const char* entry;
  DType in;
  DType out;
  std::uint32_t m, n;  ///< Of a tile.
};

TEST_P(Libraries, WmmaProducts) {
  ASSERT_NO_FATAL_FAILURE(Load("wmma"));
  constexpr Product kProducts[] = {
      {"wmma_f16", DType::kF16, DType::kF32, 16, 16},
      {"wmma_f16_tall", DType::kF16, DType::kF16, 32, 8},
      {"wmma_bf16", DType::kBF16, DType::kF32, 8, 32},
      {"wmma_tf32", DType::kF32, DType::kF32, 16, 16},
      {"wmma_s8", DType::kI8, DType::kI32, 16, 16},
      {"wmma_f64", DType::kF64, DType::kF64, 8, 8},
  };
  constexpr std::size_t kK = 48;
  for (const Product& product : kProducts) {
    SCOPED_TRACE(product.entry);
    const std::size_t m = 2 * product.m;
    const std::size_t n = 3 * product.n;
    const Values a = Random(m * kK, 5, 1);
    const Values b = Random(n * kK, 5, 2);
    const auto c = Out(product.out, m * n);
    ASSERT_NO_FATAL_FAILURE(Run(product.entry, {3, 2, 1}, {32, 1, 1},
                                {Pointer(In(product.in, a)), Pointer(In(product.in, b)), Pointer(c),
                                 Int(static_cast<int>(n)), Int(static_cast<int>(kK))}));
    const Values got = Of(c);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < kK; ++l) sum += a[i * kK + l] * b[j * kK + l];
        ASSERT_EQ(got[i * n + j], sum) << i << ", " << j;
      }
    }
  }
}

TEST_P(Libraries, WmmaThroughSharedMemory) {
  ASSERT_NO_FATAL_FAILURE(Load("wmma"));
  const Values a = Random(256, 9, 1);
  const Values b = Random(256, 9, 2);
  const auto c = Out(DType::kF32, 256);
  ASSERT_NO_FATAL_FAILURE(
      Run("wmma_shared", {1, 1, 1}, {32, 1, 1},
          {Pointer(In(DType::kF16, a)), Pointer(In(DType::kF16, b)), Pointer(c)}));
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double sum = 1;
      for (std::size_t l = 0; l < 16; ++l) sum += a[i * 16 + l] * b[l * 16 + j];
      EXPECT_EQ(Of(c)[i * 16 + j], 2 * sum) << i << ", " << j;
    }
  }
}

// --- TMA and wgmma. An H200 gives the same results for these kernels (2026-11-20, driver 580.159.04).
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

INSTANTIATE_TEST_SUITE_P(Architectures, Hopper, testing::Values("sm_90a"),
                         [](const auto& tested) { return std::string(tested.param); });
INSTANTIATE_TEST_SUITE_P(Architectures, Libraries, testing::Values("sm_80", "sm_90"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace assay
