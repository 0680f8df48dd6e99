// Expressions in Python and C++ come to what ops/expression comes to, errors included: a few hundred
// random ones, written out with their values by the code that writes loaders. What is written is kept
// (testdata/expressions.*), compiled here as C++ and run by python/tests/test_loader.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/rng.h"
#include "loaders/declaration.h"
// clang-format off: includes what the golden loader brings along.
#include "loaders/testdata/kernel.hpp"
// clang-format on

namespace assay::loaders {
namespace {

using namespace assay_kernels::scatter_add_T_bf16_sm_90;  // its runtime

struct Extents {
  std::int64_t a, b, c;
};
struct Row {
  const char* text;
  std::int64_t (*value)(const Extents& axes);
  Extents axes;
  bool fails;
  std::int64_t wanted;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare"
const Row kRows[] = {
#include "loaders/testdata/expressions.inc"
};
#pragma GCC diagnostic pop

class Author {
 public:
  explicit Author(std::uint64_t seed) : rng_(seed) {}

  std::string Write(int depth) {
    constexpr const char* kOperators[] = {"+",  "-", "*",  "/",  "%",  "==", "!=", "<",
                                          "<=", ">", ">=", "&&", "||", "+",  "*"};
    constexpr const char* kFunctions[] = {"min", "max", "ceil_div", "round_up"};
    constexpr const char* kLeaves[] = {
        "a", "b", "c", "0", "1", "2", "7", "64", "4611686018427387904"};
    const auto pick = [this](const auto& list) { return list[rng_.Below(std::size(list))]; };
    const std::uint64_t kind = depth == 0 ? 0 : rng_.Below(8);
    if (kind < 2) return pick(kLeaves);
    if (kind == 2) return fmt::format("-({})", Write(depth - 1));
    if (kind == 3) return fmt::format("!({})", Write(depth - 1));
    if (kind == 4)
      return fmt::format("{}({}, {})", pick(kFunctions), Write(depth - 1), Write(depth - 1));
    return fmt::format("({}) {} ({})", Write(depth - 1), pick(kOperators), Write(depth - 1));
  }
  std::int64_t Extent() {
    constexpr std::int64_t kExtents[] = {
        0, 1, 2, 3, 5, 64, 1000, std::int64_t{1} << 31, INT64_MAX - 1, INT64_MAX};
    return kExtents[rng_.Below(std::size(kExtents))];
  }

 private:
  Rng rng_;
};

TEST(Expressions, AreThoseOfTheKeptFiles) {
  Author author(20261122);
  std::string cpp, python = "ROWS = [\n";
  const Dialect in_cpp{.conjunction = "&&",
                       .disjunction = "||",
                       .truth = "std::int64_t",
                       .name = [](std::string_view name) { return fmt::format("axes.{}", name); }};
  const Dialect in_python{
      .conjunction = "and", .disjunction = "or", .truth = "int", .name = [](std::string_view name) {
        return std::string(name);
      }};
  for (int i = 0; i < 400; ++i) {
    const std::string text = author.Write(1 + i % 4);
    const Result<ops::Expression> expression = ops::Expression::Parse(text, "");
    ASSERT_TRUE(expression) << text;
    const std::int64_t a = author.Extent(), b = author.Extent(), c = author.Extent();
    const Result<std::int64_t> value = expression->Evaluate({{"a", a}, {"b", b}, {"c", c}});
    const std::string wanted = !value                ? "0"
                               : *value == INT64_MIN ? "INT64_MIN"
                                                     : std::to_string(*value);
    cpp += fmt::format(
        "{{\"{}\", [](const Extents& axes) -> std::int64_t {{ (void)axes; return {}; }}, {{{}, {}, "
        "{}}}, {}, {}}},\n",
        text, Print(*expression, in_cpp), a, b, c, value ? "false" : "true", wanted);
    python += fmt::format("    (\"{}\", lambda a, b, c: {}, {}, {}, {}, {}),\n", text,
                          Print(*expression, in_python), a, b, c,
                          value ? std::to_string(*value) : "None");
  }
  python += "]\n";
  for (const auto& [name, text] :
       {std::pair("expressions.inc", cpp), std::pair("expressions.py", python)}) {
    const Path file = Path(ASSAY_SOURCE_DIR) / "loaders/testdata" / name;
    if (std::getenv("ASSAY_REBASE") != nullptr) {
      ASSERT_TRUE(WriteFileAtomically(file, text));
    }
    const Result<std::string> golden = ReadFile(file);
    ASSERT_TRUE(golden);
    EXPECT_EQ(text, *golden) << "ASSAY_REBASE=1 rewrites " << file << ", and compile again";
  }
}

TEST(Expressions, ComeToTheSameInCpp) {
  int failing = 0;
  for (const Row& row : kRows) {
    try {
      const std::int64_t value = row.value(row.axes);
      EXPECT_FALSE(row.fails) << row.text << " is " << value;
      EXPECT_EQ(value, row.wanted) << row.text;
    } catch (const Refused&) {
      ++failing;
      EXPECT_TRUE(row.fails) << row.text;
    }
  }
  EXPECT_EQ(std::size(kRows), 400u);
  EXPECT_GT(failing, 20);
  EXPECT_LT(failing, 300);
}

}  // namespace
}  // namespace assay::loaders
