#include "agent/models/http_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/models/http_answer.h"
#include "base/text.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kQuotedBytes = 300;
constexpr std::uint32_t kMaxRephrased = 6;  // a server that refuses every phrasing must not loop us
constexpr milliseconds kProgressEvery{100};

}  // namespace

struct HttpModel::Call {
  Ticket ticket = 0;
  ModelRequest request;
  std::uint32_t tried = 0;
  std::uint32_t rephrased = 0;            // how often a 400 has changed the request
  std::optional<std::uint64_t> transfer;  // while a try runs
  Time due;                               // of the next try, while none runs
  Time began, last_byte, last_progress;
  Dialect dialect;  // as sent
  HttpHead head;
  BodyKind kind = BodyKind::kUnknown;
  SseParser events;
  std::string body;  // JSON, error pages, and bytes not yet told apart
  PartialReply partial;
};

HttpModel::HttpModel(const Protocol& protocol, HttpModelOptions options,
                     std::unique_ptr<Transport> transport, Clock& clock, Rng rng)
    : protocol_(protocol),
      options_(std::move(options)),
      transport_(std::move(transport)),
      clock_(clock),
      rng_(rng) {
  std::string base = options_.base_url.empty() ? std::string(protocol.home) : options_.base_url;
  while (base.ends_with('/')) base.pop_back();
  // People paste the whole address as often as its base.
  url_ = base.ends_with(protocol.path) ? base : base + std::string(protocol.path);
  redactor_.Add(options_.key);
}

HttpModel::~HttpModel() {
  for (auto& [ticket, call] : calls_) StopTransfer(*call);
}

void HttpModel::Start(Ticket ticket, ModelRequest request) {
  ASSAY_CHECK(!calls_.contains(ticket), "a ticket is started once");
  auto call = std::make_unique<Call>();
  call->ticket = ticket;
  call->request = std::move(request);
  call->due = clock_.Now();
  calls_[ticket] = std::move(call);
}

void HttpModel::Cancel(Ticket ticket) {
  const auto found = calls_.find(ticket);
  if (found == calls_.end()) return;
  StopTransfer(*found->second);
  calls_.erase(found);
  std::erase_if(events_, [ticket](const ModelEvent& event) { return event.ticket == ticket; });
}

std::vector<ModelEvent> HttpModel::Poll(milliseconds timeout) {
  StartDue();
  const milliseconds wait = events_.empty() ? WaitTime(timeout) : milliseconds(0);
  for (HttpEvent& event : transport_->Poll(wait)) OnHttp(std::move(event));
  CheckDeadlines();
  StartDue();
  return std::exchange(events_, {});
}

void HttpModel::StartDue() {
  for (auto& [ticket, call] : calls_) {
    if (by_transfer_.size() >= options_.max_in_flight) return;
    if (!call->transfer && call->due <= clock_.Now()) Begin(*call);
  }
}

void HttpModel::Begin(Call& call) {
  call.transfer = next_transfer_++;
  by_transfer_[*call.transfer] = &call;
  ++call.tried;
  call.began = call.last_byte = call.last_progress = clock_.Now();
  call.dialect = options_.dialect;
  call.head = {};
  call.kind = BodyKind::kUnknown;
  call.events = SseParser();
  call.body.clear();
  call.partial = {};
  transport_->Start(
      *call.transfer,
      {.url = url_,
       .headers = protocol_.headers(options_.key),
       .body = CompactJson(protocol_.body(call.request, options_.model, call.dialect)),
       .connect_timeout = options_.connect_timeout,
       .max_response_bytes = options_.max_response_bytes});
}

milliseconds HttpModel::WaitTime(milliseconds timeout) const {
  const Time now = clock_.Now();
  const bool full = by_transfer_.size() >= options_.max_in_flight;
  milliseconds wait = timeout;
  for (const auto& [ticket, call] : calls_) {
    Time next = call->due;
    if (call->transfer) {
      next =
          std::min(call->last_byte + options_.idle_timeout, call->began + options_.total_timeout);
    } else if (full) {
      continue;
    }
    wait = std::min(wait, std::chrono::ceil<milliseconds>(next - now));
  }
  return std::max(wait, milliseconds(0));
}

