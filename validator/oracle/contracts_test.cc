// What contracts say beyond the accumulator, with kernels that keep to it and twins that do not:
// the order of additions, 8-bit outputs, and values at the ends of the formats.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "base/rng.h"
#include "validator/oracle/testing/bench_test.h"

namespace assay::oracle {
namespace {

using ::testing::HasSubstr;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Contracts : public BenchTest<> {
 protected:
  void SetUp() override {
    folder_ = Path(::testing::TempDir()) /
              fmt::format("assay_contracts_{}_{}", ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  static std::string Launch(const std::string& entry, const std::string& rows,
                            const std::string& args) {
    const std::string grid = "ceil_div(" + rows + ", 32)";
    return R"({"schema": "assay.launch/1", "kernels": [{"entry": ")" + entry + R"(", "grid": [")" +
           grid + R"("], "block": [32], "args": [)" + args + "]}]}";
  }
  // Findings of a kernel on inputs that `change` may touch.
  static Comparison Judge(
      const ops::Instance& instance, const std::string& kernel, const std::string& launch,
      const cases::Case& value, const std::function<void(TensorMap&)>& change = [](TensorMap&) {}) {
    cases::Materialised inputs = *cases::Materialise(instance, value);
    change(inputs.inputs);
    const auto truth = bench_->oracle().Evaluate(instance, value, inputs);
    EXPECT_TRUE(truth.has_value()) << ToString(truth.error());
    const auto outputs = bench_->Outputs(instance, kernel, launch, inputs);
    EXPECT_TRUE(outputs.has_value()) << ToString(outputs.error());
    if (!truth || !outputs) return {};
    return Compare(instance, **truth, value, inputs, *outputs);
  }
  static std::string Said(const Comparison& result) {
    if (!result.numeric.empty()) return result.numeric[0].message + "; " + result.numeric[0].cause;
    return result.precision.empty() ? "" : result.precision[0].message;
  }

  Path folder_;
};

// ---- the order of additions

constexpr const char* kDotOp =
    R"({"schema": "assay.op/1", "name": "dot", "summary": "Row-wise dot.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 1024}, "columns": {"type": "var", "min": 1, "max": 1024}},
  "dtypes": {"T": ["f32", "bf16"]},
  "inputs": {"a": {"shape": ["rows", "columns"], "dtype": "T"}, "b": {"shape": ["rows", "columns"], "dtype": "T"}},
  "outputs": {"y": {"shape": ["rows"], "dtype": "T"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"},
  "precision": {"accumulate": "f32", "reassociation": REASSOCIATION}})";
constexpr const char* kDotReference = R"(#include "assay/reference.cuh"
using T = ASSAY_T;
__global__ void dot(const T* a, const T* b, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = thread_index();
  if (row >= rows) return;
  Real sum = 0;
  for (int64 j = 0; j < columns; ++j) sum += Real(a[row * columns + j]) * Real(b[row * columns + j]);
  y[row] = sum;
})";
std::string DotKernel(const std::string& loop) {
  return R"(#include <cuda_bf16.h>
using T = ASSAY_T;
extern "C" __global__ void dot(const T* a, const T* b, T* y, long long rows, long long columns) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= rows) return;
  const auto x = [&](long long j) { return float(a[row * columns + j]); };
  const auto z = [&](long long j) { return float(b[row * columns + j]); };
  float sum = 0.0f;
)" + loop +
         "  y[row] = T(sum);\n}\n";
}
constexpr const char* kInOrder = "for (long long j = 0; j < columns; ++j) sum += x(j) * z(j);\n";
constexpr const char* kSeparate =
    "for (long long j = 0; j < columns; ++j) sum = __fadd_rn(sum, __fmul_rn(x(j), z(j)));\n";
constexpr const char* kReversed = "for (long long j = columns; j-- > 0;) sum += x(j) * z(j);\n";
constexpr const char* kTwoSums =
    "float other = 0.0f;\n"
    "for (long long j = 0; j < columns; ++j) (j % 2 == 0 ? sum : other) += x(j) * z(j);\n"
    "sum += other;\n";

