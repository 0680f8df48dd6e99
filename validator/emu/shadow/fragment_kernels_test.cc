// Shadow values through ldmatrix, stmatrix, wmma.load and wmma.store (testdata/fragments.cu): numbers
// that were rounded before keep their shadows, and the line of that rounding is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

std::string TestData(const std::string& file) {
  return *ReadFile(std::string(ASSAY_SOURCE_DIR) + "/validator/emu/shadow/testdata/" + file);
}

/// The line of fragments.cu that is marked "LOSES <kernel>".
std::uint32_t MarkedLine(const std::string& kernel) {
  const std::string source = TestData("fragments.cu");
  const std::size_t at = source.find("LOSES " + kernel + "\n");
  EXPECT_NE(at, std::string::npos) << kernel;
  return 1 + static_cast<std::uint32_t>(std::count(
                 source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

using Matrix = std::vector<double>;  // 16 by 16, by rows

struct FragmentCase {
  std::string kernel;
  std::int64_t outputs;
  double (*exact)(const Matrix& x, std::size_t index);
};

double ProductAt(const Matrix& x, std::size_t row, std::size_t column) {
  double sum = 0;
  for (std::size_t k = 0; k < 16; ++k) sum += x[row * 16 + k] * x[k * 16 + column];
  return sum;
}
double Itself(const Matrix& x, std::size_t i) { return x[i]; }

const FragmentCase kCases[] = {
    {"wmma_rows", 256, [](const Matrix& x, std::size_t i) { return ProductAt(x, i / 16, i % 16); }},
    // Element (i, j) of x^T x^T is element (j, i) of x x; it is stored by columns.
    {"wmma_columns", 256,
     [](const Matrix& x, std::size_t i) { return ProductAt(x, i / 16, i % 16); }},
    {"wmma_accumulator", 256, &Itself},
    {"ldmatrix", 128, [](const Matrix& x, std::size_t i) { return ProductAt(x, i / 8, i % 8); }},
    {"stmatrix", 64, &Itself},
};

/// Runs a kernel of fragments.cu with shadow values.
Report Traced(TestRun& run, const FragmentCase& c, const Matrix& x) {
  const std::uint32_t out = run.Zeros("out", DType::kF32, c.outputs);
  const std::uint32_t in = run.Buffer("x", DType::kF32, x);
  run.AddLaunch(c.kernel, {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(out), TestRun::Ptr(in), TestRun::Int(0)});
  run.execution.checks = {.shadow_values = true};
  run.execution.focus = {.buffer = out, .first = 0, .elements = c.outputs};
  return run.Run();
}

TEST(FragmentKernels, RoundingsBeforeFragmentsAreNamed) {
  Rng rng(DeriveSeed(11, "fragments"));
  Matrix x(256);
  for (double& value : x) value = static_cast<double>(static_cast<float>(0.5 + rng.Unit()));
  for (const FragmentCase& c : kCases) {
    TestRun run(TestData("fragments.ptx"));
    const Report report = Traced(run, c, x);
    ASSERT_EQ(report.stop, Stop::kCompleted) << c.kernel << ": " << Show(report);
    ASSERT_TRUE(report.origin) << c.kernel;
    EXPECT_EQ(report.origin->lost, 0u) << c.kernel;
    ASSERT_FALSE(report.origin->shares.empty()) << c.kernel;
    EXPECT_EQ(report.origin->shares.front().site.line, MarkedLine(c.kernel)) << c.kernel;
    EXPECT_GT(report.origin->shares.front().share, 0.9) << c.kernel;
    double off = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.outputs); ++i) {
      const double exact = c.exact(x, i);
      EXPECT_NEAR(report.origin->exact.at(i), exact, 1e-9) << c.kernel << " " << i;
      off = std::max(off, std::fabs(run.At(0, i) - exact));
    }
    EXPECT_GT(off, 1e-5) << c.kernel;
  }
}

TEST(FragmentKernels, WhatIsExactHasNoShares) {
  Rng rng(DeriveSeed(12, "fragments"));
  Matrix x(256);
  for (double& value : x) value = static_cast<double>(rng.Between(-8, 8));
  for (const FragmentCase& c : kCases) {
    TestRun run(TestData("fragments.ptx"));
    const Report report = Traced(run, c, x);
    ASSERT_TRUE(report.origin) << c.kernel << ": " << Show(report);
    EXPECT_TRUE(report.origin->shares.empty()) << c.kernel;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.outputs); ++i)
      EXPECT_EQ(report.origin->exact.at(i), c.exact(x, i)) << c.kernel << " " << i;
  }
}

}  // namespace
}  // namespace assay::emu
