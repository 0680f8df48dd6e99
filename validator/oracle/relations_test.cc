// Relations at work: kernels that are right in ways of their own, and twins that are wrong, compiled,
// run on the emulator and compared.
#include "validator/oracle/relations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "ops/test_folder.h"
#include "validator/oracle/testing/bench_test.h"
#include "validator/oracle/truth_source.h"

namespace assay::oracle {
namespace {

using ::testing::HasSubstr;

std::string PlanOf(const std::string& entry, const std::string& threads, const std::string& args,
                   const std::string& workspace = "") {
  return fmt::format(
      R"json({{"schema": "assay.launch/1", "kernels": [
  {{"entry": "{}", "grid": ["ceil_div({}, 32)"], "block": [32], "args": [{}]}}]{}}})json",
      entry, threads, args, workspace);
}

/// A text with one piece replaced.
std::string With(std::string_view text, std::string_view from, std::string_view to) {
  std::string changed(text);
  const auto at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  changed.replace(at, from.size(), to);
  return changed;
}

class Relations : public BenchTest<> {
 protected:
  ops::Instance Loaded(std::string_view op, std::string_view reference, std::string_view plan) {
    folder_.Write("op.json", op);
    folder_.Write("reference.cu", reference);
    folder_.Write("reference.json", plan);
    auto loaded = ops::LoadOp(folder_.path());
    EXPECT_TRUE(loaded.has_value()) << ToString(loaded.error());
    return *ops::MakeInstance(*std::move(loaded), {}, "sm_90");
  }
  static ops::Instance Shipped(const char* name, const char* type) {
    auto op = ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / name);
    EXPECT_TRUE(op.has_value()) << ToString(op.error());
    return *ops::MakeInstance(*std::move(op), {{"T", type}}, "sm_90");
  }
  /// What is wrong with a kernel: "numeric: ...", "precision: ...", or nothing.
  static std::string Said(const ops::Instance& instance, const std::string& kernel,
                          const std::string& plan, const cases::Case& value) {
    const auto result = bench_->Judge(instance, kernel, plan, value);
    if (!result) return "error: " + ToString(result.error());
    if (!result->numeric.empty()) return "numeric: " + result->numeric[0].message;
    return result->precision.empty() ? "" : "precision: " + result->precision[0].message;
  }

  ops::TestFolder folder_{"relations-test"};
};

// ---- a choice, and what follows from it

constexpr std::string_view kNearestOp = R"({
  "schema": "assay.op/1", "name": "nearest", "summary": "The nearest code of each row, and its place.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 64}, "codes": {"type": "var", "min": 1, "max": 64},
    "dim": {"type": "var", "min": 1, "max": 512}},
  "inputs": {"x": {"shape": ["rows", "dim"], "dtype": "f32"}, "code": {"shape": ["codes", "dim"], "dtype": "f32"}},
  "outputs": {
    "index": {"shape": ["rows"], "dtype": "i32", "relation": {"kind": "choice", "scores": "distance", "best": "smallest"}},
    "y": {"shape": ["rows", "dim"], "dtype": "f32", "relation": "exact"},
    "distance": {"shape": ["rows", "codes"], "hidden": true}},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})";
constexpr std::string_view kNearestReference = R"(#include "assay/reference.cuh"
__global__ void distances(const float* x, const float* code, Out<double>* distance, int64 rows, int64 codes, int64 dim) {
  const int64 i = thread_index();
  if (i >= rows * codes) return;
  Real sum = 0;
  for (int64 d = 0; d < dim; ++d) {
    const Real off = Real(x[i / codes * dim + d]) - Real(code[i % codes * dim + d]);
    sum += off * off;
  }
  distance[i] = sum;
}
__global__ void gather(const float* code, const int* index, Out<float>* y, int64 rows, int64 dim) {
  const int64 i = thread_index();
  if (i < rows * dim) y[i] = Real(code[index[i / dim] * dim + i % dim]);
})";
constexpr std::string_view kNearestPlan = R"json({"schema": "assay.launch/1", "kernels": [
  {"entry": "distances", "grid": ["ceil_div(rows * codes, 32)"], "block": [32], "args": ["x", "code", "distance", "rows", "codes", "dim"]},
  {"entry": "gather", "grid": ["ceil_div(rows * dim, 32)"], "block": [32], "args": ["code", "index", "y", "rows", "dim"]}]})json";
