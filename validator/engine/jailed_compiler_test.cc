#include "validator/engine/jailed_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace assay::engine {
namespace {

using sandbox::CallOutcome;
using sandbox::FakeWorkers;
using sandbox::Reply;
using sandbox::Request;
using sandbox::WorkerKind;

Json GoodHeader() {
  return Json::parse(R"({"ok": true, "status": "NVRTC_SUCCESS", "nvrtc": "13.0", "log": "",
    "diagnostics": [{"severity": "warning", "file": "kernel.cu", "line": 3, "column": 1, "code": "177-D", "message": "unused", "excerpt": "", "context": ""}],
    "ptx_bytes": 4, "cubin_bytes": 2, "lowered": {"k": "_Z1k"},
    "resources": {"_Z1k": {"registers": 28, "spill_store_bytes": 8, "shared_bytes": 1024}},
    "program": {"facts": {"fault": "", "uses": [], "constants": [], "decisions": [], "variables": [], "memory": [],
      "memory_left_out": 0, "atomics": [], "atomics_left_out": 0, "functions": []}}})");
}

Reply Replied(Json header, std::string payload) {
  Reply reply;
  reply.message.header = std::move(header);
  reply.message.payload = std::move(payload);
  return reply;
}

TEST(JailedCompilerTest, AsksForEverythingAndReadsTheReply) {
  Json asked;
  std::string source;
  FakeWorkers workers([&](WorkerKind kind, const Request& request, auto) -> Result<Reply> {
    EXPECT_EQ(kind, WorkerKind::kCompile);
    asked = request.header;
    source = std::string(request.payload);
    return Replied(GoodHeader(), std::string("ptx\0", 4) + "ab");
  });
  JailedCompiler compiler(workers);
  const auto outcome = compiler.Compile({.source = "text",
                                         .file_name = "kernel.cu",
                                         .headers = {{"a.h", "x"}},
                                         .pre_include = "a.h",
                                         .defines = {"N=4"},
                                         .arch = "sm_80",
                                         .entries = {"k"},
                                         .want_cubin = true});
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(source, "text");
  EXPECT_EQ(asked["options"], Json::array({"-DN=4"}));
  EXPECT_EQ(asked["arch"], "sm_80");
  EXPECT_EQ(asked["headers"]["a.h"], "x");
  EXPECT_EQ(asked["pre_include"], "a.h");
  EXPECT_EQ(outcome->kind, CompileOutcome::Kind::kCompiled);
  EXPECT_EQ(outcome->kernel.ptx, "ptx");
  EXPECT_EQ(outcome->kernel.cubin, "ab");
  EXPECT_EQ(outcome->kernel.compiler, "NVRTC 13.0");
  EXPECT_EQ(outcome->kernel.lowered.at("k"), "_Z1k");
  EXPECT_EQ(outcome->kernel.resources.at("_Z1k").registers, 28u);
  EXPECT_EQ(outcome->kernel.resources.at("_Z1k").static_shared_bytes, 1024u);
  EXPECT_EQ(outcome->diagnostics.at(0).severity, Diagnostic::Severity::kWarning);
}

TEST(JailedCompilerTest, FactsOrAWordAboutWhyThereAreNone) {
  Json header = GoodHeader();
  auto outcome = ReadCompileReply(header, "ptx1ab");
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_NE(outcome->kernel.facts, nullptr);
  header["program"] = Json{{"fault", "ptx:12: what is this"}};
  outcome = ReadCompileReply(header, "ptx1ab");
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->kernel.facts, nullptr);
  EXPECT_EQ(outcome->kernel.facts_fault, "ptx:12: what is this");
  header["program"] = Json::object();
  EXPECT_NE(ReadCompileReply(header, "ptx1ab")->kernel.facts_fault, "");
  header.erase("program");
  EXPECT_FALSE(ReadCompileReply(header, "ptx1ab"));
}

TEST(JailedCompilerTest, KeepsOutcomesByAllThatWentIn) {
  int calls = 0;
  FakeWorkers workers([&](WorkerKind, const Request&, auto) -> Result<Reply> {
    ++calls;
    return Replied(GoodHeader(), std::string("ptx\0", 4) + "ab");
  });
  JailedCompiler compiler(workers, {.deadline = std::chrono::seconds(1), .kept = 2});
  CompileRequest request{.source = "a"};
  ASSERT_TRUE(compiler.Compile(request));
  ASSERT_TRUE(compiler.Compile(request));
  EXPECT_EQ(calls, 1);
  request.arch = "sm_80";
  ASSERT_TRUE(compiler.Compile(request));
  request.defines = {"X=1"};
  ASSERT_TRUE(compiler.Compile(request));
  EXPECT_EQ(calls, 3);
  ASSERT_TRUE(compiler.Compile({.source = "a"}));  // the oldest was dropped
  EXPECT_EQ(calls, 4);
}

TEST(JailedCompilerTest, WhoeverAsksMeanwhileWaits) {
  std::atomic<int> calls = 0;
  std::promise<void> let_go;
  const std::shared_future<void> gone = let_go.get_future().share();
  FakeWorkers workers([&](WorkerKind, const Request&, auto) -> Result<Reply> {
    ++calls;
    gone.wait();
    return Replied(GoodHeader(), std::string("ptx\0", 4) + "ab");
  });
  JailedCompiler compiler(workers);
  const auto compile = [&] { return compiler.Compile({.source = "a"})->kernel.ptx; };
  auto first = std::async(std::launch::async, compile);
  while (calls == 0) std::this_thread::yield();
  auto second = std::async(std::launch::async, compile);
  // Long enough for it to ask on its own, if it did.
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  let_go.set_value();
  EXPECT_EQ(first.get(), "ptx");
  EXPECT_EQ(second.get(), "ptx");
  EXPECT_EQ(calls, 1);
}

