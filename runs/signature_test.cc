#include "runs/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runs/testing/fakes.h"
#include "runs/testing/keys.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SignatureTest : public ::testing::Test {
 protected:
  SignatureTest() {
    testing::WriteKeys(folder_.path(), "ours");
    testing::WriteKeys(folder_.path(), "other");
  }
  Path File(const std::string& name) const { return folder_.path() / name; }
  SigningKey Key(const std::string& name) const { return *SigningKey::Load(File(name + ".pem")); }

  testing::TemporaryFolder folder_;
  const Json statement_ = StatementOf({{"kernel.cu", "ab"}}, {{"schema", "x"}});
};

TEST_F(SignatureTest, WhatIsSignedIsOpenedWithItsKey) {
  const std::string envelope = SignStatement(statement_, Key("ours"));
  const auto opened = OpenEnvelope(envelope, "e");
  ASSERT_TRUE(opened) << ToString(opened.error());
  EXPECT_EQ(opened->statement, statement_);
  EXPECT_EQ(opened->key.id(), PublicKey::Load(File("ours.pub.pem"))->id());
  EXPECT_NE(opened->key.id(), PublicKey::Load(File("other.pub.pem"))->id());
  EXPECT_EQ(envelope, SignStatement(statement_, Key("ours")));  // Ed25519 draws no numbers
}

// Lengths keep the type and the body of what is signed apart (the protocol's own example).
TEST_F(SignatureTest, AnEnvelopeIsDsse) {
  const Json envelope = *ParseJson(SignStatement(statement_, Key("ours")), "e");
  EXPECT_EQ(envelope.at("payloadType"), "application/vnd.in-toto+json");
  const std::string body = CompactJson(statement_);
  const std::string signed_bytes =
      "DSSEv1 28 application/vnd.in-toto+json " + std::to_string(body.size()) + " " + body;
  EXPECT_EQ(statement_.at("_type"), "https://in-toto.io/Statement/v1");
  EXPECT_TRUE(Key("ours").Public().Signed(signed_bytes, Key("ours").Sign(signed_bytes)));
  EXPECT_FALSE(Key("other").Public().Signed(signed_bytes, Key("ours").Sign(signed_bytes)));
  EXPECT_FALSE(Key("ours").Public().Signed(body, Key("ours").Sign(signed_bytes)));
}

TEST_F(SignatureTest, EveryByteOfAnEnvelopeCounts) {
  const std::string envelope = SignStatement(statement_, Key("ours"));
  for (std::size_t i = 0; i < envelope.size(); ++i) {
    std::string changed = envelope;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 7)));
    EXPECT_FALSE(OpenEnvelope(changed, "e")) << i << ": " << changed;
    changed = envelope;
    changed.erase(i, 1);
    EXPECT_FALSE(OpenEnvelope(changed, "e")) << i;
  }
}

TEST_F(SignatureTest, ASealFindsEveryChangedByte) {
  const std::string sealed = SealedText({{"a", 1.5}, {"b", {{"c", "d"}}}, {"n", nullptr}});
  const auto opened = OpenSealed(sealed, "c");
  ASSERT_TRUE(opened) << ToString(opened.error());
  EXPECT_EQ(SealedText(*opened), sealed);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 7)));
    EXPECT_FALSE(OpenSealed(changed, "c")) << i << ": " << changed;
  }
  EXPECT_FALSE(OpenSealed(sealed + " ", "c"));
  EXPECT_FALSE(OpenSealed(PrettyJson({{"a", 1}}), "c"));
}

TEST_F(SignatureTest, AKeyThatOthersCanReadSignsNothing) {
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    ASSERT_EQ(::chmod(File("ours.pem").c_str(), mode), 0);
    const auto key = SigningKey::Load(File("ours.pem"));
    ASSERT_FALSE(key) << mode;
    EXPECT_THAT(ToString(key.error()), HasSubstr("chmod 600"));
  }
  for (const mode_t mode : {0600, 0400}) {
    ASSERT_EQ(::chmod(File("ours.pem").c_str(), mode), 0);
    EXPECT_TRUE(SigningKey::Load(File("ours.pem"))) << mode;
  }
}

TEST_F(SignatureTest, WhatIsNoKeyIsRefusedWithoutQuotingIt) {
  const auto refused = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(File("bad.pem"), text));
    EXPECT_EQ(::chmod(File("bad.pem").c_str(), 0600), 0);
    const auto key = SigningKey::Load(File("bad.pem"));
    return key ? std::string("taken") : ToString(key.error());
  };
  std::string secret = testing::Slurp(File("ours.pem"));
  secret.erase(secret.find('\n') + 5, 3);
  EXPECT_THAT(refused(secret), HasSubstr("no Ed25519 private key"));
  EXPECT_THAT(refused(secret), Not(HasSubstr(secret.substr(40, 16))));
  EXPECT_THAT(refused(""), HasSubstr("no Ed25519 private key"));
  EXPECT_THAT(refused(testing::Slurp(File("ours.pub.pem"))), HasSubstr("no Ed25519 private key"));
  EXPECT_THAT(refused(std::string(20000, 'x')), HasSubstr("no key file"));
  std::filesystem::create_symlink(File("ours.pem"), File("link.pem"));
  EXPECT_FALSE(SigningKey::Load(File("link.pem")));
  EXPECT_FALSE(SigningKey::Load(folder_.path()));
  // Who verifies needs no secret, and should not hand one about.
  const auto secret_given = PublicKey::Load(File("ours.pem"));
  ASSERT_FALSE(secret_given);
  EXPECT_THAT(ToString(secret_given.error()), HasSubstr("private key"));
}

}  // namespace
}  // namespace assay::runs
