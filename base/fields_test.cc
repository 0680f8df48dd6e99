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

struct Limits {
  std::uint32_t percent = 50;
  std::optional<Point> corner;
  std::vector<double> known;
  bool operator==(const Limits&) const = default;
};
struct NullForNaN {
  static Json Write(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }
  static Result<double> Read(const Json& json, const std::string& place) {
    if (json.is_null()) return std::nan("");
    return ReadJson<double>(json, place);
  }
};
struct CornerX {
  static Json Write(const std::optional<Point>& point) {
    return point ? Json(point->x) : Json(nullptr);
  }
  static Result<std::optional<Point>> Read(const Json& json, const std::string& place) {
    if (json.is_null()) return std::nullopt;
    ASSAY_TRY(const int x, ReadJson<int>(json, place));
    return Point{.x = x};
  }
};
static constexpr auto JsonFields(const Limits*) {
  using L = Limits;
  return std::tuple(Nested("of", Required<Between<std::uint32_t, 0, 100>>("percent", &L::percent)),
                    Required<CornerX>("corner", &L::corner),
                    Within(&L::corner, Required("corner_y", &Point::y)),
                    Nested<Presence::kOptional>(
                        "values", Required<ListOf<double, NullForNaN>>("known", &L::known)),
                    Ignored("remark"));
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

TEST(Fields, RowsStandInObjectsOfTheirOwnOrAmongOthers) {
  const Limits all{.percent = 7, .corner = Point{.x = 3, .y = 9}, .known = {1.5}};
  const Json json = WriteJson(all);
  EXPECT_EQ(CompactJson(json),
            R"({"of":{"percent":7},"corner":3,"corner_y":9,"values":{"known":[1.5]}})");
  EXPECT_EQ(ReadJson<Limits>(json, "f"), all);
  // Without the member its rows stand there all the same, and nothing is kept of them.
  const Limits without{.percent = 7, .corner = std::nullopt, .known = {}};
  EXPECT_EQ(CompactJson(WriteJson(without)),
            R"({"of":{"percent":7},"corner":null,"corner_y":7,"values":{"known":[]}})");
  EXPECT_EQ(
      ReadJson<Limits>(Parse(R"({"of":{"percent":7},"corner":null,"corner_y":8,"remark":1})"), "f"),
      without);
  EXPECT_TRUE(std::isnan(
      ReadJson<Limits>(
          Parse(R"({"of":{"percent":7},"corner":1,"corner_y":8,"values":{"known":[null]}})"), "f")
          ->known.at(0)));
}

TEST(Fields, RowsOfARangeAndInObjectsRefuseWithTheirPlace) {
  const auto refusal = [](std::string_view text) {
    const auto read = ReadJson<Limits>(Parse(text), "f");
    return read ? "was read" : ToString(read.error());
  };
  EXPECT_THAT(refusal(R"({"of":{"percent":101},"corner":1,"corner_y":8})"),
              HasSubstr("f: /of/percent: must be between 0 and 100"));
  EXPECT_THAT(refusal(R"({"of":{"percent":1,"precent":1},"corner":1,"corner_y":8})"),
              HasSubstr("f: /of/precent: unknown key"));
  EXPECT_THAT(refusal(R"({"corner":1,"corner_y":8})"), HasSubstr("the key 'of' is missing"));
  EXPECT_THAT(refusal(R"({"of":{"percent":1},"corner":1})"),
              HasSubstr("the key 'corner_y' is missing"));
  EXPECT_THAT(refusal(R"({"of":{"percent":1},"corner":1,"corner_y":8,"values":{"known":[1,"x"]}})"),
              HasSubstr("f: /values/known/1: must be a number"));
}

}  // namespace
}  // namespace assay::fields_test