constexpr std::string_view kNearestKernel = R"(
extern "C" __global__ void nearest(const float* x, const float* code, int* index, float* y, long long rows,
                                   long long codes, long long dim) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= rows) return;
  float least = 0.0f;
  long long best = -1;
  for (long long c = 0; c < codes; ++c) {
    float sum = 0.0f;
    for (long long d = 0; d < dim; ++d) {
      const float off = x[row * dim + d] - code[c * dim + d];
      sum += off * off;
    }
    if (best < 0 || sum < least) {
      best = c;
      least = sum;
    }
  }
  index[row] = int(best);
  for (long long d = 0; d < dim; ++d) y[row * dim + d] = code[best * dim + d];
})";
const std::string kNearestLaunch =
    PlanOf("nearest", "rows", R"("x", "code", "index", "y", "rows", "codes", "dim")");

cases::Case Random() {
  cases::Case value;
  value.axes = {{"rows", 9}, {"codes", 12}, {"dim", 40}};
  return value;
}
/// Codes on both sides of x, equally far in exact arithmetic.
cases::Case Tied() {
  cases::Case value;
  value.axes = {{"rows", 3}, {"codes", 4}, {"dim", 1}};
  value.profiles["x"] = {.kind = "literal", .parameters = {}, .literal = {0, 4, 8}};
  value.profiles["code"] = {.kind = "literal", .parameters = {}, .literal = {-2, 2, 6, 10}};
  return value;
}
/// Nearly: what f32 makes of the distances decides.
cases::Case NearlyTied() {
  cases::Case value;
  value.axes = {{"rows", 1}, {"codes", 2}, {"dim", 3}};
  value.profiles["x"] = {.kind = "literal", .parameters = {}, .literal = {0.1, 0.2, 0.3}};
  value.profiles["code"] = {
      .kind = "literal", .parameters = {}, .literal = {1.1, 1.2, 1.3, -0.9, -0.8, -0.7}};
  return value;
}

TEST_F(Relations, EachChoiceWithinTheErrorsIsRightWithWhatFollowsFromIt) {
  const ops::Instance instance = Loaded(kNearestOp, kNearestReference, kNearestPlan);
  // The last of equal ones; and sums from the other end, so that near ties fall otherwise.
  const std::string last = With(kNearestKernel, "sum < least", "sum <= least");
  const std::string backwards =
      With(kNearestKernel, "(long long d = 0; d < dim; ++d) {", "(long long d = dim; d-- > 0;) {");
  for (const cases::Case& value : {Random(), Tied(), NearlyTied()}) {
    for (const std::string& kernel : {std::string(kNearestKernel), last, backwards,
                                      With(backwards, "sum < least", "sum <= least")})
      EXPECT_EQ(Said(instance, kernel, kNearestLaunch, value), "");
  }
}

TEST_F(Relations, WhatFollowsIsHeldToTheCandidatesOwnChoice) {
  const ops::Instance instance = Loaded(kNearestOp, kNearestReference, kNearestPlan);
  // It names the last of equal codes and copies the first: each is right for another choice.
  const std::string torn = With(With(kNearestKernel, "if (best < 0 || sum < least) {",
                                     "if (c == 0 || sum < least) first = c;\n"
                                     "    if (best < 0 || sum <= least) {"),
                                "long long best = -1;", "long long best = -1, first = 0;");
  const std::string kernel = With(torn, "code[best * dim + d];", "code[first * dim + d];");
  EXPECT_EQ(Said(instance, kernel, kNearestLaunch, Random()), "");
  EXPECT_THAT(Said(instance, kernel, kNearestLaunch, Tied()),
              HasSubstr("numeric: y[0, 0] is -2, but the op defines 2"));
}

