#include "validator/engine/window.h"

#include <gtest/gtest.h>

#include <array>

namespace assay::engine {
namespace {

/// Of a program whose blocks depend on each other in some kernels.
facts::Facts Program() {
  facts::Facts program;
  const auto add = [&](const char* name, facts::Answer answer) {
    facts::Function& function = program.functions.emplace_back();
    function.name = name;
    function.blocks_depend = answer;
  };
  add("plain", facts::Answer::kNo);
  add("atomics", facts::Answer::kYes);
  add("calls", facts::Answer::kUnknown);
  add("adds", facts::Answer::kYes);
  program.functions.back().only_adds = facts::Answer::kYes;
  for (const char* stores : {"plain#1", "atomics#1", "calls#1"})
    program.memory.push_back(
        {.opcode = "st", .space = "global", .writes = true, .origins = {stores}});
  return program;
}

Execution Two(const char* first, const char* second, bool shared_output) {
  Execution execution;
  execution.buffers.resize(3);
  execution.buffers[1].role = execution.buffers[2].role = BufferRole::kOutput;
  for (const bool last : {false, true}) {
    Launch launch;
    launch.entry = last ? second : first;
    launch.grid = {5000, 1, 1};
    Argument input{.kind = Argument::Kind::kBuffer};
    Argument output{.kind = Argument::Kind::kBuffer};
    output.buffer = last && !shared_output ? 2 : 1;
    launch.args = {input, output};
    execution.launches.push_back(std::move(launch));
  }
  return execution;
}

TEST(WindowTest, LeavesTheEndsOfLargeGrids) {
  const facts::Facts program = Program();
  Execution execution = Two("plain", "plain", false);
  execution.launches[1].grid = {100, 1, 1};
  ASSERT_EQ(CutToEnds(execution, &program), Cut::kIndependent);
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{0, 1}, {4998, 2}}));
  EXPECT_TRUE(execution.launches[1].only.empty());
}

TEST(WindowTest, LeavesTheEndsOfEachOfAFewRows) {
  const facts::Facts program = Program();
  Execution execution = Two("plain", "plain", false);
  execution.launches[0].grid = {2000, 2, 2};
  execution.launches[1].grid = {100, 100, 1};
  ASSERT_EQ(CutToEnds(execution, &program), Cut::kIndependent);
  EXPECT_EQ(
      execution.launches[0].only,
      (std::vector<BlockRange>{
          {0, 1}, {1998, 2}, {2000, 1}, {3998, 2}, {4000, 1}, {5998, 2}, {6000, 1}, {7998, 2}}));
  // Of many, those of the grid.
  EXPECT_EQ(execution.launches[1].only, (std::vector<BlockRange>{{0, 1}, {9998, 2}}));
}

TEST(WindowTest, CutsNothingThatIsHandedOn) {
  const facts::Facts program = Program();
  Execution execution = Two("plain", "plain", true);
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kRefused);
  EXPECT_TRUE(execution.launches[0].only.empty());
  // The last launch may be cut all the same.
  EXPECT_EQ(MayCut(execution, &program, 0), Cut::kRefused);
  EXPECT_EQ(MayCut(execution, &program, 1), Cut::kIndependent);
}

TEST(WindowTest, WhatIsOnlyReadIsNotHandedOn) {
  facts::Facts program = Program();
  Execution execution = Two("reads", "plain", true);
  program.functions.emplace_back().name = "reads";
  program.functions.back().blocks_depend = facts::Answer::kNo;
  EXPECT_EQ(MayCut(execution, &program, 0), Cut::kIndependent);
  EXPECT_TRUE(OutputsOfSeveral(execution, &program).empty());
  EXPECT_EQ(OutputsOfSeveral(Two("plain", "plain", true), &program), std::set<std::uint32_t>{1});
  // An addition is a store, and so is what is not known.
  program.memory.push_back(
      {.opcode = "red", .space = "global", .writes = true, .origins = {"reads#1"}});
  EXPECT_EQ(MayCut(execution, &program, 0), Cut::kRefused);
  program.memory.back() = {
      .opcode = "st", .space = "global", .writes = true, .origins = {"unknown"}};
  EXPECT_EQ(MayCut(execution, &program, 0), Cut::kRefused);
  EXPECT_EQ(OutputsOfSeveral(execution, &program), std::set<std::uint32_t>{1});
}

TEST(WindowTest, TellsWhatIsHandedOnUndefined) {
  const facts::Facts program = Program();
  Execution execution = Two("plain", "plain", true);
  execution.buffers[1].fill = BufferFill::kUninitialised;
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kHandedOn);
  EXPECT_FALSE(execution.launches[0].only.empty());
  // What is filled would pass for what the skipped blocks wrote.
  execution.buffers[1].fill = BufferFill::kZero;
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kRefused);
}

