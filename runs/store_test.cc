#include "runs/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/digest.h"
#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class StoreTest : public ::testing::Test {
 protected:
  std::filesystem::file_time_type Now() const {
    return std::filesystem::file_time_type::clock::now();
  }
  void MakeOld(const std::string& digest) const {
    std::filesystem::last_write_time(store_.FileOf(digest), Now() - hours(48));
  }
  testing::TemporaryFolder folder_;
  Store store_{folder_.path() / "store"};
};

TEST_F(StoreTest, KeepsBytesByTheirDigest) {
  const std::string bytes("a\0b", 3);
  EXPECT_FALSE(store_.Has(Sha256Hex(bytes)));
  const auto digest = store_.Put(bytes);
  ASSERT_TRUE(digest) << ToString(digest.error());
  EXPECT_EQ(*digest, Sha256Hex(bytes));
  EXPECT_EQ(*store_.Get(*digest), bytes);
  EXPECT_EQ(store_.FileOf(*digest),
            folder_.path() / "store" / digest->substr(0, 2) / digest->substr(2));
  EXPECT_EQ(*store_.Put(bytes), *digest);
  EXPECT_EQ(testing::FilesBelow(store_.root()).size(), 1u);  // one copy, nothing left behind
}

TEST_F(StoreTest, BytesThatCameToHarmAreNotHandedOut) {
  const std::string digest = *store_.Put("right");
  ASSERT_TRUE(WriteFileAtomically(store_.FileOf(digest), "wrong"));
  EXPECT_FALSE(store_.Get(digest));
  // Who has the right ones mends it.
  EXPECT_EQ(*store_.Put("right"), digest);
  EXPECT_EQ(*store_.Get(digest), "right");
}

TEST_F(StoreTest, RecordsAreNamedByKeyAndReplaced) {
  const std::string key = Sha256Hex("key");
  EXPECT_FALSE(store_.GetRecord(key, "instance"));
  ASSERT_TRUE(store_.PutRecord(key, "instance", "one"));
  ASSERT_TRUE(store_.PutRecord(key, "instance", "two"));
  ASSERT_TRUE(store_.PutRecord(key, "judgement", "other"));
  EXPECT_EQ(*store_.GetRecord(key, "instance"), "two");
  EXPECT_EQ(store_.Records("instance"), std::vector<std::string>{key});
  EXPECT_EQ(testing::FilesBelow(store_.root()).size(), 2u);
}

TEST_F(StoreTest, CollectsWhatNobodyNeedsAndNothingYoung) {
  const std::string needed = *store_.Put("needed");
  const std::string garbage = *store_.Put("garbage");
  const std::string young = *store_.Put("young");
  ASSERT_TRUE(store_.PutRecord(garbage, "instance", "a record stays"));
  ASSERT_TRUE(store_.Refer("runs/a", {needed}));
  MakeOld(needed);
  MakeOld(garbage);
  const auto counted = store_.Collect(Now(), hours(24), Store::Collection::kCountOnly);
  ASSERT_TRUE(counted) << ToString(counted.error());
  EXPECT_EQ(counted->removed, 1u);
  EXPECT_TRUE(store_.Has(garbage));
  const auto collected = store_.Collect(Now(), hours(24));
  ASSERT_TRUE(collected) << ToString(collected.error());
  EXPECT_EQ(collected->removed, 1u);
  EXPECT_EQ(collected->bytes, 7u);
  EXPECT_EQ(collected->kept, 2u);
  EXPECT_TRUE(store_.Has(needed));
  EXPECT_FALSE(store_.Has(garbage));
  EXPECT_TRUE(store_.Has(young));
  EXPECT_TRUE(store_.GetRecord(garbage, "instance"));
  // Two runs need it; when both have gone nobody does.
  ASSERT_TRUE(store_.Refer("runs/b", {needed}));
  ASSERT_TRUE(store_.Release("runs/a"));
  ASSERT_TRUE(store_.Collect(Now(), hours(24)));
  EXPECT_TRUE(store_.Has(needed));
  ASSERT_TRUE(store_.Release("runs/b"));
  ASSERT_TRUE(store_.Collect(Now(), hours(24)));
  EXPECT_FALSE(store_.Has(needed));
  EXPECT_TRUE(store_.Release("runs/nobody"));
}

TEST_F(StoreTest, WhatIsPutAgainIsYoungAgain) {
  const std::string digest = *store_.Put("again");
  MakeOld(digest);
  ASSERT_EQ(*store_.Put("again"), digest);
  EXPECT_EQ(store_.Collect(Now(), hours(24))->removed, 0u);
  EXPECT_TRUE(store_.Has(digest));
}

TEST_F(StoreTest, ADamagedReferenceStopsTheCollection) {
  const std::string digest = *store_.Put("kept");
  MakeOld(digest);
  ASSERT_TRUE(store_.Refer("runs/a", {digest}));
  const std::string refs = testing::FilesBelow(store_.root() / "refs").at(0);
  ASSERT_TRUE(WriteFileAtomically(store_.root() / "refs" / refs, "{"));
  EXPECT_FALSE(store_.Collect(Now(), hours(24)));
  EXPECT_TRUE(store_.Has(digest));
}

// Writers of one blob, of many, and a collector at once: whatever was put last is there and whole.
TEST_F(StoreTest, ManyWritersAndACollector) {
  constexpr int kWriters = 4;
  constexpr int kBlobs = 40;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < kBlobs; ++i) {
        const std::string bytes = std::string(5000, 'x') + std::to_string(i);
        const auto digest = store_.Put(bytes);
        good = good && digest && *store_.Get(*digest) == bytes;
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store_.Collect(Now(), seconds(3600)));
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(testing::FilesBelow(store_.root()).size(), static_cast<std::size_t>(kBlobs));
}

TEST_F(StoreTest, WhatDeadWritersLeftIsCleared) {
  const std::string digest = *store_.Put("x");
  const Path shelf = store_.FileOf(digest).parent_path();
  ASSERT_TRUE(WriteFileAtomically(shelf / ".tmp.dead", "half"));
  ASSERT_TRUE(WriteFileAtomically(shelf / ".tmp.alive", "half"));
  std::filesystem::last_write_time(shelf / ".tmp.dead", Now() - hours(48));
  ASSERT_TRUE(store_.Collect(Now(), hours(24)));
  EXPECT_FALSE(std::filesystem::exists(shelf / ".tmp.dead"));
  EXPECT_TRUE(std::filesystem::exists(shelf / ".tmp.alive"));
}

TEST_F(StoreTest, AStoreThatCannotBeWrittenSaysSo) {
  ASSERT_TRUE(WriteFileAtomically(folder_.path() / "file", ""));
  const auto put = Store(folder_.path() / "file").Put("x");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().kind, ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace assay::runs
