// What differs between the HTTP services that speak to models: one row of functions and texts per
// service. Pure: bytes in, values out; connections, time-outs and retries are http_model.h's.
//
// Adding a service: write its row in a file of its own, name it in providers.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/models/model.h"
#include "agent/models/secret.h"
#include "agent/models/sse.h"
#include "base/json.h"

namespace assay::models {

/// Departures that a server asked for by refusing a request (http_model.cc learns them from its
/// error texts).
struct Dialect {
  bool old_token_limit = false;  ///< "max_tokens" in place of "max_completion_tokens".
  bool no_stream_options = false;
  bool no_streaming = false;
  bool no_system_role = false;  ///< The system message becomes the head of the first user message.
  bool no_temperature = false;
  bool operator==(const Dialect&) const = default;
};

/// A reply while it arrives.
struct PartialReply {
  ModelReply reply;
  bool stopped = false;   ///< A stop reason has come: the text is whole.
  bool complete = false;  ///< Nothing further is of interest; the connection may go.
  bool usage_known = false;
};

struct Protocol {
  std::string_view name;
  std::string_view home;                   ///< Default base URL.
  std::string_view path;                   ///< Appended to the base URL.
  std::vector<std::string> key_variables;  ///< For `home` alone.
  std::vector<std::string> (*headers)(const Secret& key);
  Json (*body)(const ModelRequest& request, const std::string& model, const Dialect& dialect);
  /// One server-sent event. An error is the service's own, e.g. "overloaded".
  Status (*on_event)(const ServerEvent& event, PartialReply& partial);
  /// A whole answer, from servers that do not stream.
  Status (*on_whole)(const Json& document, PartialReply& partial);
  /// The header that carries the service's id of the request.
  std::string_view request_id_header;
};

const Protocol& OpenAiProtocol();
const Protocol& AnthropicProtocol();

/// The text of an error document, as most services shape it: {"error": {"message": ...}}; empty
/// where it is not one.
std::string ErrorTextOf(const Json& document);
/// The type or code beside it: "overloaded_error", "insufficient_quota"; empty where absent.
std::string ErrorTypeOf(const Json& document);

/// Readers for documents of strangers: never throw, absent or ill-typed is the fallback.
const Json& Member(const Json& object, std::string_view key);
std::string StringOf(const Json& object, std::string_view key);
std::uint64_t CountOf(const Json& object, std::string_view key);

/// Text for a reply that is nothing but a call of a tool. None is offered, some models try all the
/// same; an empty reply would not say what went wrong.
void NoteToolCall(ModelReply& reply);

/// `conversation` for services without a system role.
Conversation WithoutSystemRole(const Conversation& conversation);

}  // namespace assay::models
