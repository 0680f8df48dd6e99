// What servers answer, read without trust: pure functions that http_model.cc decides by.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/models/http.h"
#include "agent/models/protocol.h"

namespace assay::models {

enum class BodyKind : std::uint8_t { kUnknown, kEvents, kJson, kOther };

/// By the Content-Type header; kUnknown where it tells nothing.
BodyKind KindOf(std::string_view content_type);
/// By the first bytes; kOther where they are neither JSON nor events.
BodyKind Sniff(std::string_view begin);
/// By both: gateways mislabel streams, so the bytes are believed first.
BodyKind KindOf(std::string_view content_type, std::string_view begin);

/// Statuses after which the same request may well succeed.
bool RetriableStatus(int status);

/// Seconds or an HTTP date ("Wed, 21 Oct 2026 07:28:00 GMT", relative to `date`, the server's own
/// clock); nothing where unreadable. Absurd ones are cut to 30 years.
std::optional<std::chrono::milliseconds> ParseRetryAfter(const HttpHead& head);

/// What a refusal's body says, in a line or two; its type or code beside it.
struct Refusal {
  std::string text;
  std::string type;
};
Refusal ReadRefusal(std::string_view body);

/// What the user can do about a request that is refused for good.
std::string CureOf(int status, const std::string& said);

/// Learns from a 400: changes `dialect` as the complaint asks. False when nothing changed.
bool LearnFrom(const std::string& complaint, Dialect& dialect);

/// The title of an HTML page, else its first words.
std::string PageTitle(std::string_view page);

}  // namespace assay::models