void HttpModel::OnHttp(HttpEvent event) {
  const auto found = by_transfer_.find(event.id);
  if (found == by_transfer_.end()) return;  // ended while this batch was worked through
  Call& call = *found->second;
  call.last_byte = clock_.Now();
  switch (event.kind) {
    case HttpEvent::Kind::kHead:
      return OnHead(call, std::move(event.head));
    case HttpEvent::Kind::kBody:
      return OnBytes(call, event.bytes);
    case HttpEvent::Kind::kEnd:
      return OnEnd(call, event.fault, event.detail);
  }
}

void HttpModel::OnHead(Call& call, HttpHead head) {
  server_has_answered_ = true;
  call.head = std::move(head);
  call.kind = call.head.status == 200 ? BodyKind::kUnknown : BodyKind::kOther;
}

void HttpModel::OnBytes(Call& call, std::string_view bytes) {
  if (call.kind == BodyKind::kUnknown) {
    call.body += bytes;
    if (Strip(call.body).size() < 6) return;
    call.kind = KindOf(call.head.Find("content-type"), call.body);
    const std::string begin = std::exchange(call.body, {});
    return OnBytes(call, begin);
  }
  if (call.kind != BodyKind::kEvents) {
    if (call.kind == BodyKind::kJson || call.body.size() < kMaxErrorBody) call.body += bytes;
    return;
  }
  if (Status fed = call.events.Feed(bytes); !fed)
    return Retry(call, NetworkError(fed.error().message));
  while (std::optional<ServerEvent> event = call.events.Next()) {
    event->data = ValidUtf8(event->data);
    if (Status read = protocol_.on_event(*event, call.partial); !read) {
      const bool told = read.error().kind == ErrorKind::kNetwork;  // by the server itself
      return Retry(call, NetworkError((told ? "" : "malformed stream: ") +
                                      Quoted(read.error().message, event->data)));
    }
    if (call.partial.reply.text.size() + call.partial.reply.reasoning.size() >
        options_.max_text_bytes) {
      call.partial.reply.stop = StopReason::kLength;
      call.partial.complete = true;
    }
    if (call.partial.complete) return Finish(call, std::move(call.partial.reply));
  }
  Progress(call);
}

void HttpModel::Progress(Call& call) {
  if (clock_.Now() - call.last_progress < kProgressEvery) return;
  call.last_progress = clock_.Now();
  ModelEvent event{.ticket = call.ticket, .kind = ModelEvent::Kind::kProgress};
  event.output_tokens = LostIn(call).output_tokens;
  events_.push_back(std::move(event));
}

