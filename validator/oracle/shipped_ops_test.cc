// The library's references and naive candidates, for real: compiled by NVRTC, run on the emulator,
// compared.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/rng.h"
#include "validator/oracle/reference_run.h"
#include "validator/oracle/testing/bench_test.h"

namespace assay::oracle {
namespace {

struct Shape {
  const char* op;
  ops::AxisValues axes;
};

// Small, odd and one-element shapes.
std::vector<Shape> Shapes() {
  return {
      {"rms_norm", {{"tokens", 1}, {"hidden", 1}}},
      {"rms_norm", {{"tokens", 5}, {"hidden", 33}}},
      {"rms_norm", {{"tokens", 9}, {"hidden", 257}}},
      {"rms_norm_backward", {{"tokens", 1}, {"hidden", 1}}},
      {"rms_norm_backward", {{"tokens", 70}, {"hidden", 33}}},
      {"rms_norm_backward", {{"tokens", 7}, {"hidden", 150}}},
      {"rms_norm_backward", {{"tokens", 150}, {"hidden", 7}}},
      {"embedding_rmsnorm_backward", {{"tokens", 1}, {"hidden", 1}, {"vocab", 1}}},
      {"embedding_rmsnorm_backward", {{"tokens", 70}, {"hidden", 33}, {"vocab", 5}}},
      {"gemm", {{"m", 1}, {"n", 1}, {"k", 1}}},
      {"gemm", {{"m", 5}, {"n", 7}, {"k", 130}}},
      {"row_sum", {{"rows", 3}, {"columns", 1}}},
      {"row_sum", {{"rows", 6}, {"columns", 515}}},
      {"layer_norm", {{"tokens", 2}, {"hidden", 1}}},
      {"layer_norm", {{"tokens", 5}, {"hidden", 129}}},
      {"softmax", {{"rows", 2}, {"columns", 1}}},
      {"softmax", {{"rows", 5}, {"columns", 131}}},
      {"cross_entropy", {{"tokens", 1}, {"vocab", 1}}},
      {"cross_entropy", {{"tokens", 7}, {"vocab", 133}}},
      {"attention", {{"heads", 1}, {"queries", 1}, {"keys", 1}, {"dim", 1}}},
      {"attention", {{"heads", 2}, {"queries", 5}, {"keys", 37}, {"dim", 40}}},
      {"attention", {{"heads", 1}, {"queries", 3}, {"keys", 70}, {"dim", 5}}},
      {"attention", {{"heads", 2}, {"queries", 9}, {"keys", 70}, {"dim", 37}}},
      {"scatter_add", {{"tokens", 1}, {"hidden", 1}, {"rows", 3}}},
      {"scatter_add", {{"tokens", 90}, {"hidden", 17}, {"rows", 6}}},
      {"cumsum", {{"rows", 2}, {"columns", 1}}},
      {"cumsum", {{"rows", 3}, {"columns", 300}}},
      {"moe_router", {{"tokens", 1}, {"hidden", 1}, {"experts", 1}, {"chosen", 1}}},
      {"moe_router", {{"tokens", 6}, {"hidden", 40}, {"experts", 33}, {"chosen", 4}}},
      {"adamw", {{"n", 1}}},
      {"adamw", {{"n", 300}}},
  };
}

class ShippedReferences : public BenchTest<> {};
class ShippedOps : public BenchTest<::testing::TestWithParam<Shape>> {};

TEST_P(ShippedOps, NaiveCandidatesAreRight) {
  const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / GetParam().op);
  const std::string kernel = *ReadFile(*op.naive / "kernel.cu");
  const std::string launch = *ReadFile(*op.naive / "launch.json");
  for (const DType type : op.dtypes.at("T")) {
    const ops::Instance instance =
        *ops::MakeInstance(op, {{"T", std::string(Name(type))}}, "sm_90");
    for (const char* profile : {"normal", "constant", "integers"}) {
      cases::Case value;
      value.axes = GetParam().axes;
      value.seed = 7;
      for (const ops::TensorSpec& input : op.inputs) {
        if (IsFloat(instance.TypeOf(input)) && !input.is_scalar && !input.IsGenerated() &&
            std::string_view(profile) != "normal") {
          value.profiles[input.name].kind = profile;
        }
      }
      const auto result = bench_->Judge(instance, kernel, launch, value);
      ASSERT_TRUE(result.has_value())
          << instance.Id() << " " << profile << ": " << ToString(result.error());
      EXPECT_TRUE(result->numeric.empty())
          << instance.Id() << " " << profile << ": " << result->numeric[0].message;
      EXPECT_TRUE(result->precision.empty())
          << instance.Id() << " " << profile << ": " << result->precision[0].message;
    }
  }
}

std::string NameOf(const ::testing::TestParamInfo<Shape>& each) {
  return std::string(each.param.op) + "_" + std::to_string(each.index);
}

/// Notes which functions of the prelude the compiler did not inline.
class CallsOfReferences final : public engine::Compiler {
 public:
  explicit CallsOfReferences(engine::Compiler& compiler) : compiler_(compiler) {}
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    auto outcome = compiler_.Compile(request);
    if (!outcome || outcome->kernel.facts == nullptr) return outcome;
    ++compiled;
    for (const facts::Function& function : outcome->kernel.facts->functions) {
      for (const std::string& callee : function.calls) {
        if (callee.contains("5assay")) calls.insert(callee);
      }
    }
    return outcome;
  }

