#include "base/file.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace assay
