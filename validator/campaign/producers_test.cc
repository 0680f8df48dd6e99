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

}  // namespace
}  // namespace assay::campaign
