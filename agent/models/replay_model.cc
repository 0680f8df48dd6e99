#include "agent/models/replay_model.h"

#include <algorithm>

#include "base/text.h"

namespace assay::models {
namespace {

// Where two texts part: "line 17:\n  recorded: ...\n  now:      ...".
std::string FirstDifference(std::string_view recorded, std::string_view now) {
  const std::vector<std::string_view> a = SplitLines(recorded);
  const std::vector<std::string_view> b = SplitLines(now);
  std::size_t line = 0;
  while (line < a.size() && line < b.size() && a[line] == b[line]) ++line;
  const auto show = [line](const std::vector<std::string_view>& lines) {
    return line < lines.size() ? Head(lines[line], 120) : std::string("(the end)");
  };
  return "line " + std::to_string(line + 1) + "\n  recorded: " + show(a) +
         "\n  now:      " + show(b);
}

}  // namespace

ReplayModel::ReplayModel(runs::Transcript transcript, std::string file)
    : transcript_(std::move(transcript)), file_(std::move(file)) {}

void ReplayModel::Start(Ticket ticket, ModelRequest request) {
  pending_.emplace_back(ticket, std::move(request));
}

void ReplayModel::Cancel(Ticket ticket) {
  std::erase_if(pending_, [ticket](const auto& entry) { return entry.first == ticket; });
}

void ReplayModel::PassOver(const std::vector<std::string>& names) {
  if (transcript_.header.by_hand) {
    next_ += names.size();
  } else {
    passed_over_.insert(names.begin(), names.end());
  }
}

void ReplayModel::SkipPassedOver() {
  while (next_ < transcript_.exchanges.size() &&
         passed_over_.contains(transcript_.exchanges[next_].name)) {
    ++next_;
  }
}

std::vector<ModelEvent> ReplayModel::Poll(std::chrono::milliseconds timeout) {
  std::vector<ModelEvent> events;
  SkipPassedOver();
  if (next_ < transcript_.exchanges.size() && !pending_.empty()) {
    const runs::Exchange& exchange = transcript_.exchanges[next_];
    const auto found = transcript_.header.by_hand
                           ? pending_.begin()
                           : std::ranges::find_if(pending_, [&](const auto& entry) {
                               return entry.second.name == exchange.name;
                             });
    if (found != pending_.end()) {
      ModelEvent event{.ticket = found->first, .kind = ModelEvent::Kind::kDone};
      if (std::optional<Error> error = Divergence(found->second, exchange)) {
        event.reply = std::unexpected(*std::move(error));
      } else {
        event.reply = exchange.reply;
      }
      events.push_back(std::move(event));
      pending_.erase(found);
      ++next_;
      return events;
    }
  }
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, timeout, [this] { return wake_; });
  wake_ = false;
  return events;
}

void ReplayModel::Wake() {
  const std::lock_guard lock(mutex_);
  wake_ = true;
  woken_.notify_all();
}

std::optional<Error> ReplayModel::Divergence(const ModelRequest& request,
                                             const runs::Exchange& exchange) const {
  if (transcript_.header.by_hand || runs::DigestOf(request.conversation) == exchange.digest)
    return std::nullopt;
  const std::vector<Message>& recorded = exchange.conversation.messages;
  const std::vector<Message>& now = request.conversation.messages;
  std::size_t at = 0;
  while (at < recorded.size() && at < now.size() && recorded[at].role == now[at].role &&
         recorded[at].text == now[at].text) {
    ++at;
  }
  const std::string_view was =
      at < recorded.size() ? std::string_view(recorded[at].text) : std::string_view();
  const std::string_view is = at < now.size() ? std::string_view(now[at].text) : std::string_view();
  return Error{ErrorKind::kMalformedInput,
               "the replay diverges: " + request.name +
                   " asks something else than was recorded, in message " + std::to_string(at + 1) +
                   ", " + FirstDifference(was, is),
               file_ + ":" + std::to_string(exchange.line),
               "replay with the op, the prompts and the settings of the recorded run: " +
                   CompactJson(transcript_.header.settings)};
}

std::string ReplayModel::Notice() const {
  std::string notice = "replays " + file_;
  if (!transcript_.header.note.empty()) notice += " (" + transcript_.header.note + ")";
  return notice;
}

std::optional<Error> ReplayModel::Stuck() const {
  if (pending_.empty()) return std::nullopt;
  std::size_t next = next_;
  while (next < transcript_.exchanges.size() &&
         passed_over_.contains(transcript_.exchanges[next].name))
    ++next;
  const std::string& asked = pending_.front().second.name;
  if (next >= transcript_.exchanges.size()) {
    return Error{ErrorKind::kLimit,
                 "the transcript ends after " + std::to_string(transcript_.exchanges.size()) +
                     " replies; there is none for " + asked,
                 file_, "name a model with --model to go on"};
  }
  if (transcript_.header.by_hand) return std::nullopt;
  const runs::Exchange& exchange = transcript_.exchanges[next];
  for (const auto& [ticket, request] : pending_) {
    if (request.name == exchange.name) return std::nullopt;
  }
  return Error{
      ErrorKind::kMalformedInput,
      "the replay diverges: the run asks for " + asked + " where " + exchange.name +
          " was recorded",
      file_ + ":" + std::to_string(exchange.line),
      "replay with the settings of the recorded run: " + CompactJson(transcript_.header.settings)};
}

}  // namespace assay::models
