#include "validator/campaign/guidance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/cases/test_instance.h"

namespace assay::campaign {
namespace {

BranchCoverage Branch(std::uint32_t ptx_line, std::uint32_t line, std::uint8_t sides) {
  BranchCoverage branch{.ptx_line = ptx_line, .site = {}, .sides = sides};
  branch.site.file = "kernel.cu";
  branch.site.line = line;
  return branch;
}

TEST(CoverageTest, AddsUpSidesAndTellsWhatIsNew) {
  Coverage coverage;
  EXPECT_TRUE(coverage.Add({Branch(10, 3, 1), Branch(20, 2, 2)}));
  EXPECT_FALSE(coverage.Add({Branch(10, 3, 1)}));
  EXPECT_TRUE(coverage.Add({Branch(10, 3, 2)}));
  EXPECT_EQ(coverage.branches(), 2u);
  EXPECT_EQ(coverage.sides(), 3u);
  ASSERT_EQ(coverage.Partial().size(), 1u);
  EXPECT_EQ(Describe(coverage.Partial()[0]), "kernel.cu:2: the branch, taken");
}

TEST(GuidanceTest, ReadsWhatComparisonsCompareWith) {
  const ProgramConstants constants = ConstantsOfPtx(
      "setp.eq.s64 %p1, %rd1, 4096; // 77\n"
      "@%p2 setp.ne.s32 %p3, %r1, 0x1F;\n"
      "setp.gt.f32 %p4, %f1, 0f42F70000;\n"
      "setp.lt.f64 %p4, %fd1, 0d405EE00000000000;\n"
      "add.s32 %r1, %r2, 999;\n"
      "setp.eq.s32 %p5, %r1, -5;\n"
      "setp.eq.s32 %p5, %r1, 99999999999999999999999999;\n");
  EXPECT_EQ(constants.integers, (std::vector<std::int64_t>{31, 4096}));
  EXPECT_EQ(constants.floats, (std::vector<double>{123.5}));
}

TEST(GuidanceTest, ReadsDivisorsMasksAndShiftsButNotAddends) {
  const ProgramConstants constants = ConstantsOfPtx(
      "and.b64 %rd2, %rd1, 2047;\n"
      "and.b32 %r2, %r1, 10;\n"
      "rem.s64 %rd3, %rd1, 77;\n"
      "shr.u32 %r3, %r1, 9;\n"
      "min.s64 %rd4, %rd1, 512;\n"
      "add.s64 %rd5, %rd1, 333;\n"
      "mul.lo.s64 %rd5, %rd1, 444;\n");
  EXPECT_EQ(constants.integers, (std::vector<std::int64_t>{512, 77, 2048}));
}

TEST(GuidanceTest, ReadsIntegersAsTheBitsOfFloats) {
  // 123.5 in bf16 and in f32.
  EXPECT_THAT(ConstantsOfPtx("setp.eq.s16 %p1, %rs1, 17143;\n").floats, testing::Contains(123.5));
  EXPECT_THAT(ConstantsOfPtx("setp.eq.s32 %p1, %r1, 0x42F70000;\n").floats,
              testing::Contains(123.5));
  EXPECT_TRUE(ConstantsOfPtx("setp.eq.s32 %p1, %r1, 32;\n").floats.empty());
}

TEST(GuidanceTest, AimsAxesAndValuesAtTheConstants) {
  const ops::Instance instance = cases::GatherInstance();
  const auto aimed = AimedCases(instance, {{4096}, {123.5}}, 1 << 20, 100, 7);
  const auto has = [&](auto predicate) { return std::ranges::any_of(aimed, predicate); };
  for (const std::int64_t rows : {4095, 4096, 4097}) {
    EXPECT_TRUE(has([&](const cases::Case& c) { return c.axes.at("rows") == rows; })) << rows;
  }
  EXPECT_TRUE(has([](const cases::Case& c) {
    return c.profiles.contains("x") && c.profiles.at("x").literal.size() == 6 &&
           c.profiles.at("x").literal[0] == 123.5;
  }));
  EXPECT_TRUE(has([](const cases::Case& c) {
    return c.profiles.contains("ids") && c.profiles.at("ids").literal.size() == 6 &&
           c.axes.at("table") == 4098;
  }));
  for (const cases::Case& c : aimed) EXPECT_TRUE(ops::ResolveAxes(instance.op, c.axes));
  EXPECT_EQ(AimedCases(instance, {{4096}, {123.5}}, 1 << 20, 3, 7).size(), 3u);
}

TEST(GuidanceTest, AimsPastConstantsAtMultiplesToo) {
  const ops::Instance instance = cases::GatherInstance();
  // `rows > 8192` is compiled to a comparison with 8193.
  const auto aimed = AimedCases(instance, {{8193}, {}}, 1 << 20, 100, 7);
  for (const std::int64_t rows : {8200, 16384}) {
    EXPECT_TRUE(std::ranges::any_of(aimed, [&](const cases::Case& c) {
      return c.axes.at("rows") == rows;
    })) << rows;
  }
}

TEST(GuidanceTest, AimsAtValuesThatAreAloneInTheirRow) {
  ops::Instance instance = cases::GatherInstance();
  instance.op.constraints.clear();
  const auto aimed = AimedCases(instance, {{}, {1e-30}}, 1 << 20, 100, 7);
  EXPECT_TRUE(std::ranges::any_of(aimed, [](const cases::Case& c) {
    return c.axes.at("columns") == 1 && c.profiles.contains("x") &&
           std::ranges::find(c.profiles.at("x").literal, -5e-31) !=
               c.profiles.at("x").literal.end();
  }));
}

TEST(GuidanceTest, PairsAreStepsOfAStaircase) {
  ops::Instance instance = cases::GatherInstance();
  instance.op.constraints.clear();
  const auto fits = [&](const ops::AxisValues& axes) {
    return cases::TotalElements(instance, axes) <= 100'000;
  };
  const auto paired = PairedCases(instance, {{16, 1024, 256}, {}}, fits, 7);
  const auto has = [&](std::int64_t rows, std::int64_t columns) {
    return std::ranges::any_of(paired, [&](const cases::Case& c) {
      return c.axes.at("rows") == rows && c.axes.at("columns") == columns;
    });
  };
  EXPECT_TRUE(has(1025, 17));
  EXPECT_TRUE(has(257, 257));
  EXPECT_TRUE(has(17, 1025));
  // Past no more than what another one is past as well.
  EXPECT_FALSE(has(17, 17));
  EXPECT_FALSE(has(257, 17));
  // Too large.
  EXPECT_FALSE(has(1025, 1025));
  EXPECT_TRUE(PairedCases(instance, {{4}, {}}, fits, 7).empty());
}

TEST(GuidanceTest, SurvivesAnyBytes) {
  std::string bytes = "setp.";
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * 7919 >> 3));
  ConstantsOfPtx(bytes);
  ConstantsOfPtx("setp.x -, 0x, 0f, 0d;\nsetp.");
}

}  // namespace
}  // namespace assay::campaign
