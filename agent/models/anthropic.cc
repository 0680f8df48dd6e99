// Anthropic messages (API version 2023-06-01).
#include "agent/models/protocol.h"

namespace assay::models {
namespace {

std::vector<std::string> Headers(const Secret& key) {
  std::vector<std::string> headers = {"Content-Type: application/json",
                                      "Accept: text/event-stream, application/json",
                                      "anthropic-version: 2023-06-01"};
  if (!key.empty()) headers.push_back("x-api-key: " + key.Reveal());
  return headers;
}

Json TextBlock(const Message& message) {
  Json block = {{"type", "text"}, {"text", message.text}};
  if (message.cache_here) block["cache_control"] = {{"type", "ephemeral"}};
  return Json::array({std::move(block)});
}

Json Body(const ModelRequest& request, const std::string& model, const Dialect& dialect) {
  const Conversation conversation =
      dialect.no_system_role ? WithoutSystemRole(request.conversation) : request.conversation;
  Json body = {{"model", model}, {"max_tokens", request.max_output_tokens}};
  Json messages = Json::array();
  for (const Message& message : conversation.messages) {
    if (message.role == Role::kSystem) {
      body["system"] = TextBlock(message);
    } else {
      messages.push_back({{"role", Name(message.role)}, {"content", TextBlock(message)}});
    }
  }
  body["messages"] = std::move(messages);
  if (request.temperature && !dialect.no_temperature) body["temperature"] = *request.temperature;
  if (!dialect.no_streaming) body["stream"] = true;
  return body;
}

void TakeUsage(const Json& usage, PartialReply& partial) {
  if (!usage.is_object()) return;
  Usage& known = partial.reply.usage;
  if (usage.contains("input_tokens")) {
    known.cached_input_tokens = CountOf(usage, "cache_read_input_tokens");
    known.input_tokens = CountOf(usage, "input_tokens") + known.cached_input_tokens +
                         CountOf(usage, "cache_creation_input_tokens");
  }
  // Cumulative: each message_delta replaces what came before.
  if (usage.contains("output_tokens")) known.output_tokens = CountOf(usage, "output_tokens");
  partial.usage_known = true;
}

void TakeStop(const Json& object, PartialReply& partial) {
  const std::string reason = StringOf(object, "stop_reason");
  if (reason.empty()) return;
  partial.stopped = true;
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") {
    partial.reply.stop = StopReason::kLength;
  }
  if (reason == "tool_use") NoteToolCall(partial.reply);
  if (reason == "refusal") partial.reply.stop = StopReason::kRefusal;
}

void TakeBlock(const Json& block, PartialReply& partial) {
  partial.reply.text += StringOf(block, "text");
  partial.reply.reasoning += StringOf(block, "thinking");
}

Status OnEvent(const ServerEvent& event, PartialReply& partial) {
  ASSAY_TRY(const Json data, ParseJson(event.data, "stream"));
  const std::string type = StringOf(data, "type");
  if (type == "error") {
    return Fail(ErrorKind::kNetwork,
                "the server broke off: " + ErrorTypeOf(data) + ": " + ErrorTextOf(data));
  }
  if (type == "message_start") {
    const Json& message = Member(data, "message");
    partial.reply.request_id = StringOf(message, "id");
    partial.reply.model = StringOf(message, "model");
    TakeUsage(Member(message, "usage"), partial);
  } else if (type == "content_block_start") {
    TakeBlock(Member(data, "content_block"), partial);
  } else if (type == "content_block_delta") {
    TakeBlock(Member(data, "delta"), partial);
  } else if (type == "message_delta") {
    TakeUsage(Member(data, "usage"), partial);
    TakeStop(Member(data, "delta"), partial);
  } else if (type == "message_stop") {
    partial.stopped = partial.complete = true;
  }
  return {};
}

Status OnWhole(const Json& document, PartialReply& partial) {
  const Json& content = Member(document, "content");
  if (!content.is_array()) {
    return Fail(ErrorKind::kNetwork, "the answer is not a message: it has no 'content'", {},
                "the base URL must lead to a server of the Anthropic messages protocol");
  }
  partial.reply.request_id = StringOf(document, "id");
  partial.reply.model = StringOf(document, "model");
  for (const Json& block : content) TakeBlock(block, partial);
  TakeUsage(Member(document, "usage"), partial);
  TakeStop(document, partial);
  partial.stopped = partial.complete = true;
  return {};
}

}  // namespace

const Protocol& AnthropicProtocol() {
  static const Protocol protocol = {.name = "anthropic",
                                    .home = "https://api.anthropic.com/v1",
                                    .path = "/messages",
                                    .key_variables = {"ANTHROPIC_API_KEY"},
                                    .headers = &Headers,
                                    .body = &Body,
                                    .on_event = &OnEvent,
                                    .on_whole = &OnWhole,
                                    .request_id_header = "request-id"};
  return protocol;
}

}  // namespace assay::models
