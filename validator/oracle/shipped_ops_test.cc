// The library's references and naive candidates, for real: compiled by NVRTC, run on the emulator,
// compared.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
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

INSTANTIATE_TEST_SUITE_P(All, ShippedOps, ::testing::ValuesIn(Shapes()), NameOf);

}  // namespace
}  // namespace assay::oracle
