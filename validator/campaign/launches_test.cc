#include "validator/campaign/launches.h"

#include <gtest/gtest.h>

namespace assay::campaign {
namespace {

ops::OpSpec Op() {
  ops::OpSpec op;
  for (const char* name : {"x", "w"}) op.inputs.emplace_back().name = name;
  for (const char* name : {"y", "z"}) op.outputs.emplace_back().name = name;
  op.outputs.emplace_back().name = "new_w";
  op.outputs.back().updates = "w";
  return op;
}

ops::ResolvedPlan Plan(const std::vector<std::vector<std::string>>& launches) {
  ops::ResolvedPlan plan;
  for (const auto& args : launches) plan.kernels.emplace_back().args = args;
  plan.workspace.emplace_back().name = "sums";
  plan.tensor_maps.emplace_back().name = "map";
  plan.tensor_maps.back().tensor = "sums";
  return plan;
}

TEST(Launches, ThatShareInputsAloneHaveNothingToDoWithEachOther) {
  EXPECT_EQ(GroupsOf(Op(), Plan({{"x", "y", "tokens"}, {"x", "z", "tokens"}})),
            (LaunchGroups{{0}, {1}}));
}

TEST(Launches, ThatShareWhatOneOfThemWritesBelongTogether) {
  EXPECT_EQ(GroupsOf(Op(), Plan({{"x", "sums"}, {"x", "z"}, {"sums", "y"}})),
            (LaunchGroups{{0, 2}, {1}}));
  EXPECT_EQ(GroupsOf(Op(), Plan({{"x", "sums"}, {"map", "y"}})), (LaunchGroups{{0, 1}}));
  EXPECT_EQ(GroupsOf(Op(), Plan({{"w", "y"}, {"x", "new_w"}})), (LaunchGroups{{0, 1}}))
      << "what is overwritten has two names";
  EXPECT_EQ(GroupsOf(Op(), Plan({{"x", "sums"}, {"x", "y"}, {"y", "map", "z"}})),
            (LaunchGroups{{0, 1, 2}}));
}

TEST(Launches, RunAloneWithTheOutputsThatTheyWrite) {
  const ops::ResolvedPlan plan = Plan({{"x", "sums"}, {"x", "z"}, {"sums", "y"}});
  ops::Instance instance;
  instance.op = Op();
  const ops::ResolvedPlan alone = Only(plan, {0, 2});
  ASSERT_EQ(alone.kernels.size(), 2u);
  const ops::Instance own = WithOutputsOf(instance, alone);
  ASSERT_EQ(own.op.outputs.size(), 1u);
  EXPECT_EQ(own.op.outputs.front().name, "y");
}

}  // namespace
}  // namespace assay::campaign
