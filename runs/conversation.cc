#include "runs/conversation.h"

#include <array>
#include <utility>

#include "base/digest.h"
#include "base/json.h"

namespace assay::runs {
namespace {

constexpr std::array<std::pair<StopReason, std::string_view>, 3> kStopReasons = {
    {{StopReason::kEnd, "end"},
     {StopReason::kLength, "length"},
     {StopReason::kRefusal, "refusal"}}};

}  // namespace

std::string_view Name(Role role) {
  constexpr std::array<std::string_view, 3> kNames = {"system", "user", "assistant"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view Name(StopReason reason) {
  return kStopReasons[static_cast<std::size_t>(reason)].second;
}

std::optional<StopReason> ParseStopReason(std::string_view name) {
  for (const auto& [reason, text] : kStopReasons) {
    if (text == name) return reason;
  }
  return std::nullopt;
}

std::string DigestOf(const Conversation& conversation) {
  // Lengths before texts: no two conversations share a serialisation.
  std::string text;
  for (const Message& message : conversation.messages) {
    text += std::string(Name(message.role)) + " " + std::to_string(message.text.size()) + "\n" +
            message.text + "\n";
  }
  return Sha256Hex(text);
}

std::string ConversationAsText(const Conversation& conversation) {
  std::string text;
  for (const Message& message : conversation.messages) {
    const std::string_view heading = message.role == Role::kSystem ? "# System"
                                     : message.role == Role::kUser ? "# User"
                                                                   : "# Assistant";
    if (!text.empty()) text += "\n";
    text += std::string(heading) + "\n\n" + message.text + "\n";
  }
  return text;
}

Usage& operator+=(Usage& total, const Usage& part) {
  total.input_tokens += part.input_tokens;
  total.cached_input_tokens += part.cached_input_tokens;
  total.output_tokens += part.output_tokens;
  total.estimated = total.estimated || part.estimated;
  return total;
}

Json ToJson(const Usage& usage) {
  Json json = {{"input", usage.input_tokens},
               {"cached_input", usage.cached_input_tokens},
               {"output", usage.output_tokens}};
  if (usage.estimated) json["estimated"] = true;
  return json;
}

Result<Usage> UsageFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Usage usage;
  ASSAY_TRY(usage.input_tokens, reader.Optional<std::uint64_t>("input", 0));
  ASSAY_TRY(usage.cached_input_tokens, reader.Optional<std::uint64_t>("cached_input", 0));
  ASSAY_TRY(usage.output_tokens, reader.Optional<std::uint64_t>("output", 0));
  ASSAY_TRY(usage.estimated, reader.Optional<bool>("estimated", false));
  ASSAY_TRY_VOID(reader.Finish());
  return usage;
}

Json ToJson(const ModelReply& reply) {
  Json json = {{"text", reply.text}, {"stop", Name(reply.stop)}, {"usage", ToJson(reply.usage)}};
  if (!reply.reasoning.empty()) json["reasoning"] = reply.reasoning;
  if (!reply.request_id.empty()) json["request_id"] = reply.request_id;
  if (!reply.model.empty()) json["model"] = reply.model;
  return json;
}

Result<ModelReply> ReplyFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ModelReply reply;
  ASSAY_TRY(reply.text, reader.Required<std::string>("text"));
  ASSAY_TRY(const std::string stop, reader.Optional<std::string>("stop", "end"));
  const std::optional<StopReason> reason = ParseStopReason(stop);
  if (!reason) {
    return Fail(ErrorKind::kMalformedInput, "unknown stop reason '" + stop + "'",
                reader.PlaceOf("stop"), "one of end, length, refusal");
  }
  reply.stop = *reason;
  ASSAY_TRY(const Json usage, reader.Optional<Json>("usage", Json::object()));
  ASSAY_TRY(reply.usage, UsageFromJson(usage, reader.PlaceOf("usage")));
  ASSAY_TRY(reply.reasoning, reader.Optional<std::string>("reasoning", ""));
  ASSAY_TRY(reply.request_id, reader.Optional<std::string>("request_id", ""));
  ASSAY_TRY(reply.model, reader.Optional<std::string>("model", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return reply;
}

}  // namespace assay::runs
