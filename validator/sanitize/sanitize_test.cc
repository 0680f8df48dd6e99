#include "validator/sanitize/sanitize.h"

#include <gtest/gtest.h>

namespace assay::sanitize {
namespace {

TEST(Schedules, TheFirstIsPlainAndTheOthersTakeTurns) {
  EXPECT_EQ(ScheduleNumber(0, 7).policy, Schedule::Policy::kSequential);
  EXPECT_EQ(ScheduleNumber(1, 7).policy, Schedule::Policy::kReversed);
  EXPECT_EQ(ScheduleNumber(2, 7).policy, Schedule::Policy::kPermuted);
  EXPECT_EQ(ScheduleNumber(3, 7).policy, Schedule::Policy::kPriorities);
  EXPECT_NE(ScheduleNumber(5, 7), ScheduleNumber(2, 7));
}

}  // namespace
}  // namespace assay::sanitize