/// Three launches over one buffer of workspace: which of them store to it.
Execution OverWorkspace(std::array<bool, 3> stores) {
  Execution execution = Two("plain", "plain", true);
  execution.buffers[1].role = BufferRole::kWorkspace;
  execution.launches.push_back(execution.launches.back());
  for (std::size_t i = 0; i < stores.size(); ++i)
    execution.launches[i].entry = stores[i] ? "stores" : "reads";
  return execution;
}

TEST(WindowTest, WhatBlocksBetweenWouldHaveOverwrittenIsOld) {
  facts::Facts program = Program();
  program.memory.push_back(
      {.opcode = "st", .space = "global", .writes = true, .origins = {"stores#1"}});
  const auto may = [&](Execution execution, std::size_t cut) {
    execution.launches[cut].only = {{0, 1}};
    return MayFindOld(execution, &program);
  };
  EXPECT_TRUE(may(OverWorkspace({true, true, false}), 1));
  // All of its blocks run; nobody reads it afterwards; nobody stored there before.
  EXPECT_FALSE(may(OverWorkspace({true, true, false}), 0));
  EXPECT_FALSE(may(OverWorkspace({true, false, true}), 2));
  EXPECT_FALSE(may(OverWorkspace({false, true, true}), 1));
  // Of launches before the last: it is the one that reads it.
  Execution execution = OverWorkspace({true, true, false});
  execution.launches[1].only = {{0, 1}};
  EXPECT_FALSE(MayFindOld(execution, &program, 2));
  execution.launches.push_back(execution.launches.back());
  EXPECT_TRUE(MayFindOld(execution, &program, 3));
  // What is not known is taken for so.
  program.memory_left_out = 1;
  EXPECT_TRUE(may(OverWorkspace({false, true, true}), 1));
}

TEST(WindowTest, LeavesTheLastBlocksOfOnesThatAdd) {
  const facts::Facts program = Program();
  Execution execution = Two("adds", "plain", true);
  execution.buffers[1].fill = BufferFill::kZero;
  execution.launches[1].grid = {100, 1, 1};
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kRefused);
  ASSERT_EQ(CutToSums(execution, &program), std::size_t{0});
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{4998, 2}}));
  EXPECT_TRUE(execution.launches[1].only.empty());
  // Where each loops over much, the last one, of few as well.
  execution.launches[0].grid = {100, 1, 1};
  ASSERT_EQ(CutToSums(execution, &program, true), std::size_t{0});
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{99, 1}}));
}

TEST(WindowTest, WhatIsHandedOnHasToBeSums) {
  facts::Facts program = Program();
  const auto cut = [&](const char* first, const char* second, bool shared) {
    Execution execution = Two(first, second, shared);
    return CutToSums(execution, &program);
  };
  // An earlier launch that would have to be cut, one that does more than add, and a later one that
  // depends on others.
  EXPECT_FALSE(cut("plain", "adds", true));
  EXPECT_FALSE(cut("atomics", "plain", true));
  EXPECT_FALSE(cut("adds", "atomics", true));
  EXPECT_TRUE(cut("adds", "plain", true));
  // What is stored besides is half of what it would be.
  program.memory.push_back(
      {.opcode = "st", .space = "global", .writes = true, .origins = {"adds#1"}});
  EXPECT_FALSE(cut("adds", "plain", true));
  EXPECT_TRUE(cut("adds", "plain", false));
  program.memory.back().origins = {"memory"};
  EXPECT_FALSE(cut("adds", "plain", false));
}

