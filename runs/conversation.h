// What is said between us and a model: messages, replies, and what they cost. Values with their JSON
// forms; which service carries them is not known here (agent/models).
//
//   Conversation asked{{{.role = Role::kUser, .text = "..."}}};
//   DigestOf(asked)              what a replayed transcript is compared by
//   ConversationAsText(asked)    what people (prompt.md) and programs (exec/) read
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay {
using Json = nlohmann::ordered_json;  // base/json.h
}

namespace assay::runs {

enum class Role : std::uint8_t { kSystem, kUser, kAssistant };
std::string_view Name(Role role);

struct Message {
  Role role = Role::kUser;
  std::string text;
  /// The conversation up to here is shared by many requests: providers that cache prefixes are told
  /// so.
  bool cache_here = false;
  bool operator==(const Message&) const = default;
};

struct Conversation {
  std::vector<Message> messages;
  bool operator==(const Conversation&) const = default;
};

/// Identity of what is sent: SHA-256 over roles and texts.
std::string DigestOf(const Conversation& conversation);

/// "# System", "# User" and "# Assistant" headings over the messages.
std::string ConversationAsText(const Conversation& conversation);

enum class StopReason : std::uint8_t { kEnd, kLength, kRefusal };
std::string_view Name(StopReason reason);
std::optional<StopReason> ParseStopReason(std::string_view name);

/// Tokens as the provider counts them; estimated (4 bytes a token) where it does not say.
struct Usage {
  std::uint64_t input_tokens = 0;  ///< Includes the cached ones.
  std::uint64_t cached_input_tokens = 0;
  std::uint64_t output_tokens = 0;  ///< Includes reasoning.
  bool estimated = false;
  bool operator==(const Usage&) const = default;
};
Usage& operator+=(Usage& total, const Usage& part);
Json ToJson(const Usage& usage);
Result<Usage> UsageFromJson(const Json& json, std::string place);

struct ModelReply {
  std::string text;
  std::string reasoning;  ///< Where the provider shows it. Never sent back.
  StopReason stop = StopReason::kEnd;
  Usage usage;
  std::string request_id;  ///< The provider's, for its support.
  std::string model;       ///< As the provider names what answered.
  bool operator==(const ModelReply&) const = default;
};
Json ToJson(const ModelReply& reply);
Result<ModelReply> ReplyFromJson(const Json& json, std::string place);

}  // namespace assay::runs
