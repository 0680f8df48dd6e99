#include "agent/models/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

namespace assay::models {
namespace {

struct Transfer {
  std::uint64_t id = 0;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string body;
  HttpHead head;
  bool head_told = false;
  std::uint64_t received = 0;
  std::uint64_t max_bytes = 0;
  bool too_large = false;
  char error[CURL_ERROR_SIZE] = {};
  std::vector<HttpEvent>* events = nullptr;

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }

  void TellHead() {
    if (head_told) return;
    head_told = true;
    events->push_back(
        {.id = id, .kind = HttpEvent::Kind::kHead, .head = head, .bytes = {}, .detail = {}});
  }
};

std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t bytes = size * count;
  std::string_view line(data, bytes);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    // A new response begins (after "100 Continue"): forget the headers of the one before.
    transfer.head = {};
    return bytes;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || transfer.head.headers.size() > 200) return bytes;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  transfer.head.headers.emplace_back(std::move(name), std::string(value));
  return bytes;
}

std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t bytes = size * count;
  transfer.received += bytes;
  if (transfer.received > transfer.max_bytes) {
    transfer.too_large = true;
    return 0;  // ends the transfer
  }
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  transfer.head.status = static_cast<int>(status);
  transfer.TellHead();
  // Neighbouring pieces become one event: a fast server must not cost an allocation per packet.
  if (!transfer.events->empty() && transfer.events->back().id == transfer.id &&
      transfer.events->back().kind == HttpEvent::Kind::kBody) {
    transfer.events->back().bytes.append(data, bytes);
  } else {
    transfer.events->push_back({.id = transfer.id,
                                .kind = HttpEvent::Kind::kBody,
                                .head = {},
                                .bytes = std::string(data, bytes),
                                .detail = {}});
  }
  return bytes;
}

HttpFault FaultOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFault::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_OPERATION_TIMEDOUT:  // only connecting has a limit in libcurl; the others are
                                    // http_model's
      return HttpFault::kConnect;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return HttpFault::kTls;
    default:
      return HttpFault::kBroken;
  }
}

// Proxies are for other machines; a model server on this one is asked directly, whatever http_proxy
// says.
bool IsLoopback(const std::string& url) {
  CURLU* const parts = curl_url();
  char* host = nullptr;
  bool loopback = false;
  if (curl_url_set(parts, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
      curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
    const std::string_view name = host;
    loopback = name == "localhost" || name.starts_with("127.") || name == "[::1]";
  }
  curl_free(host);
  curl_url_cleanup(parts);
  return loopback;
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(CURLM* multi, Path ca_bundle) : multi_(multi), ca_bundle_(std::move(ca_bundle)) {}
  ~CurlTransport() override {
    for (auto& [id, transfer] : transfers_) curl_multi_remove_handle(multi_, transfer->easy);
    transfers_.clear();
    curl_multi_cleanup(multi_);
  }

  void Start(std::uint64_t id, HttpRequest request) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->id = id;
    transfer->events = &events_;
    transfer->body = std::move(request.body);
    transfer->max_bytes = request.max_response_bytes;
    transfer->easy = curl_easy_init();
    ASSAY_CHECK(transfer->easy != nullptr, "curl_easy_init");
    CURL* const easy = transfer->easy;
    const auto set = [easy](CURLoption option, auto value) {
      curl_easy_setopt(easy, option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
    if (IsLoopback(request.url)) set(CURLOPT_PROXY, "");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->body.size()));
    set(CURLOPT_POSTFIELDS, transfer->body.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_USERAGENT, "assay/0.1");
    // Asks for no compression, and has libcurl undo it where a proxy compresses all the same. What
    // max_bytes counts is the text that comes out.
    set(CURLOPT_ACCEPT_ENCODING, "identity");
    set(CURLOPT_ERRORBUFFER, transfer->error);
    set(CURLOPT_PRIVATE, static_cast<void*>(transfer.get()));
    set(CURLOPT_HEADERFUNCTION, &OnHeader);
    set(CURLOPT_HEADERDATA, static_cast<void*>(transfer.get()));
    set(CURLOPT_WRITEFUNCTION, &OnBody);
    set(CURLOPT_WRITEDATA, static_cast<void*>(transfer.get()));
    if (!ca_bundle_.empty()) set(CURLOPT_CAINFO, ca_bundle_.c_str());
    for (const std::string& header : request.headers) {
      transfer->headers = curl_slist_append(transfer->headers, header.c_str());
    }
    // "Expect: 100-continue" costs a second with servers that do not know it.
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
    set(CURLOPT_HTTPHEADER, transfer->headers);
    curl_multi_add_handle(multi_, easy);
    transfers_[id] = std::move(transfer);
  }

  void Cancel(std::uint64_t id) override {
    const auto found = transfers_.find(id);
    if (found != transfers_.end()) {
      curl_multi_remove_handle(multi_, found->second->easy);
      transfers_.erase(found);
    }
    std::erase_if(events_, [id](const HttpEvent& event) { return event.id == id; });
  }

  std::vector<HttpEvent> Poll(std::chrono::milliseconds timeout) override {
    Perform();
    if (events_.empty()) {
      curl_multi_poll(multi_, nullptr, 0,
                      static_cast<int>(std::clamp<std::int64_t>(timeout.count(), 0, 60'000)),
                      nullptr);
      Perform();
    }
    return std::exchange(events_, {});
  }

  void Wake() override { curl_multi_wakeup(multi_); }

 private:
  void Perform() {
    int running = 0;
    curl_multi_perform(multi_, &running);
    int left = 0;
    while (CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Transfer* transfer = nullptr;
      const CURLcode code = message->data.result;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      End(*transfer, code);
    }
  }

  void End(Transfer& transfer, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 0) {
      transfer.head.status = static_cast<int>(status);
      transfer.TellHead();
    }
    HttpEvent event{
        .id = transfer.id, .kind = HttpEvent::Kind::kEnd, .head = {}, .bytes = {}, .detail = {}};
    event.fault = transfer.too_large ? HttpFault::kTooLarge : FaultOf(code);
    if (event.fault != HttpFault::kNone) {
      event.detail = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(code);
    }
    events_.push_back(std::move(event));
    curl_multi_remove_handle(multi_, transfer.easy);
    transfers_.erase(transfer.id);
  }

  CURLM* multi_;
  Path ca_bundle_;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
  std::vector<HttpEvent> events_;
};

}  // namespace

std::string HttpHead::Find(std::string_view name) const {
  std::string value;
  for (const auto& [key, text] : headers) {
    if (key == name) value = text;
  }
  return value;
}

Result<std::unique_ptr<Transport>> MakeCurlTransport(const Path& ca_bundle) {
  // The library's own state is made once a process; libcurl asks that no other thread runs while
  // that happens the first time.
  static std::once_flag once;
  static CURLcode ready = CURLE_OK;
  std::call_once(once, [] { ready = curl_global_init(CURL_GLOBAL_DEFAULT); });
  CURLM* const multi = ready == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi == nullptr) {
    return Fail(ErrorKind::kEnvironment, "libcurl cannot be initialised", "libcurl",
                "check its installation and free memory");
  }
  return std::make_unique<CurlTransport>(multi, ca_bundle);
}

}  // namespace assay::models
