#include "validator/campaign/producers.h"

#include <gtest/gtest.h>

namespace assay::campaign {
namespace {

using Grid = std::array<std::uint32_t, 3>;

/// What a block writes of a plane of 64 rows of 64 bytes: a tile of 16 by 16 bytes. A plane for each z.
std::vector<BufferRange> Tile(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  std::vector<BufferRange> written;
  for (std::uint64_t row = 0; row < 16; ++row)
    written.push_back({2, z * 4096 + (y * 16 + row) * 64 + x * 16, 16});
  return written;
}

TEST(ProducersTest, BlocksAreFoundByWhatTheyWrite) {
  const Grid grid = {4, 4, 3};
  EXPECT_EQ(SampleBlocks(grid), (std::vector<std::uint64_t>{0, 1, 4, 16}));
  const std::vector<std::vector<BufferRange>> samples = {Tile(0, 0, 0), Tile(1, 0, 0),
                                                         Tile(0, 1, 0), Tile(0, 0, 1)};
  const auto producers = Producers::Of(grid, samples);
  ASSERT_TRUE(producers);
  std::set<std::uint64_t> blocks;
  // Bytes of two tiles beside each other, in the last plane.
  EXPECT_TRUE(
      producers->AddWritersOf(std::vector<BufferRange>{{2, 2 * 4096 + 17 * 64 + 30, 4}}, blocks));
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{2 * 16 + 4 + 1, 2 * 16 + 4 + 2}));
  // Of another buffer nobody knows anything.
  EXPECT_TRUE(producers->AddWritersOf(std::vector<BufferRange>{{1, 0, 64}}, blocks));
  EXPECT_EQ(blocks.size(), 2u);
}

TEST(ProducersTest, TheLastBlocksTellWhereTheFirstWriteNothing) {
  const Grid grid = {4, 4, 3};
  EXPECT_EQ(SampleBlocks(grid, Corner::kLast),
            (std::vector<std::uint64_t>{2 + 8 + 16, 1 + 8 + 16, 2 + 4 + 16, 2 + 8}));
  const std::vector<std::vector<BufferRange>> samples = {Tile(2, 2, 1), Tile(1, 2, 1),
                                                         Tile(2, 1, 1), Tile(2, 2, 0)};
  const auto producers =
      Producers::Of(grid, samples, Producers::Places::kOfOneBlock, Corner::kLast);
  ASSERT_TRUE(producers);
  for (const std::uint64_t block : {0u, 5u, 26u, 47u})
    EXPECT_EQ(producers->WrittenBy(block), Tile(block % 4, block / 4 % 4, block / 16));
  // Places that would lie before the buffer's beginning.
  EXPECT_FALSE(Producers::Of({4, 1, 1},
                             std::vector<std::vector<BufferRange>>{{{0, 8, 4}}, {{0, 0, 4}}},
                             Producers::Places::kOfOneBlock, Corner::kLast));
  // Where there are two, the other one is beside.
  EXPECT_EQ(SampleBlocks({2, 1, 3}, Corner::kLast), (std::vector<std::uint64_t>{2, 3, 0}));
}

TEST(ProducersTest, APlaneOfBlocksBehindTheEndWritesNothing) {
  const Grid grid = {4, 4, 2};
  const auto producers = Producers::Of(
      grid, std::vector<std::vector<BufferRange>>{Tile(0, 0, 0), Tile(1, 0, 0), Tile(0, 1, 0), {}});
  ASSERT_TRUE(producers);
  EXPECT_TRUE(producers->IsOfAll());
  EXPECT_EQ(producers->WrittenBy(15), Tile(3, 3, 0));
  EXPECT_TRUE(producers->WrittenBy(16).empty());
  std::set<std::uint64_t> blocks;
  EXPECT_TRUE(producers->AddWritersOf(std::vector<BufferRange>{{2, 17 * 64 + 30, 4}}, blocks));
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{5, 6}));
  // An axis within it where the next block writes nothing, or the only one, is no plane.
  EXPECT_FALSE(Producers::Of(grid, std::vector<std::vector<BufferRange>>{
                                       Tile(0, 0, 0), {}, Tile(0, 1, 0), Tile(0, 0, 1)}));
  EXPECT_FALSE(Producers::Of({4, 1, 1}, std::vector<std::vector<BufferRange>>{Tile(0, 0, 0), {}}));
}

