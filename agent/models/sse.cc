#include "agent/models/sse.h"

namespace assay::models {

Status SseParser::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + pending_.data.size() > max_event_bytes_) {
      return Fail(ErrorKind::kNetwork, "an event of the stream is longer than " +
                                           std::to_string(max_event_bytes_) + " bytes");
    }
    if (end == std::string_view::npos) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    TakeLine(line_);
    line_.clear();
  }
  return {};
}

void SseParser::TakeLine(std::string_view line) {
  if (first_line_ && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) events_.push_back(std::move(pending_));
    pending_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    pending_.name = value;
  } else if (field == "data") {
    if (has_data_) pending_.data += '\n';
    pending_.data += value;
    has_data_ = true;
  }
}

std::optional<ServerEvent> SseParser::Next() {
  if (events_.empty()) return std::nullopt;
  ServerEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace assay::models