  int compiled = 0;
  std::set<std::string> calls;

 private:
  engine::Compiler& compiler_;
};

// A call costs the emulator what twenty instructions do, and passes numbers through local memory. An
// operator that calls itself, if only once, is enough: references then take four times as long.
TEST_F(ShippedReferences, AreInlinedAsAWhole) {
  CallsOfReferences compiler(bench_->compiler());
  LocalEngine engine;
  Oracle oracle(compiler, engine);
  const ops::Library library({Path(ASSAY_SOURCE_DIR) / "ops"});
  for (const ops::Library::Entry& entry : library.List()) {
    const ops::OpSpec op = *ops::LoadOp(entry.folder);
    EXPECT_TRUE(oracle.Check(*ops::MakeInstance(op, {}, "sm_90"))) << entry.name;
    EXPECT_TRUE(compiler.calls.empty()) << entry.name << ": " << *compiler.calls.begin();
    compiler.calls.clear();
  }
  EXPECT_GE(compiler.compiled, 11);
}

// Whether one thread has a row or the lanes of a warp share it, numbers are the same, and bounds within a
// factor of two: they are those of sums whose order does not matter, but for terms next to what a sum
// absorbs. Of five terms a lane the part that it has is no 32nd, least of the lane with the largest.
struct Rows {
  const char* op;
  const char* rows;
  ops::AxisValues others;
};

class SharedRows : public ShippedReferences {
 protected:
  /// The first `rows` of those that the cells or elements of a tensor have.
  static Tensor First(const Tensor& tensor, std::int64_t rows) {
    assay::Shape shape = tensor.shape;
    shape.front() = rows;
    Tensor some = *Tensor::Create(tensor.dtype, shape);
    std::memcpy(some.memory.bytes().data(), tensor.memory.bytes().data(),
                static_cast<std::size_t>(some.elements) * SizeOf(tensor.dtype));
    return some;
  }
  /// Bounds, the second and the third word of a cell, within `bounds` of each other.
  static void ExpectNear(const Tensor& got, const Tensor& wanted, const std::string& name,
                         double bounds = 1e-9) {
    ASSERT_EQ(got.elements, wanted.elements);
    const std::int64_t words = oracle::NumberType{}.CellWords();
    for (std::int64_t i = 0; i < got.elements; ++i) {
      const bool is_bound = i % words == 1 || i % words == 2;
      const double near = (is_bound ? bounds : 1e-9) * std::fabs(wanted.At(i)) + 1e-300;
      ASSERT_NEAR(got.At(i), wanted.At(i), near) << name << ", word " << i;
    }
  }
};

