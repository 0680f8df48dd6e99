#include "base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay {
namespace {

void BreakAnInvariant() { ASSAY_CHECK(1 + 1 == 3, "of arithmetic"); }

TEST(CheckDeathTest, EndsTheProgramWithPlaceConditionAndReason) {
  EXPECT_DEATH(BreakAnInvariant(),
               R"(check_test.cc:11: .*CHECK\(1 \+ 1 == 3\) failed: of arithmetic)");
}

TEST(CheckDeathTest, ThrowsInALibrary) {
  const auto in_a_library = [] {
    ThrowOnFailedChecks();
    try {
      BreakAnInvariant();
    } catch (const CheckFailure& failure) {
      std::exit(std::string_view(failure.what()).ends_with("failed: of arithmetic") ? 7 : 8);
    }
  };
  EXPECT_EXIT(in_a_library(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace assay