TEST_F(Relations, WrongChoicesAreRefuted) {
  const ops::Instance instance = Loaded(kNearestOp, kNearestReference, kNearestPlan);
  const auto said = [&](const std::string& kernel) {
    return Said(instance, kernel, kNearestLaunch, Random());
  };
  EXPECT_THAT(said(With(kNearestKernel, "sum < least", "sum > least")),
              AllOf(HasSubstr("index["), HasSubstr("which was not chosen, has")));
  EXPECT_THAT(said(With(kNearestKernel, "c < codes; ++c", "c < codes - 3; ++c")),
              HasSubstr("index["));
  EXPECT_THAT(said(With(kNearestKernel, "index[row] = int(best)", "index[row] = int(best) + 100")),
              HasSubstr("which is no index: there are 12 candidates"));
  // Distances in half the digits: far from wrong, and not within what f32 may do.
  const std::string narrow =
      With(kNearestKernel, "if (best < 0",
           "sum = __uint_as_float(__float_as_uint(sum) & 0xfff00000u);\n    if (best < 0");
  cases::Case near = NearlyTied();
  near.profiles["x"].literal = {0};
  near.profiles["code"].literal = {1, 1, 1.1, 1, 1, 1.09};
  EXPECT_EQ(Said(instance, std::string(kNearestKernel), kNearestLaunch, near), "");
  EXPECT_THAT(Said(instance, narrow, kNearestLaunch, near), HasSubstr("precision: index[0] is 0"));
}

// ---- the shipped router: several chosen, in order

TEST_F(Relations, ARouterMayBreakTiesAsItLikesButNotForgetWhoWasChosen) {
  const ops::Instance instance = Shipped("moe_router", "bf16");
  const std::string naive = *ReadFile(*instance.op.naive / "kernel.cu");
  const std::string plan = *ReadFile(*instance.op.naive / "launch.json");
  cases::Case value;
  value.axes = {{"tokens", 5}, {"hidden", 33}, {"experts", 40}, {"chosen", 6}};
  cases::Case equal = value;
  equal.profiles["weight"].kind = "constant";
  const std::string last = With(naive, "other < best", "other > best");
  for (const cases::Case& each : {value, equal}) {
    EXPECT_EQ(Said(instance, naive, plan, each), "");
    EXPECT_EQ(Said(instance, last, plan, each), "");
  }
  EXPECT_THAT(
      Said(instance, With(naive, "taken[best] = true;", "taken[best] = k > 0;"), plan, value),
      HasSubstr("which is chosen before"));
  // Shares over all experts and not over those chosen.
  EXPECT_THAT(
      Said(instance, With(naive, "- first) / total;", "- first) / (total + 1.0f);"), plan, value),
      HasSubstr("numeric: share["));
  // The last expert is never looked at.
  value.axes["experts"] = 8;
  EXPECT_EQ(Said(instance, naive, plan, value), "");
  EXPECT_THAT(
      Said(instance, With(naive, "int e = lane; e < experts", "int e = lane; e + 1 < experts"),
           plan, value),
      HasSubstr("expert["));
}

// ---- ties in any order

constexpr std::string_view kSortOp = R"({
  "schema": "assay.op/1", "name": "sort_rows", "summary": "Each row in ascending order, and where its elements come from.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 64}, "columns": {"type": "var", "min": 1, "max": 256}},
  "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "f32"}},
  "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "f32", "relation": "exact"},
    "from": {"shape": ["rows", "columns"], "dtype": "i32", "relation": {"kind": "unordered", "ties_of": "y"}}},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})";
constexpr std::string_view kSortReference = R"(#include "assay/reference.cuh"
__global__ void sort_rows(const float* x, Out<float>* y, Out<int>* from, int64 rows, int64 columns) {
  const int64 i = thread_index();
  if (i >= rows * columns) return;
  const float* row = x + i / columns * columns;
  const int64 at = i % columns;
  int64 rank = 0;
  for (int64 j = 0; j < columns; ++j) rank += row[j] < row[at] || (row[j] == row[at] && j < at);
  y[i / columns * columns + rank] = Real(row[at]);
  from[i / columns * columns + rank] = Real(at);
})";
constexpr std::string_view kSortKernel = R"(
extern "C" __global__ void sort_rows(const float* x, float* y, int* from, long long rows, long long columns) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i >= rows * columns) return;
  const float* row = x + i / columns * columns;
  const long long at = i % columns;
  long long rank = 0;
  for (long long j = 0; j < columns; ++j) rank += row[j] < row[at] || (row[j] == row[at] && j < at);
  y[i / columns * columns + rank] = row[at];
  from[i / columns * columns + rank] = int(at);
})";

