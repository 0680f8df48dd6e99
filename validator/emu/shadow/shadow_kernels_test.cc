// Kernels whose errors come from a known line (testdata/shadow.cu): the line must be named, and what
// exact arithmetic would have given must be right.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

const std::string& Source() {
  static const std::string text =
      *ReadFile(std::string(ASSAY_SOURCE_DIR) + "/validator/emu/shadow/testdata/shadow.cu");
  return text;
}

/// The line of shadow.cu that is marked "LOSES <kernel>".
std::uint32_t MarkedLine(const std::string& kernel) {
  const std::size_t at = Source().find("LOSES " + kernel + "\n");
  EXPECT_NE(at, std::string::npos) << kernel;
  return 1 + static_cast<std::uint32_t>(std::count(
                 Source().begin(), Source().begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string Ptx() {
  return *ReadFile(std::string(ASSAY_SOURCE_DIR) + "/validator/emu/shadow/testdata/shadow.ptx");
}

std::vector<double> Values(std::size_t count, double low = 0.25, double high = 1.75) {
  Rng rng(DeriveSeed(7, "shadow"));
  std::vector<double> values(count);
  // Exact in bf16 and in f16: what is lost is lost by the kernel.
  for (double& value : values)
    value = std::ldexp(std::round(std::ldexp(low + (high - low) * rng.Unit(), 6)), -6);
  return values;
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::string ShowOrigin(const ErrorOrigin& origin) {
  std::string text =
      "flipped " + std::to_string(origin.flipped) + ", lost " + std::to_string(origin.lost);
  for (const ErrorShare& share : origin.shares) {
    text += "\n  " + std::to_string(share.share) + " line " + std::to_string(share.site.line) +
            " " + share.site.instruction;
  }
  return text;
}

/// A kernel with one output and one input, run with shadow values.
struct Traced {
  TestRun run{Ptx()};
  Report report;
  std::uint32_t out = 0;

  Traced(const std::string& kernel, DType out_type, std::int64_t outputs, DType in_type,
         const std::vector<double>& values, int n, std::uint32_t threads = 1) {
    out = run.Zeros("out", out_type, outputs);
    const std::uint32_t x = run.Buffer("x", in_type, values);
    run.AddLaunch(kernel, {1, 1, 1}, {threads, 1, 1},
                  {TestRun::Ptr(out), TestRun::Ptr(x), TestRun::Int(n)});
    Trace(0, outputs);
  }
  void Trace(std::int64_t first, std::int64_t elements) {
    run.execution.checks = {.shadow_values = true};
    run.execution.focus = {.buffer = out, .first = first, .elements = elements};
    report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  }
  const ErrorOrigin& origin() const { return *report.origin; }
};

void ExpectLine(const Traced& traced, const std::string& kernel, double share = 0.9) {
  ASSERT_TRUE(traced.report.origin);
  ASSERT_FALSE(traced.origin().shares.empty()) << kernel;
  const ErrorShare& top = traced.origin().shares.front();
  EXPECT_EQ(top.site.line, MarkedLine(kernel)) << kernel << ": " << ShowOrigin(traced.origin());
  EXPECT_EQ(top.site.file, "shadow.cu");
  EXPECT_GE(top.share, share) << kernel << ": " << ShowOrigin(traced.origin());
}

struct SumCase {
  std::string kernel;
  DType out;
  DType in;
};

TEST(ShadowKernels, NarrowAccumulatorsAreNamed) {
  const SumCase cases[] = {
      {"sum_bf16", DType::kBF16, DType::kBF16},    {"sum_rounded", DType::kF32, DType::kF32},
      {"atomic_bf16", DType::kBF16, DType::kBF16}, {"atomic_cas", DType::kBF16, DType::kBF16},
      {"cut_by_mask", DType::kF32, DType::kF32},   {"through_call", DType::kF32, DType::kF32},
  };
  const std::vector<double> values = Values(300);
  for (const SumCase& c : cases) {
    const Traced traced(c.kernel, c.out, 1, c.in, values, 300);
    ExpectLine(traced, c.kernel);
    // The shadow is the sum that the kernel would have found.
    EXPECT_NEAR(traced.origin().exact.at(0), Sum(values), 1e-9) << c.kernel;
    EXPECT_GT(std::fabs(traced.run.At(0, 0) - Sum(values)), 0.01) << c.kernel;
    EXPECT_EQ(traced.origin().lost, 0u) << c.kernel;
  }
}

TEST(ShadowKernels, AnHonestSumLosesNothingButItsLastRounding) {
  const std::vector<double> values = Values(300);
  const Traced traced("sum_f32", DType::kBF16, 1, DType::kBF16, values, 300);
  ExpectLine(traced, "sum_f32");
  EXPECT_NEAR(traced.origin().exact.at(0), Sum(values), 1e-9);
  EXPECT_LE(std::fabs(traced.run.At(0, 0) - traced.origin().exact.at(0)),
            0.5 * UlpAt(DType::kBF16, Sum(values)));
}

TEST(ShadowKernels, AnExactKernelHasNoShares) {
  const Traced traced("sum_rounded", DType::kF32, 1, DType::kF32, std::vector<double>(64, 1.0), 64);
  ASSERT_TRUE(traced.report.origin);
  EXPECT_TRUE(traced.origin().shares.empty()) << ShowOrigin(traced.origin());
  EXPECT_EQ(traced.origin().exact, (std::vector<double>{64}));
}

TEST(ShadowKernels, LanesOfAnAtomicTakeEffectOneByOne) {
  const std::vector<double> values = Values(300);
  for (const Schedule::Policy policy :
       {Schedule::Policy::kSequential, Schedule::Policy::kReversed}) {
    Traced traced("atomic_bf16", DType::kBF16, 1, DType::kBF16, values, 300, 64);
    traced.run.execution.schedule.policy = policy;
    traced.Trace(0, 1);
    ExpectLine(traced, "atomic_bf16");
    EXPECT_NEAR(traced.origin().exact.at(0), Sum(values), 1e-9);
    const double with_shadows = traced.run.At(0, 0);
    TestRun plain(Ptx());
    plain.execution = traced.run.execution;
    plain.execution.checks = {};
    plain.execution.buffers.clear();
    plain.execution.launches.clear();
    const std::uint32_t out = plain.Zeros("out", DType::kBF16, 1);
    const std::uint32_t x = plain.Buffer("x", DType::kBF16, values);
    plain.AddLaunch("atomic_bf16", {1, 1, 1}, {64, 1, 1},
                    {TestRun::Ptr(out), TestRun::Ptr(x), TestRun::Int(300)});
    plain.Run();
    EXPECT_EQ(with_shadows, plain.At(out, 0));
  }
}

TEST(ShadowKernels, PackedHalvesAreTwoNumbers) {
  const std::vector<double> values = Values(1200);
  const Traced sum("sum_half2", DType::kF32, 1, DType::kF16, values, 600);
  ExpectLine(sum, "sum_half2");
  EXPECT_NEAR(sum.origin().exact.at(0), Sum(values), 1e-9);
  const Traced atomic("atomic_half2", DType::kF16, 2, DType::kF16, values, 600, 32);
  ExpectLine(atomic, "atomic_half2");
  EXPECT_NEAR(atomic.origin().exact.at(0) + atomic.origin().exact.at(1), Sum(values), 1e-9);
}

TEST(ShadowKernels, ShufflesCarryNumbers) {
  const std::vector<double> values = Values(32, 1, 1.5);
  const Traced traced("sum_shuffled", DType::kF32, 1, DType::kF32, values, 0, 32);
  ExpectLine(traced, "sum_shuffled");
  EXPECT_NEAR(traced.origin().exact.at(0), Sum(values), 1e-9);
}

TEST(ShadowKernels, AnOverflowIsTracedToItsLine) {
  const Traced traced("sum_overflow", DType::kF32, 1, DType::kF16, std::vector<double>(40, 2048),
                      40);
  ExpectLine(traced, "sum_overflow", 1);
  EXPECT_TRUE(std::isinf(traced.run.At(0, 0)));
  EXPECT_EQ(traced.origin().exact.at(0), 40960);
}

TEST(ShadowKernels, ConversionsByHandAreRoundings) {
  const std::vector<double> values = Values(301);
  for (const std::string kernel : {"cut_by_shift", "round_by_hand"}) {
    // The output is declared as bf16, which is what the bits mean.
    const Traced traced(kernel, DType::kBF16, 1,
                        kernel == "cut_by_shift" ? DType::kBF16 : DType::kF32, values, 301);
    ExpectLine(traced, kernel);
    EXPECT_NEAR(traced.origin().exact.at(0), Sum(values), 1e-4) << kernel;
  }
  const Traced twice("twice_rounded", DType::kBF16, 1, DType::kF32, values, 301);
  bool named = false;
  for (const ErrorShare& share : twice.origin().shares)
    named = named || (share.site.line == MarkedLine("twice_rounded") && share.share > 0.05);
  EXPECT_TRUE(named) << ShowOrigin(twice.origin());
}

TEST(ShadowKernels, MemoryCarriesNumbersFromLaunchToLaunch) {
  std::vector<double> values(32);
  for (std::size_t i = 0; i < 32; ++i) values[i] = 1 + 0.001 * static_cast<double>(i);
  TestRun run(Ptx());
  const std::uint32_t out = run.Zeros("out", DType::kF32, 1);
  const std::uint32_t x = run.Buffer("x", DType::kF32, values);
  const std::uint32_t scratch = run.Zeros("scratch", DType::kBF16, 32, BufferRole::kWorkspace);
  run.AddLaunch("store_partials", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(scratch), TestRun::Ptr(x), TestRun::Int(32)});
  run.AddLaunch("load_partials", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(out), TestRun::Ptr(scratch), TestRun::Int(32)});
  run.execution.checks = {.shadow_values = true};
  run.execution.focus = {.buffer = out, .first = 0, .elements = 1};
  const Report report = run.Run();
  ASSERT_TRUE(report.origin) << Show(report);
  ASSERT_FALSE(report.origin->shares.empty());
  EXPECT_EQ(report.origin->shares.front().site.line, MarkedLine("load_partials"))
      << ShowOrigin(*report.origin);
  EXPECT_NEAR(report.origin->exact.at(0), Sum(values), 1e-5);
}

TEST(ShadowKernels, AWrongFormulaIsNoRounding) {
  const std::vector<double> values = Values(300);
  const Traced traced("wrong_formula", DType::kF32, 1, DType::kF32, values, 300);
  // 1.01f is what the kernel says, so that this is what exact arithmetic gives.
  EXPECT_NEAR(traced.origin().exact.at(0), Sum(values) * static_cast<double>(1.01f), 1e-9);
  EXPECT_NEAR(traced.run.At(0, 0), traced.origin().exact.at(0), 1e-3);
}

TEST(ShadowKernels, CompensationCancels) {
  std::vector<double> values = Values(2000);
  for (double& value : values) value *= 1.0009765625;
  const Traced kahan("kahan", DType::kF32, 1, DType::kF32, values, 2000);
  double sum = 0;
  for (const double value : values) sum += static_cast<double>(static_cast<float>(value));
  EXPECT_NEAR(kahan.origin().exact.at(0), sum, 1e-6);
  EXPECT_LE(std::fabs(kahan.run.At(0, 0) - sum), UlpAt(DType::kF32, sum));
}

TEST(ShadowKernels, CancellationIsChargedWhereTheErrorEntered) {
  std::vector<double> values(256);
  Rng rng(3);
  for (double& value : values) value = static_cast<double>(static_cast<float>(1000 + rng.Unit()));
  const Traced traced("one_pass_variance", DType::kF32, 1, DType::kF32, values, 256);
  const double mean = Sum(values) / 256;
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / 256;
  EXPECT_NEAR(traced.origin().exact.at(0), variance, 1e-6);
  EXPECT_GT(std::fabs(traced.run.At(0, 0) - variance), 0.01);
}

// Where shadows diverge from the actual run, functions that take floats apart show it: rounding to an
// integer in the actual run but not in the shadow is off by as much as a factor of two.
TEST(ShadowKernels, LibraryFunctionsKeepTheirShadows) {
  const std::vector<double> values = Values(32, -6, 6);
  const Traced traced("functions", DType::kF32, 256, DType::kF32, values, 0, 32);
  for (std::size_t i = 0; i < 256; ++i) {
    const double x = values[i / 8] * static_cast<double>(1.7f) + static_cast<double>(0.3f);
    const double shifted = std::fabs(x) + static_cast<double>(0.1f);
    const double expected[] = {std::exp(x),
                               std::log(shifted),
                               std::sin(x),
                               std::tanh(x),
                               std::pow(shifted, static_cast<double>(1.3f)),
                               std::erf(x),
                               1 / std::sqrt(shifted),
                               std::copysign(std::exp(-std::fabs(x)), x)};
    EXPECT_NEAR(traced.origin().exact.at(i), expected[i % 8],
                2e-6 * std::max(0.1, std::fabs(expected[i % 8])))
        << "function " << i % 8 << " of " << x;
  }
}

TEST(ShadowKernels, MatrixAccumulatorsAreNamed) {
  TestRun run(Ptx());
  constexpr int kSteps = 16;
  const std::vector<double> a = Values(kSteps * 32 * 8), b = Values(kSteps * 32 * 4);
  const std::uint32_t out = run.Zeros("out", DType::kF32, 128);
  const std::uint32_t a_buffer = run.Buffer("a", DType::kBF16, a);
  const std::uint32_t b_buffer = run.Buffer("b", DType::kBF16, b);
  run.AddLaunch(
      "matrix", {1, 1, 1}, {32, 1, 1},
      {TestRun::Ptr(out), TestRun::Ptr(a_buffer), TestRun::Ptr(b_buffer), TestRun::Int(kSteps)});
  run.execution.checks = {.shadow_values = true};
  run.execution.focus = {.buffer = out, .first = 0, .elements = 128};
  const Report report = run.Run();
  ASSERT_TRUE(report.origin) << Show(report);
  ASSERT_FALSE(report.origin->shares.empty());
  EXPECT_EQ(report.origin->shares.front().site.line, MarkedLine("matrix"))
      << ShowOrigin(*report.origin);
  EXPECT_GT(report.origin->shares.front().share, 0.9);
  // Element (0, 0): lane 0 holds columns 0, 1, 8, 9 of row 0 of A in registers 0 and 2, and so on.
  double exact = 0;
  for (int s = 0; s < kSteps; ++s) {
    for (int k = 0; k < 16; ++k) {
      const int lane = k % 8 / 2;
      const int a_at = ((s * 32 + lane) * 4 + (k / 8) * 2) * 2 + k % 2;
      const int b_at = ((s * 32 + lane) * 2 + k / 8) * 2 + k % 2;
      exact += a[static_cast<std::size_t>(a_at)] * b[static_cast<std::size_t>(b_at)];
    }
  }
  EXPECT_NEAR(report.origin->exact.at(0), exact, 1e-9);
}

TEST(ShadowKernels, TheSameRunGivesTheSameOrigin) {
  const std::vector<double> values = Values(300);
  const Traced a("atomic_cas", DType::kBF16, 1, DType::kBF16, values, 300, 64);
  const Traced b("atomic_cas", DType::kBF16, 1, DType::kBF16, values, 300, 64);
  EXPECT_EQ(a.origin(), b.origin());
}

TEST(ShadowKernels, BeyondTheMemoryLimitNothingIsSaid) {
  Traced traced("sum_bf16", DType::kBF16, 1, DType::kBF16, Values(30), 30);
  traced.run.execution.limits.max_memory_bytes = 1000;
  const Report report = traced.run.Run();
  EXPECT_EQ(report.stop, Stop::kResourceLimit);
  EXPECT_FALSE(report.origin);
}

TEST(ShadowKernels, WithoutAFocusNothingIsSaid) {
  Traced traced("sum_bf16", DType::kBF16, 1, DType::kBF16, Values(30), 30);
  traced.run.execution.focus = {};
  EXPECT_FALSE(traced.run.Run().origin);
}

}  // namespace
}  // namespace assay::emu
