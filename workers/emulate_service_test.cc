#include "workers/emulate_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/shared_memory.h"
#include "validator/execution/execution.h"
#include "validator/execution/launch_counts.h"

namespace assay::workers {
namespace {

constexpr const char* kCopy = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  st.global.u32 [%rd5], %r2;
  ret;
}
)";

sandbox::Message Request(const SharedMemory& x, const SharedMemory& y) {
  Execution execution;
  execution.buffers = {{.name = "x", .dtype = DType::kI32, .elements = 8},
                       {.name = "y",
                        .dtype = DType::kI32,
                        .elements = 8,
                        .role = BufferRole::kOutput,
                        .fill = BufferFill::kUninitialised}};
  Launch launch;
  launch.entry = "copy";
  launch.block = {8, 1, 1};
  launch.args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 0},
                 {.kind = Argument::Kind::kBuffer, .name = "y", .buffer = 1}};
  execution.launches = {launch};
  sandbox::Message message;
  message.header = {{"action", "run"}, {"execution", ToJson(execution)}};
  message.payload = kCopy;
  message.fds.emplace_back(dup(x.fd()));
  message.fds.emplace_back(dup(y.fd()));
  return message;
}

class EmulateService : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeEmulateService();
    ASSERT_TRUE(made);
    service_ = *made;
    x_ = *SharedMemory::Create(32);
    y_ = *SharedMemory::Create(32);
    for (std::size_t i = 0; i < 32; ++i) x_.bytes()[i] = static_cast<std::byte>(i);
  }
  sandbox::Service service_;
  SharedMemory x_, y_;
};

TEST_F(EmulateService, RunsAndWritesTheCallersMemory) {
  for (int round = 0; round < 2; ++round) {
    const auto answer = service_(Request(x_, y_));
    ASSERT_TRUE(answer) << ToString(answer.error());
    const auto report = ReportFromJson(answer->header.at("report"));
    ASSERT_TRUE(report) << ToString(report.error());
    EXPECT_EQ(report->stop, Stop::kCompleted) << report->reason;
    EXPECT_TRUE(report->findings.empty());
    EXPECT_TRUE(std::ranges::equal(x_.bytes(), y_.bytes()));
  }
}

TEST_F(EmulateService, RunsWhatItWasGivenBeforeByItsDigest) {
  const auto ask = [&](const char* digest, bool with_program) {
    sandbox::Message message = Request(x_, y_);
    message.header["program"] = digest;
    if (!with_program) message.payload.clear();
    return service_(std::move(message));
  };
  const auto unknown = ask("one", false);
  ASSERT_TRUE(unknown) << ToString(unknown.error());
  EXPECT_EQ(unknown->header, (Json{{"unknown_program", true}}));
  for (const bool with_program : {true, false}) {
    std::ranges::fill(y_.bytes(), std::byte{0});
    const auto answer = ask("one", with_program);
    ASSERT_TRUE(answer) << ToString(answer.error());
    EXPECT_EQ(answer->header.at("report").at("stop"), "completed");
    EXPECT_TRUE(std::ranges::equal(x_.bytes(), y_.bytes()));
  }
  EXPECT_TRUE(ask("another", false)->header.contains("unknown_program"));
}

TEST_F(EmulateService, CountsWhereItIsAskedTo) {
  sandbox::Message message = Request(x_, y_);
  message.header["action"] = "count";
  message.header["options"] = WriteJson(CountOptions{.l1_bytes = {4096}});
  const auto answer = service_(std::move(message));
  ASSERT_TRUE(answer) << ToString(answer.error());
  EXPECT_EQ(answer->header.at("report").at("stop"), "completed");
  const auto counts = ReadJson<std::vector<LaunchCounts>>(answer->header.at("counts"), "counts");
  ASSERT_TRUE(counts) << ToString(counts.error());
  ASSERT_EQ(counts->size(), 1);
  EXPECT_EQ(counts->at(0).loads.bytes, 32);
  EXPECT_EQ(WriteJson(*counts), answer->header.at("counts"));
  EXPECT_TRUE(std::ranges::equal(x_.bytes(), y_.bytes()));
  const auto plain = service_(Request(x_, y_));
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->header.contains("counts"));
  sandbox::Message without = Request(x_, y_);
  without.header["action"] = "count";
  EXPECT_FALSE(service_(std::move(without)));
}

TEST_F(EmulateService, WhatIsNotCoveredIsNeverASuccess) {
  sandbox::Message message = Request(x_, y_);
  message.payload = "this is not PTX";
  const auto answer = service_(std::move(message));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.at("report").at("stop"), "unsupported");
}

TEST_F(EmulateService, RequestsThatDoNotHoldTogetherAreErrors) {
  sandbox::Message missing = Request(x_, y_);
  missing.fds.pop_back();
  EXPECT_FALSE(service_(std::move(missing)));
  const SharedMemory small = *SharedMemory::Create(16);
  EXPECT_FALSE(service_(Request(x_, small)));
  sandbox::Message action = Request(x_, y_);
  action.header["action"] = "walk";
  EXPECT_FALSE(service_(std::move(action)));
}

}  // namespace
}  // namespace assay::workers
