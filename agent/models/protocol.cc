#include "agent/models/protocol.h"

#include "base/text.h"

namespace assay::models {
namespace {

// Shared by all who ask for what is not there.
const Json& Nothing() {
  static const Json nothing;
  return nothing;
}

}  // namespace

const Json& Member(const Json& object, std::string_view key) {
  if (!object.is_object()) return Nothing();
  const auto found = object.find(std::string(key));
  return found == object.end() ? Nothing() : *found;
}

std::string StringOf(const Json& object, std::string_view key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t CountOf(const Json& object, std::string_view key) {
  constexpr std::uint64_t kSaneTokens = 1ull << 40;
  const Json& value = Member(object, key);
  if (!value.is_number_unsigned()) return 0;
  const auto count = value.get<std::uint64_t>();
  return count > kSaneTokens ? 0 : count;
}

std::string ErrorTextOf(const Json& document) {
  const Json& error = Member(document, "error");
  if (error.is_string()) return error.get<std::string>();
  if (const std::string text = StringOf(error, "message"); !text.empty()) return text;
  // FastAPI servers (vLLM before 0.9, SGLang) put it elsewhere.
  if (const std::string text = StringOf(document, "message"); !text.empty()) return text;
  return StringOf(document, "detail");
}

std::string ErrorTypeOf(const Json& document) {
  const Json& error = Member(document, "error");
  if (const std::string code = StringOf(error, "code"); !code.empty()) return code;
  return StringOf(error, "type");
}

void NoteToolCall(ModelReply& reply) {
  if (Strip(reply.text).empty()) reply.text = "(a call of a tool, and no text)";
}

Conversation WithoutSystemRole(const Conversation& conversation) {
  Conversation folded;
  std::string preface;
  for (const Message& message : conversation.messages) {
    if (message.role == Role::kSystem) {
      preface += message.text + "\n\n";
      continue;
    }
    folded.messages.push_back(message);
    if (message.role == Role::kUser && !preface.empty()) {
      folded.messages.back().text = preface + message.text;
      preface.clear();
    }
  }
  return folded;
}

}  // namespace assay::models
