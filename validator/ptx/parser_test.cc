#include "validator/ptx/parser.h"

#include <gtest/gtest.h>

namespace assay::ptx {
namespace {
TEST(ParserTest, RefusesEmptyText) {
  const auto module = Parse("", "a.ptx");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().place, "a.ptx:1:1");
}
}  // namespace
}  // namespace assay::ptx
