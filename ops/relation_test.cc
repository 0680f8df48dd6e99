// How op.json states relations: what is read, what does not fit together, and what the reference sees.
#include "ops/relation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/op.h"
#include "ops/test_folder.h"

namespace assay::ops {
namespace {

using ::testing::HasSubstr;
using Kind = Relation::Kind;

constexpr std::string_view kTensors = R"("inputs": {
    "x": {"shape": ["rows", "columns"], "dtype": "f32"},
    "state": {"shape": ["rows"], "dtype": "f32"},
    "eps": {"shape": null, "dtype": "f32"}
  },
  "outputs": {
    "index": {"shape": ["rows", "k"], "dtype": "i32",
      "relation": {"kind": "choice", "scores": "scores", "best": "smallest", "order": "any", "ties": "first"}},
    "value": {"shape": ["rows", "k"], "dtype": "f32", "relation": {"where": "valid", "nan": "any", "negative_zero": "keep"}},
    "sorted": {"shape": ["rows", "columns"], "dtype": "f32"},
    "from": {"shape": ["rows", "columns"], "dtype": "i32", "relation": {"kind": "unordered", "ties_of": "sorted", "padding": -1}},
    "spectrum": {"shape": ["rows", "columns"], "dtype": "f32", "relation": {"kind": "norm", "over": 2}},
    "scratch": {"shape": ["rows"], "dtype": "f32", "relation": "any"},
    "next": {"updates": "state", "relation": "exact"},
    "scores": {"shape": ["rows", "columns"], "hidden": true},
    "valid": {"shape": ["rows"], "hidden": true}
  })";

class RelationTest : public ::testing::Test {
 protected:
  RelationTest() : folder_("relation-test") {
    folder_.Write("reference.cu", "// nothing");
    folder_.Write("reference.json", kAnyPlan);
  }
  Result<OpSpec> Load(std::string_view tensors) {
    folder_.Write("op.json", R"({"schema": "assay.op/1", "name": "pick",
  "axes": {"rows": {"type": "var", "min": 1, "max": 64}, "columns": {"type": "var", "min": 8, "max": 64}, "k": {"type": "const", "value": 2}},
  )" + std::string(tensors) + R"(,
  "reference": {"source": "reference.cu", "launch": "reference.json"}})");
    return LoadOp(folder_.path());
  }
  /// The error where a piece of kTensors is another.
  std::string Broken(std::string_view from, std::string_view to) {
    std::string text(kTensors);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto op = Load(text);
    return op ? "no error" : ToString(op.error());
  }
  TestFolder folder_;
};

TEST_F(RelationTest, EveryKindIsRead) {
  const auto op = Load(kTensors);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  const Relation& choice = op->FindOutput("index")->relation;
  EXPECT_EQ(choice.kind, Kind::kChoice);
  EXPECT_EQ(choice.of, "scores");
  EXPECT_FALSE(choice.largest);
  EXPECT_FALSE(choice.sorted);
  EXPECT_TRUE(choice.first_of_ties);
  const Relation& value = op->FindOutput("value")->relation;
  EXPECT_EQ(value.kind, Kind::kUsual);
  EXPECT_EQ(value.where, "valid");
  EXPECT_EQ(value.any_nan, true);
  EXPECT_TRUE(value.keeps_zero_sign);
  EXPECT_FALSE(value.HoldsElements());
  EXPECT_EQ(op->FindOutput("sorted")->relation, Relation{});
  EXPECT_TRUE(op->FindOutput("sorted")->relation.HoldsElements());
  EXPECT_EQ(op->FindOutput("from")->relation.padding, -1.0);
  EXPECT_EQ(op->FindOutput("spectrum")->relation.over, 2);
  EXPECT_EQ(op->FindOutput("scratch")->relation.kind, Kind::kAny);
  EXPECT_TRUE(op->Chooses());
}

TEST_F(RelationTest, AnOutputThatOverwritesIsItsInputsTensor) {
  const auto op = Load(kTensors);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  const TensorSpec& next = *op->FindOutput("next");
  EXPECT_EQ(next.updates, "state");
  EXPECT_EQ(next.dtype_name, "f32");
  ASSERT_EQ(next.shape.size(), 1u);
  EXPECT_EQ(next.shape[0].text(), "rows");
}

