// Inputs that a generator makes, for real: compiled by NVRTC, run on the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/test_folder.h"
#include "validator/oracle/testing/bench_test.h"

namespace assay::oracle {
namespace {

using ::testing::HasSubstr;

class GeneratorTest : public BenchTest<> {
 protected:
  static ops::Instance Backward(const std::string& dtype) {
    const auto op = ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / "rms_norm_backward");
    return *ops::MakeInstance(*op, {{"T", dtype}}, "sm_90");
  }
  static cases::Case CaseOf(std::uint64_t seed) {
    cases::Case value;
    value.axes = {{"tokens", 5}, {"hidden", 7}};
    value.seed = seed;
    return value;
  }

  // An op whose i64 input `ends` holds the running sums of its input `lengths`.
  static ops::Instance Ragged(const ops::TestFolder& folder, const std::string& store) {
    folder.Write("op.json", R"({"schema": "assay.op/1", "name": "ragged", "summary": "Lengths.",
      "axes": {"n": {"type": "var", "min": 1, "max": 1024}},
      "inputs": {"lengths": {"shape": ["n"], "dtype": "i64", "domain": {"kind": "range", "low": 0, "high": 9}},
                 "ends": {"shape": ["n"], "dtype": "i64", "domain": {"kind": "generated"}}},
      "outputs": {"y": {"shape": ["n"], "dtype": "i64"}},
      "reference": {"source": "reference.cu", "launch": "reference.json"},
      "generator": {"source": "generator.cu", "launch": "generator.json"}})");
    folder.Write("reference.cu", "// not run");
    folder.Write("reference.json", ops::kAnyPlan);
    folder.Write("generator.cu", "#include \"assay/reference.cuh\"\n" + store);
    folder.Write("generator.json", R"({"schema": "assay.launch/1", "kernels": [
      {"entry": "sums", "grid": [1], "block": [1], "args": ["lengths", "ends", "n"]}]})");
    const auto op = ops::LoadOp(folder.path());
    EXPECT_TRUE(op.has_value()) << ToString(op.error());
    return *ops::MakeInstance(*op, {}, "sm_90");
  }
};

constexpr const char* kSums =
    "__global__ void sums(const int64* lengths, Out<int64>* ends, int64 n) {\n"
    "  Real sum = 0;\n"
    "  for (int64 i = 0; i < n; ++i) {\n"
    "    sum += Real(lengths[i]);\n"
    "    ends[i] = sum;\n"
    "  }\n"
    "}\n";

TEST_F(GeneratorTest, SavedStatisticsBelongToTheirRows) {
  for (const char* dtype : {"bf16", "f16", "f32"}) {
    const ops::Instance instance = Backward(dtype);
    const auto filled = bench_->oracle().Materialise(instance, CaseOf(3));
    ASSERT_TRUE(filled.has_value()) << ToString(filled.error());
    const Tensor& x = filled->inputs.at("x");
    const Tensor& rstd = filled->inputs.at("rstd");
    ASSERT_EQ(rstd.elements, 5);
    for (std::int64_t row = 0; row < 5; ++row) {
      double squares = 0;
      for (std::int64_t h = 0; h < 7; ++h) squares += x.At(row * 7 + h) * x.At(row * 7 + h);
      EXPECT_EQ(rstd.At(row), static_cast<float>(1 / std::sqrt(squares / 7 + double{1e-6f})))
          << dtype << " row " << row;
    }
  }
}

