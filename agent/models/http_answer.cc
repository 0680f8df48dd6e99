#include "agent/models/http_answer.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;

constexpr double kNever = 1e9;  // seconds

// Complaints of a 400 and the departure that cures them.
struct Complaint {
  std::string_view all_of[2];
  bool Dialect::* departure;
  bool value;
};
constexpr Complaint kComplaints[] = {
    {{"max_tokens", "max_completion_tokens"}, &Dialect::old_token_limit, false},
    {{"max_completion_tokens", ""}, &Dialect::old_token_limit, true},
    {{"stream_options", ""}, &Dialect::no_stream_options, true},
    {{"temperature", ""}, &Dialect::no_temperature, true},
    {{"system", "role"}, &Dialect::no_system_role, true},
    {{"stream", "support"}, &Dialect::no_streaming, true},
};

}  // namespace

std::string CureOf(int status, const std::string& said) {
  if (status == 404) return "check the model's name and --base-url";
  for (const char* const word : {"context", "max_tokens", "max_completion_tokens", "too long"}) {
    if (said.find(word) != std::string::npos)
      return "lower --max-output-tokens, or use a model with a longer context";
  }
  return "the request was refused for good; see the server's message";
}

BodyKind KindOf(std::string_view content_type) {
  if (content_type.starts_with("text/event-stream")) return BodyKind::kEvents;
  if (content_type.starts_with("application/json")) return BodyKind::kJson;
  if (content_type.starts_with("text/html")) return BodyKind::kOther;
  return BodyKind::kUnknown;
}

BodyKind KindOf(std::string_view content_type, std::string_view begin) {
  const BodyKind seen = Sniff(begin);
  const BodyKind told = KindOf(content_type);
  return seen == BodyKind::kOther && told != BodyKind::kUnknown ? told : seen;
}

BodyKind Sniff(std::string_view begin) {
  if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
  begin = Strip(begin);
  if (begin.starts_with("{")) return BodyKind::kJson;
  for (const std::string_view field : {"data:", "event:", "id:", "retry:", ":"}) {
    if (begin.starts_with(field)) return BodyKind::kEvents;
  }
  return BodyKind::kOther;
}

bool RetriableStatus(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

std::optional<milliseconds> ParseRetryAfter(const HttpHead& head) {
  const auto number = [](const std::string& text) -> std::optional<double> {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) ||
        !std::isfinite(value)) {
      return std::nullopt;
    }
    return std::min(value, kNever);  // an absurd number is no invitation to come back at once
  };
  if (const auto value = number(head.Find("retry-after-ms"))) {
    return milliseconds(static_cast<std::int64_t>(*value));
  }
  const std::string text = head.Find("retry-after");
  if (const auto value = number(text))
    return milliseconds(static_cast<std::int64_t>(*value * 1000));
  // A date is read against the server's own clock, so that ours may be wrong.
  const std::time_t then = curl_getdate(text.c_str(), nullptr);
  const std::time_t now = curl_getdate(head.Find("date").c_str(), nullptr);
  if (text.empty() || then < 0 || now < 0) return std::nullopt;
  return milliseconds(std::max<std::int64_t>(0, then - now) * 1000);
}

Refusal ReadRefusal(std::string_view body) {
  Refusal refusal;
  if (const Result<Json> document = ParseJson(body, "answer")) {
    refusal = {ErrorTextOf(*document), ErrorTypeOf(*document)};
  }
  if (refusal.text.empty()) refusal.text = PageTitle(body);
  return refusal;
}

bool LearnFrom(const std::string& complaint, Dialect& dialect) {
  for (const Complaint& known : kComplaints) {
    const bool fits = std::ranges::all_of(known.all_of, [&](std::string_view word) {
      return complaint.find(word) != std::string::npos;
    });
    if (!fits || dialect.*known.departure == known.value) continue;
    dialect.*known.departure = known.value;
    return true;
  }
  return false;
}

std::string PageTitle(std::string_view page) {
  constexpr std::size_t kLongestTitle = 200;
  const std::size_t begin = page.find("<title>");
  const std::size_t end = page.find("</title>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 7) {
    return Head(Strip(page), kLongestTitle);
  }
  return Head(Strip(page.substr(begin + 7, end - begin - 7)), kLongestTitle);
}

}  // namespace assay::models
