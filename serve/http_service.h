// The desk over HTTP: what clients of a team call (docs/serve.md).
//
//   GET    /v1/health                        nobody needs a token for this
//   POST   /v1/checks                        {"key", "op", "binding", "arch", "effort", "kernel", "launch"}
//   POST   /v1/rewards                       {"key", "candidates": [...]}: each as a line of `assay reward`
//   GET    /v1/models                        what may be asked to write kernels
//   POST   /v1/generations                   {"key", "op", "binding", "arch", "effort", "model", "attempts"}
//   GET    /v1/rewards/N                     what has been judged of that batch, in order
//   GET    /v1/jobs                          the client's latest jobs
//   GET    /v1/jobs/N                        one of them
//   GET    /v1/jobs/N/verdict                its document, once it has ended
//   GET    /v1/jobs/N/events                 server-sent events until it is over
//   GET    /v1/jobs/N/vetted                 names and digests of the vetted folder's files
//   GET    /v1/jobs/N/vetted/FILE            one of them
//   DELETE /v1/jobs/N                        cancel
//
// A token is asked for before a body is read. Errors are {"error": {...}} with message and fix; what
// is not the client's is 404, as if it were not there. Answers go to loopback or wherever the caller
// said; there is no TLS here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "serve/desk.h"
#include "serve/tokens.h"

namespace assay::serve {

struct ServiceOptions {
  std::string address = "127.0.0.1";
  int port = 0;  ///< 0: any.
  std::size_t body_bytes = 8u << 20;
  std::size_t connections = 64;
  std::size_t streams =
      8;  ///< Of events, a client. All together hold half of the connections at most.
  /// What GET /v1/models answers this client. Empty: no models.
  std::function<Json(const std::string& client)> models;
  std::chrono::milliseconds request_time{20'000};
  std::chrono::milliseconds write_time{20'000};
  std::chrono::milliseconds heartbeat{10'000};  ///< Of streams.
};

/// Is a request of this kind fit to be judged, of this client? Before it is taken.
using CheckFunction = std::function<Status(const std::string& client, const std::string& kind,
                                           const std::string& request)>;

class HttpService {
 public:
  /// Listens and answers on threads of its own. The desk must outlive it.
  static Result<std::unique_ptr<HttpService>> Start(const ServiceOptions& options, Tokens tokens,
                                                    Desk& desk, CheckFunction check);
  ~HttpService();
  int port() const;

 private:
  struct Impl;
  explicit HttpService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::serve
