// What many models may ask of one service at once: a limiter that they share, and a model that asks
// it first.
//
//   RequestLimiter limiter({.at_once = 8, .requests_per_minute = 60}, clock);
//   LimitedModel model(MakeModel(...), limiter);       // one a run, any number of them
//
// A request waits until a place is free, and until neither the requests nor the tokens of the last
// minute say that it must not be sent yet; whoever waited longest goes first. When the service tells
// one that it asks too much (ModelEvent::throttled), nobody begins anything new before the time that
// this one was told to wait has passed. Tokens of a request are those of its text at first, and what
// the service counted once it has answered. One request always gets through, however large.
//
// RequestLimiter is thread-safe; a LimitedModel is as thread-safe as its own model.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "agent/models/model.h"
#include "base/clock.h"

namespace assay::models {

/// 0: no limit.
struct RequestLimits {
  std::uint32_t at_once = 8;
  std::uint64_t requests_per_minute = 0;
  std::uint64_t tokens_per_minute = 0;
};

class RequestLimiter {
 public:
  /// `clock` must outlive it.
  RequestLimiter(RequestLimits limits, Clock& clock) : limits_(limits), clock_(clock) {}

  using Place = std::uint64_t;
  /// Who waits for a place: Wake is called when it may be worth asking again.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    virtual void OnPlaceFree() = 0;
  };

  /// A place, or how long to wait at least before it is worth asking again.
  std::variant<Place, std::chrono::milliseconds> Take(Waiter& waiter, std::uint64_t tokens);
  /// The request has ended; `tokens`: what it took in all, where that is known.
  void GiveBack(Place place, std::optional<std::uint64_t> tokens);
  /// No new request before `wait` has passed.
  void Hold(std::chrono::milliseconds wait);
  /// `waiter` waits no longer.
  void Leave(Waiter& waiter);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Sent {
    Place place = 0;
    Time time;
    std::uint64_t tokens = 0;
  };
  /// How long until a request of `tokens` may be sent, as far as limits by the minute say.
  std::chrono::milliseconds Until(std::uint64_t tokens);

  const RequestLimits limits_;
  Clock& clock_;
  std::mutex mutex_;
  std::deque<Waiter*> waiting_;  // whoever waited longest first
  std::deque<Sent> sent_;        // in the last minute, oldest first
  std::uint32_t under_way_ = 0;
  Place next_ = 1;
  Time held_until_{};
};

class LimitedModel final : public Model, private RequestLimiter::Waiter {
 public:
  LimitedModel(Model& model, RequestLimiter& limiter) : model_(model), limiter_(limiter) {}
  ~LimitedModel() override;

  void Start(Ticket ticket, ModelRequest request) override;
  void Cancel(Ticket ticket) override;
  std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override { model_.Wake(); }
  std::string Notice() const override { return model_.Notice(); }
  void PassOver(const std::vector<std::string>& names) override { model_.PassOver(names); }
  std::optional<Error> Stuck() const override;

 private:
  void OnPlaceFree() override { model_.Wake(); }
  /// Starts what may be started; how long to wait for the next, where one waits.
  std::optional<std::chrono::milliseconds> Admit();

  Model& model_;
  RequestLimiter& limiter_;
  std::deque<std::pair<Ticket, ModelRequest>> queued_;
  std::map<Ticket, RequestLimiter::Place> places_;
};

}  // namespace assay::models
