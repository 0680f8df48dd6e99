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

TEST(PublicUrlTest, DropsUserPasswordQueryAndFragment) {
  EXPECT_EQ(PublicUrl("https://user:secret@host:8000/v1?key=1#x"), "https://host:8000/v1");
  EXPECT_EQ(PublicUrl("http://localhost/v1"), "http://localhost/v1");
  EXPECT_EQ(PublicUrl("http://a@b@host/p@th"), "http://host/p@th");
  EXPECT_EQ(PublicUrl(""), "");
}

}  // namespace
}  // namespace assay::models
