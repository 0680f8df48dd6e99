#include "validator/cases/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "validator/cases/test_instance.h"

namespace assay::cases {
namespace {

Probe Start() {
  Probe probe;
  probe.case_ = {.axes = {{"rows", 700}, {"columns", 250}, {"table", 90}},
                 .seed = 12345,
                 .profiles = {},
                 .origin = "random"};
  probe.case_.profiles["x"] = {.kind = "outliers", .parameters = {}, .literal = {}};
  probe.case_.profiles["ids"] = {.kind = "zipf", .parameters = {}, .literal = {}};
  probe.prelude = {probe.case_, probe.case_};
  probe.schedule = {.policy = Schedule::Policy::kPermuted, .seed = 99};
  probe.poison = 0x3c;
  probe.misalign = 4;
  return probe;
}

StillFails Each(std::function<bool(const Probe&)> fails) {
  return [fails](std::span<const Probe> probes) {
    std::vector<bool> results;
    for (const Probe& probe : probes) results.push_back(fails(probe));
    return results;
  };
}

TEST(ShrinkTest, GoesDownToTheSmallestShapeAndPlainestValues) {
  const ops::Instance instance = GatherInstance();
  const Shrunk shrunk = Shrink(instance, Start(), Each([](const Probe&) { return true; }));
  EXPECT_EQ(shrunk.probe.case_.axes, (ops::AxisValues{{"rows", 1}, {"columns", 2}, {"table", 1}}));
  EXPECT_TRUE(shrunk.probe.prelude.empty());
  EXPECT_EQ(shrunk.probe.schedule, Schedule{});
  EXPECT_EQ(shrunk.probe.poison, 0xff);
  EXPECT_EQ(shrunk.probe.misalign, 0u);
  EXPECT_EQ(shrunk.probe.case_.origin, "shrunk");
  EXPECT_TRUE(shrunk.minimal);
}

TEST(ShrinkTest, FindsAThreshold) {
  const ops::Instance instance = GatherInstance();
  const Shrunk shrunk =
      Shrink(instance, Start(),
             Each([](const Probe& probe) { return probe.case_.axes.at("rows") > 256; }));
  EXPECT_EQ(shrunk.probe.case_.axes.at("rows"), 257);
  EXPECT_EQ(shrunk.probe.case_.axes.at("table"), 1);
  EXPECT_LE(shrunk.trials, 120);
}

// Of a long axis its half and one less than it are tried, no section after the other.
TEST(ShrinkTest, OfALongAxisALimitIsFoundInAFewTrials) {
  const ops::Instance instance = GatherInstance();
  Probe start;
  start.case_ = {.axes = {{"rows", 65537}, {"columns", 2}, {"table", 1}},
                 .seed = 0,
                 .profiles = {},
                 .origin = "random"};
  const Shrunk at_limit =
      Shrink(instance, start,
             Each([](const Probe& probe) { return probe.case_.axes.at("rows") > 65536; }));
  EXPECT_EQ(at_limit.probe.case_.axes.at("rows"), 65537);
  EXPECT_LE(at_limit.trials, 40);
  // A limit below is found by halves, from either side.
  const Shrunk below =
      Shrink(instance, start,
             Each([](const Probe& probe) { return probe.case_.axes.at("rows") > 40000; }));
  EXPECT_LT(below.probe.case_.axes.at("rows"), 65537);
  EXPECT_GT(below.probe.case_.axes.at("rows"), 40000);
}

TEST(ShrinkTest, OfASliceFewerBlocksAreTriedFirst) {
  const ops::Instance instance = GatherInstance();
  Probe start = Start();
  start.ends_only = true;
  start.slice_blocks = 15;
  std::vector<std::uint64_t> tried;
  const Shrunk of_one = Shrink(instance, start, Each([&](const Probe& probe) {
                                 tried.push_back(probe.slice_blocks);
                                 return true;
                               }));
  EXPECT_EQ(of_one.probe.slice_blocks, 1u);
  EXPECT_EQ(tried.front(), 1u);
  const Shrunk of_three =
      Shrink(instance, start, Each([](const Probe& probe) { return probe.slice_blocks >= 3; }));
  EXPECT_EQ(of_three.probe.slice_blocks, 3u);
  const Shrunk of_all =
      Shrink(instance, start, Each([](const Probe& probe) { return probe.slice_blocks == 15; }));
  EXPECT_EQ(of_all.probe.slice_blocks, 15u);
}

TEST(ShrinkTest, WhatPassesIsNotTriedAgain) {
  const ops::Instance instance = GatherInstance();
  std::vector<Probe> passed;
  Shrink(instance, Start(), Each([&](const Probe& probe) {
           EXPECT_EQ(std::ranges::count(passed, probe), 0);
           const bool fails = probe.case_.axes.at("rows") > 33 && probe.misalign != 0;
           if (!fails) passed.push_back(probe);
           return fails;
         }));
  EXPECT_GT(passed.size(), 10u);
}

TEST(ShrinkTest, KeepsWhatMattersAmongTheValues) {
  const ops::Instance instance = GatherInstance();
  // Fails when two rows carry the same index above 0.
  const Shrunk shrunk = Shrink(instance, Start(), Each([&](const Probe& probe) {
                                 const auto filled = Materialise(instance, probe.case_);
                                 const Tensor& ids = filled->inputs.find("ids")->second;
                                 for (std::int64_t i = 0; i + 1 < ids.elements; ++i) {
                                   if (ids.At(i) == ids.At(i + 1) && ids.At(i) > 0) return true;
                                 }
                                 return false;
                               }),
                               {.max_trials = 400});
  EXPECT_EQ(shrunk.probe.case_.axes.at("rows"), 2);
  EXPECT_EQ(shrunk.probe.case_.profiles.at("ids").literal, (std::vector<double>{1, 1}));
}

TEST(ShrinkTest, FollowsOneElementDownThoughTheProfileWouldDrawOthers) {
  const ops::Instance instance = GatherInstance();
  Probe start;
  start.case_ = {.axes = {{"rows", 31}, {"columns", 16}, {"table", 40}},
                 .seed = 12345,
                 .profiles = {},
                 .origin = "random"};
  // Fails while one number of the start is there, wherever it stands.
  const double magic =
      Materialise(instance, start.case_)->inputs.find("x")->second.At(23 * 16 + 11);
  const Shrunk shrunk = Shrink(instance, start, Each([&](const Probe& probe) {
                                 const auto filled = Materialise(instance, probe.case_);
                                 const Tensor& x = filled->inputs.find("x")->second;
                                 for (std::int64_t i = 0; i < x.elements; ++i) {
                                   if (x.At(i) == magic) return true;
                                 }
                                 return false;
                               }),
                               {.max_trials = 160});
  EXPECT_EQ(shrunk.probe.case_.axes, (ops::AxisValues{{"rows", 1}, {"columns", 2}, {"table", 1}}));
}

TEST(ShrinkTest, KeepsTheProfileWhereSlicesDoNotHelp) {
  const ops::Instance instance = GatherInstance();
  Probe start;
  start.case_ = {.axes = {{"rows", 31}, {"columns", 16}, {"table", 40}},
                 .seed = 7,
                 .profiles = {},
                 .origin = "random"};
  const Shrunk shrunk =
      Shrink(instance, start, Each([&](const Probe& probe) {
               return probe.case_.axes.at("table") == 40 && probe.case_.axes.at("columns") == 16;
             }));
  EXPECT_EQ(shrunk.probe.case_.axes.at("rows"), 1);
  const auto& profiles = shrunk.probe.case_.profiles;
  EXPECT_TRUE(!profiles.contains("x") || profiles.at("x").kind != "literal");
}

TEST(ShrinkTest, KeepsThePreludeAndScheduleThatAreNeeded) {
  const ops::Instance instance = GatherInstance();
  const Shrunk shrunk = Shrink(instance, Start(), Each([](const Probe& probe) {
                                 return !probe.prelude.empty() &&
                                        probe.schedule.policy == Schedule::Policy::kPermuted;
                               }));
  EXPECT_EQ(shrunk.probe.prelude.size(), 1u);
  EXPECT_EQ(shrunk.probe.prelude[0].axes, shrunk.probe.case_.axes);
  EXPECT_EQ(shrunk.probe.schedule.seed, 0u);
}

TEST(ShrinkTest, LongPreludesShrinkByHalves) {
  const ops::Instance instance = GatherInstance();
  Probe start = Start();
  start.prelude.assign(300, start.case_);
  const Shrunk shrunk =
      Shrink(instance, start, Each([](const Probe& probe) { return probe.prelude.size() >= 41; }),
             {.max_trials = 160});
  EXPECT_EQ(shrunk.probe.prelude.size(), 41u);
}

TEST(ShrinkTest, AddressesComeBackOnlyWhereThatIsNeeded) {
  const ops::Instance instance = GatherInstance();
  Probe start = Start();
  start.reuse_addresses = true;
  const auto shrunk = [&](auto fails) { return Shrink(instance, start, Each(fails)).probe; };
  const Probe needed =
      shrunk([](const Probe& probe) { return !probe.prelude.empty() && probe.reuse_addresses; });
  EXPECT_TRUE(needed.reuse_addresses);
  EXPECT_EQ(needed.prelude.size(), 1u);
  EXPECT_FALSE(shrunk([](const Probe& probe) { return !probe.prelude.empty(); }).reuse_addresses);
  const Probe alone = shrunk([](const Probe&) { return true; });
  EXPECT_TRUE(alone.prelude.empty());
  EXPECT_FALSE(alone.reuse_addresses);
}

TEST(ShrinkTest, StopsAtTheLimitAndKeepsTheStartWhenNothingSimplerFails) {
  const ops::Instance instance = GatherInstance();
  const Probe start = Start();
  const Shrunk shrunk =
      Shrink(instance, start, Each([](const Probe&) { return false; }), {.max_trials = 10});
  EXPECT_LE(shrunk.trials, 10);
  Probe expected = start;
  expected.case_.origin = "shrunk";
  EXPECT_EQ(shrunk.probe, expected);
  EXPECT_FALSE(shrunk.minimal);
}

TEST(ShrinkTest, IsRepeatable) {
  const ops::Instance instance = GatherInstance();
  const auto fails = Each([](const Probe& probe) { return probe.case_.axes.at("rows") % 7 == 0; });
  EXPECT_EQ(Shrink(instance, Start(), fails).probe, Shrink(instance, Start(), fails).probe);
}

}  // namespace
}  // namespace assay::cases
