// HTTP for models: POST requests, many at once, on one thread. Bytes and faults only; what they
// mean is http_model.h's business.
//
// Transport is the seam where tests put a scripted network. CurlTransport is libcurl's multi
// interface: proxies come from the usual variables (https_proxy, NO_PROXY), redirects are not
// followed (a key must not travel to a host that nobody named), responses are not decompressed, and
// only http and https are spoken. Not thread-safe but for Wake().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::models {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;
  std::chrono::milliseconds connect_timeout{20'000};
  std::uint64_t max_response_bytes = 64u << 20;
};

struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  ///< Names in lower case.
  /// Value of the last header of that name, or empty.
  std::string Find(std::string_view name) const;
};

enum class HttpFault : std::uint8_t { kNone, kConnect, kTls, kBroken, kTooLarge };

struct HttpEvent {
  enum class Kind : std::uint8_t { kHead, kBody, kEnd };
  std::uint64_t id = 0;
  Kind kind = Kind::kEnd;
  HttpHead head;                       ///< kHead
  std::string bytes;                   ///< kBody
  HttpFault fault = HttpFault::kNone;  ///< kEnd
  std::string detail;                  ///< kEnd with a fault: what the library says.
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void Start(std::uint64_t id, HttpRequest request) = 0;
  /// No event of `id` follows.
  virtual void Cancel(std::uint64_t id) = 0;
  virtual std::vector<HttpEvent> Poll(std::chrono::milliseconds timeout) = 0;
  /// Ends a Poll early. Safe from any thread.
  virtual void Wake() = 0;
};

/// `ca_bundle` may be empty: the system's.
Result<std::unique_ptr<Transport>> MakeCurlTransport(const Path& ca_bundle);

}  // namespace assay::models