TEST_F(Contracts, AForbiddenReassociationIsRefutedAndAnAllowedOneIsNot) {
  const std::string args = R"("a", "b", "y", "rows", "columns")";
  Write("reference.cu", kDotReference);
  Write("reference.json", Launch("dot", "rows", args));
  for (const bool allowed : {false, true}) {
    std::string text = kDotOp;
    text.replace(text.find("REASSOCIATION"), 13, allowed ? "true" : "false");
    Write("op.json", text);
    const auto op = ops::LoadOp(folder_);
    ASSERT_TRUE(op.has_value()) << ToString(op.error());
    const ops::Instance instance = *ops::MakeInstance(*op, {{"T", "f32"}}, "sm_90");
    cases::Case value;
    value.axes = {{"rows", 40}, {"columns", 200}};
    const auto judged = [&](const char* loop) {
      return Said(Judge(instance, DotKernel(loop), Launch("dot", "rows", args), value));
    };
    EXPECT_EQ(judged(kInOrder), "");
    EXPECT_EQ(judged(kSeparate), "");
    for (const char* loop : {kReversed, kTwoSums}) {
      if (allowed) {
        EXPECT_EQ(judged(loop), "");
      } else {
        EXPECT_THAT(judged(loop), HasSubstr("the reference's order"));
      }
    }
  }
}

TEST_F(Contracts, FunctionsMayDifferWhereTheOrderIsFixed) {
  ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops/softmax");
  op.contract.reassociation = false;
  op.digest += " in order";
  const Path corpus = Path(ASSAY_SOURCE_DIR) / "corpus/precision/softmax/honest";
  cases::Case value;
  value.axes = {{"rows", 20}, {"columns", 150}};
  for (const std::string type : {"bf16", "f16", "f32"}) {
    const ops::Instance instance = *ops::MakeInstance(op, {{"T", type}}, "sm_90");
    for (const char* variant : {"sequential", "fast_exp"}) {
      EXPECT_EQ(Said(Judge(instance, *ReadFile(corpus / variant / "kernel.cu"),
                           *ReadFile(corpus / variant / "launch.json"), value)),
                "")
          << variant << " " << type;
    }
  }
}

// ---- 8-bit outputs

constexpr const char* kQuantiseOp =
    R"({"schema": "assay.op/1", "name": "quantise", "summary": "To 8 bits.",
  "axes": {"n": {"type": "var", "min": 1, "max": 100000}},
  "dtypes": {"Q": ["f8e4m3", "f8e5m2"]},
  "inputs": {"x": {"shape": ["n"], "dtype": "f32"}, "scale": {"shape": null, "dtype": "f32", "domain": {"kind": "choice", "values": [3.7, 40.0]}}},
  "outputs": {"y": {"shape": ["n"], "dtype": "Q"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"},
  "precision": {"accumulate": "f32"}})";

