#include "agent/testing/fault_server.h"

#include <httplib.h>

#include <array>

#include "base/json.h"

namespace assay::testing {
namespace {

constexpr std::size_t kHugeBytes = 10u << 20;
constexpr int kThreads = 80;

struct Wire {
  std::vector<std::string> begin;  // events up to the text
  std::string (*piece)(const std::string& text);
  std::vector<std::string> stop;   // the stop reason and usage
  std::vector<std::string> close;  // what ends the stream
  std::string error;               // an error event
};

std::string Event(const Json& data, const std::string& name = {}) {
  return (name.empty() ? "" : "event: " + name + "\n") + "data: " + CompactJson(data) + "\n\n";
}

std::string OpenAiPiece(const std::string& text) {
  return Event({{"id", "chatcmpl-1"},
                {"model", "fake-1"},
                {"choices", {{{"index", 0}, {"delta", {{"content", text}}}}}}});
}

std::string AnthropicPiece(const std::string& text) {
  return Event({{"type", "content_block_delta"},
                {"index", 0},
                {"delta", {{"type", "text_delta"}, {"text", text}}}},
               "content_block_delta");
}

Wire OpenAiWire() {
  return {
      .begin = {Event(
          {{"id", "chatcmpl-1"},
           {"model", "fake-1"},
           {"choices", {{{"index", 0}, {"delta", {{"role", "assistant"}, {"content", ""}}}}}}})},
      .piece = &OpenAiPiece,
      .stop = {Event({{"choices",
                       {{{"index", 0}, {"delta", Json::object()}, {"finish_reason", "stop"}}}}}),
               Event({{"choices", Json::array()},
                      {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 7}}}})},
      .close = {"data: [DONE]\n\n"},
      .error = Event({{"error", {{"message", "overloaded"}, {"type", "server_error"}}}})};
}

Wire AnthropicWire() {
  return {.begin = {Event({{"type", "message_start"},
                           {"message",
                            {{"id", "msg_1"},
                             {"model", "fake-1"},
                             {"usage", {{"input_tokens", 11}, {"output_tokens", 1}}}}}},
                          "message_start"),
                    Event({{"type", "ping"}}, "ping"),
                    Event({{"type", "content_block_start"},
                           {"index", 0},
                           {"content_block", {{"type", "text"}, {"text", ""}}}},
                          "content_block_start")},
          .piece = &AnthropicPiece,
          .stop = {Event({{"type", "content_block_stop"}, {"index", 0}}, "content_block_stop"),
                   Event({{"type", "message_delta"},
                          {"delta", {{"stop_reason", "end_turn"}}},
                          {"usage", {{"output_tokens", 7}}}},
                         "message_delta")},
          .close = {Event({{"type", "message_stop"}}, "message_stop")},
          .error = Event({{"type", "error"},
                          {"error", {{"type", "overloaded_error"}, {"message", "Overloaded"}}}},
                         "error")};
}

Json WholeOf(bool openai, const std::string& text) {
  if (openai) {
    return {{"id", "chatcmpl-1"},
            {"model", "fake-1"},
            {"choices",
             {{{"index", 0},
               {"message", {{"role", "assistant"}, {"content", text}}},
               {"finish_reason", "stop"}}}},
            {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 7}}}};
  }
  return {{"id", "msg_1"},
          {"type", "message"},
          {"model", "fake-1"},
          {"content", {{{"type", "text"}, {"text", text}}}},
          {"stop_reason", "end_turn"},
          {"usage", {{"input_tokens", 11}, {"output_tokens", 7}}}};
}

// A gzip file (RFC 1952) of one stored block; `text` is shorter than 64 KiB.
std::string Gzip(const std::string& text) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  const auto little = [](std::uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffu);
    return out;
  };
  const auto size = static_cast<std::uint32_t>(text.size());
  ASSAY_CHECK(size < 65536, "one stored block");
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11) + little(size, 2) +
         little(~size & 0xffffu, 2) + text + little(~crc, 4) + little(size, 4);
}

