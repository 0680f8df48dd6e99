#include "validator/emu/emulator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

struct NormCase {
  const char* entry;
  DType dtype;
  double tolerance;
};

class Norm : public ::testing::TestWithParam<NormCase> {};

TEST_P(Norm, MatchesTheDefinition) {
  const auto& [entry, dtype, tolerance] = GetParam();
  constexpr int kRows = 3;
  constexpr int kHidden = 200;
  TestRun run(TestRun::TestData("norm.ptx"));
  std::vector<double> x(kRows * kHidden), w(kHidden);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 37 % 101) / 50 - 1;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.5 + static_cast<double>(i % 7) / 8;
  const auto xb = run.Buffer("x", dtype, x);
  const auto wb = run.Buffer("w", dtype, w);
  const auto yb = run.Uninitialised("y", dtype, kRows * kHidden);
  run.AddLaunch(entry, {kRows, 1, 1}, {96, 1, 1},
                {TestRun::Ptr(xb), TestRun::Ptr(wb), TestRun::Ptr(yb), TestRun::Int(kHidden),
                 TestRun::Float(1e-5f)});
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  EXPECT_EQ(report.unwritten_bytes[yb], 0u);
  for (std::size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < kHidden; ++i) sum += std::pow(run.At(xb, r * kHidden + i), 2);
    const double scale = 1 / std::sqrt(sum / kHidden + 1e-5);
    for (std::size_t i = 0; i < kHidden; ++i) {
      const double expected = run.At(xb, r * kHidden + i) * scale * run.At(wb, i);
      EXPECT_NEAR(run.At(yb, r * kHidden + i), expected, tolerance * std::abs(expected) + 1e-6)
          << r << "," << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Norm,
                         ::testing::Values(NormCase{"rms_f32", DType::kF32, 1e-6},
                                           NormCase{"rms_f16", DType::kF16, 1e-3},
                                           NormCase{"rms_bf16", DType::kBF16, 5e-3}),
                         [](const auto& tested) { return std::string(tested.param.entry); });

TEST(Atomics, AddRowsThatRepeat) {
  TestRun run(TestRun::TestData("norm.ptx"));
  constexpr int kTokens = 40;
  constexpr int kHidden = 70;
  std::vector<double> ids(kTokens), grad(kTokens * kHidden, 0.25);
  for (std::size_t i = 0; i < kTokens; ++i) ids[i] = i % 3 == 0 ? 1 : 2;
  const auto g = run.Buffer("grad", DType::kF32, grad);
  const auto i = run.Buffer("ids", DType::kI64, ids);
  const auto table = run.Zeros("table", DType::kF32, 4 * kHidden);
  const auto low = run.Zeros("low", DType::kBF16, 4 * kHidden);
  run.AddLaunch("scatter_add", {kTokens, 1, 1}, {64, 1, 1},
                {TestRun::Ptr(g), TestRun::Ptr(i), TestRun::Ptr(table), TestRun::Ptr(low),
                 TestRun::Int(kTokens), TestRun::Int(kHidden)});
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  for (std::size_t c = 0; c < kHidden; ++c) {
    EXPECT_EQ(run.At(table, c), 0);
    EXPECT_EQ(run.At(table, kHidden + c), 14 * 0.25);
    EXPECT_EQ(run.At(table, 2 * kHidden + c), 26 * 0.25);
    EXPECT_EQ(run.At(low, 2 * kHidden + c), 26);
  }
  EXPECT_TRUE(report.counters.used_atomics);
  EXPECT_TRUE(report.counters.may_meet);

  // Whoever asks whether blocks meet does not wait for what they do then.
  for (const bool asked : {false, true}) {
    run.execution.ends_at_meetings = asked;
    const Report again = run.Run();
    EXPECT_EQ(again.stop, asked ? Stop::kStepLimit : Stop::kCompleted);
    EXPECT_EQ(again.counters.steps < report.counters.steps, asked);
  }
}

}  // namespace
}  // namespace assay::emu
