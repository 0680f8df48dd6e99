#include "runs/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;

// Only the Gatekeeper makes what Emit takes; what Emit leaves is made by hand here.
class PublishTest : public ::testing::Test {
 protected:
  Path vetted() const { return folder_.path() / "vetted" / "i"; }

  static std::string Certificate(const std::string& kernel) {
    return PrettyJson(
        {{"schema", "assay.certificate/1"},
         {"sha256",
          {{"kernel.cu", Sha256Hex(kernel)}, {"launch.json", Sha256Hex("{}")}, {"prompts", "0"}}}});
  }

  // Returns the certificate's digest.
  static std::string Write(const Path& folder, const std::string& kernel) {
    EXPECT_TRUE(MakeFolders(folder));
    EXPECT_TRUE(WriteFileAtomically(folder / "kernel.cu", kernel));
    EXPECT_TRUE(WriteFileAtomically(folder / "launch.json", "{}"));
    EXPECT_TRUE(WriteFileAtomically(folder / "certificate.json", Certificate(kernel)));
    return Sha256Hex(Certificate(kernel));
  }

  std::string Published(const std::string& certificate) const {
    const Status published = Publish(vetted(), certificate);
    return published ? testing::Slurp(vetted() / "kernel.cu") : ToString(published.error());
  }

  testing::TemporaryFolder folder_;
};

TEST_F(PublishTest, WhatIsRecordedIsPutInPlaceAndStaysThere) {
  const std::string first = Write(vetted().string() + ".new", "one");
  EXPECT_EQ(Published(first), "one");
  EXPECT_EQ(Published(first), "one");
  EXPECT_EQ(Published(""), "one");  // records of old name no digest
  const std::string second = Write(vetted().string() + ".new", "two");
  EXPECT_EQ(Published(second), "two");
  EXPECT_EQ(testing::FilesBelow(folder_.path()).size(), 3u);
}

// Killed before the record was written, and at each point of putting it in place.
TEST_F(PublishTest, ACrashLeavesTheKernelThatTheRecordNames) {
  const std::string first = Write(vetted(), "one");
  Write(vetted().string() + ".new", "two");
  EXPECT_EQ(Published(first), "one");
  EXPECT_FALSE(std::filesystem::exists(vetted().string() + ".new"));
  const std::string second = Write(vetted().string() + ".new", "two");
  std::filesystem::rename(vetted(), vetted().string() + ".old");
  EXPECT_EQ(Published(second), "two");
  EXPECT_FALSE(std::filesystem::exists(vetted().string() + ".old"));
  Write(vetted().string() + ".old", "one");
  EXPECT_EQ(Published(second), "two");
  EXPECT_FALSE(std::filesystem::exists(vetted().string() + ".old"));
}

TEST_F(PublishTest, WhatWasChangedSinceIsRefusedWithItsName) {
  const std::string certificate = Write(vetted(), "one");
  const auto changed = [&](const char* file, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(vetted() / file, text));
    const std::string said = Published(certificate) + Published("");
    std::filesystem::remove_all(vetted());
    Write(vetted(), "one");
    return said;
  };
  EXPECT_THAT(changed("kernel.cu", "evil"), HasSubstr("kernel.cu: the file is not the one"));
  EXPECT_THAT(changed("launch.json", "{ }"), HasSubstr("launch.json: the file is not the one"));
  EXPECT_THAT(changed("more.so", "evil"), HasSubstr("more.so: the certificate does not name"));
  EXPECT_THAT(changed("certificate.json", "{}"), HasSubstr("not the one that the run recorded"));
  EXPECT_THAT(changed("certificate.json", R"({"sha256": {"../../x": "0"}})"), HasSubstr("../../x"));
  // A forged kernel with a forged certificate does not fit the record.
  std::filesystem::remove_all(vetted());
  Write(vetted(), "evil");
  EXPECT_THAT(Published(certificate), HasSubstr("not the one that the run recorded"));
  std::filesystem::remove_all(vetted());
  EXPECT_THAT(Published(certificate), HasSubstr("certificate.json"));
  Write(vetted(), "one");
  EXPECT_EQ(Published(certificate), "one");
}

}  // namespace
}  // namespace assay::runs
