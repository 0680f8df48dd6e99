#include "serve/mcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::serve {
namespace {

using ::testing::HasSubstr;

class McpTest : public ::testing::Test {
 protected:
  McpTest()
      : server_({{.name = "echo",
                  .description = "d",
                  .input = {{"type", "object"}},
                  .run = [this](const ToolCall& call) { return Echo(call); }}},
                "9.9", [this](const std::string& line) { Take(line); }) {}

  Result<ToolAnswer> Echo(const ToolCall& call) {
    const std::string what = call.arguments.value("what", "");
    call.progress("half");
    if (what == "fail") return Fail(ErrorKind::kUsage, "no", "here", "yes");
    if (what == "throw") throw std::runtime_error("oh");
    if (what == "hold") {
      std::unique_lock lock(mutex_);
      holding_ = true;
      changed_.notify_all();
      changed_.wait(lock, call.stop, [&] { return let_; });
      stopped_ = call.stop.stop_requested();
    }
    return ToolAnswer{.text = what, .structured = {{"what", what}}};
  }
  void Take(const std::string& line) {
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const std::lock_guard lock(mutex_);
    said_.push_back(*ParseJson(line, "line"));
  }
  void Begin() {
    server_.OnLine(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}})");
    server_.OnLine(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }
  void Call(int id, const std::string& what, const Json& token = nullptr) {
    Json params = {{"name", "echo"}, {"arguments", {{"what", what}}}};
    if (!token.is_null()) params["_meta"] = {{"progressToken", token}};
    server_.OnLine(CompactJson(
        {{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}, {"params", params}}));
  }
  void WaitForHold() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return holding_; });
  }
  void Let() {
    const std::lock_guard lock(mutex_);
    let_ = true;
    changed_.notify_all();
  }
  // The last answer with this id.
  Json Answer(const Json& id) {
    const std::lock_guard lock(mutex_);
    Json found;
    for (const Json& message : said_) {
      if (message.contains("id") && message.at("id") == id) found = message;
    }
    return found;
  }
  Json Last() {
    const std::lock_guard lock(mutex_);
    return said_.empty() ? Json() : said_.back();
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool holding_ = false;
  bool let_ = false;
  bool stopped_ = false;
  std::vector<Json> said_;
  McpServer server_;
};

TEST_F(McpTest, AToolIsListedAndCalled) {
  Begin();
  EXPECT_EQ(Answer(0).at("result").at("protocolVersion"), "2025-03-26");
  EXPECT_EQ(Answer(0).at("result").at("serverInfo").at("version"), "9.9");
  server_.OnLine(R"({"jsonrpc":"2.0","id":"l","method":"tools/list"})");
  EXPECT_EQ(Answer("l").at("result").at("tools").at(0).at("name"), "echo");
  Call(1, "hello", "t");
  server_.Finish();
  const Json result = Answer(1).at("result");
  EXPECT_EQ(result.at("content").at(0).at("text"), "hello");
  EXPECT_EQ(result.at("structuredContent").at("what"), "hello");
  EXPECT_EQ(result.at("isError"), false);
  const auto progress = std::ranges::find_if(
      said_, [](const Json& m) { return m.value("method", "") == "notifications/progress"; });
  ASSERT_NE(progress, said_.end());
  EXPECT_EQ(progress->at("params").at("progressToken"), "t");
}

TEST_F(McpTest, WhatGoesWrongInAToolIsForTheModelToRead) {
  Begin();
  Call(1, "fail");
  Call(2, "throw");
  server_.Finish();
  EXPECT_EQ(Answer(1).at("result").at("isError"), true);
  EXPECT_THAT(Answer(1).at("result").at("content").at(0).at("text"), HasSubstr("fix: yes"));
  EXPECT_EQ(Answer(2).at("result").at("isError"), true);
}

TEST_F(McpTest, HostileLinesAreAnsweredAndChangeNothing) {
  Begin();
  const auto code = [&](std::string_view line) {
    server_.OnLine(line);
    const Json last = Last();
    return last.contains("error") ? last.at("error").at("code").get<int>() : 0;
  };
  EXPECT_EQ(code("{"), -32700);
  EXPECT_EQ(code("\xff\xfe"), -32700);
  EXPECT_EQ(code(std::string(100'000, '[')), -32700);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})"), -32700);
  EXPECT_EQ(code("[]"), -32600);
  EXPECT_EQ(code("7"), -32600);
  EXPECT_EQ(code(R"({"id":1,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":{},"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":7})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"resources/read"})"), -32601);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}})"),
            -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}})"), -32602);
  EXPECT_EQ(
      code(
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":7}})"),
      -32602);
  EXPECT_EQ(code(std::string(McpServer::kMostLine + 1, ' ') + "x"), -32600);
  const std::size_t before = said_.size();
  server_.OnLine("  ");
  server_.OnLine(R"({"jsonrpc":"2.0","method":"notifications/unheard_of"})");
  server_.OnLine(R"({"jsonrpc":"2.0","id":5,"result":{}})");
  EXPECT_EQ(said_.size(), before) << "nothing is said to these";
  server_.OnLine(R"({"jsonrpc":"2.0","id":8,"method":"ping"})");
  EXPECT_EQ(Answer(8).at("result"), Json::object());
}

TEST_F(McpTest, NothingIsDoneBeforeInitialize) {
  Call(1, "hello");
  EXPECT_EQ(Answer(1).at("error").at("code"), -32600);
  server_.OnLine(
      R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"1900-01-01"}})");
  EXPECT_EQ(Answer(2).at("result").at("protocolVersion"), "2025-06-18");
}

TEST_F(McpTest, ACancelledCallIsStoppedAndNotAnswered) {
  Begin();
  Call(1, "hold");
  Call(2, "later");
  WaitForHold();
  server_.OnLine(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  server_.OnLine(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})");
  server_.OnLine(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  server_.Finish();
  EXPECT_TRUE(stopped_);
  EXPECT_TRUE(Answer(1).is_null());
  EXPECT_TRUE(Answer(2).is_null());
  Call(3, "hello");
  server_.Finish();
  EXPECT_EQ(Answer(3).at("result").at("isError"), false);
}

TEST_F(McpTest, SomeCallsWaitAndOneMoreIsRefused) {
  Begin();
  Call(1, "hold");
  WaitForHold();
  Call(1, "again");
  EXPECT_EQ(Answer(1).at("error").at("code"), -32600) << "the id is taken";
  for (int id = 2; id < 18; ++id) Call(id, "x");
  Call(18, "x");
  EXPECT_EQ(Answer(18).at("error").at("code"), -32000);
  Let();
  server_.Finish();
  for (int id = 2; id < 18; ++id) EXPECT_TRUE(Answer(id).contains("result")) << id;
}

TEST_F(McpTest, WhereNobodyReadsNothingIsDone) {
  Begin();
  Call(1, "hold");
  Call(2, "later");
  WaitForHold();
  server_.Abandon();
  server_.Finish();
  EXPECT_TRUE(stopped_);
  Call(3, "hello");
  server_.Finish();
  for (const int id : {1, 2, 3}) EXPECT_TRUE(Answer(id).is_null()) << id;
}

}  // namespace
}  // namespace assay::serve