Json ToolCallOf(bool openai) {
  Json whole = WholeOf(openai, "");
  if (openai) {
    whole["choices"][0]["message"] = {{"content", nullptr},
                                      {"tool_calls", {{{"function", {{"name", "write"}}}}}}};
    whole["choices"][0]["finish_reason"] = "tool_calls";
  } else {
    whole["content"][0] = {{"type", "tool_use"}, {"name", "write"}};
    whole["stop_reason"] = "tool_use";
  }
  return whole;
}

// A body sent piece by piece: `write` gets the number of the call and the sink; false breaks the
// connection.
void Stream(httplib::Response& response, const char* type,
            std::function<bool(std::size_t, httplib::DataSink&)> write) {
  auto call = std::make_shared<std::size_t>(0);
  response.set_chunked_content_provider(
      type, [write = std::move(write), call](std::size_t, httplib::DataSink& sink) {
        return write((*call)++, sink);
      });
}

bool Send(httplib::DataSink& sink, const std::string& bytes) {
  return sink.write(bytes.data(), bytes.size());
}

}  // namespace

Consequence ConsequenceOf(Fault fault) {
  if (fault <= Fault::kFineHuge) return Consequence::kReply;
  if (fault <= Fault::kHungBeforeHeaders) return Consequence::kAgain;
  return fault == Fault::kDislikesParameter ? Consequence::kRephrased : Consequence::kFinalError;
}

struct FaultServer::Impl {
  httplib::Server server;
};

FaultServer::FaultServer() : impl_(std::make_unique<Impl>()) { Serve(); }

FaultServer::~FaultServer() {
  {
    const std::lock_guard lock(mutex_);
    releases_ = UINT64_MAX;
  }
  changed_.notify_all();
  impl_->server.stop();
  thread_.join();
}

std::string FaultServer::base_url() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/v1";
}

void FaultServer::Script(std::vector<Fault> faults) {
  const std::lock_guard lock(mutex_);
  script_.assign(faults.begin(), faults.end());
  requests_ = 0;
  bodies_.clear();
}