TEST_F(RelationTest, CandidatesDoNotKnowHiddenOutputsAndReferencesReadChoices) {
  const auto op = Load(kTensors);
  ASSERT_TRUE(op.has_value()) << ToString(op.error());
  EXPECT_EQ(op->FindOutput("scores"), nullptr);
  EXPECT_EQ(op->hidden.size(), 2u);
  const OpSpec seen = ReferenceOf(*op);
  EXPECT_NE(seen.FindOutput("scores"), nullptr);
  EXPECT_NE(seen.FindInput("index"), nullptr);
  EXPECT_EQ(seen.FindOutput("index"), nullptr);
  EXPECT_NE(seen.FindInput("state"), nullptr);
  EXPECT_EQ(seen.FindOutput("next")->updates, "");
  EXPECT_FALSE(seen.Chooses());
}

TEST_F(RelationTest, ErrorsNamePlaceAndCure) {
  EXPECT_THAT(Broken("\"kind\": \"choice\"", "\"kind\": \"chioce\""),
              HasSubstr("/outputs/index/relation/kind: unknown relation 'chioce'\n  fix: did you "
                        "mean 'choice'?"));
  EXPECT_THAT(Broken("\"scores\": \"scores\"", "\"scores\": \"score\""),
              HasSubstr("/outputs/index/relation/scores: unknown output 'score'"));
  EXPECT_THAT(Broken("\"best\": \"smallest\"", "\"best\": \"least\""),
              HasSubstr("say largest or smallest"));
  EXPECT_THAT(Broken("\"scores\": {\"shape\": [\"rows\", \"columns\"]",
                     "\"scores\": {\"shape\": [\"columns\", \"rows\"]"),
              HasSubstr("does not fit the scores 'scores'"));
  EXPECT_THAT(Broken("\"index\": {\"shape\": [\"rows\", \"k\"], \"dtype\": \"i32\"",
                     "\"index\": {\"shape\": [\"rows\", \"k\"], \"dtype\": \"f32\""),
              HasSubstr("a choice is an index"));
  EXPECT_THAT(Broken("\"ties_of\": \"sorted\"", "\"ties_of\": \"value\""),
              HasSubstr("'value' has another shape"));
  EXPECT_THAT(Broken("\"ties_of\": \"sorted\"", "\"ties_of\": \"from\""),
              HasSubstr("unknown output 'from'"));
  EXPECT_THAT(Broken("\"over\": 2", "\"over\": 3"), HasSubstr("1 to 2 of the dimensions"));
  EXPECT_THAT(Broken("\"over\": 2", "\"ovr\": 2"), HasSubstr("unknown key 'ovr'"));
  EXPECT_THAT(Broken("\"updates\": \"state\"", "\"updates\": \"stat\""),
              HasSubstr("/outputs/next/updates: unknown input 'stat'"));
  EXPECT_THAT(Broken("\"updates\": \"state\"", "\"updates\": \"eps\""),
              HasSubstr("a scalar is passed by value"));
  EXPECT_THAT(Broken("\"updates\": \"state\"",
                     "\"updates\": \"state\", \"shape\": [\"columns\"], \"dtype\": \"f32\""),
              HasSubstr("another shape or dtype than 'state'"));
  EXPECT_THAT(Broken("\"sorted\": {\"shape\": [\"rows\", \"columns\"], \"dtype\": \"f32\"}",
                     "\"sorted\": {\"shape\": [\"rows\", \"columns\"], \"dtype\": \"f32\"}, "
                     "\"last\": {\"updates\": \"state\"}"),
              HasSubstr("'state' is overwritten twice"));
  EXPECT_THAT(Broken("\"where\": \"valid\", ", ""),
              HasSubstr("/outputs/valid: a hidden output that no relation names"));
  EXPECT_THAT(Broken("\"valid\": {\"shape\": [\"rows\"]", "\"valid\": {\"shape\": [\"columns\"]"),
              HasSubstr("not the leading part of this output's"));
  EXPECT_THAT(Broken("\"hidden\": true},", "\"hidden\": true, \"dtype\": \"f32\"},"),
              HasSubstr("unknown key 'dtype'"));
}

TEST_F(RelationTest, WhatAnAuthorIsToldSaysWhatMatters) {
  const auto op = Load(kTensors);
  ASSERT_TRUE(op.has_value());
  EXPECT_EQ(RelationText(op->FindOutput("sorted")->relation), "");
  EXPECT_THAT(RelationText(op->FindOutput("index")->relation),
              AllOf(HasSubstr("the smallest of `scores`, in any order"), HasSubstr("first one's")));
  EXPECT_THAT(
      RelationText(op->FindOutput("from")->relation),
      AllOf(HasSubstr("any order"), HasSubstr("`sorted` are equal"), HasSubstr("-1 stays")));
}

}  // namespace
}  // namespace assay::ops