TEST_F(Contracts, EightBitOutputsAreHeldToTheirRounding) {
  const std::string args = R"("x", "scale", "y", "n")";
  Write("op.json", kQuantiseOp);
  Write("reference.cu", R"(#include "assay/reference.cuh"
using Q = ASSAY_Q;
__global__ void quantise(const float* x, float scale, Out<Q>* y, int64 n) {
  const int64 i = thread_index();
  if (i < n) y[i] = round_to<Q>(Real(x[i]) * Real(scale));
})");
  Write("reference.json", Launch("quantise", "n", args));
  const auto op = ops::LoadOp(folder_);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  const auto kernel = [](const std::string& value) {
    return R"(#include <cuda_fp16.h>
#include <cuda_fp8.h>
using Q = ASSAY_Q;
extern "C" __global__ void quantise(const float* x, float scale, Q* y, long long n) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i < n) y[i] = Q()" +
           value + ");\n}\n";
  };
  for (const std::string type : {"f8e4m3", "f8e5m2"}) {
    const ops::Instance instance = *ops::MakeInstance(*op, {{"Q", type}}, "sm_90");
    cases::Case value;
    value.axes = {{"n", 20000}};
    // Some values are far beyond the format's largest.
    const auto widen = [](TensorMap& inputs) {
      Tensor& x = inputs.find("x")->second;
      for (std::int64_t i = 0; i < x.elements; i += 7) x.Set(i, x.At(i) * 1e4);
    };
    const auto judged = [&](const char* text) {
      return Said(Judge(instance, kernel(text), Launch("quantise", "n", args), value, widen));
    };
    EXPECT_EQ(judged("x[i] * scale"), "") << type;
    EXPECT_NE(judged("x[i] * scale * 1.01f"), "") << type;
    // Twice rounded; the detour also ends at 65504, which saturates all the same.
    EXPECT_NE(judged("float(__half(x[i] * scale))"), "") << type;
    EXPECT_NE(judged("x[i] * scale * 0.97f"), "") << type;
  }
}

// ---- steps, and terms that come again

constexpr const char* kStepOp =
    R"({"schema": "assay.op/1", "name": "whole", "summary": "To whole numbers.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 4096}},
  "inputs": {"x": {"shape": ["rows", 1], "dtype": "f32"}, "scale": {"shape": ["rows"], "dtype": "f32"}},
  "outputs": {"y": {"shape": ["rows", 1], "dtype": "i8", "relation": "allowance"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"},
  "precision": {"accumulate": "f32"}})";

TEST_F(Contracts, BesideAStepBothIntegersAreHonestInARowOfOneToo) {
  const std::string args = R"("x", "scale", "y", "rows")";
  Write("op.json", kStepOp);
  Write("reference.cu", R"(#include "assay/reference.cuh"
__global__ void whole(const float* x, const float* scale, Out<signed char>* y, int64 rows) {
  const int64 i = thread_index();
  if (i < rows) y[i] = round(Real(x[i]) / (Real(scale[i]) + Real(0.1)));
})");
  Write("reference.json", Launch("whole", "rows", args));
  const auto op = ops::LoadOp(folder_);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  const ops::Instance instance = *ops::MakeInstance(*op, {}, "sm_90");
  const auto judged = [&](const std::string& rounding, float x, float scale) {
    const std::string kernel = R"(
extern "C" __global__ void whole(const float* x, const float* scale, signed char* y, long long rows) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i < rows) y[i] = )" + rounding +
                               R"((x[i] / (scale[i] + 0.1f));
})";
    cases::Case value;
    value.axes = {{"rows", 1}};
    value.seed = static_cast<std::uint64_t>(x);  // Truths are kept by case.
    return Said(
        Judge(instance, kernel, Launch("whole", "rows", args), value, [&](TensorMap& inputs) {
          inputs.find("x")->second.Set(0, x);
          inputs.find("scale")->second.Set(0, scale);
        }));
  };
  // In f32 the tenth is lost and the quotient 1.5; in FP64 it is less.
  EXPECT_EQ(judged("rintf", 4227858432.f, 2818572288.f), "");
  EXPECT_EQ(judged("floorf", 4227858432.f, 2818572288.f), "");
  // Off the step there is one answer.
  EXPECT_EQ(judged("rintf", 4.9f, 1.9f), "");
  EXPECT_NE(judged("ceilf", 4.9f, 1.9f), "") << "2.45 is 2";
  EXPECT_NE(judged("rintf", 5.2f, 1.9f) + judged("floorf", 5.2f, 1.9f), "") << "2.6 is 3";
}