TEST_F(Relations, TiesMayComeInAnyOrderAndNothingElse) {
  const std::string args = R"("x", "y", "from", "rows", "columns")";
  const std::string plan = PlanOf("sort_rows", "rows * columns", args);
  const ops::Instance instance = Loaded(kSortOp, kSortReference, plan);
  cases::Case value;
  value.axes = {{"rows", 3}, {"columns", 6}};
  value.profiles["x"] = {.kind = "literal",
                         .parameters = {},
                         .literal = {2, 1, 2, 2, 0, 1, 5, 5, 5, 5, 5, 5, 1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(Said(instance, std::string(kSortKernel), plan, value), "");
  EXPECT_EQ(Said(instance, With(kSortKernel, "j < at", "j > at"), plan, value), "");
  EXPECT_THAT(Said(instance, With(kSortKernel, "= int(at)", "= int(at / 2 * 2)"), plan, value),
              HasSubstr("numeric: from["));
  // Where the relation is left out, the reference's order is the only one.
  const ops::Instance strict =
      Loaded(With(kSortOp, R"(, "relation": {"kind": "unordered", "ties_of": "y"})", ""),
             kSortReference, plan);
  EXPECT_THAT(Said(strict, With(kSortKernel, "j < at", "j > at"), plan, value),
              HasSubstr("numeric: from["));
}

// ---- open values, padding, minus zero

constexpr std::string_view kPaddedOp = R"({
  "schema": "assay.op/1", "name": "padded", "summary": "Twice x, for as many elements of a row as it has.",
  "axes": {"rows": {"type": "var", "min": 1, "max": 64}, "columns": {"type": "var", "min": 1, "max": 256}},
  "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "f32"},
    "length": {"shape": ["rows"], "dtype": "i32", "domain": {"kind": "index", "of": "columns"}}},
  "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "f32", "relation": {"where": "valid", "negative_zero": "keep"}},
    "scratch": {"shape": ["rows"], "dtype": "f32", "relation": "any"},
    "valid": {"shape": ["rows", "columns"], "hidden": true}},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})";
constexpr std::string_view kPaddedReference = R"(#include "assay/reference.cuh"
__global__ void padded(const float* x, const int* length, Out<float>* y, Out<float>* scratch, Out<double>* valid,
                       int64 rows, int64 columns) {
  const int64 i = thread_index();
  if (i < rows) scratch[i] = Real(0);
  if (i >= rows * columns) return;
  y[i] = Real(x[i]) * Real(2);
  valid[i] = Real(i % columns < length[i / columns] ? 1 : 0);
})";
constexpr std::string_view kPaddedKernel = R"(
extern "C" __global__ void padded(const float* x, const int* length, float* y, float* scratch, long long rows,
                                  long long columns) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i < rows) scratch[i] = float(i) * 7.0f;
  if (i >= rows * columns) return;
  y[i] = i % columns < length[i / columns] ? x[i] * 2.0f : 12345.0f;
})";

TEST_F(Relations, OpenValuesAreNotComparedAndOthersAre) {
  const std::string launch =
      PlanOf("padded", "rows * columns", R"("x", "length", "y", "scratch", "rows", "columns")");
  const ops::Instance instance =
      Loaded(kPaddedOp, kPaddedReference,
             PlanOf("padded", "rows * columns",
                    R"("x", "length", "y", "scratch", "valid", "rows", "columns")"));
  cases::Case value;
  value.axes = {{"rows", 5}, {"columns", 20}};
  value.profiles["x"] = {.kind = "literal", .parameters = {}, .literal = {-0.0, 1, 2, 3, -4}};
  EXPECT_EQ(Said(instance, std::string(kPaddedKernel), launch, value), "");
  EXPECT_THAT(
      Said(instance, With(kPaddedKernel, "< length[i / columns]", "< length[i / columns] - 1"),
           launch, value),
      HasSubstr("numeric: y["));
  EXPECT_THAT(
      Said(instance, With(kPaddedKernel, "x[i] * 2.0f", "x[i] * 2.0f + 0.0f"), launch, value),
      HasSubstr("is 0, but the op defines -0"));
}

// ---- tensors that are overwritten

