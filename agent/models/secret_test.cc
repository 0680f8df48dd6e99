#include "agent/models/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs/testing/fakes.h"

namespace assay::models {
namespace {

using ::testing::HasSubstr;

VariableReader Variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(FindKeyTest, FileBeforeVariableAndTrimmed) {
  testing::TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "key", "  from-file\n"));
  const auto reader = Variables({{"A", "from-variable"}});
  EXPECT_EQ(FindKey(folder.path() / "key", {"A"}, reader)->Reveal(), "from-file");
  EXPECT_EQ(FindKey({}, {"MISSING", "A"}, reader)->Reveal(), "from-variable");
  EXPECT_TRUE(FindKey({}, {"MISSING"}, reader)->empty());
}

TEST(FindKeyTest, AKeyThatWouldSplitAHeaderIsRefusedWithoutShowingIt) {
  const auto key = FindKey({}, {"A"}, Variables({{"A", "sk-one\r\nX-Evil: 1"}}));
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().place, HasSubstr("$A"));
  EXPECT_EQ(ToString(key.error()).find("sk-one"), std::string::npos);
}

TEST(FindKeyTest, AnEmptyKeyFileIsAnError) {
  testing::TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "key", "\n"));
  EXPECT_FALSE(FindKey(folder.path() / "key", {}, Variables({})));
  EXPECT_FALSE(FindKey(folder.path() / "missing", {}, Variables({})));
}

TEST(RedactorTest, BlanksEveryOccurrenceLongestFirst) {
  Redactor redactor;
  redactor.Add(Secret("sk-abcdef"));
  redactor.Add(Secret("sk-abcdef-long"));
  redactor.Add(Secret("abc"));  // too short to be told from chance
  EXPECT_EQ(redactor.Redact("a sk-abcdef-long b sk-abcdef c abc"), "a [key] b [key] c abc");
  EXPECT_EQ(redactor.Redact(""), "");
}

TEST(RedactorTest, WhatWasCutWithinASecretShowsNoneOfIt) {
  Redactor redactor;
  redactor.Add(Secret("sk-0123456789abcdef"));
  EXPECT_EQ(redactor.Redact("the key: sk-0123456", true), "the key: [key]");
  // What is whole is left alone, and so are words that a secret happens to begin with.
  EXPECT_EQ(redactor.Redact("the key: sk-0123456"), "the key: sk-0123456");
  EXPECT_EQ(redactor.Redact("ask", true), "ask");
}

TEST(RedactorTest, QuotesBlankFirstAndCutThen) {
  Redactor redactor;
  redactor.Add(Secret("sk-0123456789abcdef"));
  const std::string text = "Incorrect key: sk-0123456789abcdef (401)";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::string quoted = redactor.Quote(text, length);
    EXPECT_EQ(quoted.find("sk-0"), std::string::npos) << quoted;
  }
  EXPECT_EQ(redactor.Quote(text, 100), "Incorrect key: [key] (401)");
  // Somebody else may have cut it: pieces of eight bytes go, shorter ones tell nothing.
  EXPECT_EQ(redactor.Quote("sk-01234... and ...89abcdef", 100), "[key]... and ...[key]");
  EXPECT_EQ(redactor.Quote("sk-0123 is no piece", 100), "sk-0123 is no piece");
  EXPECT_EQ(redactor.Redact(Error{ErrorKind::kNetwork, "56789abcdef", "p", "c"}).message, "[key]");
}

TEST(RedactorTest, ASecretThatIsAWordIsBlankedAsAWholeOnly) {
  Redactor redactor;
  redactor.Add(Secret("development"));
  EXPECT_EQ(redactor.Quote("developmen, development", 100), "developmen, [key]");
}

TEST(PublicUrlTest, DropsUserPasswordQueryAndFragment) {
  EXPECT_EQ(PublicUrl("https://user:secret@host:8000/v1?key=1#x"), "https://host:8000/v1");
  EXPECT_EQ(PublicUrl("http://localhost/v1"), "http://localhost/v1");
  EXPECT_EQ(PublicUrl("http://a@b@host/p@th"), "http://host/p@th");
  EXPECT_EQ(PublicUrl(""), "");
}

}  // namespace
}  // namespace assay::models
