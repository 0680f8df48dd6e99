#include "base/json.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Json, SyntaxErrorsNameLineAndColumn) {
  const auto parsed = ParseJson("{\n  \"a\": ,\n}", "x.json");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().place, "x.json:2:8");
}

TEST(Json, RefusesDuplicateKeysAndBottomlessNesting) {
  EXPECT_FALSE(ParseJson(R"({"a": 1, "a": 2})", "x").has_value());
  EXPECT_TRUE(ParseJson(R"({"a": {"b": 1}, "c": {"b": 2}})", "x").has_value());
  EXPECT_FALSE(ParseJson(R"([{"b": {"x": 1}, "c": 2}, {"b": 1, "c": [{"b": 3}], "b": 1}])", "x")
                   .has_value());
  EXPECT_TRUE(
      ParseJson(R"([{"b": {"b": 1}, "c": 2}, {"b": 1, "c": [{"b": 3}]}])", "x").has_value());
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '['), "x").has_value());
}

TEST(Json, ReaderNamesMisspelledKeys) {
  const Json document = *ParseJson(R"({"name": "x", "limt": 3})", "op.json");
  auto reader = *ObjectReader::Of(document, "op.json");
  EXPECT_EQ(reader.Required<std::string>("name"), "x");
  EXPECT_EQ(reader.Optional<std::int64_t>("limit", 7), 7);
  const Status status = reader.Finish();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(ToString(status.error()),
            "op.json: /limt: unknown key 'limt'\n  fix: did you mean 'limit'?");
}

TEST(Json, ReaderNamesWrongTypes) {
  const Json document = *ParseJson(R"({"n": "3"})", "f");
  auto reader = *ObjectReader::Of(document, "f");
  const auto value = reader.Required<std::int64_t>("n");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().message, "must be an integer, not string");
  EXPECT_EQ(value.error().place, "f: /n");
}

}  // namespace
}  // namespace assay
