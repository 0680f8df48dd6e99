#include "validator/engine/compile_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "base/digest.h"
#include "validator/engine/jailed_compiler.h"

namespace assay::engine {
namespace {

class CompileStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) /
              ("assay_compile_store_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Path OnlyFile() const {
    std::vector<Path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? Path() : files.front();
  }

  Path folder_;
};

TEST_F(CompileStoreTest, FindsWhatWasKeptByTheSameCompilerAlone) {
  const Json header = {{"ok", true}};
  const std::string payload = std::string("a\nb\0c", 5);
  CompileStore(folder_, "one").Keep("digest", header, payload);
  const auto found = CompileStore(folder_, "one").Find("digest");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->header, header);
  EXPECT_EQ(found->payload, payload);
  EXPECT_FALSE(CompileStore(folder_, "one").Find("another digest"));
  EXPECT_FALSE(CompileStore(folder_, "another").Find("digest"));
}

TEST_F(CompileStoreTest, DamagedFilesAreNotThere) {
  const CompileStore store(folder_, "one");
  store.Keep("digest", {{"ok", true}}, "payload");
  const std::string good = ReadFile(OnlyFile()).value();
  for (std::size_t i = 0; i < good.size(); i += 7) {
    std::string text = good;
    text[i] = static_cast<char>(text[i] ^ 1);
    ASSERT_TRUE(WriteFileAtomically(OnlyFile(), text));
    EXPECT_FALSE(store.Find("digest")) << i;
    ASSERT_TRUE(WriteFileAtomically(OnlyFile(), good.substr(0, i)));
    EXPECT_FALSE(store.Find("digest")) << i;
  }
  ASSERT_TRUE(WriteFileAtomically(OnlyFile(), good));
  EXPECT_TRUE(store.Find("digest"));
}

TEST_F(CompileStoreTest, FoldersThatOthersMayWriteToHoldNothing) {
  const CompileStore store(folder_, "one");
  store.Keep("digest", {{"ok", true}}, "payload");
  ASSERT_TRUE(store.Find("digest"));
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(store.Find("digest"));
  store.Keep("other", {{"ok", true}}, "payload");
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_TRUE(store.Find("digest"));
  EXPECT_FALSE(store.Find("other"));
  // A link may lead to a folder that is somebody else's tomorrow.
  const Path link = folder_.string() + "_link";
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(folder_, link);
  EXPECT_FALSE(CompileStore(link, "one").Find("digest"));
  std::filesystem::remove(link);
}

TEST_F(CompileStoreTest, KeepsSoManyAndTheLatest) {
  const CompileStore store(folder_, "one");
  for (std::size_t i = 0; i < CompileStore::kMostFiles + 20; ++i)
    store.Keep(std::to_string(i), {{"ok", true}}, "payload");
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), CompileStore::kMostFiles);
  EXPECT_TRUE(store.Find(std::to_string(CompileStore::kMostFiles + 19)));
}

TEST_F(CompileStoreTest, ManyWriteAndReadAtOnce) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const CompileStore store(folder_, "one");
      for (int i = 0; i < 50; ++i) {
        store.Keep("digest", {{"ok", true}}, std::string(5000, 'x'));
        if (const auto found = store.Find("digest")) {
          EXPECT_EQ(found->payload.size(), 5000u);
        }
      }
    });
  }
}

TEST_F(CompileStoreTest, StampsChangeWithAnyFile) {
  std::filesystem::create_directories(folder_);
  const std::vector<Path> files = {folder_ / "a", folder_ / "b"};
  EXPECT_EQ(StampOf(files), "");
  for (const Path& file : files) ASSERT_TRUE(WriteFileAtomically(file, "text"));
  const std::string before = StampOf(files);
  EXPECT_NE(before, "");
  EXPECT_EQ(StampOf(files), before);
  ASSERT_TRUE(WriteFileAtomically(files[1], "other text"));
  EXPECT_NE(StampOf(files), before);
}

/// A worker that compiles everything to the same, and counts.
class CountingWorkers {
 public:
  sandbox::FakeWorkers workers{[this](auto, const sandbox::Request&, auto) {
    ++asked;
    sandbox::Reply reply;
    reply.message.header = {
        {"ok", ok},         {"nvrtc", "13.0"},           {"ptx_bytes", 3},
        {"cubin_bytes", 0}, {"lowered", Json::object()}, {"program", {{"fault", "none"}}}};
    reply.message.payload = "ptx";
    return Result<sandbox::Reply>(std::move(reply));
  }};
  int asked = 0;
  bool ok = true;
};

TEST_F(CompileStoreTest, ReferencesAreAskedForOnceAndCandidatesEachTime) {
  const auto store = std::make_shared<const CompileStore>(folder_, "one");
  CountingWorkers counting;
  for (const Trust trust : {Trust::kReference, Trust::kCandidate}) {
    counting.asked = 0;
    for (int process = 0; process < 3; ++process) {
      JailedCompiler compiler(counting.workers, {.store = store});
      const auto outcome = compiler.Compile({.source = "text", .trust = trust, .entries = {}});
      ASSERT_TRUE(outcome) << ToString(outcome.error());
      EXPECT_EQ(outcome->kernel.ptx, "ptx");
      EXPECT_EQ(outcome->kernel.facts_fault, "none");
    }
    EXPECT_EQ(counting.asked, trust == Trust::kReference ? 1 : 3);
  }
}

TEST_F(CompileStoreTest, WhatDoesNotCompileIsNotKept) {
  const auto store = std::make_shared<const CompileStore>(folder_, "one");
  CountingWorkers counting;
  counting.ok = false;
  for (int process = 0; process < 2; ++process) {
    JailedCompiler compiler(counting.workers, {.store = store});
    const auto outcome =
        compiler.Compile({.source = "text", .trust = Trust::kReference, .entries = {}});
    ASSERT_TRUE(outcome) << ToString(outcome.error());
    EXPECT_EQ(outcome->kind, CompileOutcome::Kind::kRefused);
  }
  EXPECT_EQ(counting.asked, 2);
}

}  // namespace
}  // namespace assay::engine