TEST(WindowTest, LeavesWhatHangsOnNoSums) {
  facts::Facts program = Program();
  program.memory.push_back(
      {.opcode = "red", .space = "global", .writes = true, .origins = {"adds#2"}});
  program.memory.push_back(
      {.opcode = "st", .space = "global", .writes = true, .origins = {"adds#1"}});
  // The first stores to buffer 1 and adds to buffer 3, which the second makes buffer 2 of.
  const auto both = [](const char* second) {
    Execution execution = Two("adds", second, false);
    execution.buffers.emplace_back().role = BufferRole::kWorkspace;
    Argument sums{.kind = Argument::Kind::kBuffer};
    sums.buffer = 3;
    execution.launches[0].args.push_back(sums);
    execution.launches[1].args[0].buffer = 3;
    return execution;
  };
  Execution execution = both("plain");
  const auto unknown = CutBesideSums(execution, &program);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(*unknown, (std::set<std::uint32_t>{2, 3}));
  ASSERT_EQ(execution.launches.size(), 1u);
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{0, 1}, {4998, 2}}));
  // What is stored to and added to is a part of a sum as well.
  facts::Facts of_one = program;
  of_one.memory.back().origins = {"adds#2"};
  Execution boundaries = both("plain");
  EXPECT_EQ(CutBesideSums(boundaries, &of_one), std::nullopt) << "stored and used later";
  boundaries = both("plain");
  boundaries.launches.pop_back();
  EXPECT_EQ(CutBesideSums(boundaries, &of_one), (std::set<std::uint32_t>{3}));
  // Nobody adds, or somebody does more.
  Execution plain = Two("plain", "plain", false);
  EXPECT_FALSE(CutBesideSums(plain, &program));
  Execution atomics = Two("atomics", "plain", false);
  EXPECT_FALSE(CutBesideSums(atomics, &program));
  EXPECT_TRUE(atomics.launches[0].only.empty());
  EXPECT_EQ(atomics.launches.size(), 2u);
  // Who adds by what others have added up depends on them.
  Execution again = both("adds");
  EXPECT_FALSE(CutBesideSums(again, &program));
}

TEST(WindowTest, LeavesOneBlockOfGridsThatLoop) {
  const facts::Facts program = Program();
  Execution execution = Two("plain", "plain", false);
  execution.launches[1].grid = {100, 1, 1};
  ASSERT_EQ(CutToEnds(execution, &program, true), Cut::kIndependent);
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{4999, 1}}));
  EXPECT_EQ(execution.launches[1].only, (std::vector<BlockRange>{{99, 1}}));
}

TEST(WindowTest, CutsNoAtomicsOrCooperation) {
  const facts::Facts program = Program();
  for (const char* entry : {"atomics", "calls", "not_there"}) {
    Execution one = Two("plain", entry, false);
    EXPECT_EQ(CutToEnds(one, &program), Cut::kRefused) << entry;
  }
  Execution execution = Two("plain", "plain", false);
  EXPECT_EQ(CutToEnds(execution, nullptr), Cut::kRefused);
  execution = Two("plain", "plain", false);
  execution.launches[0].cooperative = true;
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kRefused);
  // Clusters see nothing of each other: those of the blocks that are left run whole.
  execution.launches[0].cooperative = false;
  execution.launches[0].cluster = {2, 1, 1};
  EXPECT_EQ(CutToEnds(execution, &program), Cut::kIndependent);
}

TEST(WindowTest, LeavesEndsOfWhatIsToShowThatItMeetsNobody) {
  Execution execution = Two("atomics", "plain", false);
  ASSERT_TRUE(TakeEnds(execution));
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{0, 1}, {4998, 2}}));
  // Clusters and cooperative launches meet by what they are.
  for (const bool cooperative : {true, false}) {
    Execution refused = Two("plain", "plain", false);
    refused.launches[0].cooperative = cooperative;
    if (!cooperative) refused.launches[0].cluster = {2, 1, 1};
    EXPECT_FALSE(TakeEnds(refused));
    EXPECT_TRUE(refused.launches[0].only.empty());
  }
}

TEST(WindowTest, WhatHangsOnAChangedInputRunsAgain) {
  facts::Facts program = Program();
  const auto store = [&](const char* origin) {
    facts::MemoryUse& use = program.memory.emplace_back();
    use.opcode = "st";
    use.writes = true;
    use.origins = {origin};
  };
  store("plain#1");
  store("adds#2");
  // x -> scores; scores, chosen -> shares.
  Execution execution = Two("plain", "adds", false);
  execution.buffers.resize(4);
  Argument chosen{.kind = Argument::Kind::kBuffer};
  chosen.buffer = 3;
  execution.launches[1].args = {execution.launches[0].args[1], chosen,
                                execution.launches[1].args[1]};
  EXPECT_EQ(LaunchesThatHangOn(execution, &program, {3}), (std::vector<std::size_t>{1}));
  EXPECT_EQ(LaunchesThatHangOn(execution, &program, {0}), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(LaunchesThatHangOn(execution, nullptr, {3}), (std::vector<std::size_t>{0, 1}));
  // Scores are scaled where they lie: what would be scaled again has to be made anew.
  store("adds#0");
  EXPECT_EQ(LaunchesThatHangOn(execution, &program, {3}), (std::vector<std::size_t>{0, 1}));
  program.memory.back().origins = {"unknown"};
  EXPECT_EQ(LaunchesThatHangOn(execution, &program, {3}), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace assay::engine