TEST_F(Relations, AnOptimizerOverwritesItsStateOnceAndAllOfIt) {
  for (const char* type : {"bf16", "f32"}) {
    const ops::Instance instance = Shipped("adamw", type);
    const std::string naive = *ReadFile(*instance.op.naive / "kernel.cu");
    const std::string plan = *ReadFile(*instance.op.naive / "launch.json");
    cases::Case value;
    value.axes = {{"n", 700}};
    const auto said = [&](const std::string& kernel) {
      return Said(instance, kernel, plan, value);
    };
    EXPECT_EQ(said(naive), "");
    // In another order, with factors drawn together.
    EXPECT_EQ(said(With(naive, "p - rate * decay * p - rate * (first / correction1) / (",
                        "fmaf(-rate * decay, p, p) - (rate / correction1) * first / (")),
              "");
    EXPECT_THAT(said(With(naive, "  m[i] = first;\n", "")), HasSubstr("numeric: m_out["));
    EXPECT_THAT(said(With(naive, "v[i] = second;", "v[i] = g;")), HasSubstr("v_out["));
    // It reads what it has just written.
    EXPECT_THAT(said(With(naive, "(first / correction1)",
                          "((beta1 * m[i] + (1.0f - beta1) * g) / correction1)")),
                HasSubstr("param_out["));
    EXPECT_THAT(said(With(naive, "if (i >= n) return;", "if (i >= n - 1) return;")),
                HasSubstr("_out[699]"));
  }
}

// ---- scalars of every kind, and data narrower than a byte

TEST_F(Relations, ScalarsOfEveryTypeArrive) {
  const std::string args = R"("x", "a", "b", "c", "d", "e", "f", "y", "n")";
  const std::string plan = PlanOf("mixed", "n", args);
  const ops::Instance instance = Loaded(
      R"({"schema": "assay.op/1", "name": "mixed", "axes": {"n": {"type": "var", "min": 1, "max": 64}},
  "inputs": {"x": {"shape": ["n"], "dtype": "f32"},
    "a": {"shape": null, "dtype": "i32", "domain": {"kind": "range", "low": -1000000, "high": 1000000}},
    "b": {"shape": null, "dtype": "u8"}, "c": {"shape": null, "dtype": "bool"},
    "d": {"shape": null, "dtype": "f64", "domain": {"kind": "range", "low": 1e-12, "high": 1e-5}},
    "e": {"shape": null, "dtype": "bf16"}, "f": {"shape": null, "dtype": "i64", "domain": {"kind": "index", "of": "n"}}},
  "outputs": {"y": {"shape": ["n"], "dtype": "f32"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})",
      R"(#include "assay/reference.cuh"
__global__ void mixed(const float* x, int a, unsigned char b, bool c, double d, assay::bf16 e, int64 f, Out<float>* y, int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  const Real big = Real(x[f]) * Real(int(b)) + Real(e);
  y[i] = (c ? big : -big) + Real(a) + Real(x[i]) / (Real(x[i]) * Real(x[i]) + Real(d));
})",
      plan);
  const std::string kernel = R"(#include <cuda_bf16.h>
extern "C" __global__ void mixed(const float* x, int a, unsigned char b, bool c, double d, __nv_bfloat16 e, long long f,
                                 float* y, long long n) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i >= n) return;
  const float big = x[f] * float(b) + float(e);
  y[i] = (c ? big : -big) + float(a) + x[i] / (x[i] * x[i] + float(d));
})";
  std::set<bool> answers;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    cases::Case value;
    value.axes = {{"n", 20}};
    value.seed = seed;
    EXPECT_EQ(Said(instance, kernel, plan, value), "");
    EXPECT_THAT(Said(instance, With(kernel, "float(a)", "float(a + 1)"), plan, value),
                HasSubstr("y["));
    answers.insert(Said(instance, With(kernel, "c ? big : -big", "big"), plan, value).empty());
  }
  EXPECT_EQ(answers.size(), 2u);  // some seeds say true
}