TEST(ProducersTest, EveryBlockIsFoundAndNoOther) {
  const Grid grid = {4, 4, 3};
  const auto producers =
      Producers::Of(grid, std::vector<std::vector<BufferRange>>{Tile(0, 0, 0), Tile(1, 0, 0),
                                                                Tile(0, 1, 0), Tile(0, 0, 1)});
  ASSERT_TRUE(producers);
  for (std::uint64_t block = 0; block < 48; ++block) {
    std::set<std::uint64_t> blocks;
    EXPECT_TRUE(producers->AddWritersOf(Tile(block % 4, block / 4 % 4, block / 16), blocks));
    EXPECT_EQ(blocks, std::set<std::uint64_t>{block});
  }
}

TEST(ProducersTest, BlocksThatShareAPlaceAreFoundTogether) {
  // A ticket for each tile of 4 by 2; its four parts lie along z.
  const Grid grid = {4, 2, 4};
  const std::vector<std::vector<BufferRange>> samples = {
      {{1, 0, 4}}, {{1, 4, 4}}, {{1, 16, 4}}, {{1, 0, 4}}};
  EXPECT_FALSE(Producers::Of(grid, samples));
  const auto producers = Producers::Of(grid, samples, Producers::Places::kShared);
  ASSERT_TRUE(producers);
  const std::uint64_t block = 2 + 4 * (1 + 2 * 3);
  EXPECT_EQ(producers->WrittenBy(block), (std::vector<BufferRange>{{1, 24, 4}}));
  std::set<std::uint64_t> blocks;
  EXPECT_TRUE(producers->AddWritersOf(producers->WrittenBy(block), blocks));
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{6, 14, 22, 30}));
}

TEST(ProducersTest, AllBlocksOfARowMayShareAPlace) {
  const Grid grid = {4, 2, 1};
  const std::vector<std::vector<BufferRange>> samples = {{{1, 0, 4}}, {{1, 0, 4}}, {{1, 4, 4}}};
  const auto producers = Producers::Of(grid, samples, Producers::Places::kShared);
  ASSERT_TRUE(producers);
  std::set<std::uint64_t> blocks;
  EXPECT_TRUE(producers->AddWritersOf(producers->WrittenBy(5), blocks));
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{4, 5, 6, 7}));
}

/// Producers of a grid along x alone, refined by what `writes` says of any block; how often it was asked.
std::optional<Producers> Refined(
    std::uint32_t blocks, Producers::Places places,
    const std::function<std::vector<BufferRange>(std::uint64_t)>& writes, int& asked) {
  auto producers = Producers::Of(
      {blocks, 1, 1}, std::vector<std::vector<BufferRange>>{writes(0), writes(1)}, places);
  if (!producers) return std::nullopt;
  const auto status = producers->Refine(
      [&](std::uint64_t block) -> Result<std::optional<std::vector<BufferRange>>> {
        ++asked;
        return writes(block);
      });
  EXPECT_TRUE(status);
  return producers;
}

TEST(ProducersTest, AnAxisMayHoldTokensAndPartsOfTheirRows) {
  // Parts first in memory, tokens first in the grid; and a ticket for each token.
  constexpr std::uint64_t kTokens = 1000, kParts = 8;
  const auto part = [](std::uint64_t block) {
    return std::vector<BufferRange>{{3, (block % kParts * kTokens + block / kParts) * 4, 4}};
  };
  const auto ticket = [](std::uint64_t block) {
    return std::vector<BufferRange>{{3, block / kParts * 4, 4}};
  };
  int asked = 0;
  const auto parts = Refined(kTokens * kParts, Producers::Places::kOfOneBlock, part, asked);
  const auto tickets = Refined(kTokens * kParts, Producers::Places::kShared, ticket, asked);
  ASSERT_TRUE(parts);
  ASSERT_TRUE(tickets);
  EXPECT_LE(asked, 30);
  for (const std::uint64_t block : {0u, 7u, 8u, 4001u, 7999u}) {
    EXPECT_EQ(parts->WrittenBy(block), part(block));
    EXPECT_EQ(tickets->WrittenBy(block), ticket(block));
    std::set<std::uint64_t> writers, mates;
    EXPECT_TRUE(parts->AddWritersOf(part(block), writers));
    EXPECT_EQ(writers, std::set<std::uint64_t>{block});
    EXPECT_TRUE(tickets->AddWritersOf(ticket(block), mates));
    EXPECT_EQ(mates.size(), kParts);
    EXPECT_EQ(*mates.begin(), block / kParts * kParts);
  }
}