void HttpModel::OnEnd(Call& call, HttpFault fault, const std::string& detail) {
  by_transfer_.erase(*call.transfer);
  call.transfer.reset();
  if (fault == HttpFault::kConnect && !server_has_answered_) {
    return Finish(
        call,
        std::unexpected(NetworkError(
            "no answer: " + detail,
            "is the server running, and is --base-url right? Behind a proxy, set https_proxy")));
  }
  if (fault == HttpFault::kTls) {
    return Finish(call, std::unexpected(NetworkError(
                            "no trusted connection: " + detail,
                            "name the CA bundle of your proxy or server in $ASSAY_CA_BUNDLE")));
  }
  if (call.head.status != 0 && call.head.status != 200) return OnRefused(call);
  if (fault != HttpFault::kNone) {
    const char* what =
        fault == HttpFault::kTooLarge ? "the response never ends: " : "connection lost: ";
    return Retry(call, NetworkError(what + detail));
  }
  if (call.kind == BodyKind::kEvents) {
    // Servers that close without "[DONE]" after a stop reason have still said everything.
    if (call.partial.stopped) return Finish(call, std::move(call.partial.reply));
    return Retry(call, NetworkError("the stream ended before the reply did"));
  }
  const std::string text = ValidUtf8(call.body);
  if (call.kind == BodyKind::kJson ||
      (call.kind == BodyKind::kUnknown && Strip(text).starts_with("{"))) {
    const Result<Json> document = ParseJson(text, "answer");
    if (!document)
      return Retry(call,
                   NetworkError("malformed answer: " + Quoted(document.error().message, text)));
    if (!ErrorTextOf(*document).empty() && !Member(*document, "error").is_null()) {
      return Retry(call, NetworkError("the server answered: " +
                                      redactor_.Quote(ErrorTextOf(*document), kQuotedBytes)));
    }
    if (Status read = protocol_.on_whole(*document, call.partial); !read) {
      Error error = NetworkError(read.error().message, read.error().cure);
      return Finish(call, std::unexpected(std::move(error)));
    }
    std::string& reply = call.partial.reply.text;
    if (reply.size() > options_.max_text_bytes) {
      reply = ValidUtf8(redactor_.Redact(reply).substr(0, options_.max_text_bytes));
      call.partial.reply.stop = StopReason::kLength;
    }
    return Finish(call, std::move(call.partial.reply));
  }
  if (Strip(text).empty()) return Retry(call, NetworkError("the server sent an empty answer"));
  const std::string type = call.head.Find("content-type");
  Finish(call, std::unexpected(NetworkError(
                   fmt::format("the server answered with {} ({}), not with a reply of a model",
                               type.empty() ? "a page" : redactor_.Quote(ValidUtf8(type), 80),
                               PageTitle(redactor_.Redact(text))),
                   "check --base-url: it usually ends in /v1, and no login page or proxy may stand "
                   "between")));
}

void HttpModel::OnRefused(Call& call) {
  const int status = call.head.status;
  // A page is cut down to its title in there, so the key goes first; a document may spell it with
  // escapes, so it goes once more when the text is quoted.
  const auto [said, type] = ReadRefusal(redactor_.Redact(ValidUtf8(call.body), true));
  const std::string message =
      fmt::format("the server answered {}{}{}", status, said.empty() ? "" : ": ",
                  redactor_.Quote(said, kQuotedBytes));
  if (status == 400 || status == 422) {
    // Another call may have learned the cure meanwhile.
    if (call.rephrased < kMaxRephrased &&
        (!(call.dialect == options_.dialect) || LearnFrom(said, options_.dialect))) {
      ++call.rephrased;
      --call.tried;
      call.due = clock_.Now();
      return;
    }
  }
  if (status == 401 || status == 403) {
    return Finish(call, std::unexpected(NetworkError(message, options_.key_hint)));
  }
  if (status >= 300 && status < 400) {
    return Finish(
        call,
        std::unexpected(NetworkError(
            fmt::format("the server answers with a redirect ({}) to {}", status,
                        PublicUrl(redactor_.Redact(call.head.Find("location")))),
            "give the new address as --base-url; redirects are not followed, for the key's sake")));
  }
  if (type == "insufficient_quota" || status == 402) {
    return Finish(
        call, std::unexpected(NetworkError(message, "top up the account, or use another model")));
  }
  if (!RetriableStatus(status)) {
    return Finish(call, std::unexpected(NetworkError(message, CureOf(status, said))));
  }
  const milliseconds at_least = ParseRetryAfter(call.head).value_or(milliseconds(0));
  if (at_least > options_.longest_retry_after) {
    return Finish(call, std::unexpected(NetworkError(fmt::format("{}; it asks to come back in {} s",
                                                                 message, at_least.count() / 1000),
                                                     "wait, or use another model")));
  }
  // 529 is what Anthropic answers when it is overloaded.
  Retry(call, NetworkError(message), at_least, status == 429 || status == 529);
}

