// A model server on loopback that misbehaves on request, for both HTTP protocols, and a transport
// that makes waiting free.
//
// Each request takes the next Fault of the script (kFine when it is used up). Nothing here sleeps:
// a hung answer waits until the client has given up, and PatientTransport moves a fake clock
// instead of waiting.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/models/http.h"
#include "base/clock.h"

namespace httplib {
class Server;
}

namespace assay::testing {

enum class Fault : std::uint8_t {
  kFine,             ///< A streamed reply.
  kFineWhole,        ///< A reply in one JSON document.
  kFinePlainType,    ///< A streamed reply labelled text/plain.
  kFineJsonType,     ///< A streamed reply labelled application/json.
  kFineWholeEvents,  ///< One JSON document labelled text/event-stream, after a byte order mark.
  kFineGzip,         ///< One JSON document, compressed although nobody asked for that.
  kFineToolCall,     ///< No text, but a call of a tool.
  kFineNoDone,       ///< Closed after the stop reason, without the closing event.
  kFineCarriageReturns,
  kFineInvalidUtf8,    ///< A reply with an invalid byte inside a string.
  kFineHuge,           ///< A reply of 10 MB.
  kRateLimited,        ///< 429, Retry-After in seconds.
  kRateLimitedDate,    ///< 429, Retry-After as a date.
  kOverloaded,         ///< 503 with an HTML page.
  kServerError,        ///< 500 with a JSON error that echoes the request's headers.
  kReset,              ///< Connection closed in the middle of the stream.
  kResetEarly,         ///< Closed before the first byte of the body.
  kTruncated,          ///< The stream ends cleanly before the reply does.
  kMalformedEvent,     ///< An event that is not JSON.
  kErrorEvent,         ///< An error told within the stream.
  kErrorString,        ///< 200 with {"error": "..."}.
  kTruncatedWhole,     ///< Half a JSON document.
  kEmpty,              ///< 200 with nothing.
  kEndless,            ///< Bytes for ever, no event.
  kHung,               ///< A beginning, then silence.
  kHungBeforeHeaders,  ///< Silence from the start.
  kDislikesParameter,  ///< 400 that names max_tokens or stream_options.
  kHtml,               ///< 200 with a login page.
  kUnauthorised,       ///< 401 that echoes the key.
  kNotFound,           ///< 404.
  kRedirect,           ///< 302.
  kComeBackTomorrow,   ///< 429 with Retry-After: 86400.
  kComeBackNever,      ///< 429 with a Retry-After of twenty digits.
  kContextTooShort,    ///< 400 that complains of the context's length.
};
inline constexpr int kFaults = static_cast<int>(Fault::kContextTooShort) + 1;

/// What must follow from a fault.
enum class Consequence : std::uint8_t { kReply, kAgain, kRephrased, kFinalError };
Consequence ConsequenceOf(Fault fault);

class FaultServer {
 public:
  FaultServer();
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  /// "http://127.0.0.1:PORT/v1"
  std::string base_url() const;
  void Script(std::vector<Fault> faults);
  /// What fine replies say.
  void Say(std::string text);
  /// What the next fine replies say, one after the other.
  void SayInOrder(std::vector<std::string> texts);
  int requests() const { return requests_; }
  std::vector<std::string> bodies() const;
  /// Lets hung answers end, and those that begin while it is in force.
  void Release();
  std::atomic<int>& hanging() { return hanging_; }
  /// Requests that wait until so many are under way at once, before they are answered: proves
  /// concurrency.
  void MeetBeforeAnswering(int count);

 private:
  struct Impl;
  void Serve();

  std::unique_ptr<Impl> impl_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Fault> script_;
  std::string text_ = "hello";
  std::deque<std::string> texts_;
  std::vector<std::string> bodies_;
  std::atomic<int> requests_{0};
  std::atomic<int> hanging_{0};
  std::uint64_t releases_ = 0;
  int meeting_ = 0;
  int met_ = 0;
  int port_ = 0;
  std::thread thread_;
};

/// Forwards to a real transport. Where that would wait for nothing but time, the clock is moved
/// instead: while nothing is under way, or while the server hangs on purpose.
class PatientTransport final : public models::Transport {
 public:
  PatientTransport(std::unique_ptr<models::Transport> real, FakeClock& clock, FaultServer* server)
      : real_(std::move(real)), clock_(clock), server_(server) {}
  void Start(std::uint64_t id, models::HttpRequest request) override;
  void Cancel(std::uint64_t id) override;
  std::vector<models::HttpEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override { real_->Wake(); }

 private:
  std::unique_ptr<models::Transport> real_;
  FakeClock& clock_;
  FaultServer* server_;
  std::set<std::uint64_t> running_;
};

}  // namespace assay::testing
