// st.async, red.async and bulk reductions: what arrives, and who may read it when.
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// Threads 0 to 3 send to shared memory, `send` with the address in %to, its value in %value, and the
/// mbarrier in %bar; all wait (unless `wait` is empty) and store what they read.
std::string Kernel(const std::string& send, const std::string& wait) {
  return R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p; .reg .b32 %t, %to, %value, %bar, %mine; .reg .b64 %out;
  .shared .align 16 .b32 words[4];
  .shared .align 8 .b64 barrier;
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  mov.u32 %bar, barrier;
  mov.u32 %to, words;
  mad.lo.u32 %to, %t, 4, %to;
  st.shared.u32 [%to], 100;
  setp.ne.u32 %p, %t, 0;
  @%p bra Ready;
  mbarrier.init.shared.b64 [%bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;
Ready:
  bar.sync 0;
  xor.b32 %mine, %t, 3;
  mov.u32 %to, words;
  mad.lo.u32 %to, %mine, 4, %to;
  add.u32 %value, %t, 7;
  )" + send +
         "\n" + wait + R"(
  mov.u32 %to, words;
  mad.lo.u32 %to, %t, 4, %to;
  ld.shared.u32 %value, [%to];
  mad.wide.u32 %out, %t, 4, %out;
  st.global.u32 [%out], %value;
  ret;
}
)";
}
constexpr const char* kWait =
    "Again:\n  mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0;\n  @!%p bra Again;";
constexpr const char* kStore =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%to], %value, [%bar];";
constexpr const char* kReduce =
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%to], %value, "
    "[%bar];";

Report RunSend(const std::string& ptx, std::vector<double>& words) {
  TestRun run(ptx);
  const auto out = run.Uninitialised("out", DType::kI32, 4);
  run.AddLaunch("k", {1, 1, 1}, {4, 1, 1}, {TestRun::Ptr(out)});
  const Report report = run.Run();
  for (std::size_t i = 0; i < 4; ++i) words.push_back(run.At(out, i));
  return report;
}

TEST(AsyncStore, StoresArriveAtTheBarrier) {
  std::vector<double> words;
  const Report report = RunSend(Kernel(kStore, kWait), words);
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  EXPECT_EQ(words, (std::vector<double>{10, 9, 8, 7}));
}

TEST(AsyncStore, ReductionsAddToWhatIsThere) {
  std::vector<double> words;
  const Report report = RunSend(Kernel(kReduce, kWait), words);
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  EXPECT_EQ(words, (std::vector<double>{110, 109, 108, 107}));
}

TEST(AsyncStore, ReadingBeforeTheBarrierIsARace) {
  for (const char* const send : {kStore, kReduce}) {
    std::vector<double> words;
    const Report report = RunSend(Kernel(send, ""), words);
    EXPECT_TRUE(HasFinding(report, FindingKind::kDataRace)) << send << Show(report);
  }
}

/// Four floats of shared memory are added to global memory as a bulk.
TEST(AsyncStore, BulkReductionsAddToGlobalMemory) {
  TestRun run(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %s; .reg .b64 %out;
  .shared .align 16 .b32 words[4];
  ld.param.u64 %out, [out];
  mov.u32 %s, words;
  st.shared.v4.f32 [%s], {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
  fence.proxy.async.shared::cta;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%out], [%s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
)");
  const auto out = run.Buffer("out", DType::kF32, {10, 20, 30, 40}, BufferRole::kOutput);
  run.AddLaunch("k", {1, 1, 1}, {1, 1, 1}, {TestRun::Ptr(out)});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(run.At(out, i), 11.0 * static_cast<double>(i + 1));
}

}  // namespace
}  // namespace assay::emu