void HttpModel::CheckDeadlines() {
  const Time now = clock_.Now();
  std::vector<Call*> running;
  for (auto& [transfer, call] : by_transfer_) running.push_back(call);
  for (Call* const call : running) {
    if (now - call->began >= options_.total_timeout) {
      Retry(*call, NetworkError(fmt::format("no complete reply within {} s",
                                            options_.total_timeout.count() / 1000)));
    } else if (now - call->last_byte >= options_.idle_timeout) {
      Retry(*call, NetworkError(fmt::format("the server has been silent for {} s",
                                            options_.idle_timeout.count() / 1000)));
    }
  }
}

void HttpModel::Retry(Call& call, Error error, milliseconds at_least, bool throttled) {
  StopTransfer(call);
  if (call.tried >= options_.tries) {
    error.message += fmt::format(" (tried {} times)", call.tried);
    if (error.cure.empty()) error.cure = "wait until the server is well";
    return Finish(call, std::unexpected(std::move(error)));
  }
  const std::uint32_t doublings = std::min(call.tried - 1, 20u);
  const milliseconds full =
      std::min(options_.longest_backoff, options_.first_backoff * (1l << doublings));
  // Jitter upward of half: many runs against one server must not come back together.
  const auto jittered = milliseconds(
      static_cast<std::int64_t>(static_cast<double>(full.count()) * (0.5 + 0.5 * rng_.Unit())));
  const milliseconds wait = at_least > milliseconds(0) ? at_least + jittered / 4 : jittered;
  call.due = clock_.Now() + wait;
  ModelEvent event{.ticket = call.ticket, .kind = ModelEvent::Kind::kRetrying};
  event.error = redactor_.Redact(std::move(error));
  event.wait = wait;
  event.throttled = throttled;
  event.lost = LostIn(call);
  events_.push_back(std::move(event));
}

void HttpModel::Finish(Call& call, Result<ModelReply> reply) {
  if (reply) {
    if (!call.partial.usage_known) reply->usage = LostIn(call);
    if (const std::string id = call.head.Find(protocol_.request_id_header); !id.empty()) {
      reply->request_id = Head(redactor_.Redact(ValidUtf8(id)), 200);
    }
    const bool cut = reply->stop == StopReason::kLength;
    for (std::string* text : {&reply->text, &reply->reasoning, &reply->request_id, &reply->model}) {
      *text = redactor_.Redact(*text, cut);
    }
  } else {
    reply.error() = redactor_.Redact(std::move(reply.error()));
  }
  StopTransfer(call);
  ModelEvent event{.ticket = call.ticket, .kind = ModelEvent::Kind::kDone};
  if (!reply) event.lost = LostIn(call);
  event.reply = std::move(reply);
  events_.push_back(std::move(event));
  calls_.erase(call.ticket);
}

void HttpModel::StopTransfer(Call& call) {
  if (!call.transfer) return;
  transport_->Cancel(*call.transfer);
  by_transfer_.erase(*call.transfer);
  call.transfer.reset();
}

// What a try has cost so far: the service's count where it came, else an estimate of what was sent
// and received.
Usage HttpModel::LostIn(const Call& call) const {
  const ModelReply& reply = call.partial.reply;
  Usage usage = reply.usage;
  const std::uint64_t received = (reply.text.size() + reply.reasoning.size() + 3) / 4;
  usage.output_tokens = std::max(usage.output_tokens, received);
  usage.estimated = true;
  if (usage.input_tokens == 0 && received > 0) {
    std::uint64_t sent = 0;
    for (const Message& message : call.request.conversation.messages) sent += message.text.size();
    usage.input_tokens = (sent + 3) / 4;
  }
  return usage;
}

// What a reader of a stranger's document complains of. Complaints show where they stopped reading,
// which may be within a key: then they are not shown.
std::string HttpModel::Quoted(const std::string& complaint, const std::string& document) const {
  if (redactor_.Redact(document) != document) return "it repeats the key, and is not shown";
  return redactor_.Quote(complaint, kQuotedBytes);
}

Error HttpModel::NetworkError(std::string message, std::string cure) const {
  return {ErrorKind::kNetwork, std::move(message), PublicUrl(url_), std::move(cure)};
}

}  // namespace assay::models
