// A server of the Model Context Protocol (revision 2025-06-18; 2025-03-26 and 2024-11-05 are spoken
// too) over lines of JSON-RPC 2.0: tools that a coding agent calls.
//
// Understood: initialize, ping, tools/list, tools/call, notifications/cancelled; calls with a
// progress token are told of progress. Calls run one after the other on a thread of their own, so
// that a cancellation is heard while one runs; some wait, one more is refused.
//
// The client is not trusted: a line has a limit, JSON is read strictly (depth, duplicate keys),
// whatever is wrong with a message is answered with JSON-RPC's error and changes nothing. What goes
// wrong inside of a tool is a result with isError, for the model to read. A tool has no way to name
// a file.
//
//   McpServer server(tools, "0.1.0", write);
//   server.OnLine(line);      // from one thread
//   server.Finish();          // the input has ended: answers what was asked
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"

namespace assay::serve {

struct ToolCall {
  const Json& arguments;
  std::function<void(const std::string& what)> progress;
  std::stop_token stop;  ///< The client no longer waits.
};
struct ToolAnswer {
  std::string text;
  Json structured = nullptr;
};
struct Tool {
  std::string name;
  std::string description;
  Json input;  ///< JSON Schema of the arguments.
  std::function<Result<ToolAnswer>(const ToolCall&)> run;
};

class McpServer {
 public:
  static constexpr std::size_t kMostLine = 8u << 20;

  /// `write` gets whole lines without their newline, one call at a time, from several threads.
  McpServer(std::vector<Tool> tools, std::string version,
            std::function<void(const std::string&)> write);
  /// Gives up what is under way.
  ~McpServer();

  void OnLine(std::string_view line);
  /// A line longer than kMostLine was thrown away.
  void OnLongLine();
  /// Waits until everything that was asked is answered.
  void Finish();
  /// Nobody reads any more: what waits is dropped, what is under way told to stop, and no call taken.
  void Abandon();

 private:
  struct Pending {
    Json id;
    std::string tool;
    Json arguments;
    Json progress_token;
    std::stop_source stop;
  };
  void OnRequest(const Json& id, const std::string& method, const Json& params);
  void OnNotification(const std::string& method, const Json& params);
  void OnCall(const Json& id, const Json& params);
  void Work();
  void Run(Pending& call);
  void Write(const Json& message);
  void Reply(const Json& id, Json result);
  void Refuse(const Json& id, int code, const std::string& message);

  const std::vector<Tool> tools_;
  const std::string version_;
  const std::function<void(const std::string&)> write_;
  bool initialised_ = false;

  std::mutex writing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending> queue_;
  std::optional<Json> running_;  ///< The id.
  std::stop_source running_stop_;
  bool closing_ = false;
  bool abandoned_ = false;
  std::thread thread_;
};

}  // namespace assay::serve
