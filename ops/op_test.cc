#include "ops/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/test_folder.h"

namespace assay::ops {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGood = R"({
  "schema": "assay.op/1",
  "name": "scale_rows",
  "summary": "x scaled by row",
  "axes": {
    "total": {"type": "expr", "expression": "wide * 2"},
    "wide": {"type": "expr", "expression": "rows * hidden"},
    "rows": {"type": "var", "min": 1, "max": 1024},
    "hidden": {"type": "var", "min": 2, "max": 4096},
    "lanes": {"type": "const", "value": 32}
  },
  "dtypes": {"T": ["bf16", "f32"]},
  "inputs": {
    "x": {"shape": ["rows", "hidden"], "dtype": "T"},
    "ids": {"shape": ["rows"], "dtype": "i64", "domain": {"kind": "index", "of": "rows"}},
    "eps": {"shape": null, "dtype": "f32", "domain": {"kind": "choice", "values": [1e-6, 1e-5]}}
  },
  "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "T"}},
  "constraints": ["hidden % 2 == 0"],
  "reference": {"source": "reference.cu", "launch": "reference.json"},
  "precision": {"accumulate": "f32", "exact_outputs": []},
  "properties": ["deterministic", {"independent_rows": ["x", "rows"]}]
})";

class OpTest : public ::testing::Test {
 protected:
  OpTest() : folder_("op-test") {
    folder_.Write("reference.cu", "// nothing");
    folder_.Write("reference.json", kAnyPlan);
  }
  Result<OpSpec> Load(std::string text) {
    folder_.Write("op.json", text);
    return LoadOp(folder_.path());
  }
  // kGood with one piece of text replaced; returns the error.
  std::string Broken(std::string_view from, std::string_view to) {
    std::string text(kGood);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto op = Load(text);
    return op ? "no error" : ToString(op.error());
  }
  TestFolder folder_;
};

TEST_F(OpTest, LoadsAllParts) {
  folder_.Write("workloads.jsonl",
                "{\"axes\": {\"rows\": 8, \"hidden\": 64}, \"note\": \"small\"}\n\n"
                "{\"definition\": \"d\", \"workload\": {\"axes\": {\"rows\": 2, \"hidden\": 2}, "
                "\"uuid\": \"u\", \"inputs\": {}}}\n");
  folder_.Write("naive/kernel.cu", "");
  const auto op = Load(std::string(kGood));
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  EXPECT_EQ(op->name, "scale_rows");
  EXPECT_EQ(op->inputs.size(), 3u);
  EXPECT_TRUE(op->FindInput("eps")->is_scalar);
  EXPECT_EQ(op->FindInput("ids")->domain.of, "rows");
  EXPECT_EQ(op->contract.accumulate, DType::kF32);
  EXPECT_EQ(op->properties[1].arguments, (std::vector<std::string>{"x", "rows"}));
  ASSERT_EQ(op->workloads.size(), 2u);
  EXPECT_EQ(op->workloads[0].note, "small");
  EXPECT_TRUE(op->naive.has_value());
  EXPECT_FALSE(op->transcript.has_value());
  EXPECT_EQ(op->digest.size(), 64u);
}

TEST_F(OpTest, DerivedAxesMayBeWrittenInAnyOrder) {
  const auto op = Load(std::string(kGood));
  ASSERT_TRUE(op.has_value());
  const auto axes = ResolveAxes(*op, {{"rows", 3}, {"hidden", 4}});
  ASSERT_TRUE(axes.has_value()) << ToString(axes.error());
  EXPECT_EQ(axes->at("total"), 24);
  EXPECT_EQ(axes->at("lanes"), 32);
  EXPECT_EQ(*ResolveShape(*op->FindInput("x"), *axes), (Shape{3, 4}));
  EXPECT_EQ(*ResolveShape(*op->FindInput("eps"), *axes), Shape{});
}

TEST_F(OpTest, ShapesOutsideOfTheOpAreRefused) {
  const OpSpec op = *Load(std::string(kGood));
  const auto error = [&](const AxisValues& values) {
    const auto axes = ResolveAxes(op, values);
    return axes ? "no error" : ToString(axes.error());
  };
  EXPECT_THAT(error({{"rows", 3}}), HasSubstr("axis hidden of scale_rows: has no value"));
  EXPECT_THAT(error({{"rows", 0}, {"hidden", 4}}), HasSubstr("0 is outside of [1, 1024]"));
  EXPECT_THAT(error({{"rows", 3}, {"hidden", 5}}),
              HasSubstr("the constraint 'hidden % 2 == 0' does not hold for hidden=5"));
  EXPECT_THAT(error({{"rows", 3}, {"hiden", 4}}), HasSubstr("did you mean 'hidden'?"));
  EXPECT_THAT(error({{"rows", 3}, {"hidden", 4}, {"total", 24}}), HasSubstr("is not variable"));
}

