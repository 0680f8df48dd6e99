#include "base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::fields_test {

enum class Colour : std::uint8_t { kRed, kGreen };
constexpr std::array<std::string_view, 2> kColours = {"red", "green"};
static constexpr std::span<const std::string_view> JsonWords(const Colour*) { return kColours; }

struct Point {
  int x = 0;
  std::uint8_t y = 7;
  bool operator==(const Point&) const = default;
};
static constexpr auto JsonFields(const Point*) {
  return std::tuple(Required("x", &Point::x), Optional("y", &Point::y));
}
static Status JsonCheck(const Point& point, const ObjectReader& reader) {
  if (point.x != 13) return {};
  return Fail(ErrorKind::kMalformedInput, "brings bad luck", reader.PlaceOf("x"));
}

struct Shape {
  std::string name;
  Colour colour = Colour::kRed;
  std::vector<Point> points;
  std::optional<double> area;
  double worst = 0;
  std::map<std::string, std::uint64_t> counts;
  std::array<std::uint32_t, 3> block{1, 1, 1};
  bool operator==(const Shape&) const = default;
};
static constexpr auto JsonFields(const Shape*) {
  return std::tuple(Schema("test.shape/1"), Required("name", &Shape::name),
                    Required("colour", &Shape::colour), Sparse("points", &Shape::points),
                    Required("area", &Shape::area), Required<AnyNumber>("worst", &Shape::worst),
                    Sparse("counts", &Shape::counts), Sparse("block", &Shape::block));
}

namespace {

using ::testing::HasSubstr;

Json Parse(std::string_view text) { return ParseJson(text, "test").value(); }
std::string Refusal(std::string_view text) {
  const auto read = ReadJson<Shape>(Parse(text), "f");
  return read ? "was read" : ToString(read.error());
}

TEST(Fields, BothDirectionsFollowFromTheTable) {
  const Shape shape{.name = "a",
                    .colour = Colour::kGreen,
                    .points = {{1, 2}, {-3, 255}},
                    .area = 2.5,
                    .worst = HUGE_VAL,
                    .counts = {{"k", ~0ull}},
                    .block = {1, 2, 3}};
  const Json json = WriteJson(shape);
  EXPECT_EQ(CompactJson(json),
            R"({"schema":"test.shape/1","name":"a","colour":"green","points":[{"x":1,"y":2},)"
            R"({"x":-3,"y":255}],"area":2.5,"worst":"inf","counts":{"k":18446744073709551615},)"
            R"("block":[1,2,3]})");
  const auto read = ReadJson<Shape>(json, "f");
  ASSERT_TRUE(read.has_value()) << ToString(read.error());
  EXPECT_EQ(*read, shape);
}

TEST(Fields, WhatIsSparseIsLeftOutAndWhatIsMissingKeepsItsDefault) {
  const Json json = WriteJson(Shape{.name = "a"});
  EXPECT_EQ(CompactJson(json),
            R"({"schema":"test.shape/1","name":"a","colour":"red","area":null,"worst":0.0})");
  EXPECT_EQ(ReadJson<Shape>(json, "f"), Shape{.name = "a"});
  EXPECT_EQ(ReadJson<Point>(Parse(R"({"x": 4})"), "f"), (Point{4, 7}));
}

TEST(Fields, RefusalsNamePlaceAndCure) {
  const std::string head = R"({"schema":"test.shape/1","name":"a","colour":"red","area":null,)";
  EXPECT_THAT(Refusal(R"({"schema":"test.shape/2"})"),
              HasSubstr("this version reads test.shape/1"));
  EXPECT_THAT(Refusal(head + R"("worst":"much"})"),
              HasSubstr("f: /worst: must be a number, \"nan\""));
  EXPECT_THAT(Refusal(head + R"("wurst":1})"), HasSubstr("the key 'worst' is missing"));
  EXPECT_THAT(Refusal(head + R"("worst":1,"cuonts":{}})"), HasSubstr("did you mean 'counts'?"));
  EXPECT_THAT(Refusal(head + R"("worst":1,"points":{}})"),
              HasSubstr("f: /points: must be an array"));
  EXPECT_THAT(Refusal(head + R"("worst":1,"points":[{"x":1},{"x":2,"y":256}]})"),
              HasSubstr("f: /points/1/y: must be between 0 and 255"));
  EXPECT_THAT(Refusal(head + R"("worst":1,"points":[{"x":13}]})"),
              HasSubstr("f: /points/0/x: brings bad luck"));
  EXPECT_THAT(Refusal(head + R"("worst":1,"counts":{"k":-1}})"), HasSubstr("f: /counts/k: "));
  EXPECT_THAT(Refusal(head + R"("worst":1,"block":[1,2]})"), HasSubstr("must have 3 elements"));
  EXPECT_THAT(
      Refusal(R"({"schema":"test.shape/1","name":"a","colour":"gren","area":null,"worst":1})"),
      HasSubstr("f: /colour: unknown value 'gren'\n  fix: did you mean 'green'?"));
}

}  // namespace
}  // namespace assay::fields_test
