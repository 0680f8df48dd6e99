#include "base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/digest.h"
#include "base/shared_memory.h"

namespace assay {
namespace {

TEST(File, WritesAtomicallyAndAppends) {
  const Path folder = Path(testing::TempDir()) / "assay_file_test";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(MakeFolders(folder / "a" / "b").has_value());
  const Path file = folder / "a" / "b" / "f";
  ASSERT_TRUE(WriteFileAtomically(file, "one\n").has_value());
  ASSERT_TRUE(AppendLine(file, "two").has_value());
  EXPECT_EQ(ReadFile(file), "one\ntwo\n");
  EXPECT_FALSE(ReadFile(file, 3).has_value());
  EXPECT_FALSE(ReadFile(folder).has_value());
  EXPECT_FALSE(ReadFile(folder / "missing").has_value());
  std::filesystem::remove_all(folder);
}

TEST(Digest, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(SharedMemory, PrivateCopyLeavesTheOriginal) {
  auto memory = *SharedMemory::Create(4096);
  memory.bytes()[0] = std::byte{7};
  auto copy =
      *SharedMemory::Map(UniqueFd(dup(memory.fd())), 4096, SharedMemory::Access::kPrivateCopy);
  copy.bytes()[0] = std::byte{9};
  EXPECT_EQ(memory.bytes()[0], std::byte{7});
  EXPECT_FALSE(SharedMemory::Map(UniqueFd(dup(memory.fd())), 8192, SharedMemory::Access::kReadWrite)
                   .has_value());
}

// Holes of a large file are nobody's pages; whatever stands between them is there.
TEST(SharedMemory, PrivateCopyOfFewPagesAmongMany) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  for (const std::size_t apart : {kBytes, kBytes / 4, kBytes / 256}) {
    auto memory = *SharedMemory::Create(kBytes + 5);
    std::vector<std::size_t> places = {0, kBytes + 4};
    for (std::size_t at = apart; at < kBytes; at += apart) places.push_back(at + 4095);
    for (const std::size_t at : places) memory.bytes()[at] = std::byte{7};
    auto copy = *SharedMemory::Map(UniqueFd(dup(memory.fd())), kBytes + 5,
                                   SharedMemory::Access::kPrivateCopy);
    EXPECT_EQ(std::ranges::count(copy.bytes(), std::byte{7}),
              static_cast<std::ptrdiff_t>(places.size()));
    for (const std::size_t at : places) EXPECT_EQ(copy.bytes()[at], std::byte{7}) << at;
    copy.bytes()[1] = copy.bytes()[kBytes / 2 + 9] = std::byte{9};
    EXPECT_EQ(memory.bytes()[1], std::byte{0});
    EXPECT_EQ(memory.bytes()[kBytes / 2 + 9], std::byte{0});
  }
}

TEST(File, AWriteThatFailsLeavesNothingAndNamesTheLimit) {
  const Path folder = Path(testing::TempDir()) / ("assay-file-" + std::to_string(::getpid()));
  ASSERT_TRUE(MakeFolders(folder));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64 << 10, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status large = WriteFileAtomically(folder / "x", std::string(1 << 20, 'x'));
  const Status fits = WriteFileAtomically(folder / "y", std::string(1 << 10, 'y'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().cure.find("(ulimit -f 64)"), std::string::npos) << large.error().cure;
  EXPECT_TRUE(fits);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left, std::vector<std::string>{"y"});
  std::filesystem::remove_all(folder);
}

TEST(File, OneThatIsTooLargeIsAnInputAtFault) {
  const Path file = Path(testing::TempDir()) / ("assay-large-" + std::to_string(::getpid()));
  ASSERT_TRUE(WriteFileAtomically(file, "12345"));
  EXPECT_TRUE(ReadFile(file, 5));
  const auto large = ReadFile(file, 4);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, ErrorKind::kMalformedInput);
  EXPECT_NE(large.error().message.find("5 bytes; at most 4"), std::string::npos);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace assay