constexpr const char* kGatherOp =
    R"({"schema": "assay.op/1", "name": "gather_sum", "summary": "Sums of values by number.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 64}, "terms": {"type": "var", "min": 1, "max": 8192}, "values": {"type": "var", "min": 1, "max": 64}},
  "inputs": {"v": {"shape": ["values"], "dtype": "f32"}, "numbers": {"shape": ["rows", "terms"], "dtype": "i32", "domain": {"kind": "index", "of": "values"}}},
  "outputs": {"y": {"shape": ["rows"], "dtype": "f32"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"},
  "precision": {"accumulate": "f32"}})";

TEST_F(Contracts, TermsThatIndicesBringAgainAreRoundedAlike) {
  const std::string args = R"("v", "numbers", "y", "rows", "terms", "values")";
  Write("op.json", kGatherOp);
  Write("reference.cu", R"(#include "assay/reference.cuh"
__global__ void gather_sum(const float* v, const int* numbers, Out<float>* y, int64 rows, int64 terms, int64 values) {
  const int64 i = thread_index();
  if (i >= rows) return;
  Real sum = 0;
  for (int64 k = 0; k < terms; ++k) sum += Real(v[numbers[i * terms + k]]);
  y[i] = sum;
})");
  Write("reference.json", Launch("gather_sum", "rows", args));
  const auto op = ops::LoadOp(folder_);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  const ops::Instance instance = *ops::MakeInstance(*op, {}, "sm_90");
  const auto judged = [&](const std::string& terms, std::uint64_t seed) {
    const std::string kernel = R"(
extern "C" __global__ void gather_sum(const float* v, const int* numbers, float* y, long long rows, long long terms, long long values) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i >= rows) return;
  float sum = 0;
  for (long long k = 0; k < )" +
                               terms + R"(; ++k) sum += v[numbers[i * terms + k]];
  y[i] = sum;
})";
    cases::Case value;
    value.axes = {{"rows", 2}, {"terms", 4000}, {"values", 48}};
    value.seed = seed;
    return Said(
        Judge(instance, kernel, Launch("gather_sum", "rows", args), value, [&](TensorMap& inputs) {
          Tensor& numbers = inputs.find("numbers")->second;
          for (std::int64_t k = 0; k < numbers.elements; ++k) numbers.Set(k, 3);
        }));
  };
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(judged("terms", seed), "") << "seed " << seed;
    EXPECT_NE(judged("terms - 2", seed), "") << "seed " << seed;
  }
}

// ---- the ends of the formats

std::string SumKernel(const std::string& term, const std::string& result = "T(sum)") {
  return R"(#include <cuda_bf16.h>
#include <cuda_fp16.h>
using T = ASSAY_T;
extern "C" __global__ void row_sum(const T* x, T* y, long long rows, long long columns) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j) {
    const float v = float(x[row * columns + j]);
    sum += )" +
         term + ";\n  }\n  y[row] = " + result + ";\n}\n";
}

struct Special {
  const char* name;
  std::function<double(std::int64_t column, double ordinary, DType type)> value;
  const char* wrong_term;  ///< A kernel that gets this row wrong, and no other in the list's test.
  const char* wrong_result;
};
std::vector<Special> Specials() {
  const auto at = [](std::int64_t column, double special) {
    return [=](std::int64_t j, double ordinary, DType) { return j == column ? special : ordinary; };
  };
  return {
      {"nan", at(3, std::nan("")), "v == v ? v : 0.0f", "T(sum)"},
      {"infinity", at(2, kInfinity), "fminf(v, 6.0e4f)", "T(sum)"},
      {"minus infinity", at(5, -kInfinity), "fmaxf(v, -6.0e4f)", "T(sum)"},
      {"denormals",
       [](std::int64_t, double ordinary, DType type) { return ordinary * MinNormal(type) / 16; },
       "fabsf(v) < 1.2e-38f || (sizeof(T) == 2 && fabsf(v) < 6.0e-5f) ? 0.0f : v", "T(sum)"},
      {"overflow at the edge",
       [](std::int64_t, double ordinary, DType type) {
         return type == DType::kF16 ? 2e4 + 1e3 * std::fabs(ordinary) : ordinary;
       },
       "v", "T(fminf(sum, 65504.0f))"},
      {"all equal", [](std::int64_t, double, DType) { return 0.7; }, "v * 1.01f", "T(sum)"},
      {"one outlier", at(4, 3e4), "fminf(v, 1.0e4f)", "T(sum)"},
      {"zeros", [](std::int64_t j, double, DType) { return j % 2 == 0 ? 0.0 : -0.0; }, "v + 1e-3f",
       "T(sum)"},
  };
}

