#include "ops/expression.h"

#include <gtest/gtest.h>

namespace assay::ops {
namespace {

std::int64_t Value(std::string_view text, const AxisValues& values = {}) {
  const auto parsed = Expression::Parse(text, "f");
  EXPECT_TRUE(parsed.has_value()) << text << ": " << (parsed ? "" : ToString(parsed.error()));
  if (!parsed) return -999;
  const auto value = parsed->Evaluate(values);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : ToString(value.error()));
  return value.value_or(-999);
}

std::string ErrorOf(std::string_view text, const AxisValues& values = {}) {
  const auto parsed = Expression::Parse(text, "f");
  if (!parsed) return ToString(parsed.error());
  const auto value = parsed->Evaluate(values);
  return value ? "no error" : ToString(value.error());
}

TEST(Expression, Arithmetic) {
  struct Row {
    std::string_view text;
    std::int64_t value;
  };
  for (const Row& row : {Row{"1 + 2 * 3", 7},      Row{"(1 + 2) * 3", 9},
                         Row{"7 - 2 - 1", 4},      Row{"-3 + 5", 2},
                         Row{"17 / 5", 3},         Row{"17 % 5", 2},
                         Row{"1 < 2", 1},          Row{"2 <= 1", 0},
                         Row{"3 != 3", 0},         Row{"!0", 1},
                         Row{"!(1 == 1)", 0},      Row{"1 && 2", 1},
                         Row{"0 || 7", 1},         Row{"0 && 1 || 1", 1},
                         Row{"min(3, 2)", 2},      Row{"max(3, 2 + 9)", 11},
                         Row{"ceil_div(9, 4)", 3}, Row{"round_up(9, 4)", 12},
                         Row{"ceil_div(0, 4)", 0}, Row{"9223372036854775807", INT64_MAX}}) {
    EXPECT_EQ(Value(row.text), row.value) << row.text;
  }
  EXPECT_EQ(Value("ceil_div(tokens, 4) * hidden", {{"tokens", 9}, {"hidden", 5}}), 15);
}

TEST(Expression, LogicDoesNotEvaluateWhatIsDecided) {
  EXPECT_EQ(Value("n == 0 || 8 % n == 0", {{"n", 0}}), 1);
  EXPECT_EQ(Value("n != 0 && 8 / n > 1", {{"n", 0}}), 0);
  EXPECT_EQ(Value("n != 0 && 8 / n > 1", {{"n", 2}}), 1);
}

TEST(Expression, ErrorsNameTheColumn) {
  EXPECT_EQ(ErrorOf("4 / n", {{"n", 0}}),
            "f, column 3: '4 / n' divides 4 by zero\n  fix: guard it: max(divisor, 1)");
  EXPECT_EQ(ErrorOf("4 + m", {{"n", 0}}), "f, column 5: 'm' has no value here");
  EXPECT_NE(ErrorOf("n * n", {{"n", INT64_MAX}}).find("leaves 63 bits"), std::string::npos);
  EXPECT_NE(ErrorOf("-n - 2", {{"n", INT64_MAX}}).find("leaves 63 bits"), std::string::npos);
  EXPECT_NE(ErrorOf("round_up(n, 16)", {{"n", INT64_MAX}}).find("leaves 63 bits"),
            std::string::npos);
  EXPECT_NE(ErrorOf("(-n - 1) / -1", {{"n", INT64_MAX}}).find("leaves 63 bits"), std::string::npos);
  EXPECT_NE(ErrorOf("(-n - 1) % -1", {{"n", INT64_MAX}}).find("leaves 63 bits"), std::string::npos);
  EXPECT_NE(ErrorOf("-(-n - 1)", {{"n", INT64_MAX}}).find("leaves 63 bits"), std::string::npos);
}

TEST(Expression, RefusesWhatIsNotAnExpression) {
  for (const std::string_view text : {"",
                                      " ",
                                      "1 +",
                                      "(1",
                                      "1)",
                                      "1 2",
                                      "a b",
                                      "min(1)",
                                      "min(1, 2, 3)",
                                      "min 1",
                                      "system(1, 2)",
                                      "1.5",
                                      "0x10",
                                      "99999999999999999999",
                                      "a = 1",
                                      "a ? b : c",
                                      "1;2",
                                      "\"x\"",
                                      "a[0]",
                                      "*",
                                      "\x80",
                                      "a & b"}) {
    EXPECT_FALSE(Expression::Parse(text, "f").has_value()) << text;
  }
  EXPECT_FALSE(Expression::Parse(std::string_view("1\0 + 1", 6), "f").has_value());
}

TEST(Expression, DepthAndLengthAreLimited) {
  EXPECT_NE(ErrorOf(std::string(500, '(') + "1" + std::string(500, ')')).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(500, '-') + "1").find("nested too deeply"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string(1'000'000, '1')).find("longer than"), std::string::npos);
  EXPECT_EQ(Value("((((((1))))))"), 1);
}

TEST(Expression, NamesAndLiterals) {
  const Expression expression = *Expression::Parse("b * 128 + min(a, b) + 4", "f");
  EXPECT_EQ(expression.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(expression.Literals(), (std::vector<std::int64_t>{128, 4}));
  EXPECT_EQ(*expression.Evaluate({{"a", 1}, {"b", 2}}), 261);
  EXPECT_EQ(*Expression::Constant(5).Evaluate({}), 5);
  EXPECT_EQ(*Expression{}.Evaluate({}), 1);
}

TEST(Expression, KinksAreWhatIsCompared) {
  const Expression grid = *Expression::Parse("min(ceil_div(rows, 8), 2112) * (columns > 5)", "f");
  using Kink = Expression::Kink;
  EXPECT_EQ(grid.Kinks({{"rows", 17}, {"columns", 4}}),
            (std::vector<Kink>{Kink({3, 2112}), Kink({4, 5})}));
  // Where it has no value, it has no kinks, but their number stays.
  EXPECT_EQ(grid.Kinks({{"rows", 17}}), (std::vector<Kink>{std::nullopt, std::nullopt}));
  // What is not evaluated is not compared.
  const Expression guarded = *Expression::Parse("a == 0 || 8 % a < b", "f");
  EXPECT_EQ(guarded.Kinks({{"a", 0}, {"b", 3}}), (std::vector<Kink>{Kink({0, 0}), std::nullopt}));
  EXPECT_TRUE(Expression::Parse("a + 2 * b", "f")->Kinks({{"a", 1}, {"b", 1}}).empty());
}

TEST(Expression, QuotientsAreWhatIsDivided) {
  const Expression grid = *Expression::Parse("min(ceil_div(rows, 8), 2112) * (columns / 5)", "f");
  using Kink = Expression::Kink;
  EXPECT_EQ(grid.Quotients({{"rows", 17}, {"columns", 4}}),
            (std::vector<Kink>{Kink({17, 8}), Kink({4, 5})}));
  EXPECT_EQ(grid.Quotients({{"rows", 17}}), (std::vector<Kink>{std::nullopt, std::nullopt}));
  EXPECT_TRUE(Expression::Parse("min(a, 2) * b", "f")->Quotients({{"a", 1}, {"b", 1}}).empty());
}

}  // namespace
}  // namespace assay::ops
