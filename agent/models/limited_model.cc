#include "agent/models/limited_model.h"

#include <algorithm>

namespace assay::models {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes kWindow{1};
// A place becomes free without our knowing when: Wake says so, and this is for the lost one.
constexpr milliseconds kLookAgain{1000};

std::uint64_t TokensOf(const ModelRequest& request) {
  std::uint64_t bytes = 0;
  for (const Message& message : request.conversation.messages) bytes += message.text.size();
  return (bytes + 3) / 4;
}

milliseconds Ceil(std::chrono::steady_clock::duration duration) {
  return std::max(std::chrono::ceil<milliseconds>(duration), milliseconds(1));
}

}  // namespace

milliseconds RequestLimiter::Until(std::uint64_t tokens) {
  const Time now = clock_.Now();
  while (!sent_.empty() && now - sent_.front().time >= kWindow) sent_.pop_front();
  if (now < held_until_) return Ceil(held_until_ - now);
  if (limits_.requests_per_minute > 0 && sent_.size() >= limits_.requests_per_minute) {
    const std::size_t oldest = sent_.size() - limits_.requests_per_minute;
    return Ceil(sent_[oldest].time + kWindow - now);
  }
  if (limits_.tokens_per_minute == 0) return milliseconds(0);
  std::uint64_t used = tokens;
  for (const Sent& sent : sent_) used += sent.tokens;
  for (const Sent& sent : sent_) {
    if (used <= limits_.tokens_per_minute) return milliseconds(0);
    used -= sent.tokens;
    if (used <= limits_.tokens_per_minute || &sent == &sent_.back())
      return Ceil(sent.time + kWindow - now);
  }
  return milliseconds(0);
}

std::variant<RequestLimiter::Place, milliseconds> RequestLimiter::Take(Waiter& waiter,
                                                                       std::uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(waiting_, &waiter) == waiting_.end()) waiting_.push_back(&waiter);
  if (waiting_.front() != &waiter) return kLookAgain;
  if (limits_.at_once > 0 && under_way_ >= limits_.at_once) return kLookAgain;
  if (const milliseconds wait = Until(tokens); wait > milliseconds(0)) return wait;
  waiting_.pop_front();
  ++under_way_;
  sent_.push_back({next_, clock_.Now(), tokens});
  if (!waiting_.empty()) waiting_.front()->OnPlaceFree();
  return next_++;
}

void RequestLimiter::GiveBack(Place place, std::optional<std::uint64_t> tokens) {
  const std::lock_guard lock(mutex_);
  ASSAY_CHECK(under_way_ > 0, "a place that was taken is given back once");
  --under_way_;
  const auto sent = std::ranges::find(sent_, place, &Sent::place);
  if (tokens && sent != sent_.end()) sent->tokens = *tokens;
  if (!waiting_.empty()) waiting_.front()->OnPlaceFree();
}

void RequestLimiter::Hold(milliseconds wait) {
  const std::lock_guard lock(mutex_);
  held_until_ = std::max(held_until_, clock_.Now() + wait);
}

void RequestLimiter::Leave(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  std::erase(waiting_, &waiter);
  if (!waiting_.empty()) waiting_.front()->OnPlaceFree();
}

LimitedModel::~LimitedModel() {
  limiter_.Leave(*this);
  for (const auto& [ticket, place] : places_) limiter_.GiveBack(place, std::nullopt);
}

void LimitedModel::Start(Ticket ticket, ModelRequest request) {
  queued_.emplace_back(ticket, std::move(request));
}

void LimitedModel::Cancel(Ticket ticket) {
  std::erase_if(queued_, [ticket](const auto& entry) { return entry.first == ticket; });
  if (queued_.empty()) limiter_.Leave(*this);
  const auto place = places_.find(ticket);
  if (place == places_.end()) return;
  model_.Cancel(ticket);
  limiter_.GiveBack(place->second, std::nullopt);
  places_.erase(place);
}

std::optional<milliseconds> LimitedModel::Admit() {
  while (!queued_.empty()) {
    auto& [ticket, request] = queued_.front();
    const auto answer = limiter_.Take(*this, TokensOf(request));
    if (const auto* const wait = std::get_if<milliseconds>(&answer)) return *wait;
    places_[ticket] = std::get<RequestLimiter::Place>(answer);
    model_.Start(ticket, std::move(request));
    queued_.pop_front();
  }
  return std::nullopt;
}

std::vector<ModelEvent> LimitedModel::Poll(milliseconds timeout) {
  const std::optional<milliseconds> wait = Admit();
  std::vector<ModelEvent> events = model_.Poll(wait ? std::min(*wait, timeout) : timeout);
  for (const ModelEvent& event : events) {
    if (event.throttled) limiter_.Hold(event.wait);
    if (event.kind != ModelEvent::Kind::kDone) continue;
    const auto place = places_.find(event.ticket);
    if (place == places_.end()) continue;
    std::optional<std::uint64_t> tokens;
    if (event.reply) tokens = event.reply->usage.input_tokens + event.reply->usage.output_tokens;
    limiter_.GiveBack(place->second, tokens);
    places_.erase(place);
  }
  return events;
}

std::optional<Error> LimitedModel::Stuck() const {
  return queued_.empty() ? model_.Stuck() : std::nullopt;
}

}  // namespace assay::models
