// A reference in Python: a function whose control flow hangs on values. Its truth is torch in f64, its
// bound an estimate; what is honest passes, what is not is refuted.
#include "importers/python_truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sandbox/jail.h"
#include "validator/cases/case.h"
#include "validator/oracle/testing/bench_test.h"

namespace assay::importers {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOp =
    R"({"schema": "assay.op/1", "name": "halved", "axes": {"rows": {"type": "var", "max": 64}, "columns": {"type": "var", "max": 256}},
  "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "f32"}},
  "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "f32"}},
  "reference": {"kind": "python", "source": "reference.py", "launch": "reference.json"}})";
// Rows are halved until their largest element is below one: how often hangs on what they hold.
constexpr const char* kReference = R"(
import torch
def halved(x):
    out = []
    for row in x:
        row = row.to(torch.float32)
        while row.abs().max().item() >= 1:
            row = row * 0.5
        out.append(torch.softmax(row, 0))
    return torch.stack(out)
def forever(x):
    while True: pass
def wrong_shape(x):
    return x[0]
)";
constexpr const char* kPlan =
    R"({"schema": "assay.launch/1", "kernels": [{"entry": "halved", "grid": ["rows"], "block": [1], "args": ["x", "y", "columns"]}]})";
std::string Kernel(const std::string& sum) {
  return R"(extern "C" __global__ void halved(const float* x, float* y, long long columns) {
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  float top = 0, largest = -3.4e38f, sum = 0, scale = 1;
  for (long long i = 0; i < columns; ++i) top = fmaxf(top, fabsf(x[i])), largest = fmaxf(largest, x[i]);
  while (top * scale >= 1) scale *= 0.5f;
  for (long long i = 0; i < columns; ++i) )" +
         sum + R"(
  for (long long i = 0; i < columns; ++i) y[i] = expf((x[i] - largest) * scale) / sum;
})";
}

class PythonReference : public oracle::BenchTest<> {
 protected:
  void SetUp() override {
    const auto find = [] {
      return FindPython("", [](const char* name) {
        const char* const value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
      });
    };
    if (const auto python = find(); !python)
      GTEST_SKIP() << "there is no torch: " << python.error().cure;
    const auto jail = sandbox::ProbeJail();
    ASSERT_TRUE(jail);
    if (!jail->works) GTEST_SKIP() << "no jail on this machine: assay doctor";
    folder_ =
        std::filesystem::temp_directory_path() / ("assay_python_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "op.json") << kOp;
    std::ofstream(folder_ / "reference.py") << kReference;
    Use("halved");
    if (served_) return;
    served_ = true;
    bench_->oracle().Serve(std::make_unique<PythonTruth>(
        find, RunOptions{.time = std::chrono::seconds(300),
                         .package = Path(ASSAY_SOURCE_DIR) / "importers"}));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  void Use(const std::string& function) {
    std::ofstream(folder_ / "reference.json")
        << R"({"schema": "assay.python/1", "function": ")" << function << "\"}";
  }
  ops::Instance Loaded() {
    const auto op = ops::LoadOp(folder_);
    EXPECT_TRUE(op) << ToString(op.error());
    return *ops::MakeInstance(*op, {}, "sm_90");
  }
  static cases::Case Sized(std::int64_t rows, std::int64_t columns) {
    cases::Case value;
    value.axes = {{"rows", rows}, {"columns", columns}};
    value.seed = 5;
    return value;
  }

  static inline bool served_ = false;
  Path folder_;
};

TEST_F(PythonReference, HonestKernelsPassAndOthersDoNot) {
  const ops::Instance instance = Loaded();
  ASSERT_TRUE(bench_->oracle().Check(instance));
  const cases::Case value = Sized(5, 100);
  const auto honest =
      bench_->Judge(instance, Kernel("sum += expf((x[i] - largest) * scale);"), kPlan, value);
  ASSERT_TRUE(honest) << ToString(honest.error());
  EXPECT_TRUE(honest->numeric.empty() && honest->precision.empty());
  const auto cheap = bench_->Judge(
      instance, Kernel("sum += __expf((x[i] - largest) * scale) * 1.0001f;"), kPlan, value);
  ASSERT_TRUE(cheap) << ToString(cheap.error());
  EXPECT_FALSE(cheap->numeric.empty() && cheap->precision.empty());
}

TEST_F(PythonReference, AnEstimateIsNeitherNothingNorEverything) {
  const ops::Instance instance = Loaded();
  const cases::Case value = Sized(4, 64);
  const auto inputs = bench_->oracle().Materialise(instance, value);
  ASSERT_TRUE(inputs);
  const auto truth = bench_->oracle().Evaluate(instance, value, *inputs);
  ASSERT_TRUE(truth) << ToString(truth.error());
  const oracle::OutputTruth& y = (*truth)->outputs.find("y")->second;
  for (std::size_t i = 0; i < y.value.size(); ++i) {
    EXPECT_GT(y.allowance[i], 1e-7 * y.value[i]);
    EXPECT_LT(y.allowance[i], 1e-4 * y.value[i]);
  }
}

TEST_F(PythonReference, WhatItDoesWrongIsTheOpsFault) {
  const cases::Case value = Sized(2, 8);
  for (const auto& [function, said] :
       {std::pair("nothing", "there is no function 'nothing'"),
        std::pair("wrong_shape", "has 8 elements; the op says 16")}) {
    Use(function);
    const ops::Instance instance = Loaded();
    const auto inputs = bench_->oracle().Materialise(instance, value);
    ASSERT_TRUE(inputs);
    const auto truth = bench_->oracle().Evaluate(instance, value, *inputs);
    ASSERT_FALSE(truth);
    EXPECT_THAT(truth.error().message, HasSubstr(said));
  }
}

TEST_F(PythonReference, GivesNoTruthOfSingleElements) {
  const ops::Instance instance = Loaded();
  const cases::Case value = Sized(2, 8);
  const auto inputs = bench_->oracle().Materialise(instance, value);
  ASSERT_TRUE(inputs);
  const auto points = bench_->oracle().EvaluateAt(instance, value, *inputs, {{"y", {0}}});
  ASSERT_FALSE(points);
  EXPECT_EQ(points.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace assay::importers
