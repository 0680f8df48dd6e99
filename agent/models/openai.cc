// OpenAI chat completions, as vLLM, llama.cpp, Ollama, NIM, LM Studio and others speak it too.
#include "agent/models/protocol.h"

namespace assay::models {
namespace {

std::vector<std::string> Headers(const Secret& key) {
  std::vector<std::string> headers = {"Content-Type: application/json",
                                      "Accept: text/event-stream, application/json"};
  if (!key.empty()) headers.push_back("Authorization: Bearer " + key.Reveal());
  return headers;
}

Json Body(const ModelRequest& request, const std::string& model, const Dialect& dialect) {
  const Conversation conversation =
      dialect.no_system_role ? WithoutSystemRole(request.conversation) : request.conversation;
  Json messages = Json::array();
  for (const Message& message : conversation.messages) {
    messages.push_back({{"role", Name(message.role)}, {"content", message.text}});
  }
  Json body = {{"model", model}, {"messages", std::move(messages)}};
  body[dialect.old_token_limit ? "max_tokens" : "max_completion_tokens"] =
      request.max_output_tokens;
  if (request.temperature && !dialect.no_temperature) body["temperature"] = *request.temperature;
  if (!dialect.no_streaming) {
    body["stream"] = true;
    if (!dialect.no_stream_options) body["stream_options"] = {{"include_usage", true}};
  }
  return body;
}

void TakeUsage(const Json& document, PartialReply& partial) {
  const Json& usage = Member(document, "usage");
  if (!usage.is_object()) return;
  partial.reply.usage.input_tokens = CountOf(usage, "prompt_tokens");
  partial.reply.usage.output_tokens = CountOf(usage, "completion_tokens");
  partial.reply.usage.cached_input_tokens =
      CountOf(Member(usage, "prompt_tokens_details"), "cached_tokens");
  partial.usage_known = true;
}

// Content is a string, or a list of parts of which some hold text.
void AppendContent(const Json& content, std::string& text) {
  if (content.is_string()) text += content.get<std::string>();
  if (!content.is_array()) return;
  for (const Json& part : content) text += StringOf(part, "text");
}

void TakeMessage(const Json& message, PartialReply& partial) {
  AppendContent(Member(message, "content"), partial.reply.text);
  // DeepSeek and vLLM say reasoning_content, others reasoning.
  const std::string reasoning = StringOf(message, "reasoning_content");
  partial.reply.reasoning += reasoning.empty() ? StringOf(message, "reasoning") : reasoning;
  if (const std::string refusal = StringOf(message, "refusal"); !refusal.empty()) {
    partial.reply.text += refusal;
    partial.reply.stop = StopReason::kRefusal;
  }
}

void TakeStop(const Json& choice, PartialReply& partial) {
  const std::string reason = StringOf(choice, "finish_reason");
  if (reason.empty()) return;
  partial.stopped = true;
  if (reason == "length") partial.reply.stop = StopReason::kLength;
  if (reason == "tool_calls" || reason == "function_call") NoteToolCall(partial.reply);
  if (reason == "content_filter") partial.reply.stop = StopReason::kRefusal;
}

void TakeNames(const Json& document, PartialReply& partial) {
  if (partial.reply.request_id.empty()) partial.reply.request_id = StringOf(document, "id");
  if (partial.reply.model.empty()) partial.reply.model = StringOf(document, "model");
}

Status OnEvent(const ServerEvent& event, PartialReply& partial) {
  if (event.data == "[DONE]") {
    partial.stopped = partial.complete = true;
    return {};
  }
  ASSAY_TRY(const Json chunk, ParseJson(event.data, "stream"));
  if (Member(chunk, "error").is_object() || Member(chunk, "error").is_string()) {
    return Fail(ErrorKind::kNetwork, "the server broke off: " + ErrorTextOf(chunk));
  }
  TakeNames(chunk, partial);
  TakeUsage(chunk, partial);
  const Json& choices = Member(chunk, "choices");
  if (!choices.is_array() || choices.empty()) return {};
  TakeMessage(Member(choices[0], "delta"), partial);
  TakeStop(choices[0], partial);
  return {};
}

Status OnWhole(const Json& document, PartialReply& partial) {
  const Json& choices = Member(document, "choices");
  if (!choices.is_array() || choices.empty()) {
    return Fail(ErrorKind::kNetwork, "the answer is not a chat completion: it has no 'choices'", {},
                "the base URL must lead to an OpenAI-compatible server; it usually ends in /v1");
  }
  TakeNames(document, partial);
  TakeUsage(document, partial);
  TakeMessage(Member(choices[0], "message"), partial);
  TakeStop(choices[0], partial);
  partial.stopped = partial.complete = true;
  return {};
}

}  // namespace

const Protocol& OpenAiProtocol() {
  static const Protocol protocol = {.name = "openai",
                                    .home = "https://api.openai.com/v1",
                                    .path = "/chat/completions",
                                    .key_variables = {"OPENAI_API_KEY"},
                                    .headers = &Headers,
                                    .body = &Body,
                                    .on_event = &OnEvent,
                                    .on_whole = &OnWhole,
                                    .request_id_header = "x-request-id"};
  return protocol;
}

}  // namespace assay::models
