#include "serve/mcp.h"

#include <algorithm>

#include "base/text.h"

namespace assay::serve {
namespace {

constexpr std::string_view kVersions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
constexpr std::size_t kMostWaiting = 16;
constexpr std::size_t kMostText = 64 * 1024;
constexpr std::size_t kMostId = 128;

// JSON-RPC 2.0, section 5.1.
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kBusy = -32000;

bool IsId(const Json& id) {
  return id.is_number_integer() ||
         (id.is_string() && id.get_ref<const std::string&>().size() <= kMostId);
}

Json At(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

}  // namespace

McpServer::McpServer(std::vector<Tool> tools, std::string version,
                     std::function<void(const std::string&)> write)
    : tools_(std::move(tools)), version_(std::move(version)), write_(std::move(write)) {
  thread_ = std::thread([this] { Work(); });
}

McpServer::~McpServer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  Abandon();
  thread_.join();
}

void McpServer::Abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    queue_.clear();
    running_stop_.request_stop();
  }
  changed_.notify_all();
}

void McpServer::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !running_; });
}

void McpServer::Write(const Json& message) {
  const std::lock_guard lock(writing_);
  write_(CompactJson(message));
}

void McpServer::Reply(const Json& id, Json result) {
  Write({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

void McpServer::Refuse(const Json& id, int code, const std::string& message) {
  Write({{"jsonrpc", "2.0"},
         {"id", id},
         {"error", {{"code", code}, {"message", OneLine(message, 500)}}}});
}

void McpServer::OnLongLine() {
  Refuse(nullptr, kInvalidRequest, "a message has at most " + std::to_string(kMostLine) + " bytes");
}

void McpServer::OnLine(std::string_view line) {
  if (Strip(line).empty()) return;
  if (line.size() > kMostLine) return OnLongLine();
  const Result<Json> message = ParseJson(line, "message");
  if (!message) return Refuse(nullptr, kParseError, ToString(message.error()));
  if (!message->is_object())
    return Refuse(nullptr, kInvalidRequest, "a message is one object; batches are not taken");
  const bool request = message->contains("id");
  const Json id = At(*message, "id");
  const Json method = At(*message, "method");
  if (request && !IsId(id))
    return Refuse(nullptr, kInvalidRequest, "an id is a string or an integer");
  if (At(*message, "jsonrpc") != "2.0")
    return Refuse(request ? id : Json(), kInvalidRequest, "this is not JSON-RPC 2.0");
  // A reply: nothing was asked of the client.
  if (!message->contains("method") && (message->contains("result") || message->contains("error")))
    return;
  if (!method.is_string())
    return Refuse(request ? id : Json(), kInvalidRequest, "there is no method");
  const Json params = At(*message, "params");
  if (!params.is_null() && !params.is_object())
    return request ? Refuse(id, kInvalidParams, "params must be an object") : void();
  if (request) return OnRequest(id, method.get<std::string>(), params);
  OnNotification(method.get<std::string>(), params);
}

void McpServer::OnNotification(const std::string& method, const Json& params) {
  if (method != "notifications/cancelled") return;
  const Json id = At(params, "requestId");
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Pending& call) { return call.id == id; });
  if (running_ && *running_ == id) running_stop_.request_stop();
  changed_.notify_all();
}

void McpServer::OnRequest(const Json& id, const std::string& method, const Json& params) {
  if (method == "initialize") {
    const Json asked = At(params, "protocolVersion");
    const bool known =
        asked.is_string() &&
        std::ranges::find(kVersions, asked.get<std::string>()) != std::end(kVersions);
    initialised_ = true;
    return Reply(id, {{"protocolVersion", known ? asked : Json(kVersions[0])},
                      {"capabilities", {{"tools", {{"listChanged", false}}}}},
                      {"serverInfo", {{"name", "assay"}, {"version", version_}}},
                      {"instructions",
                       "Judges CUDA kernels without a GPU. Show ops, then check a kernel against "
                       "one; a refutation comes with the smallest failing case. Only 'accepted' "
                       "means that a kernel passed."}});
  }
  if (method == "ping") return Reply(id, Json::object());
  if (!initialised_) return Refuse(id, kInvalidRequest, "initialize comes first");
  if (method == "tools/list") {
    Json list = Json::array();
    for (const Tool& tool : tools_) {
      list.push_back(
          {{"name", tool.name}, {"description", tool.description}, {"inputSchema", tool.input}});
    }
    return Reply(id, {{"tools", std::move(list)}});
  }
  if (method == "tools/call") return OnCall(id, params);
  Refuse(id, kMethodNotFound, "there is no method '" + method + "'");
}

void McpServer::OnCall(const Json& id, const Json& params) {
  const Json name = At(params, "name");
  const auto tool = std::ranges::find_if(tools_, [&](const Tool& one) {
    return name.is_string() && one.name == name.get<std::string>();
  });
  if (tool == tools_.end()) return Refuse(id, kInvalidParams, "there is no tool of that name");
  Json arguments = At(params, "arguments");
  if (arguments.is_null()) arguments = Json::object();
  if (!arguments.is_object()) return Refuse(id, kInvalidParams, "arguments must be an object");
  Json token = At(At(params, "_meta"), "progressToken");
  if (!IsId(token)) token = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return;
    const bool taken =
        (running_ && *running_ == id) ||
        std::ranges::any_of(queue_, [&](const Pending& one) { return one.id == id; });
    if (!taken && queue_.size() < kMostWaiting) {
      queue_.push_back({id, tool->name, std::move(arguments), std::move(token), {}});
      changed_.notify_all();
      return;
    }
    if (taken) return Refuse(id, kInvalidRequest, "a request with this id is under way");
  }
  Refuse(id, kBusy, "too many calls are waiting; wait for answers");
}

void McpServer::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    Pending call = std::move(queue_.front());
    queue_.pop_front();
    running_ = call.id;
    running_stop_ = call.stop;
    lock.unlock();
    Run(call);
    lock.lock();
    running_.reset();
    changed_.notify_all();
  }
}

void McpServer::Run(Pending& call) {
  const auto tool = std::ranges::find(tools_, call.tool, &Tool::name);
  std::uint64_t told = 0;
  const ToolCall asked{.arguments = call.arguments,
                       .progress =
                           [&](const std::string& what) {
                             if (call.progress_token.is_null() || call.stop.stop_requested())
                               return;
                             Write({{"jsonrpc", "2.0"},
                                    {"method", "notifications/progress"},
                                    {"params",
                                     {{"progressToken", call.progress_token},
                                      {"progress", ++told},
                                      {"message", OneLine(ValidUtf8(what), 200)}}}});
                           },
                       .stop = call.stop.get_token()};
  Result<ToolAnswer> answer = [&]() -> Result<ToolAnswer> {
    try {
      return tool->run(asked);
    } catch (const std::exception& exception) {
      return Fail(ErrorKind::kInternal, std::string("the tool failed: ") + exception.what());
    }
  }();
  if (call.stop.stop_requested()) return;  // who cancels gets no answer
  const std::string text = answer ? answer->text : "error: " + ToString(answer.error());
  Json result = {
      {"content", Json::array({{{"type", "text"}, {"text", Shorten(ValidUtf8(text), kMostText)}}})},
      {"isError", !answer}};
  if (answer && !answer->structured.is_null())
    result["structuredContent"] = std::move(answer->structured);
  Reply(call.id, std::move(result));
}

}  // namespace assay::serve
