#include "validator/campaign/guidance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "validator/cases/test_instance.h"
#include "validator/execution/coverage.h"

namespace assay::campaign {
namespace {

BranchCoverage Branch(std::uint32_t ptx_line, std::uint32_t line, std::uint8_t sides) {
  return {.ptx_line = ptx_line, .file = "kernel.cu", .line = line, .column = 0, .sides = sides};
}

TEST(CoverageTest, AddsUpSidesAndTellsWhatIsNew) {
  Coverage coverage;
  EXPECT_TRUE(coverage.Add({Branch(10, 3, 1), Branch(20, 2, 2)}));
  EXPECT_FALSE(coverage.Add({Branch(10, 3, 1)}));
  EXPECT_TRUE(coverage.Add({Branch(10, 3, 2)}));
  EXPECT_EQ(coverage.branches(), 2u);
  EXPECT_EQ(coverage.sides(), 3u);
  ASSERT_EQ(coverage.Unreached().size(), 1u);
  EXPECT_EQ(coverage.Unreached()[0].what, "kernel.cu:2: the branch, taken");
}

BranchCoverage Selection(std::uint32_t ptx_line, std::uint32_t line, std::uint8_t ways) {
  return Branch(ptx_line, line, static_cast<std::uint8_t>(ways | kOfSelection));
}

TEST(CoverageTest, ASelectionThatWentOneWayIsToldOnceALine) {
  Coverage coverage;
  coverage.Add({Selection(10, 3, kWentFirst), Selection(11, 3, kWentFirst)});
  const std::vector<verdict::Unreached> unreached = coverage.Unreached();
  ASSERT_EQ(unreached.size(), 1u);
  EXPECT_EQ(unreached[0].what, "kernel.cu:3: the selection's other side: it went one way only");
  EXPECT_THAT(coverage.HalfReached(), testing::ElementsAre(10, 11));
}

TEST(CoverageTest, CopiesOfASelectionThatWentBothWaysTogetherAreNotTold) {
  Coverage coverage;
  coverage.Add({Selection(10, 3, kWentFirst), Selection(11, 3, kWentSecond)});
  coverage.Add({Selection(20, 4, kWentFirst)});
  coverage.Add({Selection(20, 4, kWentSecond)});
  EXPECT_TRUE(coverage.Unreached().empty());
  EXPECT_EQ(coverage.sides(), 4u);
}

using How = facts::Constant::How;

facts::Facts Program(const std::vector<std::pair<How, std::int64_t>>& integers,
                     const std::vector<std::pair<How, double>>& reals = {}) {
  facts::Facts program;
  for (const auto& [how, value] : integers)
    program.constants.push_back(
        {.how = how, .real = false, .integer = value, .number = 0, .own_line = 0});
  for (const auto& [how, value] : reals)
    program.constants.push_back(
        {.how = how, .real = true, .integer = 0, .number = value, .own_line = 0});
  return program;
}

TEST(GuidanceTest, TakesWhatComparisonsCompareWith) {
  const facts::Facts program = Program({{How::kCompared, 4096},
                                        {How::kCompared, 31},
                                        {How::kCompared, 31},
                                        {How::kCompared, -5},
                                        {How::kCompared, 1}},
                                       {{How::kCompared, 123.5},
                                        {How::kCompared, 1},
                                        {How::kDivisor, 7.5},
                                        {How::kCompared, HUGE_VAL}});
  const ProgramConstants constants = ConstantsOfProgram(&program);
  EXPECT_EQ(constants.integers, (std::vector<std::int64_t>{31, 4096}));
  EXPECT_EQ(constants.floats, (std::vector<double>{123.5}));
  EXPECT_TRUE(ConstantsOfProgram(nullptr).integers.empty());
}

TEST(GuidanceTest, TakesDivisorsMasksAndShifts) {
  const facts::Facts program = Program({{How::kMask, 2047},
                                        {How::kMask, 10},
                                        {How::kDivisor, 77},
                                        {How::kShift, 9},
                                        {How::kShift, 50},
                                        {How::kCompared, 512}});
  EXPECT_EQ(ConstantsOfProgram(&program).integers, (std::vector<std::int64_t>{512, 77, 2048}));
}

TEST(GuidanceTest, TakesEntriesOfTablesLast) {
  const facts::Facts program = Program({{How::kTable, 900},
                                        {How::kTable, 0},
                                        {How::kTable, 64},
                                        {How::kCompared, 64},
                                        {How::kDivisor, 77}});
  const ProgramConstants constants = ConstantsOfProgram(&program);
  EXPECT_EQ(constants.integers, (std::vector<std::int64_t>{64, 77, 900}));
  EXPECT_EQ(constants.tables, (std::vector<std::int64_t>{900, 64}));
  EXPECT_TRUE(constants.units == std::vector<std::int64_t>{77});
}

TEST(GuidanceTest, TakesUnitsFromWhatNumbersAreCutBy) {
  const facts::Facts program = Program({{How::kMask, 31},
                                        {How::kMask, 3},
                                        {How::kDivisor, 96},
                                        {How::kShift, 5},
                                        {How::kShift, 9},
                                        {How::kCompared, 64}});
  const std::vector<std::int64_t> units = ConstantsOfProgram(&program).units;
  EXPECT_EQ(units, (std::vector<std::int64_t>{32, 96}));
  EXPECT_EQ(CommonMultiple(units, 128), 96);
  EXPECT_EQ(CommonMultiple(units, 64), 32);
  EXPECT_EQ(CommonMultiple({}, 64), 1);
}

TEST(GuidanceTest, OddMultiplesLiePastTheConstant) {
  // `k >= 2048` is compiled to a comparison with 2047.
  for (const std::int64_t constant : {2047, 2048}) {
    EXPECT_EQ(OddMultiplePast(constant, 32), 2080);
    EXPECT_EQ(OddMultiplePast(constant, 64), 2112);
  }
  EXPECT_EQ(OddMultiplePast(64, 64), 192);
}

TEST(GuidanceTest, ReadsIntegersAsTheBitsOfFloats) {
  // 123.5 in bf16 and in f32.
  const auto floats = [](std::int64_t value) {
    const facts::Facts program = Program({{How::kCompared, value}});
    return ConstantsOfProgram(&program).floats;
  };
  EXPECT_THAT(floats(17143), testing::Contains(123.5));
  EXPECT_THAT(floats(0x42F70000), testing::Contains(123.5));
  EXPECT_TRUE(floats(32).empty());
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

}  // namespace
}  // namespace assay::campaign