TEST(JailedCompilerTest, WhoWaitedInVainTriesAgain) {
  std::atomic<int> calls = 0;
  std::promise<void> let_go;
  const std::shared_future<void> gone = let_go.get_future().share();
  FakeWorkers workers([&](WorkerKind, const Request&, auto) -> Result<Reply> {
    if (++calls > 1) return Replied(GoodHeader(), std::string("ptx\0", 4) + "ab");
    gone.wait();
    return Reply{.outcome = CallOutcome::kTimedOut, .message = {}, .detail = "no reply"};
  });
  JailedCompiler compiler(workers);
  const auto compile = [&] { return compiler.Compile({.source = "a"})->kind; };
  auto first = std::async(std::launch::async, compile);
  while (calls == 0) std::this_thread::yield();
  auto second = std::async(std::launch::async, compile);
  let_go.set_value();
  EXPECT_EQ(first.get(), CompileOutcome::Kind::kTimedOut);
  EXPECT_EQ(second.get(), CompileOutcome::Kind::kCompiled);
}

TEST(JailedCompilerTest, DeathsAndTimeOutsAreOutcomesAndNotKept) {
  CallOutcome outcome = CallOutcome::kTimedOut;
  int calls = 0;
  FakeWorkers workers([&](WorkerKind, const Request&, auto) -> Result<Reply> {
    ++calls;
    Reply reply;
    reply.outcome = outcome;
    reply.detail = "killed";
    return reply;
  });
  JailedCompiler compiler(workers);
  EXPECT_EQ(compiler.Compile({.source = "a"})->kind, CompileOutcome::Kind::kTimedOut);
  outcome = CallOutcome::kCrashed;
  EXPECT_EQ(compiler.Compile({.source = "a"})->kind, CompileOutcome::Kind::kCrashed);
  outcome = CallOutcome::kProtocol;
  EXPECT_EQ(compiler.Compile({.source = "a"})->kind, CompileOutcome::Kind::kCrashed);
  outcome = CallOutcome::kOverLimit;
  EXPECT_EQ(compiler.Compile({.source = "a"})->kind, CompileOutcome::Kind::kCrashed);
  EXPECT_EQ(calls, 4);
}

TEST(JailedCompilerTest, WhatTheOpBringsMayTakeLongOnABusyMachine) {
  std::chrono::milliseconds given{};
  FakeWorkers workers([&](WorkerKind, const Request&, auto deadline) -> Result<Reply> {
    given = deadline;
    return Reply{.outcome = CallOutcome::kTimedOut, .message = {}, .detail = "no reply"};
  });
  JailedCompiler compiler(workers);
  EXPECT_EQ(compiler.Compile({.source = "a", .trust = Trust::kCandidate})->kind,
            CompileOutcome::Kind::kTimedOut);
  EXPECT_EQ(given, JailedCompiler::Options{}.deadline);
  EXPECT_EQ(compiler.Compile({.source = "a", .trust = Trust::kReference})->kind,
            CompileOutcome::Kind::kTimedOut);
  EXPECT_EQ(given, JailedCompiler::Options{}.reference_deadline);
  EXPECT_GT(JailedCompiler::Options{}.reference_deadline, JailedCompiler::Options{}.deadline);
}

TEST(JailedCompilerTest, ErrorsOfTheMachineStayErrors) {
  FakeWorkers workers([](WorkerKind, const Request&, auto) -> Result<Reply> {
    return Fail(ErrorKind::kEnvironment, "no jail");
  });
  JailedCompiler compiler(workers);
  EXPECT_EQ(compiler.Compile({.source = "a"}).error().message, "no jail");
}

TEST(JailedCompilerTest, LyingRepliesAreNeverBelieved) {
  const std::vector<std::pair<const char*, Json>> lies = {{"ptx_bytes", 5},
                                                          {"ptx_bytes", -1},
                                                          {"ptx_bytes", UINT64_MAX},
                                                          {"cubin_bytes", 3},
                                                          {"lowered", 3},
                                                          {"lowered", Json{{"k", 3}}},
                                                          {"diagnostics", Json{{"a", 1}}},
                                                          {"ok", "yes"},
                                                          {"program", 3},
                                                          {"program", Json{{"facts", 3}}},
                                                          {"program", Json{{"more", 3}}},
                                                          {"resources", Json{{"k", 1}}}};
  for (const auto& [key, value] : lies) {
    Json header = GoodHeader();
    header[key] = value;
    EXPECT_FALSE(ReadCompileReply(header, "ptx1ab")) << key << " " << value.dump();
  }
  EXPECT_FALSE(ReadCompileReply(Json::array(), ""));
  FakeWorkers workers(
      [](WorkerKind, const Request&, auto) -> Result<Reply> { return Replied(Json(3), ""); });
  JailedCompiler compiler(workers);
  EXPECT_EQ(compiler.Compile({.source = "a"})->kind, CompileOutcome::Kind::kCrashed);
}

}  // namespace
}  // namespace assay::engine
