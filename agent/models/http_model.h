// A model behind an HTTP service: Transport (bytes) + Protocol (meaning) + the rules of what to do
// when either misbehaves.
//
// Faults and what follows:
//   429, 408, 5xx, 529, "overloaded"    wait (Retry-After, else jittered exponential backoff), try
//                                       again
//   reset, truncated, malformed stream  try again; what was paid for the lost part is told
//                                       (ModelEvent::lost)
//   silence, endless response           given up after the idle, total or byte limit; tried again
//   400 that names a parameter          the request is put differently (Dialect), at once, once per
//                                       departure
//   401, 403, 404, other 4xx, HTML      a clear error; trying again would not help
//   no connection                       an error at once, unless this server has answered before:
//                                       then tried again
//   a text beyond the text limit        the reply ends there with StopReason::kLength
//
// Time comes from the Clock alone (libcurl measures only connecting), so that tests run on a fake
// one. Not thread-safe but for Wake().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/models/http.h"
#include "agent/models/model.h"
#include "agent/models/protocol.h"
#include "agent/models/secret.h"
#include "base/clock.h"
#include "base/rng.h"

namespace assay::models {

struct HttpModelOptions {
  std::string model;  ///< The service's name of it.
  std::string base_url;
  Secret key;
  std::string key_hint;  ///< What to set when the server refuses the key.
  Dialect dialect;       ///< To begin with.
  std::chrono::milliseconds connect_timeout{20'000};
  std::chrono::milliseconds idle_timeout{120'000};
  std::chrono::milliseconds total_timeout{1'800'000};
  std::uint32_t tries = 6;
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds longest_backoff{60'000};
  std::chrono::milliseconds longest_retry_after{
      300'000};  ///< A server that asks for more is not waited for.
  std::size_t max_text_bytes = 4u << 20;
  std::uint64_t max_response_bytes = 64u << 20;
  std::size_t max_in_flight = 64;  ///< Further requests wait their turn.
};

class HttpModel final : public Model {
 public:
  /// `clock` must outlive it.
  HttpModel(const Protocol& protocol, HttpModelOptions options,
            std::unique_ptr<Transport> transport, Clock& clock, Rng rng);
  ~HttpModel() override;

  void Start(Ticket ticket, ModelRequest request) override;
  void Cancel(Ticket ticket) override;
  std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override { transport_->Wake(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Call;

  void StartDue();
  void Begin(Call& call);
  std::chrono::milliseconds WaitTime(std::chrono::milliseconds timeout) const;
  void OnHttp(HttpEvent event);
  void OnHead(Call& call, HttpHead head);
  void OnBytes(Call& call, std::string_view bytes);
  void OnEnd(Call& call, HttpFault fault, const std::string& detail);
  void OnRefused(Call& call);
  void CheckDeadlines();
  void Progress(Call& call);

  /// Ends the try; the call is tried again if `error` can be cured by that and tries are left.
  void Retry(Call& call, Error error, std::chrono::milliseconds at_least = {},
             bool throttled = false);
  void Finish(Call& call, Result<ModelReply> reply);
  void StopTransfer(Call& call);
  Usage LostIn(const Call& call) const;
  std::string Quoted(const std::string& complaint, const std::string& document) const;
  Error NetworkError(std::string message, std::string cure = {}) const;

  const Protocol& protocol_;
  HttpModelOptions options_;
  std::unique_ptr<Transport> transport_;
  Clock& clock_;
  Rng rng_;
  std::string url_;
  Redactor redactor_;
  std::uint64_t next_transfer_ = 1;
  bool server_has_answered_ = false;
  std::map<Ticket, std::unique_ptr<Call>> calls_;
  std::map<std::uint64_t, Call*> by_transfer_;
  std::vector<ModelEvent> events_;
};

}  // namespace assay::models
