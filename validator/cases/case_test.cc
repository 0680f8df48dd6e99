#include "validator/cases/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "validator/cases/recipes.h"
#include "validator/cases/test_instance.h"

namespace assay::cases {
namespace {

using ::testing::HasSubstr;

Case Sample() {
  Case value{.axes = {{"rows", 3}, {"columns", 2}, {"table", 4}},
             .seed = 7,
             .profiles = {},
             .origin = "edge"};
  value.profiles["ids"] = {.kind = "literal", .parameters = {}, .literal = {0, 0, 1}};
  value.profiles["x"] = {.kind = "normal", .parameters = {{"mean", 0.5}}, .literal = {}};
  return value;
}

TEST(CaseTest, RoundTripsThroughJson) {
  const Case value = Sample();
  const auto read = CaseFromJson(ToJson(value), "case.json");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(*read, value);
  EXPECT_EQ(CompactJson(ToJson(*read)), CompactJson(ToJson(value)));
}

TEST(CaseTest, SpecialValuesSurviveJson) {
  Case value = Sample();
  value.profiles["x"] = {.kind = "literal",
                         .parameters = {},
                         .literal = {std::nan(""), INFINITY, -INFINITY, -0.0, 0.1}};
  const auto parsed = ParseJson(CompactJson(ToJson(value)), "case.json");
  const auto read = CaseFromJson(*parsed, "case.json");
  ASSERT_TRUE(read) << ToString(read.error());
  const auto& values = read->profiles.at("x").literal;
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], INFINITY);
  EXPECT_EQ(values[2], -INFINITY);
  EXPECT_TRUE(std::signbit(values[3]));
  EXPECT_EQ(values[4], 0.1);
}

TEST(CaseTest, RefusesUnknownKeysAndWrongTypes) {
  Json json = ToJson(Sample());
  json["sede"] = 3;
  EXPECT_THAT(ToString(CaseFromJson(json, "case.json").error()), HasSubstr("sede"));
  json = ToJson(Sample());
  json["axes"]["rows"] = "three";
  EXPECT_THAT(ToString(CaseFromJson(json, "case.json").error()), HasSubstr("rows"));
  EXPECT_FALSE(CaseFromJson(Json::array(), "case.json"));
}

TEST(CaseTest, DescribesSmallCasesByTheirValues) {
  const std::string text = Describe(Sample(), GatherInstance());
  EXPECT_THAT(text, HasSubstr("rows=3 columns=2 table=4"));
  EXPECT_THAT(text, HasSubstr("ids=[0,0,1]"));
}

TEST(CaseTest, DescribesLargeCasesByTheirProfiles) {
  Case value = Sample();
  value.axes = {{"rows", 300}, {"columns", 200}, {"table", 400}};
  value.profiles["ids"] = {.kind = "zipf", .parameters = {{"exponent", 1.5}}, .literal = {}};
  const std::string text = Describe(value, GatherInstance());
  EXPECT_THAT(text, HasSubstr("ids~zipf(exponent=1.5)"));
  EXPECT_THAT(text, HasSubstr("seed=7"));
}

TEST(CaseTest, MaterialisesTheSameBytesTwice) {
  const auto first = Materialise(GatherInstance(), Sample());
  const auto second = Materialise(GatherInstance(), Sample());
  ASSERT_TRUE(first && second);
  for (const auto& [name, tensor] : first->inputs) {
    const auto& other = second->inputs.find(name)->second;
    EXPECT_TRUE(std::ranges::equal(tensor.memory.bytes(), other.memory.bytes())) << name;
  }
  EXPECT_EQ(first->inputs.find("ids")->second.At(2), 1);
}

TEST(CaseTest, RefusesShapesOutsideTheConstraints) {
  Case value = Sample();
  value.axes["columns"] = 3;
  EXPECT_FALSE(Materialise(GatherInstance(), value));
  value = Sample();
  value.profiles["nope"] = {};
  EXPECT_THAT(ToString(Materialise(GatherInstance(), value).error()), HasSubstr("nope"));
}

