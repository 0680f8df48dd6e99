// Counters that work is drawn from: who draws how often, and tickets that are dealt out instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

// Each block draws rows until none is left, and writes what it drew from which counter.
constexpr const char* kQueue = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 next, .param .u64 y, .param .u32 rows)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [next];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [rows];
  mov.u32 %r2, %ctaid.x;
  add.u32 %r2, %r2, 1;
AGAIN:
  atom.global.add.u32 %r3, [%rd1+4], 1;
  setp.ge.u32 %p1, %r3, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r2;
  bra AGAIN;
DONE:
  red.global.add.u32 [%rd1], 1;
  ret;
})";

struct Made {
  TestRun run{kQueue};
  std::uint32_t next = 0, y = 0;
};

Made Make(BufferFill fill = BufferFill::kZero) {
  Made made;
  made.next = made.run.Zeros("next", DType::kU32, 2, BufferRole::kWorkspace);
  made.run.execution.buffers[made.next].fill = fill;
  made.y = made.run.Zeros("y", DType::kU32, 8);
  made.run.AddLaunch("k", {2, 1, 1}, {1, 1, 1},
                     {TestRun::Ptr(made.next), TestRun::Ptr(made.y), TestRun::Int(8)});
  made.run.execution.note_drawn = true;
  return made;
}

TEST(Draws, AreCountedWhereWhatWasHeldIsLookedAt) {
  Made made = Make();
  const Report report = made.run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  ASSERT_TRUE(report.drawn);
  // Not the word that nobody looks at.
  EXPECT_THAT(*report.drawn,
              testing::ElementsAre(DrawnWord{.word = {made.next, 4, 4}, .times = 10, .value = 10}));
}

TEST(Draws, AreNotedOnRequestAndOfZerosAlone) {
  Made silent = Make();
  silent.run.execution.note_drawn = false;
  EXPECT_FALSE(silent.run.Run().drawn);
  Made provided = Make(BufferFill::kProvided);
  const Report report = provided.run.Run();
  ASSERT_TRUE(report.drawn) << Show(report);
  EXPECT_THAT(*report.drawn, testing::IsEmpty());
}

TEST(Draws, TicketsAreDealtInTheirOrderAndThenTheWordCountsOn) {
  Made made = Make();
  made.run.execution.launches[0].only = {{1, 1}};
  made.run.execution.tickets = Tickets{.word = {made.next, 4, 4}, .held = {2, 5, 7}};
  const Report report = made.run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  std::vector<double> written;
  for (std::size_t i = 0; i < 8; ++i) written.push_back(made.run.At(made.y, i));
  EXPECT_THAT(written, testing::ElementsAre(0, 0, 2, 0, 0, 2, 0, 2));
  EXPECT_EQ(made.run.At(made.next, 1), 9);
  EXPECT_EQ(report.drawn->front().times, 4u);
}

TEST(Draws, AnotherWordKeepsWhatItHolds) {
  Made made = Make();
  made.run.execution.tickets = Tickets{.word = {made.next, 0, 4}, .held = {5}};
  const Report report = made.run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_NE(made.run.At(made.y, 0), 0);
  EXPECT_EQ(made.run.At(made.next, 0), 2);
}

}  // namespace
}  // namespace assay::emu
