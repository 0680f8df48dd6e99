#include "base/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(Command, SaysHowItEndedAndWhatItSaid) {
  const auto ran = RunCommand({"sh", "-c", "cat; echo no >&2; exit 3"}, {.input = "given\n"});
  ASSERT_TRUE(ran) << ToString(ran.error());
  EXPECT_EQ(ran->exit, 3);
  EXPECT_EQ(ran->out, "given\n");
  EXPECT_EQ(ran->err, "no\n");
  EXPECT_FALSE(ran->Succeeded());
  EXPECT_EQ(RunCommand({"sh", "-c", "kill -9 $$"})->exit, 137);
  EXPECT_TRUE(RunCommand({"true"}, {.attached = true})->Succeeded());
  EXPECT_FALSE(RunCommand({"false"}, {.attached = true})->Succeeded());
}

TEST(Command, MuchOnBothStreamsBlocksNobody) {
  const auto ran = RunCommand(
      {"sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo end"});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->out.size(), 1'000'004u);
  EXPECT_EQ(ran->err.size(), 1'000'000u);
}

TEST(Command, WordsArePassedAsTheyAre) {
  EXPECT_EQ(RunCommand({"printf", "%s|", "a b", "$HOME", "'", ""})->out, "a b|$HOME|'||");
}

TEST(Command, OneThatIsNotThereIsNamedWithTheCure) {
  const auto ran = RunCommand({"no-such-program-here"}, {.cure = "install it"});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(ToString(ran.error()), HasSubstr("no-such-program-here"));
  EXPECT_EQ(ran.error().cure, "install it");
}

}  // namespace
}  // namespace assay