TEST_F(Relations, PackedFourBitWeightsAreReadOutOfBytes) {
  const std::string args = R"("w", "scale", "x", "y", "n", "k")";
  const std::string plan = PlanOf("gemv", "n", args);
  const ops::Instance instance = Loaded(
      R"({"schema": "assay.op/1", "name": "gemv", "axes": {"n": {"type": "var", "min": 1, "max": 64},
    "k": {"type": "var", "min": 32, "max": 512}}, "constraints": ["k % 32 == 0"],
  "inputs": {"w": {"shape": ["n", "k / 2"], "dtype": "u8"},
    "scale": {"shape": ["n", "k / 32"], "dtype": "u8", "domain": {"kind": "range", "low": 117, "high": 137}},
    "x": {"shape": ["k"], "dtype": "bf16"}},
  "outputs": {"y": {"shape": ["n"], "dtype": "f32"}},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})",
      R"(#include "assay/reference.cuh"
__device__ double e2m1(int bits) {
  const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return bits & 8 ? -values[bits & 7] : values[bits & 7];
}
__global__ void gemv(const unsigned char* w, const unsigned char* scale, const assay::bf16* x, Out<float>* y, int64 n, int64 k) {
  const int64 row = thread_index();
  if (row >= n) return;
  Real sum = 0;
  for (int64 j = 0; j < k; ++j) {
    const int bits = w[row * (k / 2) + j / 2] >> 4 * (j % 2) & 15;
    sum += Real(e2m1(bits)) * Real(assay::power_of_two(scale[row * (k / 32) + j / 32] - 127)) * Real(x[j]);
  }
  y[row] = sum;
})",
      plan);
  const std::string kernel = R"(#include <cuda_bf16.h>
extern "C" __global__ void gemv(const unsigned char* w, const unsigned char* scale, const __nv_bfloat16* x, float* y,
                                long long n, long long k) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= n) return;
  float sum = 0.0f;
  for (long long block = 0; block < k / 32; ++block) {
    float part = 0.0f;
    for (long long j = block * 32; j < block * 32 + 32; ++j) {
      const int bits = w[row * (k / 2) + j / 2] >> 4 * (j % 2) & 15;
      const int e = (bits >> 1) & 3, m = bits & 1;
      const float value = e == 0 ? 0.5f * m : (1.0f + 0.5f * m) * (1 << (e - 1));
      part += (bits & 8 ? -value : value) * float(x[j]);
    }
    sum += part * exp2f(scale[row * (k / 32) + block] - 127.0f);
  }
  y[row] = sum;
})";
  cases::Case value;
  value.axes = {{"n", 9}, {"k", 96}};
  EXPECT_EQ(Said(instance, kernel, plan, value), "");
  EXPECT_THAT(Said(instance, With(kernel, "4 * (j % 2)", "4 * (1 - j % 2)"), plan, value),
              HasSubstr("numeric: y["));
  EXPECT_THAT(Said(instance, With(kernel, "- 127.0f", "- 128.0f"), plan, value),
              HasSubstr("numeric: y["));
  EXPECT_THAT(Said(instance, With(kernel, "(bits & 8 ? -value : value)", "value"), plan, value),
              HasSubstr("numeric: y["));
}

// ---- rows of lengths that come from values

TEST_F(Relations, RaggedRowsAreOffsetsThatAGeneratorMakesFit) {
  folder_.Write("generator.cu", R"(#include "assay/reference.cuh"
__global__ void cut(const float* share, Out<int>* offsets, int64 batch, int64 total) {
  const int64 row = thread_index();
  if (row > batch) return;
  double before = 0, all = 0;
  for (int64 b = 0; b < batch; ++b) {
    if (b < row) before += share[b];
    all += share[b];
  }
  offsets[row] = Real(int64(double(total) * before / all));
})");
  folder_.Write("generator.json",
                PlanOf("cut", "batch + 1", R"("share", "offsets", "batch", "total")"));
  const std::string plan = PlanOf("sums", "batch", R"("x", "offsets", "y", "batch")");
  const ops::Instance instance = Loaded(
      R"({"schema": "assay.op/1", "name": "sums", "axes": {"batch": {"type": "var", "min": 1, "max": 64},
    "total": {"type": "var", "min": 1, "max": 4096}},
  "inputs": {"x": {"shape": ["total"], "dtype": "f32"},
    "share": {"shape": ["batch"], "dtype": "f32", "domain": {"kind": "range", "low": 0.001, "high": 1}},
    "offsets": {"shape": ["batch + 1"], "dtype": "i32", "domain": {"kind": "generated"}}},
  "outputs": {"y": {"shape": ["batch"], "dtype": "f32"}},
  "generator": {"source": "generator.cu", "launch": "generator.json"},
  "reference": {"source": "reference.cu", "launch": "reference.json"}})",
      R"(#include "assay/reference.cuh"