TEST_F(SharedRows, MeanTheSameAsRowsOfOneThread) {
  // Lanes share where there are few rows; with these there are too many.
  constexpr std::int64_t kFew = 12, kMany = 33;
  LocalEngine engine;
  ReferenceRunner runner(bench_->compiler(), engine);
  for (const Rows& each :
       {Rows{"softmax", "rows", {{"columns", 150}}},
        Rows{"cross_entropy", "tokens", {{"vocab", 150}}},
        Rows{"row_sum", "rows", {{"columns", 300}}}, Rows{"rms_norm", "tokens", {{"hidden", 300}}},
        Rows{"layer_norm", "tokens", {{"hidden", 300}}}}) {
    const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / each.op);
    const ops::Instance instance = *ops::MakeInstance(op, {{"T", "f16"}}, "sm_90");
    ops::AxisValues axes = each.others;
    axes[each.rows] = kMany;
    const auto filled = bench_->oracle().Materialise(
        instance, {.axes = axes, .seed = 3, .profiles = {}, .origin = "test"});
    ASSERT_TRUE(filled.has_value()) << ToString(filled.error());
    TensorMap few;
    for (const ops::TensorSpec& spec : op.inputs) {
      const Tensor& tensor = filled->inputs.find(spec.name)->second;
      const bool of_rows = !spec.is_scalar && spec.shape.front().text() == each.rows;
      few.emplace(spec.name, of_rows ? First(tensor, kFew) : *tensor.Clone());
    }
    const auto by_threads = runner.Run(instance, {}, filled->axes, filled->inputs);
    axes = filled->axes;
    axes[each.rows] = kFew;
    const auto by_lanes = runner.Run(instance, {}, axes, few);
    ASSERT_TRUE(by_threads && by_lanes) << each.op;
    for (const auto& [name, cells] : *by_lanes)
      ExpectNear(cells, First(by_threads->find(name)->second, kFew), each.op + (" " + name), 1);
  }
}

// parts.json computes single elements in another way than the whole, and the same: a thread each, or lanes or rows that
// share what it takes.
TEST_F(SharedRows, PartsAreThoseOfTheWhole) {
  LocalEngine engine;
  ReferenceRunner runner(bench_->compiler(), engine);
  for (const Shape& each :
       {Shape{"scatter_add", {{"tokens", 300}, {"hidden", 37}, {"rows", 11}}},
        Shape{"scatter_add", {{"tokens", 300}, {"hidden", 5}, {"rows", 11}}},
        Shape{"embedding_rmsnorm_backward", {{"tokens", 150}, {"hidden", 37}, {"vocab", 5}}},
        Shape{"embedding_rmsnorm_backward", {{"tokens", 150}, {"hidden", 7}, {"vocab", 5}}},
        Shape{"embedding_rmsnorm_backward", {{"tokens", 3}, {"hidden", 70}, {"vocab", 5}}}}) {
    const ops::OpSpec op = *ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / each.op);
    const ops::Instance instance = *ops::MakeInstance(op, {{"T", "f16"}}, "sm_90");
    const cases::Case value{.axes = each.axes, .seed = 5, .profiles = {}, .origin = "test"};
    const auto filled = bench_->oracle().Materialise(instance, value);
    ASSERT_TRUE(filled.has_value()) << ToString(filled.error());
    const auto whole = runner.Run(instance, {}, filled->axes, filled->inputs);
    ASSERT_TRUE(whole.has_value());
    Wanted wanted;
    for (const ops::TensorSpec& output : op.outputs) {
      const auto shape = ops::ResolveShape(output, filled->axes);
      for (std::int64_t i = 0; i < *ElementCount(*shape); ++i) wanted[output.name].push_back(i);
    }
    const Wanted all = wanted;
    const auto parts = runner.RunSlice(instance, {}, filled->axes, filled->inputs, 1, {}, wanted);
    ASSERT_TRUE(parts.has_value()) << ToString(parts.error());
    ASSERT_EQ(wanted, all) << each.op;
    for (const auto& [name, cells] : *parts)
      ExpectNear(cells, whole->find(name)->second, each.op + (" " + name), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedOps, ::testing::ValuesIn(Shapes()), NameOf);

}  // namespace
}  // namespace assay::oracle