TEST(CaseTest, ShortlexPrefersFewerElementsThenPlainerValues) {
  const ops::Instance instance = GatherInstance();
  Case small = Sample();
  Case large = Sample();
  large.axes["rows"] = 5;
  EXPECT_TRUE(ShortlexLess(instance, small, large));
  EXPECT_FALSE(ShortlexLess(instance, large, small));
  EXPECT_FALSE(ShortlexLess(instance, small, small));
  Case zeros = Sample();
  zeros.profiles["ids"].literal = {0, 0, 0};
  EXPECT_TRUE(ShortlexLess(instance, zeros, small));
  Case drawn = Sample();
  drawn.profiles["ids"] = {.kind = "zipf", .parameters = {}, .literal = {}};
  EXPECT_TRUE(ShortlexLess(instance, small, drawn));
}

TEST(RecipeTest, SetsTheIdeaAndLeavesTheRest) {
  const ops::Instance instance = GatherInstance();
  const Case value = MakeCase(instance, *FindRecipe("hot"),
                              {{"rows", 3}, {"columns", 2}, {"table", 4}}, 1, "value");
  EXPECT_EQ(value.profiles.at("x").kind, "biased");
  EXPECT_EQ(value.profiles.at("ids").kind, "zipf");
  EXPECT_FALSE(value.profiles.contains("scale"));
}

TEST(RecipeTest, ScalarsTakeTheEndsAndTheMagnitudesOfTheirRangeAndNothingElseOfARecipe) {
  ops::Instance instance = GatherInstance();
  for (const Recipe& recipe : AllRecipes()) {
    EXPECT_FALSE(MakeCase(instance, recipe, {}, 1, "edge").profiles.contains("scale"))
        << recipe.name;
  }
  instance.op.inputs[2].domain.kind = ops::Domain::Kind::kRange;
  instance.op.inputs[2].domain.low = -3;
  instance.op.inputs[2].domain.high = 5;
  const ops::AxisValues axes = {{"rows", 2}, {"columns", 2}, {"table", 3}};
  std::set<double> ends;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto filled =
        MaterialisePlain(instance, MakeCase(instance, *FindRecipe("extremes"), axes, seed, "edge"));
    ASSERT_TRUE(filled) << ToString(filled.error());
    ends.insert(filled->inputs.find("scale")->second.At(0));
  }
  EXPECT_EQ(ends, (std::set<double>{-3, 5}));
  EXPECT_EQ(MakeCase(instance, *FindRecipe("hot"), axes, 1, "edge").profiles.at("scale").kind,
            "graded");
  EXPECT_FALSE(
      MakeCase(instance, *FindRecipe("plain"), axes, 1, "edge").profiles.contains("scale"));
}

TEST(RecipeTest, SpecialValuesNeedADomainThatAllowsThem) {
  ops::Instance instance = GatherInstance();
  EXPECT_FALSE(Applies(*FindRecipe("specials"), instance));
  instance.op.inputs[0].domain.allow_nan = true;
  EXPECT_TRUE(Applies(*FindRecipe("specials"), instance));
}

TEST(RecipeTest, EveryRecipeMaterialises) {
  const ops::Instance instance = GatherInstance();
  for (const Recipe& recipe : AllRecipes()) {
    const Case value =
        MakeCase(instance, recipe, {{"rows", 40}, {"columns", 6}, {"table", 4}}, 1, "value");
    EXPECT_TRUE(Materialise(instance, value)) << recipe.name;
    const Case mixed = MakeMixedCase(instance, value.axes, 5, "random");
    EXPECT_TRUE(Materialise(instance, mixed));
    EXPECT_EQ(MakeMixedCase(instance, value.axes, 5, "random"), mixed);
  }
}

}  // namespace
}  // namespace assay::cases
