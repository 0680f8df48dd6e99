#include "validator/engine/emulator_engine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <stop_token>

#include "validator/engine/abandoned.h"

namespace assay::engine {
namespace {

using sandbox::CallOutcome;
using sandbox::FakeWorkers;
using sandbox::Reply;
using sandbox::Request;
using sandbox::WorkerKind;

struct Bench {
  Bench() {
    execution.ptx = "ptx";
    execution.buffers = {
        {.name = "x", .dtype = DType::kF32, .elements = 2, .role = BufferRole::kInput},
        {.name = "y",
         .dtype = DType::kF32,
         .elements = 2,
         .role = BufferRole::kOutput,
         .fill = BufferFill::kUninitialised}};
    buffers = {&x, &y};
  }
  SharedMemory x = SharedMemory::Create(8).value();
  SharedMemory y = SharedMemory::Create(8).value();
  Execution execution;
  std::vector<SharedMemory*> buffers;

  Result<Report> Run(FakeWorkers::Function function, Trust trust = Trust::kCandidate) {
    FakeWorkers workers(std::move(function));
    EmulatorEngine engine(workers);
    return engine.Run(execution, buffers, trust);
  }
};

Reply Answer(const Report& report) {
  Reply reply;
  reply.message.header = {{"report", ToJson(report)}};
  return reply;
}

Report GoodReport() {
  Report report;
  report.unwritten_bytes = {0, 0};
  report.first_unwritten = {-1, -1};
  return report;
}

Reply WithoutProgram() {
  Reply reply;
  reply.message.header = {{"unknown_program", true}};
  return reply;
}

TEST(EmulatorEngineTest, WhatNobodyWaitsForDoesNotBegin) {
  Bench bench;
  int calls = 0;
  const FakeWorkers::Function count = [&](WorkerKind, const Request&, std::chrono::milliseconds) {
    ++calls;
    return Result<Reply>(Answer(GoodReport()));
  };
  std::stop_source stop;
  {
    const Abandoning abandoning(stop.get_token());
    EXPECT_TRUE(bench.Run(count).has_value());
    stop.request_stop();
    EXPECT_TRUE(IsAbandoned());
    EXPECT_FALSE(bench.Run(count).has_value());
    {
      const Abandoning inner{std::stop_token()};
      EXPECT_TRUE(bench.Run(count).has_value());
    }
    EXPECT_FALSE(bench.Run(count).has_value());
  }
  EXPECT_TRUE(bench.Run(count).has_value());
  EXPECT_EQ(calls, 3);
}

TEST(EmulatorEngineTest, SendsExecutionPtxAndDescriptors) {
  Bench bench;
  const auto report = bench.Run([](WorkerKind kind, const Request& request, auto) -> Result<Reply> {
    EXPECT_EQ(kind, WorkerKind::kEmulate);
    EXPECT_EQ(request.role, "candidate");
    if (request.payload.empty()) return WithoutProgram();
    EXPECT_EQ(request.payload, "ptx");
    EXPECT_TRUE(ExecutionFromJson(request.header.at("execution")));
    EXPECT_EQ(request.fds.size(), 2u);
    // Inputs cannot be written through what the worker gets; outputs can.
    EXPECT_EQ(::fcntl(request.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(::fcntl(request.fds[1], F_GETFL) & O_ACCMODE, O_RDWR);
    return Answer(GoodReport());
  });
  ASSERT_TRUE(report) << ToString(report.error());
  EXPECT_EQ(report->stop, Stop::kCompleted);
}

TEST(EmulatorEngineTest, SendsAProgramOnlyToWhoDoesNotHaveIt) {
  Bench bench;
  std::map<std::string, std::string> kept;  // By digest, as a worker keeps them.
  std::vector<std::string> sent;
  FakeWorkers workers([&](WorkerKind, const Request& request, auto) -> Result<Reply> {
    const auto digest = request.header.at("program").get<std::string>();
    if (!request.payload.empty()) {
      sent.emplace_back(request.payload);
      EXPECT_TRUE(kept.emplace(digest, request.payload).second);
    } else if (!kept.contains(digest)) {
      return WithoutProgram();
    }
    EXPECT_EQ(kept.at(digest), bench.execution.ptx);
    return Answer(GoodReport());
  });
  EmulatorEngine engine(workers);
  const std::vector<std::string> programs = {"one", "two", "one", "one", "two"};
  for (const std::string& program : programs) {
    bench.execution.ptx = program;
    const auto report = engine.Run(bench.execution, bench.buffers, Trust::kCandidate);
    ASSERT_TRUE(report) << ToString(report.error());
    EXPECT_EQ(report->stop, Stop::kCompleted) << report->reason;
  }
  EXPECT_EQ(sent, (std::vector<std::string>{"one", "two"}));
  // One that denies what it was just given is an engine that failed.
  const auto denied =
      bench.Run([](WorkerKind, const Request&, auto) -> Result<Reply> { return WithoutProgram(); });
  ASSERT_TRUE(denied);
  EXPECT_EQ(denied->stop, Stop::kEngineFailure);
}

TEST(EmulatorEngineTest, CandidatesAndReferencesNeverShareAWorker) {
  Bench bench;
  std::string role;
  ASSERT_TRUE(bench.Run(
      [&](WorkerKind, const Request& request, auto) -> Result<Reply> {
        role = request.role;
        return Answer(GoodReport());
      },
      Trust::kReference));
  EXPECT_EQ(role, "reference");
}

TEST(EmulatorEngineTest, WorkersThatDieOrLieAreEngineFailures) {
  Bench bench;
  for (const CallOutcome outcome : {CallOutcome::kCrashed, CallOutcome::kProtocol}) {
    const auto report = bench.Run([outcome](WorkerKind, const Request&, auto) -> Result<Reply> {
      Reply reply;
      reply.outcome = outcome;
      return reply;
    });
    EXPECT_EQ(report->stop, Stop::kEngineFailure);
  }
  Report short_report = GoodReport();
  short_report.unwritten_bytes = {0};
  const std::vector<Json> lies = {Answer(short_report).message.header, Json(), Json{{"report", 3}}};
  for (const Json& lie : lies) {
    const auto report = bench.Run([&](WorkerKind, const Request&, auto) -> Result<Reply> {
      Reply reply;
      reply.message.header = lie;
      return reply;
    });
    EXPECT_EQ(report->stop, Stop::kEngineFailure);
  }
}

TEST(EmulatorEngineTest, TimeOutsAreLimitsOfTheEngine) {
  Bench bench;
  const auto report = bench.Run([](WorkerKind, const Request&, auto) -> Result<Reply> {
    Reply reply;
    reply.outcome = CallOutcome::kTimedOut;
    return reply;
  });
  EXPECT_EQ(report->stop, Stop::kResourceLimit);
  EXPECT_NE(report->reason.find("says nothing of the kernel"), std::string::npos) << report->reason;
}

TEST(EmulatorEngineTest, CasesThatTakeTooMuchMemoryAreLimitsOfTheEngine) {
  Bench bench;
  const auto report = bench.Run([](WorkerKind, const Request&, auto) -> Result<Reply> {
    Reply reply;
    reply.outcome = CallOutcome::kOverLimit;
    reply.detail = "killed at its memory limit of 96 MiB";
    return reply;
  });
  EXPECT_EQ(report->stop, Stop::kResourceLimit);
  EXPECT_EQ(report->reason,
            "the case takes more memory than the emulator may hold (killed at its memory limit of "
            "96 MiB)");
}

TEST(EmulatorEngineTest, DeadlinesGrowWithTheStepsAndEnd) {
  Bench bench;
  std::chrono::milliseconds deadline{};
  const auto ask = [&](std::uint64_t steps) {
    bench.execution.limits.max_steps = steps;
    EXPECT_TRUE(bench.Run(
        [&](WorkerKind, const Request&, std::chrono::milliseconds given) -> Result<Reply> {
          deadline = given;
          return Answer(GoodReport());
        }));
    return deadline;
  };
  EXPECT_LT(ask(1'000'000), ask(100'000'000));
  EXPECT_LE(ask(UINT64_MAX), std::chrono::minutes(30));
}

TEST(EmulatorEngineTest, TooManyBuffersAreRefusedBeforeTheyAreSent) {
  Bench bench;
  bench.execution.buffers.assign(200, bench.execution.buffers[1]);
  bench.buffers.assign(200, &bench.y);
  const auto report = bench.Run([](WorkerKind, const Request&, auto) -> Result<Reply> {
    ADD_FAILURE() << "asked";
    return Reply{};
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::kLimit);
}

}  // namespace
}  // namespace assay::engine
