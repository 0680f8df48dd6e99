#include "ops/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/test_folder.h"

namespace assay::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// An op with one of everything that properties tell apart, and these properties.
std::string OpText(const std::string& properties) {
  return R"({"schema": "assay.op/1", "name": "o",
    "axes": {"rows": {"type": "var"}, "columns": {"type": "var"}, "classes": {"type": "var"},
             "four": {"type": "const", "value": 4}, "halves": {"type": "expr", "expression": "rows * 2"}},
    "inputs": {
      "x": {"shape": ["rows", "columns"], "dtype": "f32"},
      "paired": {"shape": ["columns", "columns"], "dtype": "f32"},
      "fours": {"shape": ["four"], "dtype": "f32"},
      "derived": {"shape": ["halves", "classes"], "dtype": "f32"},
      "ids": {"shape": ["rows"], "dtype": "i64", "domain": {"kind": "index", "of": "classes"}},
      "counts": {"shape": ["rows"], "dtype": "i32"},
      "eps": {"shape": null, "dtype": "f32"}},
    "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "f32"},
                "total": {"shape": [1], "dtype": "f32"}},
    "reference": {"source": "reference.cu", "launch": "reference.json"},
    "properties": )" +
         properties + "}";
}

class DeclarationTest : public ::testing::Test {
 protected:
  DeclarationTest() : folder_("properties-test") {
    folder_.Write("reference.cu", "// nothing");
    folder_.Write("reference.json", kAnyPlan);
  }
  std::string ErrorOf(const std::string& properties) {
    folder_.Write("op.json", OpText(properties));
    const auto op = LoadOp(folder_.path());
    return op ? "no error" : ToString(op.error());
  }
  TestFolder folder_;
};

TEST_F(DeclarationTest, WhatFitsIsTaken) {
  for (const char* good :
       {"[]", R"(["deterministic", "any_alignment"])", R"([{"deterministic": []}])",
        R"([{"independent_rows": ["x", "rows"]}, {"independent_rows": ["x", "columns"]}])",
        R"([{"independent_rows": ["ids", "rows"]}])", R"([{"linear": ["x", "y"]}])",
        R"([{"scale_equivariant": ["counts", "total"]}])", R"([{"scale_invariant": ["x"]}])",
        R"([{"shift_invariant": ["x"]}])", R"([{"idempotent": ["x", "y"]}])",
        R"([{"permutation_equivariant": ["four"]}])"}) {
    EXPECT_EQ(ErrorOf(good), "no error") << good;
  }
}

TEST_F(DeclarationTest, WhatCannotApplyIsAnErrorWithPlaceAndCure) {
  struct Row {
    const char *properties, *place, *cure;
  };
  constexpr Row kRows[] = {
      {R"(["deterministic", {"linaer": ["x", "y"]}])", "op.json: /properties/1",
       "did you mean 'linear'?"},
      {R"(["row_sums"])", "/properties/0", "known here: any_alignment"},
      {R"([""])", "/properties/0", "known here:"},
      {R"(["linear"])", "/properties/0", R"(write {"linear": ["INPUT", "OUTPUT"]})"},
      {R"([{"linear": ["x", "y", "y"]}])", "/properties/0", R"(["INPUT", "OUTPUT"])"},
      {R"([{"deterministic": ["x"]}])", "/properties/0", R"(write "deterministic")"},
      {R"([{"linear": ["xx", "y"]}])", "/properties/0/linear/0", "did you mean 'x'?"},
      {R"([{"linear": ["y", "x"]}])", "/properties/0/linear/0", "fix: "},
      {R"([{"linear": ["x", "rows"]}])", "/properties/0/linear/1", "one of: y, total"},
      {R"([{"linear": ["eps", "y"]}])", "'eps' is no input tensor", "fix: "},
      {R"([{"scale_invariant": ["ids"]}])", "neither indices nor choices", "fix: "},
      {R"([{"shift_invariant": ["counts"]}])", "does not hold floats", "fix: "},
      {R"([{"idempotent": ["x", "total"]}])", "different shapes", "fix: "},
      {R"([{"independent_rows": ["rows", "x"]}])", "/properties/0/independent_rows/0", "fix: "},
      {R"([{"independent_rows": ["counts", "columns"]}])", "does not extend along 'columns'",
       "fix: "},
      {R"([{"independent_rows": ["derived", "classes"]}])", "no output extends along 'classes'",
       "fix: "},
      {R"([{"padding_neutral": ["x"]}])", "/properties/0/padding_neutral/0", "fix: "},
      {R"([{"padding_neutral": ["four"]}])", "'four' cannot be chosen", "fix: "},
      {R"([{"padding_neutral": ["columns"]}])", "'paired' follows 'columns'", "fix: "},
      {R"([{"padding_neutral": ["rows"]}])", "'derived' follows 'rows'", "fix: "},
      {R"([{"batch_split": ["classes"]}])", "no output extends along 'classes'", "fix: "},
      {R"([{"permutation_equivariant": ["classes"]}])", "'ids' point along 'classes'", "fix: "},
      {R"([{"linear": ["x", "y"]}, {"linear": ["x", "y"]}])", "/properties/1", "remove one"},
      {R"([{"linear": "x"}])", "/properties/0/linear", "array"},
      {R"([{"linear": ["x", 1]}])", "/properties/0/linear", ""},
      {R"([7])", "/properties/0", "for example"},
      {R"({"linear": ["x", "y"]})", "/properties", "array"},
  };
  for (const Row& row : kRows)
    EXPECT_THAT(ErrorOf(row.properties), AllOf(HasSubstr(row.place), HasSubstr(row.cure)))
        << row.properties;
}

TEST_F(DeclarationTest, WhatResultsMayBeMadeOver) {
  // A total of all has no rows; without it, each row is by itself and what lies along rows is not.
  folder_.Write("op.json", OpText("[]"));
  auto op = LoadOp(folder_.path()).value();
  EXPECT_TRUE(MayBeReducedOver(op, "rows"));
  std::erase_if(op.outputs, [](const TensorSpec& output) { return output.name == "total"; });
  EXPECT_TRUE(MayBeReducedOver(op, "columns"));
  EXPECT_TRUE(MayBeReducedOver(op, "classes"));
  EXPECT_TRUE(MayBeReducedOver(op, "rows"));  // ids and counts lie along rows.
  std::erase_if(op.inputs, [](const TensorSpec& input) {
    return input.name == "ids" || input.name == "counts";
  });
  EXPECT_FALSE(MayBeReducedOver(op, "rows"));
}

TEST(PropertiesTest, TextsComeBack) {
  EXPECT_EQ(PropertyText(PropertyFromText("linear x y")), "linear x y");
  EXPECT_TRUE(PropertyFromText("").name.empty());
}

}  // namespace
}  // namespace assay::ops
