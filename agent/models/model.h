// A model as a value-in, value-out service: conversations go in, replies come out, many at once on
// one thread.
//
//   Start(ticket, request)   begins a request; never blocks, never fails (a failure is an event).
//   Poll(timeout)            waits for something to happen and returns it. All work of all requests
//                            is done in here.
//   Cancel(ticket)           forgets a request; no event of it follows.
//   Wake()                   ends a Poll of another thread early. The only call that is safe from
//                            other threads.
//
// Every started ticket ends with exactly one kDone event unless it is cancelled. Retries after
// faults happen inside and are told as kRetrying. Text of replies is valid UTF-8 and holds no key.
// Providers are rows of a table (providers.h); HTTP ones share http_model.h.
//
// Ask is the blocking wrapper:
//   ASSAY_TRY(ModelReply reply, Ask(model, {.name = "attempt-1", .conversation = conversation}));
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runs/conversation.h"

namespace assay::models {

// A model speaks in the words of the record.
using runs::Conversation;
using runs::Message;
using runs::ModelReply;
using runs::Role;
using runs::StopReason;
using runs::Usage;

struct ModelRequest {
  std::string
      name;  ///< "attempt-3": for messages, and the key under which a transcript replays it.
  Conversation conversation;
  std::uint32_t max_output_tokens = 16384;
  std::optional<double>
      temperature;  ///< Unset: the provider's default (some models refuse any other).
};

using Ticket = std::uint64_t;

struct ModelEvent {
  enum class Kind : std::uint8_t {
    kProgress,  ///< `output_tokens` so far (estimated).
    kRetrying,  ///< `error` happened; the next try starts after `wait`. `lost` was paid for
                ///< nothing.
    kDone,      ///< `reply` is final: an answer or an error that retrying did not cure.
  };
  Ticket ticket = 0;
  Kind kind = Kind::kDone;
  std::uint64_t output_tokens = 0;
  Error error{};
  std::chrono::milliseconds wait{0};
  bool throttled = false;  ///< kRetrying: the service says that it is asked too much.
  Usage lost{};            ///< kRetrying, failed kDone: what the try cost, paid for nothing.
  Result<ModelReply> reply{ModelReply{}};
};

class Model {
 public:
  virtual ~Model() = default;
  virtual void Start(Ticket ticket, ModelRequest request) = 0;
  virtual void Cancel(Ticket ticket) = 0;
  virtual std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) = 0;
  virtual void Wake() = 0;
  /// Something to tell the user before the first request, e.g. "replays a transcript written by
  /// hand". May be empty.
  virtual std::string Notice() const { return {}; }
  /// Names of requests that a resumed run has answers to: a replayed transcript does not hand those
  /// out again.
  virtual void PassOver(const std::vector<std::string>& names) { static_cast<void>(names); }
  /// Why no event will ever come for what is started: a replayed transcript is at its end. Nothing
  /// where events may come.
  virtual std::optional<Error> Stuck() const { return std::nullopt; }
};

/// Sends one request and waits for its end.
Result<ModelReply> Ask(Model& model, ModelRequest request);

}  // namespace assay::models
