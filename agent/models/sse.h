// Server-sent events (WHATWG HTML, section 9.2.6), read incrementally from any split of the byte
// stream.
//
// Feed bytes as they come; Next hands out complete events. An event is limited in size: a stream
// without line ends is an error of the server, not a way to fill memory. Retry fields and ids are
// of no use here and are skipped.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::models {

struct ServerEvent {
  std::string name;  ///< Field `event`, empty where absent.
  std::string data;  ///< Fields `data`, joined by newlines.
};

class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = 8u << 20) : max_event_bytes_(max_event_bytes) {}

  Status Feed(std::string_view bytes);
  /// The server closed the stream. An event without its closing blank line is incomplete and
  /// dropped, as the standard asks.
  std::optional<ServerEvent> Next();

 private:
  void TakeLine(std::string_view line);

  std::size_t max_event_bytes_;
  std::string line_;
  bool after_return_ = false;
  bool first_line_ = true;
  ServerEvent pending_;
  bool has_data_ = false;
  std::deque<ServerEvent> events_;
};

}  // namespace assay::models
