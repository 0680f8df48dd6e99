// A real GPU through a real worker, with kernels that misbehave in a row and good ones between. Says
// why it does not run where there is no GPU.
#include "validator/engine/gpu_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/shared_memory.h"
#include "sandbox/jail.h"
#include "sandbox/worker_pool.h"

namespace assay::engine {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kElements = 1024;

/// y[i] = 2 x[i] in `BODY`, between reading x and writing y.
std::string Kernel(const std::string& body) {
  return R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y) {
.reg .b64 %d<8>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<2>;
ld.param.u64 %d0, [x];
ld.param.u64 %d1, [y];
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %tid.x;
mad.lo.u32 %r2, %r0, 128, %r1;
mul.wide.u32 %d2, %r2, 4;
add.u64 %d3, %d0, %d2;
add.u64 %d4, %d1, %d2;
ld.global.f32 %f0, [%d3];
add.f32 %f1, %f0, %f0;
)" + body +
         R"(
st.global.f32 [%d4], %f1;
ret;
}
)";
}

/// Workers that answer when so many have been asked at once.
struct Meeting {
  explicit Meeting(std::size_t of) : all(of) {}
  Result<sandbox::Reply> Serve(const sandbox::Request& request) {
    std::unique_lock lock(mutex);
    lanes.push_back(request.lane);
    met.notify_all();
    met.wait(lock, [this] { return lanes.size() >= all; });
    Report report;
    report.unwritten_bytes = {0};
    report.first_unwritten = {-1};
    sandbox::Reply reply;
    reply.message.header = {{"report", ToJson(report)}};
    return reply;
  }
  std::size_t all;
  std::mutex mutex;
  std::condition_variable met;
  std::vector<unsigned> lanes;
};

Execution OneBuffer() {
  Execution execution;
  execution.buffers = {{.name = "y", .elements = 1, .role = BufferRole::kOutput}};
  return execution;
}

TEST(SeveralGpusTest, ExecutionsRunOnAllOfThemAtOnce) {
  Meeting meeting(3);
  sandbox::FakeWorkers workers(
      [&](auto, const sandbox::Request& request, auto) { return meeting.Serve(request); });
  GpuEngine engine(workers, {.devices = 3});
  EXPECT_EQ(engine.devices(), 3u);
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < 3; ++i) {
      running.emplace_back([&] {
        SharedMemory y = SharedMemory::Create(4).value();
        SharedMemory* const buffers[] = {&y};
        const auto report = engine.Run(OneBuffer(), buffers, Trust::kCandidate);
        ASSERT_TRUE(report) << ToString(report.error());
        EXPECT_EQ(report->stop, Stop::kCompleted) << report->reason;
      });
    }
  }
  EXPECT_THAT(meeting.lanes, testing::UnorderedElementsAre(0u, 1u, 2u));
}

TEST(SeveralGpusTest, WhatIsTimedIsTimedOnTheFirst) {
  std::vector<unsigned> lanes;
  sandbox::FakeWorkers workers([&](auto, const sandbox::Request& request, auto) {
    lanes.push_back(request.lane);
    sandbox::Reply reply;
    reply.message.header = {{"seconds", 1.5}, {"device", "a card"}, {"devices", 2}};
    return Result<sandbox::Reply>(std::move(reply));
  });
  GpuEngine engine(workers, {.devices = 2});
  EXPECT_EQ(engine.Time(MatrixProduct{}).value(), 1.5);
  EXPECT_EQ(engine.Time(RowsPrimitive{}).value(), 1.5);
  EXPECT_EQ(engine.Count().value(), 2u);
  EXPECT_EQ(engine.Describe(1).value(), "a card");
  EXPECT_THAT(lanes, testing::ElementsAre(0u, 0u, 0u, 1u));
}

