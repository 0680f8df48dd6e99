#include "serve/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runs/testing/fakes.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TokensTest : public ::testing::Test {
 protected:
  Result<Tokens> Load(const std::string& text, mode_t mode = 0600) const {
    EXPECT_TRUE(WriteFileAtomically(File(), text));
    EXPECT_EQ(::chmod(File().c_str(), mode), 0);
    return Tokens::Load(File());
  }
  Path File() const { return folder_.path() / "tokens"; }
  testing::TemporaryFolder folder_;
};

TEST_F(TokensTest, EachTokenIsItsClients) {
  const auto tokens = Load("# team\nann 0123456789abcdef\n\n bob\tfedcba9876543210  \n");
  ASSERT_TRUE(tokens) << ToString(tokens.error());
  EXPECT_EQ(tokens->ClientOf("Bearer 0123456789abcdef"), "ann");
  EXPECT_EQ(tokens->ClientOf("Bearer fedcba9876543210"), "bob");
  for (const char* const none :
       {"", "Bearer", "Bearer ", "bearer 0123456789abcdef", "ann", "Bearer 0123456789abcde",
        "Bearer 0123456789abcdeff", "Basic 0123456789abcdef", "Bearer ann"})
    EXPECT_FALSE(tokens->ClientOf(none)) << none;
}

TEST_F(TokensTest, WhatIsNoFileOfTokensIsRefusedWithoutQuotingIt) {
  for (const char* const text :
       {"", "ann short", "ann", "a/b 0123456789abcdef", "ann 0123456789abcdef x",
        "ann 0123456789abcdef\nann 0123456789abcdeg",
        "ann 0123456789abcdef\nbob 0123456789abcdef"}) {
    const auto tokens = Load(text);
    ASSERT_FALSE(tokens) << text;
    EXPECT_THAT(ToString(tokens.error()), Not(HasSubstr("0123456789abcde")));
  }
  EXPECT_FALSE(Load("ann 0123456789abcdef\n", 0640));
  EXPECT_TRUE(Load("ann 0123456789abcdef\n", 0400));
}

TEST_F(TokensTest, AFreshOneIsMadeOnceAndIsTheOwners) {
  ASSERT_TRUE(Tokens::LoadOrMake(File()));
  const std::string text = testing::Slurp(File());
  ASSERT_TRUE(Tokens::LoadOrMake(File()));
  EXPECT_EQ(testing::Slurp(File()), text);
  struct stat info{};
  ASSERT_EQ(::stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(Tokens::Load(File())->ClientOf("Bearer " + text.substr(6, 48)), "local");
}

}  // namespace
}  // namespace assay::serve