TEST_F(OpTest, ErrorsNamePlaceAndCure) {
  EXPECT_THAT(Broken("\"dtypes\"", "\"dtyps\""), HasSubstr("unknown dtype 'T'"));
  EXPECT_THAT(
      Broken("\"constraints\"", "\"constrains\""),
      HasSubstr("/constrains: unknown key 'constrains'\n  fix: did you mean 'constraints'?"));
  EXPECT_THAT(Broken("assay.op/1", "assay.op/9"), HasSubstr("unknown schema"));
  EXPECT_THAT(Broken("\"bf16\", \"f32\"", "\"bf17\""), HasSubstr("unknown dtype 'bf17'"));
  EXPECT_THAT(Broken("[\"rows\"], \"dtype\": \"i64\"", "[\"row\"], \"dtype\": \"i64\""),
              HasSubstr("/inputs/ids/shape/0: unknown axis 'row'\n  fix: did you mean 'rows'?"));
  EXPECT_THAT(Broken("\"of\": \"rows\"", "\"of\": \"vocab\""),
              HasSubstr("/inputs/ids/domain/of: unknown axis 'vocab'"));
  EXPECT_THAT(Broken("\"dtype\": \"i64\"", "\"dtype\": \"f32\""),
              HasSubstr("an index has an integer dtype"));
  EXPECT_THAT(Broken("\"kind\": \"choice\"", "\"kind\": \"chose\""),
              HasSubstr("unknown kind of domain 'chose'"));
  EXPECT_THAT(Broken("{\"kind\": \"index\", \"of\": \"rows\"}",
                     "{\"kind\": \"choice\", \"values\": [1, 2.5]}"),
              HasSubstr("/inputs/ids/domain/values/1: 2.5 is no i64"));
  EXPECT_THAT(
      Broken("\"dtype\": \"i64\", \"domain\": {\"kind\": \"index\", \"of\": \"rows\"}",
             "\"dtype\": \"u8\", \"domain\": {\"kind\": \"range\", \"low\": 256, \"high\": 300}"),
      HasSubstr("no u8 lies in the range"));
  EXPECT_THAT(
      Broken("{\"source\": \"reference.cu\"", "{\"kind\": \"cud\", \"source\": \"reference.cu\""),
      HasSubstr("/reference/kind: unknown kind of reference 'cud'"));
  EXPECT_THAT(Broken("\"y\": {", "\"x\": {"), HasSubstr("the name 'x' is taken"));
  EXPECT_THAT(Broken("\"exact_outputs\": []", "\"exact_outputs\": [\"z\"]"),
              HasSubstr("unknown output 'z'"));
  EXPECT_THAT(Broken("\"rows * hidden\"", "\"total\""), HasSubstr("depends on itself"));
  EXPECT_THAT(Broken("hidden % 2 == 0", "hidden % 2 == 7"),
              HasSubstr("no shape was found that satisfies"));
  EXPECT_THAT(Broken("\"max\": 1024", "\"max\": 0"), HasSubstr("is empty or negative"));
  EXPECT_THAT(Broken("\"max\": 1024", "\"max\": 1e3"), HasSubstr("must be an integer"));
  EXPECT_THAT(Broken("\"max\": 1024", "\"max\": 99999999999999999999"),
              HasSubstr("must be an integer"));
  EXPECT_THAT(Broken("reference.cu", "/etc/passwd"), HasSubstr("leaves the op's folder"));
  EXPECT_THAT(Broken("reference.cu", "../x.cu"), HasSubstr("leaves the op's folder"));
  EXPECT_THAT(Broken("reference.cu", "missing.cu"), HasSubstr("there is no 'missing.cu'"));
  EXPECT_THAT(Broken("\"summary\": \"x scaled by row\"", "\"name\": \"again\""),
              HasSubstr("appears twice"));
  EXPECT_THAT(Broken("\"accumulate\": \"f32\"", "\"accumulate\": \"i32\""),
              HasSubstr("no type to accumulate in"));
  EXPECT_THAT(Broken("\"accumulate\": \"f32\"", "\"accumulate\": \"f64\""),
              AllOf(HasSubstr("/precision/accumulate"), HasSubstr("no allowance can be derived")));
}

