#include "validator/engine/window.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

constexpr const char* kPtx = R"(
.visible .entry plain(
  .param .u64 a
)
{
  ld.shared.f32 %f1, [s];
  st.global.f32 [%rd1], %f1;
  atom.shared.add.u32 %r1, [s], 1;
  bar.red.popc.u32 %r1, 0, %p1;
}
.visible .entry plainer(
  .param .u64 a
)
{
  red.global.add.f32 [%rd1], %f1;
}
.visible .entry polls() {
  ld.acquire.gpu.u32 %r1, [%rd1];
}
.visible .entry calls() {
  call.uni helper, ();
}
)";

Execution Two(const char* first, const char* second, bool shared_output) {
  Execution execution;
  execution.ptx = kPtx;
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

TEST(WindowTest, TellsWhichBlocksCommunicate) {
  EXPECT_FALSE(BlocksCommunicate(kPtx, "plain"));
  EXPECT_TRUE(BlocksCommunicate(kPtx, "plainer"));
  EXPECT_TRUE(BlocksCommunicate(kPtx, "polls"));
  // The helper may be anything in the module.
  EXPECT_TRUE(BlocksCommunicate(kPtx, "calls"));
  EXPECT_TRUE(BlocksCommunicate(kPtx, "not_there"));
  EXPECT_TRUE(BlocksCommunicate("", ""));
  EXPECT_TRUE(BlocksCommunicate(".entry k( {", "k"));
}

TEST(WindowTest, LeavesTheEndsOfLargeGrids) {
  Execution execution = Two("plain", "plain", false);
  execution.launches[1].grid = {100, 1, 1};
  ASSERT_TRUE(CutToEnds(execution));
  EXPECT_EQ(execution.launches[0].only, (std::vector<BlockRange>{{0, 1}, {4998, 2}}));
  EXPECT_TRUE(execution.launches[1].only.empty());
}

TEST(WindowTest, CutsNothingThatIsHandedOn) {
  Execution execution = Two("plain", "plain", true);
  EXPECT_FALSE(CutToEnds(execution));
  EXPECT_TRUE(execution.launches[0].only.empty());
  // The last launch may be cut all the same.
  EXPECT_FALSE(MayCut(execution, 0));
  EXPECT_TRUE(MayCut(execution, 1));
}

TEST(WindowTest, CutsNoAtomicsClustersOrCooperation) {
  Execution execution = Two("plain", "plainer", false);
  EXPECT_FALSE(CutToEnds(execution));
  execution = Two("plain", "plain", false);
  execution.launches[0].cooperative = true;
  EXPECT_FALSE(CutToEnds(execution));
  execution.launches[0].cooperative = false;
  execution.launches[0].cluster = {2, 1, 1};
  EXPECT_FALSE(CutToEnds(execution));
}

}  // namespace
}  // namespace assay::engine