TEST_F(Contracts, SpecialValuesPassInRightKernelsAndShowInWrongOnes) {
  const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops/row_sum");
  const std::string launch = Launch("row_sum", "rows", R"("x", "y", "rows", "columns")");
  std::uint64_t seed = 900;
  for (const std::string type : {"bf16", "f16", "f32"}) {
    const ops::Instance instance = *ops::MakeInstance(op, {{"T", type}}, "sm_90");
    for (const Special& special : Specials()) {
      cases::Case value;
      value.axes = {{"rows", 6}, {"columns", 40}};
      value.seed = ++seed;
      const auto change = [&](TensorMap& inputs) {
        Tensor& x = inputs.find("x")->second;
        for (std::int64_t i = 0; i < x.elements; ++i) {
          if (i / 40 % 2 == 0) x.Set(i, special.value(i % 40, x.At(i), x.dtype));
        }
      };
      EXPECT_EQ(Said(Judge(instance, SumKernel("v"), launch, value, change)), "")
          << special.name << " " << type;
      // Wider types overflow with their f32 accumulator: there, anything goes.
      if (special.name == std::string_view("overflow at the edge") && type != "f16") continue;
      // Those of f32 and bf16 may be flushed: atomic adds in f32 do.
      if (special.name == std::string_view("denormals") && type != "f16") continue;
      EXPECT_NE(Said(Judge(instance, SumKernel(special.wrong_term, special.wrong_result), launch,
                           value, change)),
                "")
          << special.name << " " << type;
    }
  }
}

// The same rows, through every op of the library that takes rows of floats: what its naive
// candidate makes of them is right.
TEST_F(Contracts, NaiveCandidatesTakeSpecialValuesAsTheirReferencesDo) {
  const std::vector<std::pair<const char*, ops::AxisValues>> kinds = {
      {"row_sum", {{"rows", 8}, {"columns", 24}}},
      {"softmax", {{"rows", 8}, {"columns", 24}}},
      {"cumsum", {{"rows", 8}, {"columns", 24}}},
      {"layer_norm", {{"tokens", 8}, {"hidden", 24}}},
      {"rms_norm", {{"tokens", 8}, {"hidden", 24}}},
      {"cross_entropy", {{"tokens", 8}, {"vocab", 24}}},
      {"gemm", {{"m", 8}, {"n", 5}, {"k", 24}}}};
  std::uint64_t seed = 5000;
  for (const auto& [name, axes] : kinds) {
    const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / name);
    for (const std::string type : {"bf16", "f16", "f32"}) {
      const ops::Instance instance = *ops::MakeInstance(op, {{"T", type}}, "sm_90");
      cases::Case value;
      value.axes = axes;
      value.seed = ++seed;
      const auto change = [&](TensorMap& inputs) {
        const std::vector<Special> specials = Specials();
        Tensor& x = inputs.find(op.inputs.front().name)->second;
        for (std::int64_t i = 0; i < x.elements; ++i) {
          const Special& special = specials[static_cast<std::size_t>(i / 24)];
          x.Set(i, special.value(i % 24, x.At(i), x.dtype));
        }
      };
      EXPECT_EQ(Said(Judge(instance, *ReadFile(*op.naive / "kernel.cu"),
                           *ReadFile(*op.naive / "launch.json"), value, change)),
                "")
          << name << " " << type;
    }
  }
}

}  // namespace
}  // namespace assay::oracle