// Past what a generator can make whole: inputs that are zero between their ends, and others.
TEST_F(GeneratorTest, HugeCasesAreMadeWhereAllBetweenTheEndsIsAlike) {
  const ops::Instance instance = Backward("bf16");
  cases::Case huge = CaseOf(3);
  huge.axes = {{"tokens", 1'048'000}, {"hidden", 2065}};
  for (const char* input : {"x", "grad_out", "weight"}) huge.profiles[input].kind = "ends";
  const auto filled = bench_->oracle().Materialise(instance, huge);
  ASSERT_TRUE(filled.has_value()) << ToString(filled.error());
  const Tensor& x = filled->inputs.at("x");
  const Tensor& rstd = filled->inputs.at("rstd");
  const std::int64_t hidden = 2065;
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{3}, std::int64_t{600'000},
                                 rstd.elements - 63, rstd.elements - 1}) {
    double squares = 0;
    for (std::int64_t h = 0; h < hidden; ++h)
      squares += x.At(row * hidden + h) * x.At(row * hidden + h);
    const auto mean = squares / static_cast<double>(hidden);
    EXPECT_EQ(rstd.At(row), static_cast<float>(1 / std::sqrt(mean + double{1e-6f}))) << row;
  }
  EXPECT_GT(rstd.At(600'000), 100 * rstd.At(0));
  // Of short rows many lie where inputs are not zero.
  cases::Case narrow = huge;
  narrow.axes = {{"tokens", 1'048'576}, {"hidden", 17}};
  const auto short_rows = bench_->oracle().Materialise(instance, narrow);
  ASSERT_TRUE(short_rows.has_value()) << ToString(short_rows.error());
  const Tensor& of_short = short_rows->inputs.at("rstd");
  for (const std::int64_t row : {std::int64_t{400}, of_short.elements - 7'000})
    EXPECT_LT(of_short.At(row), of_short.At(600'000) / 100) << row;
  // Where each takes long, few are computed, but none of both ends is left out.
  cases::Case wide = huge;
  wide.axes = {{"tokens", 262'146}, {"hidden", 16'384}};
  const auto few = bench_->oracle().Materialise(instance, wide);
  ASSERT_TRUE(few.has_value()) << ToString(few.error());
  const Tensor& of_few = few->inputs.at("rstd");
  for (const std::int64_t row : {std::int64_t{0}, of_few.elements - 8, of_few.elements - 1})
    EXPECT_LT(of_few.At(row), of_few.At(100'000) / 100) << row;
  EXPECT_EQ(of_few.At(1), of_few.At(100'000));
  huge.profiles["x"].kind = "normal";
  const auto refused = bench_->oracle().Materialise(instance, huge);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::kLimit);
}

TEST_F(GeneratorTest, FollowsTheCaseAndIsTheSameEveryTime) {
  const ops::Instance instance = Backward("f32");
  const auto first = bench_->oracle().Materialise(instance, CaseOf(3));
  const auto again = bench_->oracle().Materialise(instance, CaseOf(3));
  const auto other = bench_->oracle().Materialise(instance, CaseOf(4));
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(first->inputs.at("rstd").At(2), again->inputs.at("rstd").At(2));
  EXPECT_NE(first->inputs.at("rstd").At(2), other->inputs.at("rstd").At(2));
  // Spelled out and shrunk cases keep the correlation.
  const auto spelled = cases::SpellOut(instance, CaseOf(3));
  ASSERT_TRUE(spelled);
  EXPECT_FALSE(spelled->profiles.contains("rstd"));
  const auto same = bench_->oracle().Materialise(instance, *spelled);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(first->inputs.at("rstd").At(2), same->inputs.at("rstd").At(2));
}

TEST_F(GeneratorTest, WithoutAnExecutorThereAreNoInputs) {
  const ops::Instance instance = Backward("f32");
  const auto filled = cases::Materialise(instance, CaseOf(3));
  ASSERT_FALSE(filled.has_value());
  EXPECT_EQ(filled.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(ToString(filled.error()), HasSubstr("rstd"));
  cases::Case given = CaseOf(3);
  given.profiles["rstd"].kind = "zero";
  const auto refused = bench_->oracle().Materialise(instance, given);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(ToString(refused.error()), HasSubstr("is generated"));
}

TEST_F(GeneratorTest, MakesIntegers) {
  const ops::TestFolder folder("generator-integers");
  const ops::Instance instance = Ragged(folder, kSums);
  const auto filled = bench_->oracle().Materialise(
      instance, {.axes = {{"n", 20}}, .seed = 1, .profiles = {}, .origin = ""});
  ASSERT_TRUE(filled.has_value()) << ToString(filled.error());
  double sum = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    sum += filled->inputs.at("lengths").At(i);
    EXPECT_EQ(filled->inputs.at("ends").At(i), sum);
  }
  EXPECT_GT(sum, 0);
}

TEST_F(GeneratorTest, BrokenGeneratorsAreErrorsOfTheOp) {
  const std::string good = kSums;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const struct {
    std::string source, expected;
  } rows[] = {{with("Real sum", "Rael sum"), "does not compile"},
              {with("i < n; ++i", "i + 1 < n; ++i"), "unwritten"},
              {with("i < n; ++i", "i <= n; ++i"), "defect of its own"}};
  for (const auto& row : rows) {
    const ops::TestFolder folder("generator-broken");
    const auto filled = bench_->oracle().Materialise(
        Ragged(folder, row.source), {.axes = {{"n", 4}}, .seed = 1, .profiles = {}, .origin = ""});
    ASSERT_FALSE(filled.has_value()) << row.expected;
    EXPECT_THAT(ToString(filled.error()), HasSubstr(row.expected));
    EXPECT_THAT(ToString(filled.error()), HasSubstr("generator"));
  }
}

}  // namespace
}  // namespace assay::oracle