TEST(ProducersTest, AnAxisMayHoldThreeAndEndWithinOne) {
  // Heads of 65 tiles, the last of one row of 16, each in 3 parts; 7 heads, of the last one not all.
  const auto writes = [](std::uint64_t block) {
    const std::uint64_t part = block % 3, tile = block / 3 % 65, head = block / 195;
    return std::vector<BufferRange>{
        {0, part * 100'000 + head * 1'025 + tile * 16, tile == 64 ? 1u : 16u}};
  };
  int asked = 0;
  const auto producers = Refined(6 * 195 + 50, Producers::Places::kOfOneBlock, writes, asked);
  ASSERT_TRUE(producers);
  EXPECT_LE(asked, 45);
  for (const std::uint64_t block : {0u, 2u, 3u, 194u, 195u, 1000u, 1219u}) {
    std::set<std::uint64_t> writers;
    EXPECT_TRUE(producers->AddWritersOf(writes(block), writers));
    EXPECT_TRUE(writers.contains(block)) << block;
    EXPECT_LE(writers.size(), 2u)
        << block;  // Of a tile that is not full the next head's first rows.
  }
}

TEST(ProducersTest, AnAxisMayEndWhereItBeganAnew) {
  // Tickets of tokens that are 256 apart are one: 769 tokens of 8 parts, the last of which shares that of the first.
  const auto writes = [](std::uint64_t block) {
    return std::vector<BufferRange>{{0, block / 8 % 256 * 4, 4}};
  };
  int asked = 0;
  const auto producers = Refined(769 * 8, Producers::Places::kShared, writes, asked);
  ASSERT_TRUE(producers);
  std::set<std::uint64_t> mates;
  EXPECT_TRUE(producers->AddWritersOf(writes(768 * 8), mates));
  EXPECT_EQ(mates.size(), 32u);
}

TEST(ProducersTest, WhatHasNoPeriodStaysAsItWas) {
  const auto writes = [](std::uint64_t block) {
    return std::vector<BufferRange>{{0, block * block * 4, 4}};
  };
  int asked = 0;
  const auto producers = Refined(1000, Producers::Places::kOfOneBlock, writes, asked);
  ASSERT_TRUE(producers);
  EXPECT_EQ(producers->WrittenBy(7), (std::vector<BufferRange>{{0, 28, 4}}));
  EXPECT_LE(asked, 60);
  int once = 0;
  const auto evenly = [](std::uint64_t block) {
    return std::vector<BufferRange>{{0, block * 4, 4}};
  };
  ASSERT_TRUE(Refined(1'000'000, Producers::Places::kOfOneBlock, evenly, once));
  EXPECT_EQ(once, 3);
}

TEST(ProducersTest, WhatDoesNotMoveEvenlyIsNotGuessed) {
  const Grid grid = {4, 1, 1};
  // The same place, a place before, and other gaps.
  EXPECT_FALSE(
      Producers::Of(grid, std::vector<std::vector<BufferRange>>{{{0, 8, 4}}, {{0, 8, 4}}}));
  EXPECT_FALSE(
      Producers::Of(grid, std::vector<std::vector<BufferRange>>{{{0, 8, 4}}, {{0, 4, 4}}}));
  EXPECT_FALSE(Producers::Of(grid, std::vector<std::vector<BufferRange>>{{{0, 0, 4}, {0, 16, 4}},
                                                                         {{0, 4, 4}, {0, 24, 4}}}));
  EXPECT_FALSE(Producers::Of(grid, std::vector<std::vector<BufferRange>>{{{0, 8, 4}}, {}}));
  // The last block of an axis may write less.
  EXPECT_TRUE(Producers::Of(grid, std::vector<std::vector<BufferRange>>{{{0, 0, 8}}, {{0, 8, 6}}}));
}

TEST(ProducersTest, WhatOneBufferSaysHoldsWhereAnotherIsUneven) {
  const Grid grid = {8, 1, 1};
  // Rows of buffer 0 move evenly; of buffer 1 each block writes a place that hangs on values.
  const std::vector<std::vector<BufferRange>> samples = {{{0, 0, 8}, {1, 40, 4}},
                                                         {{0, 8, 8}, {1, 4, 4}}};
  const auto producers = Producers::Of(grid, samples);
  ASSERT_TRUE(producers);
  EXPECT_FALSE(producers->IsOfAll());
  std::set<std::uint64_t> blocks;
  EXPECT_TRUE(producers->AddWritersOf(std::vector<BufferRange>{{0, 24, 8}, {1, 0, 32}}, blocks));
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{3})) << "nobody is known to write buffer 1";
  const std::vector<std::vector<BufferRange>> even = {{{0, 0, 8}}, {{0, 8, 8}}};
  EXPECT_TRUE(Producers::Of(grid, even)->IsOfAll());
}

}  // namespace
}  // namespace assay::campaign
