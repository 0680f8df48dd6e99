#include "base/repeating_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/tensor.h"

namespace assay {
namespace {

std::vector<std::byte> Pattern() {
  std::vector<std::byte> pattern(3 * kPatternPage);
  for (std::size_t i = 0; i < pattern.size(); ++i)
    pattern[i] = static_cast<std::byte>(i * 7 + i / 251);
  return pattern;
}

TEST(RepeatingMemory, EveryPlaceHoldsThePatternsByteInBothProcesses) {
  const std::vector<std::byte> pattern = Pattern();
  const std::size_t bytes = 5 * pattern.size() + 1234;
  const auto memory = Repeat(pattern, bytes);
  ASSERT_TRUE(memory) << ToString(memory.error());
  ASSERT_EQ(memory->size(), bytes);
  // As a worker maps it.
  const auto mapped =
      SharedMemory::Map(UniqueFd(::dup(memory->fd())), bytes, SharedMemory::Access::kPrivateCopy);
  ASSERT_TRUE(mapped) << ToString(mapped.error());
  for (std::size_t i = 0; i < bytes; ++i) {
    ASSERT_EQ(memory->bytes()[i], pattern[i % pattern.size()]) << i;
    ASSERT_EQ(mapped->bytes()[i], pattern[i % pattern.size()]) << i;
  }
}

TEST(RepeatingMemory, ALongMemoryTakesAThousandMappingsAndFewPages) {
  const std::vector<std::byte> pattern = Pattern();
  const std::size_t bytes = 100'000 * pattern.size() + 1;
  const auto memory = Repeat(pattern, bytes);
  ASSERT_TRUE(memory) << ToString(memory.error());
  for (std::size_t i = 0; i < bytes; i += 9'999'991)
    ASSERT_EQ(memory->bytes()[i], pattern[i % pattern.size()]) << i;
  EXPECT_EQ(memory->bytes()[bytes - 1], pattern[0]);
  EXPECT_FALSE(Repeat(pattern, std::size_t{1} << 40)) << "its file would be too long";
}

TEST(RepeatingMemory, SeveralThreadsMayAskFirst) {
  const std::vector<std::byte> pattern = Pattern();
  const auto memory = Repeat(pattern, 7 * pattern.size());
  ASSERT_TRUE(memory) << ToString(memory.error());
  std::array<const std::byte*, 4> seen{};
  {
    std::vector<std::jthread> threads;
    for (const std::byte*& place : seen)
      threads.emplace_back([&memory, &place] { place = memory->bytes().data(); });
  }
  for (const std::byte* place : seen) {
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(place, seen.front());
  }
}

TEST(RepeatingMemory, AWriteShowsNowhereElse) {
  const std::vector<std::byte> pattern = Pattern();
  auto memory = Repeat(pattern, 3 * pattern.size());
  ASSERT_TRUE(memory);
  memory->bytes()[pattern.size() + 1] = std::byte{0xee};
  EXPECT_EQ(memory->bytes()[1], pattern[1]);
  EXPECT_EQ(memory->bytes()[2 * pattern.size() + 1], pattern[1]);
  const auto mapped = SharedMemory::Map(UniqueFd(::dup(memory->fd())), 3 * pattern.size(),
                                        SharedMemory::Access::kPrivateCopy);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->bytes()[pattern.size() + 1], pattern[1]);
  const std::byte other{0};
  EXPECT_LT(::pwrite(memory->fd(), &other, 1, 0), 0) << "the pattern is sealed";
}

// The file holds the pattern alone. Whoever copies by what is a hole in it gets zeros for the rest.
TEST(RepeatingMemory, ACloneHoldsEveryValueOrIsRefused) {
  const std::vector<std::byte> pattern = Pattern();
  const auto repeating = [&](std::int64_t elements) {
    Tensor tensor{.dtype = DType::kU8, .shape = {elements}, .elements = elements, .memory = {}};
    tensor.memory = *Repeat(pattern, static_cast<std::size_t>(elements));
    return tensor;
  };
  const Tensor tensor = repeating(50'000'001);
  const auto copy = tensor.Clone();
  ASSERT_TRUE(copy) << ToString(copy.error());
  EXPECT_EQ(FirstDifference(tensor, *copy), std::nullopt);
  const auto large = repeating((std::int64_t{1} << 29) + 1).Clone();
  ASSERT_FALSE(large) << "half a gigabyte of values that no file holds";
  EXPECT_EQ(large.error().kind, ErrorKind::kLimit);
}

TEST(RepeatingMemory, AHugeCloneKeepsWhatIsThereAndItsHoles) {
  auto tensor = Tensor::Create(DType::kU8, {std::int64_t{1} << 33});
  ASSERT_TRUE(tensor) << ToString(tensor.error());
  tensor->Set(0, 7);
  tensor->Set(tensor->elements - 1, 9);
  const auto copy = tensor->Clone();
  ASSERT_TRUE(copy) << ToString(copy.error());
  EXPECT_EQ(copy->At(0), 7);
  EXPECT_EQ(copy->At(copy->elements - 1), 9);
  EXPECT_EQ(copy->At(copy->elements / 2), 0);
}

TEST(RepeatingMemory, FilesThatAreTooShortAreErrorsUnlessSealed) {
  const auto plain = SharedMemory::Create(2 * kPatternPage);
  ASSERT_TRUE(plain);
  for (const auto access : {SharedMemory::Access::kPrivateCopy, SharedMemory::Access::kReadWrite}) {
    EXPECT_FALSE(SharedMemory::Map(UniqueFd(::dup(plain->fd())), 2 * kPatternPage + 1, access));
  }
  const auto pattern = Repeat(Pattern(), 4 * kPatternPage);
  ASSERT_TRUE(pattern);
  // What all repetitions share cannot be written through.
  EXPECT_FALSE(SharedMemory::Map(UniqueFd(::dup(pattern->fd())), 4 * kPatternPage,
                                 SharedMemory::Access::kReadWrite));
}

}  // namespace
}  // namespace assay
