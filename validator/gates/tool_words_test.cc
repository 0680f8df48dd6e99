#include "validator/gates/tool_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::gates {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<FindingKind> KindsOf(std::string_view tool, std::string_view text,
                                 ToolContext context = {}) {
  std::vector<FindingKind> kinds;
  for (const Finding& finding : ReadToolWords(tool, text, context).findings)
    kinds.push_back(finding.kind);
  return kinds;
}

TEST(ToolWordsTest, SaysWhichToolSawWhatAndWhere) {
  const ToolWords words = ReadToolWords("memcheck",
                                        "========= COMPUTE-SANITIZER\n"
                                        "========= Invalid __global__ write of size 4 bytes\n"
                                        "=========     at twice+0x70\n"
                                        "=========     by thread (1,0,0) in block (0,0,0)\n"
                                        "=========     Access at 0x7f04 is out of bounds\n"
                                        "========= \n"
                                        "========= ERROR SUMMARY: 1 error\n",
                                        {});
  EXPECT_TRUE(words.complete);
  ASSERT_THAT(words.findings, SizeIs(1));
  EXPECT_EQ(words.findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_THAT(words.findings[0].message, HasSubstr("compute-sanitizer's memcheck: Invalid"));
  EXPECT_THAT(words.findings[0].message, HasSubstr("at twice+0x70; by thread (1,0,0)"));
}

TEST(ToolWordsTest, EveryToolHasItsWords) {
  EXPECT_THAT(KindsOf("memcheck",
                      "========= Invalid __shared__ read of size 4 bytes\n"
                      "=========     Address 0x2 is misaligned\n"),
              testing::ElementsAre(FindingKind::kMisaligned));
  EXPECT_THAT(
      KindsOf("initcheck", "========= Uninitialized __global__ memory read of size 4 bytes\n"),
      testing::ElementsAre(FindingKind::kUninitialisedUse));
  EXPECT_THAT(
      KindsOf("racecheck", "========= Error: Race reported between Write access at k+0x1 and\n"),
      testing::ElementsAre(FindingKind::kDataRace));
  EXPECT_THAT(
      KindsOf("synccheck", "========= Barrier error detected. Divergent thread(s) in block.\n"),
      testing::ElementsAre(FindingKind::kBarrierDivergence));
}

TEST(ToolWordsTest, WhatIsSaidOfRightKernelsRefutesNone) {
  EXPECT_THAT(KindsOf("synccheck", "========= Barrier error detected. Missing wait.\n"), IsEmpty());
  constexpr std::string_view kRead = "========= Invalid __global__ read of size 16 bytes\n";
  EXPECT_THAT(KindsOf("memcheck", kRead, {.partial_copies = true}), IsEmpty());
  EXPECT_THAT(KindsOf("memcheck", kRead), SizeIs(1));
  // A write is no copy from there.
  EXPECT_THAT(KindsOf("memcheck", "========= Invalid __global__ write of size 16 bytes\n",
                      {.partial_copies = true}),
              SizeIs(1));
  EXPECT_THAT(KindsOf("racecheck", "========= Warning: Race reported between Write access\n"),
              IsEmpty());
  // Our own calls of the driver, and what the worker prints.
  EXPECT_THAT(KindsOf("memcheck", "========= Program hit CUDA_ERROR_NOT_FOUND on CUDA API call\n"),
              IsEmpty());
  EXPECT_THAT(KindsOf("memcheck", "Invalid __global__ write of size 4 bytes\n"), IsEmpty());
}

TEST(ToolWordsTest, WithoutItsSummaryItHasNotSeenAll) {
  EXPECT_FALSE(ReadToolWords("memcheck", "========= COMPUTE-SANITIZER\n", {}).complete);
  EXPECT_FALSE(ReadToolWords("memcheck", "", {}).complete);
  EXPECT_TRUE(ReadToolWords("racecheck",
                            "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 "
                            "warnings)",
                            {})
                  .complete);
}

}  // namespace
}  // namespace assay::gates
