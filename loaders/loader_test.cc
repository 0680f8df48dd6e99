#include "loaders/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/digest.h"
#include "base/file.h"
#include "ops/test_folder.h"

namespace assay::loaders {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Made {
  ops::Instance instance;
  ops::LaunchPlan plan;
  std::map<std::string, std::string> symbols;

  LoaderInput input(std::map<std::string, Reach> reach = {}) const {
    return {
        .instance = instance,
        .plan = plan,
        .symbols = symbols,
        .reach = std::move(reach),
        .images = {{"kernel.sm_90.cubin", Sha256Hex("cubin")}, {"kernel.ptx", Sha256Hex("ptx")}}};
  }
};

Made Make(const Path& folder, const Json& launch) {
  Result<ops::OpSpec> op = ops::LoadOp(folder);
  EXPECT_TRUE(op) << ToString(op.error());
  Result<ops::Instance> instance = ops::MakeInstance(*std::move(op), {}, "sm_90");
  EXPECT_TRUE(instance);
  Made made{.instance = *std::move(instance), .plan = {}, .symbols = {}};
  Result<ops::LaunchPlan> plan = ops::ParseLaunchPlan(launch, "launch.json", made.instance.op);
  EXPECT_TRUE(plan) << ToString(plan.error());
  made.plan = *std::move(plan);
  for (const ops::KernelPlan& kernel : made.plan.kernels)
    made.symbols[kernel.entry] = "_Z" + std::to_string(made.symbols.size());
  return made;
}

Made Shipped(const std::string& op) {
  const Path folder = Path(ASSAY_SOURCE_DIR) / "ops" / op;
  return Make(folder, *ReadJsonFile((folder / "naive" / "launch.json").string()));
}

void ExpectGolden(const std::string& text, const std::string& name) {
  const Path file = Path(ASSAY_SOURCE_DIR) / "loaders/testdata" / name;
  if (std::getenv("ASSAY_REBASE") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(file, text));
  }
  const Result<std::string> golden = ReadFile(file);
  ASSERT_TRUE(golden) << ToString(golden.error());
  EXPECT_EQ(text, *golden) << "ASSAY_REBASE=1 rewrites " << file;
}

TEST(Loader, IsWhatTheGoldenFilesHold) {
  const Made made = Shipped("scatter_add");
  const auto loader = MakeLoader(
      made.input({{"tokens", {257, 0, 0}}, {"hidden", {64, 0, 4096}}, {"rows", {31, 1000, 0}}}));
  ASSERT_TRUE(loader) << ToString(loader.error());
  ExpectGolden(loader->python, "kernel.py");
  ExpectGolden(loader->cpp, "kernel.hpp");
}

TEST(Loader, EveryShippedOpHasOne) {
  for (const auto& entry : std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "ops")) {
    if (!std::filesystem::exists(entry.path() / "naive")) continue;
    const Made made = Shipped(entry.path().filename());
    const auto loader = MakeLoader(made.input());
    ASSERT_TRUE(loader) << entry.path();
    EXPECT_THAT(loader->python, HasSubstr("INSTANCE = \"" + made.instance.Id() + "\""));
    EXPECT_THAT(loader->cpp, HasSubstr("\"" + made.instance.Id() + "\""));
  }
}