TEST(SeveralProcessesTest, AnExecutionHasTheCardToItself) {
  const Path file = std::filesystem::temp_directory_path() /
                    ("gpu_engine_" + std::to_string(::getpid())) / "gpu-0.turn";
  std::atomic<int> inside = 0, most = 0;
  sandbox::FakeWorkers workers([&](auto, const sandbox::Request&, auto) {
    most = std::max<int>(most, ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --inside;
    sandbox::Reply reply;
    reply.message.header = {{"seconds", 1.5}};
    return Result<sandbox::Reply>(std::move(reply));
  });
  {
    std::vector<std::jthread> processes;
    for (int i = 0; i < 3; ++i) {
      processes.emplace_back([&] {
        GpuEngine engine(workers, {.turns = {file}});
        for (int j = 0; j < 5; ++j) EXPECT_TRUE(engine.Time(RowsPrimitive{}));
      });
    }
  }
  EXPECT_EQ(most, 1);
  std::filesystem::remove_all(file.parent_path());
}

class GpuEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto jail = sandbox::ProbeJail();
    auto pool = sandbox::WorkerPool::Create({.unsafe_no_jail = !jail || !jail->works});
    ASSERT_TRUE(pool) << ToString(pool.error());
    pool_ = std::move(*pool);
    engine_ = std::make_unique<GpuEngine>(*pool_,
                                          GpuEngine::Options{.deadline = std::chrono::seconds(10)});
    const auto device = engine_->Describe();
    if (!device) GTEST_SKIP() << "no GPU: " << device.error().message;
  }

  Report Run(const std::string& ptx, std::int64_t elements = kElements) {
    Execution execution;
    execution.ptx = ptx;
    execution.buffers = {{.name = "x", .elements = elements, .role = BufferRole::kInput},
                         {.name = "y",
                          .elements = elements,
                          .role = BufferRole::kOutput,
                          .fill = BufferFill::kUninitialised}};
    execution.launches = {{.entry = "twice",
                           .grid = {kElements / 128, 1, 1},
                           .block = {128, 1, 1},
                           .args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 0},
                                    {.kind = Argument::Kind::kBuffer, .name = "y", .buffer = 1}}}};
    SharedMemory x = SharedMemory::Create(static_cast<std::size_t>(4 * elements)).value();
    SharedMemory y = SharedMemory::Create(static_cast<std::size_t>(4 * elements)).value();
    for (std::int64_t i = 0; i < kElements; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(x.bytes().data() + 4 * i, &value, 4);
    }
    std::vector<SharedMemory*> buffers{&x, &y};
    auto report = engine_->Run(execution, buffers, Trust::kCandidate);
    EXPECT_TRUE(report) << ToString(report.error());
    right_ = true;
    for (std::int64_t i = 0; i < kElements; ++i) {
      float value = 0;
      std::memcpy(&value, y.bytes().data() + 4 * i, 4);
      right_ = right_ && value == 2 * static_cast<float>(i);
    }
    return *report;
  }
  void ExpectGoodOne(const char* after) {
    const Report report = Run(Kernel(""));
    EXPECT_EQ(report.stop, Stop::kCompleted) << after << ": " << report.reason;
    EXPECT_TRUE(report.findings.empty()) << after << ": " << report.findings[0].message;
    EXPECT_TRUE(right_) << after;
  }

  std::unique_ptr<sandbox::WorkerPool> pool_;
  std::unique_ptr<GpuEngine> engine_;
  bool right_ = false;
};

TEST_F(GpuEngineTest, WhatMisbehavesHurtsNobodyElse) {
  struct Row {
    const char* what;
    std::string body;
    Stop stop;
    FindingKind kind;  ///< Where it stops with a fault, or completes with a finding.
  };
  const Row rows[] = {
      {"an illegal address", "mov.u64 %d5, 64; st.global.u32 [%d5], %r0;", Stop::kFault,
       FindingKind::kOutOfBounds},
      {"a misaligned address", "add.u64 %d5, %d4, 1; st.global.u32 [%d5], %r0;", Stop::kFault,
       FindingKind::kMisaligned},
      {"a trap", "trap;", Stop::kFault, FindingKind::kTrap},
      {"a write behind its buffer", "st.global.f32 [%d4+2048], %f1;", Stop::kCompleted,
       FindingKind::kOutOfBounds},
      {"a write to an input", "st.global.f32 [%d3], %f1;", Stop::kCompleted,
       FindingKind::kWriteToInput},
      {"a loop without end", "$again: bra $again;", Stop::kResourceLimit, FindingKind::kTrap},
  };
  ExpectGoodOne("at first");
  for (const Row& row : rows) {
    const Report report = Run(Kernel(row.body));
    EXPECT_EQ(report.stop, row.stop) << row.what << ": " << report.reason;
    if (row.stop != Stop::kResourceLimit) {
      ASSERT_FALSE(report.findings.empty()) << row.what;
      EXPECT_EQ(report.findings[0].kind, row.kind)
          << row.what << ": " << report.findings[0].message;
    }
    ExpectGoodOne(row.what);
  }
  // More memory than any card has; the file behind it is sparse.
  const Report report = Run(Kernel(""), std::int64_t{1} << 36);
  EXPECT_EQ(report.stop, Stop::kResourceLimit);
  EXPECT_THAT(report.reason, HasSubstr("the GPU has no room"));
  ExpectGoodOne("a buffer larger than the GPU");
}

}  // namespace
}  // namespace assay::engine
