// NVIDIA's device libraries as kernels use them: compiled afresh by NVRTC in its jail, run by the
// emulator with all monitors, which must find nothing, and compared with the same computation here.
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include "ops/host_headers.h"
#include "tests/libraries_fixture.h"

namespace assay {
namespace {

double SumOf(const Values& values, std::size_t first, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0);
}

constexpr std::string_view kRandomNumbers = "curand_kernel.h";

bool IsMissing(const engine::CompileOutcome& outcome, std::string_view header) {
  const std::string said = "cannot open source file \"" + std::string(header) + "\"";
  return outcome.diagnostics.size() == 1 &&
         outcome.diagnostics.front().message.find(said) != std::string::npos;
}

// --- the toolkit's headers, after the names that a kernel finds without including anything
TEST_P(Libraries, HeadersOfTheToolkitDoNotCollideWithTheHostsNames) {
  ASSERT_NE(toolbox_, nullptr) << "no jail: assay doctor says what is missing";
  for (const std::string_view header : {"cfloat",
                                        "climits",
                                        "cmath",
                                        "cooperative_groups.h",
                                        "cstdint",
                                        "cub/block/block_reduce.cuh",
                                        "cuda/barrier",
                                        "cuda/std/cfloat",
                                        "cuda/std/climits",
                                        "cuda/std/cmath",
                                        "cuda/std/complex",
                                        "cuda/std/cstdint",
                                        "cuda/std/limits",
                                        "cuda_bf16.h",
                                        "cuda_fp16.h",
                                        "cuda_fp8.h",
                                        "curand_kernel.h",
                                        "float.h",
                                        "limits",
                                        "math_constants.h",
                                        "mma.h",
                                        "type_traits"}) {
    engine::CompileRequest request;
    request.source = std::string("#include <").append(header) + R"(>
#define M_PI 3.14159f
__global__ void k(float* x, int* y) {
  x[0] = -INFINITY + NAN + M_PI + FLT_MAX;
  y[0] = INT_MAX;
  y[1] = INT_MIN;
  y[2] = INT8_MIN;
  y[3] = INT32_MIN;
}
)";
    request.headers = ops::HostHeaders();
    request.pre_include = std::string(ops::kHostNames);
    request.arch = GetParam();
    request.want_cubin = false;
    const auto outcome = toolbox_->compiler().Compile(request);
    ASSERT_TRUE(outcome) << ToString(outcome.error());
    // A library of its own, which NVIDIA's wheels of the compiler do not bring along.
    if (header == kRandomNumbers && IsMissing(*outcome, header)) continue;
    EXPECT_EQ(outcome->kind, engine::CompileOutcome::Kind::kCompiled) << header;
    for (const engine::Diagnostic& diagnostic : outcome->diagnostics)
      ADD_FAILURE() << header << ": " << diagnostic.file << ": " << diagnostic.message;
  }
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

TEST_P(Libraries, CooperativeTilesOfSeveralWarps) {
  ASSERT_NO_FATAL_FAILURE(Load("cooperative_groups"));
  const Values in = Random(256, 1000);
  const auto sums = Out(DType::kI32, 256);
  const auto scans = Out(DType::kI32, 256);
  ASSERT_NO_FATAL_FAILURE(Run("wide_tiles", {1, 1, 1}, {256, 1, 1},
                              {Pointer(In(DType::kI32, in)), Pointer(sums), Pointer(scans)}));
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(Of(sums)[i], SumOf(in, i / 64 * 64, 64)) << i;
    EXPECT_EQ(Of(scans)[i], SumOf(in, i / 128 * 128, i % 128 + 1)) << i;
  }
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

/// Atomics on 16 bits are made of ones on 32, next to loads of 16.
TEST_P(Libraries, AtomicRefOfHalfAWord) {
  ASSERT_NO_FATAL_FAILURE(Load("barriers"));
  const auto counts = Out(DType::kI16, 2, BufferFill::kZero);
  ASSERT_NO_FATAL_FAILURE(Run("half_words", {2, 1, 1}, {64, 1, 1}, {Pointer(counts)}));
  EXPECT_EQ(Of(counts), (Values{128, 256}));
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

INSTANTIATE_TEST_SUITE_P(Architectures, Libraries, testing::Values("sm_80", "sm_90"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace assay