TEST_F(OpTest, BrokenWorkloadsAreErrors) {
  folder_.Write("workloads.jsonl", "{\"axes\": {\"rows\": 8, \"hidden\": 63}}\n");
  const auto op = Load(std::string(kGood));
  ASSERT_FALSE(op.has_value());
  EXPECT_THAT(ToString(op.error()), HasSubstr("workloads.jsonl:1"));
}

TEST_F(OpTest, BrokenPlansOfTheReferenceAreErrors) {
  const auto error = [&](std::string_view plan) {
    folder_.Write("reference.json", plan);
    const auto op = Load(std::string(kGood));
    return op ? "no error" : ToString(op.error());
  };
  EXPECT_THAT(error("{"), HasSubstr("reference.json:1:2: not valid JSON"));
  EXPECT_THAT(error(R"({"schema": "assay.launch/1", "kernels": [
    {"entry": "k", "grid": ["row"], "block": [32], "args": ["x", "y"]}]})"),
              HasSubstr("reference.json: /kernels/0/grid/0: unknown axis 'row'\n  fix: did you "
                        "mean 'rows'?"));
  EXPECT_EQ(error(R"({"schema": "assay.launch/1",
    "workspace": [{"name": "sums", "dtype": "Real", "shape": ["rows"]}],
    "kernels": [{"entry": "k", "grid": ["rows"], "block": [32], "args": ["x", "sums"]}]})"),
            "no error");
}

TEST_F(OpTest, DigestFollowsReference) {
  const OpSpec before = *Load(std::string(kGood));
  folder_.Write("reference.cu", "// something");
  EXPECT_NE(Load(std::string(kGood))->digest, before.digest);
}

TEST_F(OpTest, APlanForPartsIsHeldToTheSameRules) {
  const std::string before = Load(std::string(kGood))->digest;
  folder_.Write("parts.json", kAnyPlan);
  const auto with = Load(std::string(kGood));
  ASSERT_TRUE(with.has_value()) << ToString(with.error());
  EXPECT_NE(with->digest, before);
  folder_.Write("parts.json", R"({"schema": "assay.launch/1", "kernels": []})");
  const auto broken = Load(std::string(kGood));
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(ToString(broken.error()), HasSubstr("parts.json"));
}

TEST_F(OpTest, InstancesBindDTypes) {
  const OpSpec op = *Load(std::string(kGood));
  const Instance plain = *MakeInstance(op, {}, "sm_90");
  EXPECT_EQ(plain.Id(), "scale_rows-T=bf16-sm_90");
  EXPECT_EQ(plain.TypeOf(*op.FindInput("x")), DType::kBF16);
  EXPECT_EQ(plain.TypeOf(*op.FindInput("ids")), DType::kI64);
  EXPECT_EQ(MakeInstance(op, {{"T", "float32"}}, "sm_100a")->Id(), "scale_rows-T=f32-sm_100a");
  EXPECT_THAT(ToString(MakeInstance(op, {{"T", "f16"}}, "sm_90").error()),
              HasSubstr("choices: bf16, f32"));
  EXPECT_FALSE(MakeInstance(op, {{"U", "f32"}}, "sm_90").has_value());
  for (const char* arch : {"", "90", "sm_", "sm_9", "sm_90; rm", "sm_90aa", "--x"}) {
    EXPECT_FALSE(MakeInstance(op, {}, arch).has_value()) << arch;
  }
}

TEST_F(OpTest, LibraryFindsAndLists) {
  TestFolder root("library-test");
  root.Write("good/op.json", kGood);
  root.Write("good/reference.cu", "");
  root.Write("good/reference.json", kAnyPlan);
  root.Write("bad/op.json", "{");
  root.Write("prelude/x.cuh", "");
  const Library library({root.path()});
  EXPECT_TRUE(library.Find("good").has_value());
  EXPECT_TRUE(library.Find((root.path() / "good").string()).has_value());
  EXPECT_THAT(ToString(library.Find("goood").error()), HasSubstr("did you mean 'good'?"));
  EXPECT_FALSE(library.Find("").has_value());
  EXPECT_FALSE(library.Find("..").has_value());
  const auto entries = library.List();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "bad");
  EXPECT_TRUE(entries[0].error.has_value());
  EXPECT_FALSE(entries[1].error.has_value());
}

}  // namespace
}  // namespace assay::ops