__global__ void sums(const float* x, const int* offsets, Out<float>* y, int64 batch) {
  const int64 row = thread_index();
  if (row >= batch) return;
  Real sum = 0;
  for (int64 i = offsets[row]; i < offsets[row + 1]; ++i) sum += Real(x[i]);
  y[row] = sum;
})",
      plan);
  const std::string kernel = R"(
extern "C" __global__ void sums(const float* x, const int* offsets, float* y, long long batch) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= batch) return;
  float sum = 0.0f;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += x[i];
  y[row] = sum;
})";
  cases::Case value;
  value.axes = {{"batch", 7}, {"total", 90}};
  EXPECT_EQ(Said(instance, kernel, plan, value), "");
  EXPECT_THAT(Said(instance, With(kernel, "offsets[row + 1]", "offsets[row + 1] - 1"), plan, value),
              HasSubstr("numeric: y["));
  value.axes = {{"batch", 40}, {"total", 5}};  // most rows are empty
  EXPECT_EQ(Said(instance, kernel, plan, value), "");
}

// ---- where truths come from

/// Twice x, within a tenth.
class TwiceSource final : public TruthSource {
 public:
  std::string_view kind() const override { return "table"; }
  Standing standing() const override { return Standing::kEstimated; }
  Status Check(const ops::Instance&) override { return {}; }
  Result<Cells> Run(const ops::Instance&, const NumberType&, const ops::AxisValues&,
                    const TensorMap& inputs) override {
    const Tensor& x = inputs.find("x")->second;
    Shape shape = x.shape;
    shape.push_back(6);
    ASSAY_TRY(Tensor cells, Tensor::Create(DType::kF64, std::move(shape)));
    for (std::int64_t i = 0; i < x.elements; ++i) {
      cells.Set(6 * i, 2 * x.At(i));
      cells.Set(6 * i + 1, 0.1);
      cells.Set(6 * i + 2, 0.1);
    }
    Cells all;
    all.emplace("y", std::move(cells));
    return all;
  }
  Result<Cells> RunAt(const ops::Instance&, const NumberType&, const ops::AxisValues&,
                      const TensorMap&, const Wanted&) override {
    return Fail(ErrorKind::kUnsupported, "whole truths only", "table");
  }
  Result<Cells> RunSlice(const ops::Instance&, const NumberType&, const ops::AxisValues&,
                         const TensorMap&, std::uint64_t, const PartEffort&, Wanted&) override {
    return Fail(ErrorKind::kUnsupported, "whole truths only", "table");
  }
};

TEST_F(Relations, TruthsOfAnotherKindComeFromTheSourceThatServesIt) {
  const std::string plan = PlanOf("twice", "n", R"("x", "y", "n")");
  ops::Instance instance = Loaded(
      R"({"schema": "assay.op/1", "name": "twice", "axes": {"n": {"type": "var", "min": 1, "max": 64}},
  "inputs": {"x": {"shape": ["n"], "dtype": "f32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "f32"}},
  "reference": {"kind": "cuda", "source": "reference.cu", "launch": "reference.json"}})",
      "no CUDA at all", plan);
  EXPECT_EQ(instance.op.truth, "cuda");
  instance.op.truth = "table";
  const auto kernel = [](const std::string& value) {
    return R"(extern "C" __global__ void twice(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  if (i < n) y[i] = )" +
           value + ";\n}\n";
  };
  cases::Case value;
  value.axes = {{"n", 20}};
  EXPECT_THAT(Said(instance, kernel("2.0f * x[i]"), plan, value),
              HasSubstr("nothing here runs references of the kind 'table'"));
  bench_->oracle().Serve(std::make_unique<TwiceSource>());
  EXPECT_TRUE(bench_->oracle().Check(instance).has_value());
  EXPECT_EQ(Said(instance, kernel("2.0f * x[i] + 0.09f"), plan, value), "");
  EXPECT_THAT(Said(instance, kernel("3.0f * x[i]"), plan, value), HasSubstr("numeric: y["));
}

}  // namespace
}  // namespace assay::oracle
