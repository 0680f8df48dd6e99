#include "base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Lowers a soft limit for the length of a test.
class Lowered {
 public:
  Lowered(int resource, std::uint64_t value) : resource_(resource) {
    ::getrlimit(static_cast<__rlimit_resource>(resource_), &before_);
    const rlimit lowered{value, before_.rlim_max};
    ::setrlimit(static_cast<__rlimit_resource>(resource_), &lowered);
  }
  ~Lowered() { ::setrlimit(static_cast<__rlimit_resource>(resource_), &before_); }

 private:
  int resource_;
  rlimit before_{};
};

TEST(Limits, ACureNamesTheLimitAndItsValue) {
  const Lowered files(RLIMIT_NOFILE, 77);
  const Lowered size(RLIMIT_FSIZE, 64 << 10);
  EXPECT_THAT(CureOf(EMFILE), AllOf(HasSubstr("(ulimit -n 77)"), HasSubstr("raise it: ulimit -n")));
  EXPECT_THAT(CureOf(EFBIG), AllOf(HasSubstr("(ulimit -f 64)"), HasSubstr("ulimit -f unlimited")));
  // The twin: what no limit explains gets what the caller knows.
  EXPECT_EQ(CureOf(ENOENT, "/x", "look there"), "look there");
}

TEST(Limits, WhereNoLimitIsSetTheFileSystemOrTheMachineIs) {
  EXPECT_THAT(CureOf(ENOSPC, "/data"), HasSubstr("file system of /data is full"));
  EXPECT_THAT(CureOf(EROFS, "/data"), HasSubstr("read-only"));
  EXPECT_THAT(CureOf(EDQUOT, "/data"), HasSubstr("quota"));
  if (!SoftLimit(LimitOf(RLIMIT_AS))) {
    EXPECT_THAT(CureOf(ENOMEM), HasSubstr("free memory"));
  }
}

TEST(Limits, SoftLimitsAreRaisedAsFarAsTheyMayAndNeverLowered) {
  const Lowered files(RLIMIT_NOFILE, 33);
  RaiseSoftLimit(RLIMIT_NOFILE, 12);
  EXPECT_EQ(SoftLimit(LimitOf(RLIMIT_NOFILE)), 33u);
  RaiseSoftLimit(RLIMIT_NOFILE, 55);
  EXPECT_EQ(SoftLimit(LimitOf(RLIMIT_NOFILE)), 55u);
}

}  // namespace
}  // namespace assay