// Tests in Python and C++ run what is written here (loaders/testdata/hostile.*).
TEST(Loader, NamesThatAreWordsOfTheLanguagesStandForThemselvesNowhere) {
  ops::TestFolder folder("loader-hostile");
  folder.Write("op.json", R"json({
    "schema": "assay.op/1", "name": "plan",
    "summary": "\"\"\"\nimport os\nos.abort()\n*/ \\",
    "axes": {
      "lambda": {"type": "var", "min": 0, "max": 64, "description": "\"\"\" */\n#error x"},
      "int": {"type": "var", "min": 1, "max": 64},
      "ceil_div": {"type": "expr", "expression": "lambda * 2 - int % 3"},
      "KERNEL": {"type": "const", "value": 3},
      "add": {"type": "var", "min": 1, "max": 9},
      "NULL": {"type": "var", "min": 1, "max": 9}},
    "dtypes": {"class": ["f32"]},
    "inputs": {
      "torch": {"shape": ["2 * lambda + 0", "int + KERNEL"], "dtype": "class"},
      "shape": {"shape": ["lambda", "add"], "dtype": "i64"},
      "return": {"shape": null, "dtype": "f32", "domain": {"kind": "range", "low": 0.5, "high": 2}}},
    "outputs": {"Tensor": {"shape": ["lambda * int", "NULL"], "dtype": "class"}},
    "constraints": ["lambda == 0 || 64 % lambda == 0", "!(int > 60) && add >= 1"],
    "reference": {"source": "reference.cu", "launch": "reference.json"}})json");
  folder.Write("reference.cu", "");
  folder.Write("reference.json", ops::kAnyPlan);
  const Json launch = *ParseJson(R"json({"schema": "assay.launch/1",
    "kernels": [{"entry": "k<float, 2>", "grid": ["max(1, min(lambda, int))", "add"], "block": [32],
      "args": ["torch", "shape", "return", "Tensor", "lambda", "int", "ceil_div", "KERNEL", "def", "axes"]}],
    "workspace": [{"name": "def", "dtype": "class", "shape": ["int"]}],
    "tensor_maps": [{"name": "axes", "tensor": "def", "shape": ["int"], "box": [8]}]})json",
                                 "launch.json");
  const Made made = Make(folder.path(), launch);
  const auto loader = MakeLoader(made.input(
      {{"lambda", {64, 0, 0}}, {"int", {64, 0, 0}}, {"add", {9, 0, 0}}, {"NULL", {9, 0, 0}}}));
  ASSERT_TRUE(loader) << ToString(loader.error());
  EXPECT_THAT(loader->python, Not(HasSubstr("abort")));
  EXPECT_THAT(loader->cpp, Not(HasSubstr("#error")));
  ExpectGolden(loader->python, "hostile.py");
  ExpectGolden(loader->cpp, "hostile.hpp");
}

// An output that updates an input: its own twin, the shipped ops, have none.
TEST(Loader, WhatIsOverwrittenIsNamed) {
  ops::TestFolder folder("loader-updates");
  folder.Write("op.json", R"json({
    "schema": "assay.op/1", "name": "step", "summary": "x -= 0.5 * g",
    "axes": {"n": {"type": "var", "min": 1, "max": 64}},
    "inputs": {"x": {"shape": ["n"], "dtype": "f32"}, "g": {"shape": ["n"], "dtype": "f32"}},
    "outputs": {"stepped": {"updates": "x"}},
    "reference": {"source": "reference.cu", "launch": "reference.json"}})json");
  folder.Write("reference.cu", "");
  folder.Write("reference.json", ops::kAnyPlan);
  const Json launch = *ParseJson(R"json({"schema": "assay.launch/1",
    "kernels": [{"entry": "k", "grid": ["n"], "block": [32], "args": ["x", "g", "n"]}]})json",
                                 "launch.json");
  const Made made = Make(folder.path(), launch);
  const auto loader = MakeLoader(made.input());
  ASSERT_TRUE(loader) << ToString(loader.error());
  EXPECT_THAT(loader->python,
              HasSubstr(R"(Tensor("stepped", "f32", rank=1, align=4, updates="x"))"));
  EXPECT_THAT(loader->cpp, HasSubstr(R"("n", 0, 0, {}, "x"},)"));
  const auto plain = MakeLoader(Shipped("softmax").input());
  ASSERT_TRUE(plain);
  EXPECT_THAT(plain->python, Not(HasSubstr("updates=")));
}

TEST(Loader, WhatNoPlanCouldSayIsRefused) {
  const auto with = [](auto change) {
    Made made = Shipped("softmax");
    change(made);
    const auto loader = MakeLoader(made.input());
    return loader ? std::string("made") : ToString(loader.error());
  };
  EXPECT_EQ(with([](Made&) {}), "made");
  EXPECT_THAT(with([](Made& m) { m.instance.op.name = "x\"; import os"; }), HasSubstr("the op"));
  EXPECT_THAT(with([](Made& m) { m.instance.op.axes[0].name = "x y"; }), HasSubstr("an axis"));
  EXPECT_THAT(with([](Made& m) { m.instance.op.inputs[0].name = "x\n"; }), HasSubstr("a tensor"));
  EXPECT_THAT(with([](Made& m) { m.instance.arch = "sm_90\""; }), HasSubstr("the target"));
  EXPECT_THAT(with([](Made& m) { m.symbols.begin()->second = "f\", g"; }), HasSubstr("a kernel"));
  EXPECT_THAT(with([](Made& m) { m.symbols.clear(); }), HasSubstr("a kernel"));
  EXPECT_THAT(with([](Made& m) { m.plan.kernels[0].entry = "k\nimport os"; }),
              HasSubstr("a kernel"));
}

}  // namespace
}  // namespace assay::loaders