void FaultServer::Say(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

void FaultServer::SayInOrder(std::vector<std::string> texts) {
  const std::lock_guard lock(mutex_);
  texts_.assign(texts.begin(), texts.end());
}

std::vector<std::string> FaultServer::bodies() const {
  const std::lock_guard lock(mutex_);
  return bodies_;
}

void FaultServer::Release() {
  const std::lock_guard lock(mutex_);
  if (releases_ != UINT64_MAX) ++releases_;
  // Here, not when the hung threads wake: by then the clock might have been moved on their account.
  hanging_ = 0;
  changed_.notify_all();
}

void FaultServer::MeetBeforeAnswering(int count) {
  const std::lock_guard lock(mutex_);
  meeting_ = count;
  met_ = 0;
}

void FaultServer::Serve() {
  httplib::Server& server = impl_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_max_count(1);
  const auto hang = [this] {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = releases_;
    ++hanging_;
    changed_.wait(lock, [&] { return releases_ != before || releases_ == UINT64_MAX; });
  };
  const auto handle = [this, hang](bool openai, const httplib::Request& request,
                                   httplib::Response& response) {
    Fault fault = Fault::kFine;
    std::string text;
    {
      std::unique_lock lock(mutex_);
      ++requests_;
      bodies_.push_back(request.body);
      if (!script_.empty()) {
        fault = script_.front();
        script_.pop_front();
      }
      text = text_;
      if (ConsequenceOf(fault) == Consequence::kReply && !texts_.empty()) {
        text = texts_.front();
        texts_.pop_front();
      }
      if (meeting_ > 0) {
        ++met_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return met_ >= meeting_ || releases_ == UINT64_MAX; });
      }
    }
    const Wire wire = openai ? OpenAiWire() : AnthropicWire();
    const std::string key = request.get_header_value(openai ? "Authorization" : "x-api-key");
    std::vector<std::string> events = wire.begin;
    const auto add = [&events](const std::vector<std::string>& more) {
      events.insert(events.end(), more.begin(), more.end());
    };
    // The text in a few pieces, as models send it.
    for (std::size_t at = 0; at < text.size(); at += std::max<std::size_t>(text.size() / 5, 1)) {
      events.push_back(wire.piece(text.substr(at, std::max<std::size_t>(text.size() / 5, 1))));
    }
    const auto stream = [&response](std::vector<std::string> pieces,
                                    const char* type = "text/event-stream") {
      Stream(response, type,
             [pieces = std::move(pieces)](std::size_t call, httplib::DataSink& sink) {
               if (call >= pieces.size()) {
                 sink.done();
                 return true;
               }
               return Send(sink, pieces[call]);
             });
    };
    const auto refuse = [&response](int status, const Json& body) {
      response.status = status;
      response.set_content(CompactJson(body), "application/json");
    };
    switch (fault) {
      case Fault::kFine:
      case Fault::kFinePlainType:
      case Fault::kFineJsonType:
        add(wire.stop);
        add(wire.close);
        return stream(events, fault == Fault::kFine            ? "text/event-stream"
                              : fault == Fault::kFinePlainType ? "text/plain"
                                                               : "application/json");
      case Fault::kFineWholeEvents:
        return response.set_content("\xef\xbb\xbf" + CompactJson(WholeOf(openai, text)),
                                    "text/event-stream");
      case Fault::kFineGzip:
        response.set_header("Content-Encoding", "gzip");
        return response.set_content(Gzip(CompactJson(WholeOf(openai, text))), "application/json");
      case Fault::kFineToolCall:
        return refuse(200, ToolCallOf(openai));
      case Fault::kFineNoDone:
        add(wire.stop);
        return stream(events);
      case Fault::kFineCarriageReturns: {
        add(wire.stop);
        add(wire.close);
        for (std::string& event : events) {
          std::string with;
          for (const char c : event) with += c == '\n' ? std::string("\r\n") : std::string(1, c);
          event = with;
        }
        return stream(events);
      }
      case Fault::kFineInvalidUtf8: {
        std::string piece = wire.piece("@");
        piece.replace(piece.find('@'), 1, "\xff");
        events.push_back(piece);
        add(wire.stop);
        add(wire.close);
        return stream(events);
      }
      case Fault::kFineHuge: {
        events = wire.begin;
        const std::string piece = wire.piece(std::string(64 * 1024, 'x'));
        for (std::size_t bytes = 0; bytes < kHugeBytes; bytes += 64 * 1024) events.push_back(piece);
        add(wire.stop);
        add(wire.close);
        return stream(events);
      }
      case Fault::kFineWhole:
        return refuse(200, WholeOf(openai, text));
      case Fault::kRateLimited:
        response.set_header("Retry-After", "7");
        return refuse(429, {{"error", {{"message", "slow down"}, {"type", "rate_limit_error"}}}});
      case Fault::kRateLimitedDate:
        response.set_header("Date", "Wed, 21 Oct 2026 07:28:00 GMT");
        response.set_header("Retry-After", "Wed, 21 Oct 2026 07:28:09 GMT");
        return refuse(429, {{"error", {{"message", "slow down"}}}});
      case Fault::kOverloaded:
        response.status = 503;
        return response.set_content("<html><title>503 Service Unavailable</title></html>",
                                    "text/html");
      case Fault::kServerError:
        return refuse(500, {{"error", {{"message", "internal; headers were " + key}}}});
      case Fault::kReset:
        return Stream(response, "text/event-stream",
                      [events](std::size_t call, httplib::DataSink& sink) {
                        return call < events.size() / 2 + 1 && Send(sink, events[call]);
                      });
      case Fault::kResetEarly:
        return Stream(response, "text/event-stream",
                      [](std::size_t, httplib::DataSink&) { return false; });
      case Fault::kTruncated:
        return stream(events);
      case Fault::kMalformedEvent:
        events.push_back("data: {\"choices\": [}\n\n");
        add(wire.stop);
        add(wire.close);
        return stream(events);
      case Fault::kErrorEvent:
        events.push_back(wire.error);
        return stream(events);
      case Fault::kErrorString:
        return refuse(200, {{"error", "model 'm' not found"}});
      case Fault::kTruncatedWhole: {
        const std::string whole = CompactJson(WholeOf(openai, text));
        return response.set_content(whole.substr(0, whole.size() / 2), "application/json");
      }
      case Fault::kEmpty:
        return response.set_content("", "text/event-stream");
      case Fault::kEndless:
        return Stream(response, "text/event-stream", [](std::size_t, httplib::DataSink& sink) {
          return Send(sink, ": " + std::string(16 * 1024, 'z') + "\n");
        });
      case Fault::kHung:
        return Stream(response, "text/event-stream",
                      [events, hang](std::size_t call, httplib::DataSink& sink) {
                        if (call < 2 && call < events.size()) return Send(sink, events[call]);
                        hang();
                        return false;
                      });
      case Fault::kHungBeforeHeaders:
        hang();
        return refuse(200, WholeOf(openai, text));
      case Fault::kDislikesParameter:
        if (request.body.find("stream_options") != std::string::npos) {
          return refuse(400, {{"error", {{"message", "Unknown parameter: stream_options"}}}});
        }
        return refuse(400, {{"error", {{"message", "streaming is not supported here (stream)"}}}});
      case Fault::kHtml:
        return response.set_content("<html><head><title>Sign in</title></head></html>",
                                    "text/html");
      case Fault::kUnauthorised:
        return refuse(401, {{"error", {{"message", "Incorrect API key provided: " + key}}}});
      case Fault::kNotFound:
        return refuse(404, {{"error", {{"message", "The model does not exist"}}}});
      case Fault::kRedirect:
        return response.set_redirect("https://elsewhere.example/v1?key=" + key);
      case Fault::kComeBackTomorrow:
        response.set_header("Retry-After", "86400");
        return refuse(429, {{"error", {{"message", "daily limit"}}}});
      case Fault::kComeBackNever:
        response.set_header("Retry-After", "99999999999999999999");
        return refuse(429, {{"error", {{"message", "go away"}}}});
      case Fault::kContextTooShort:
        return refuse(400, {{"error", {{"message", "maximum context length is 4096 tokens"}}}});
    }
  };
  server.Post("/v1/chat/completions",
              [handle](const httplib::Request& request, httplib::Response& response) {
                handle(true, request, response);
              });
  server.Post("/v1/messages",
              [handle](const httplib::Request& request, httplib::Response& response) {
                handle(false, request, response);
              });
  socket_t socket = INVALID_SOCKET;
  server.set_socket_options([&socket](socket_t made) { socket = made; });
  // The socket listens from here on; connections made before the thread runs wait in its queue.
  port_ = server.bind_to_any_port("127.0.0.1");
  ASSAY_CHECK(port_ > 0, "no free port on loopback");
  // The library's queue of 5 would drop connections that come all at once, and their retries take
  // seconds.
  ASSAY_CHECK(::listen(socket, 256) == 0, "listen");
  thread_ = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();  // stop() before that would be lost
}

void PatientTransport::Start(std::uint64_t id, models::HttpRequest request) {
  running_.insert(id);
  real_->Start(id, std::move(request));
}

void PatientTransport::Cancel(std::uint64_t id) {
  running_.erase(id);
  real_->Cancel(id);
  if (server_ != nullptr) server_->Release();
}

std::vector<models::HttpEvent> PatientTransport::Poll(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kGlance{20};
  if (running_.empty()) {
    clock_.Advance(timeout);
    return {};
  }
  std::vector<models::HttpEvent> events = real_->Poll(std::min(timeout, kGlance));
  for (const models::HttpEvent& event : events) {
    if (event.kind == models::HttpEvent::Kind::kEnd) running_.erase(event.id);
  }
  if (events.empty() && server_ != nullptr && server_->hanging() > 0) clock_.Advance(timeout);
  return events;
}

}  // namespace assay::testing
