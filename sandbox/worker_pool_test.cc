#include "sandbox/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
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
      {"exit", "exit 3; it said: giving ?[31mup"},
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
  EXPECT_EQ(reply.error(), (Error{ErrorKind::kUnsupported, "will not", "here", "ask another"}));
  Answered(*pool, Asking("echo"));
  EXPECT_EQ(pool->started(), 1u);
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
    EXPECT_EQ(reply.error().kind, ErrorKind::kInternal);
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
  const Json files = Answered(*pool, request)["files"];
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0],
            (Json{{"bytes", 8192}, {"first", 41}, {"writable", true}, {"shrunk", false}}));
  EXPECT_FALSE(files[1]["writable"].get<bool>());
  EXPECT_EQ(output->bytes()[0], std::byte{42});
  EXPECT_EQ(input->bytes()[0], std::byte{0});
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
  options.launch = [](WorkerKind kind) -> Result<WorkerLaunch> {
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
  EXPECT_EQ((*pool)->Call(WorkerKind::kGpu, Asking("echo"), kPatience).error().kind,
            ErrorKind::kUnsupported);
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
