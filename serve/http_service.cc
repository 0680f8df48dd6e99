#include "serve/http_service.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <ranges>
#include <thread>

#include "base/digest.h"
#include "runs/signature.h"
#include "runs/verify.h"
#include "serve/bounded_server.h"

namespace assay::serve {
namespace {

constexpr std::size_t kMostTarget = 256;
constexpr std::size_t kMostListed = 200;
constexpr std::size_t kMostKey = 128;

int StatusOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kMalformedInput:
    case ErrorKind::kUnsupported:
      return 400;
    case ErrorKind::kLimit:
      return 429;
    case ErrorKind::kEnvironment:
    case ErrorKind::kNetwork:
      return 503;
    case ErrorKind::kInternal:
      return 500;
  }
  return 500;
}

void Give(httplib::Response& response, int status, const Json& json) {
  response.status = status;
  response.set_content(CompactJson(json) + "\n", "application/json");
}

void Refuse(httplib::Response& response, int status, const Error& error) {
  Give(response, status,
       {{"error",
         {{"kind", Name(error.kind)},
          {"message", error.message},
          {"place", error.place},
          {"fix", error.cure}}}});
}

void Refuse(httplib::Response& response, const Error& error) {
  Refuse(response, StatusOf(error.kind), error);
}

void NotThere(httplib::Response& response) {
  Refuse(response, 404, {ErrorKind::kUsage, "there is no such thing", "", "docs/serve.md"});
}

Json Shown(const Job& job) {
  Json json = {{"job", job.number}, {"kind", job.kind}, {"state", Name(job.state)}};
  if (!job.key.empty()) json["key"] = job.key;
  if (job.group != 0) json["group"] = job.group;
  if (job.state == Job::State::kEnded) {
    json["outcome"] = job.outcome;
    json["reason"] = job.reason;
    json["vetted"] = !job.certificate.empty();
  }
  return json;
}

Result<std::string> KeyOf(ObjectReader& reader) {
  ASSAY_TRY(std::string key, reader.Optional<std::string>("key", ""));
  if (key.size() > kMostKey)
    return Fail(ErrorKind::kUsage, "a key has at most 128 bytes", reader.PlaceOf("key"));
  return key;
}

std::vector<std::string> Parts(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto part : path | std::views::split('/')) {
    if (!std::ranges::empty(part)) parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

std::optional<std::uint64_t> NumberOf(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

struct HttpService::Impl {
  Impl(const ServiceOptions& some, Tokens clients, Desk& a_desk, CheckFunction a_check)
      : options(some),
        tokens(std::move(clients)),
        desk(a_desk),
        check(std::move(a_check)),
        server({.connections = some.connections,
                .request_bytes = some.body_bytes + (64u << 10),
                .request_time = some.request_time,
                .write_time = some.write_time}) {}

  using Request = httplib::Request;
  using Response = httplib::Response;

  // Of one that was admitted.
  std::string ClientOf(const Request& request) const {
    return tokens.ClientOf(request.get_header_value("Authorization")).value_or("");
  }

  // Before the body is read: nobody without a token makes us read one.
  bool Admitted(const Request& request, Response& response) {
    if (request.target.size() > kMostTarget) {
      Refuse(response, 414, {ErrorKind::kUsage, "the address is too long", "", ""});
      return false;
    }
    // A few bytes would become gigabytes of ours: unpacked, or repeated range by range.
    for (const char* const header : {"Content-Encoding", "Range"}) {
      if (!request.has_header(header)) continue;
      Refuse(response, 400,
             {ErrorKind::kUsage, "neither packed bodies nor ranges are taken", header,
              "send and ask for the whole as it is"});
      return false;
    }
    if (request.path == "/v1/health") {
      const std::string fault = desk.fault();
      Give(response, fault.empty() ? 200 : 503,
           {{"ok", fault.empty()}, {"schema", "assay.serve/1"}});
      return false;
    }
    if (!tokens.ClientOf(request.get_header_value("Authorization"))) {
      response.set_header("WWW-Authenticate", "Bearer");
      Refuse(response, 401,
             {ErrorKind::kUsage, "no client has this token", "Authorization",
              "send 'Authorization: Bearer TOKEN'"});
      return false;
    }
    // Taken apart by the library, a body of many small parts would take many times its size.
    if (request.get_header_value("Content-Type").starts_with("multipart/")) {
      Refuse(response, 415,
             {ErrorKind::kUsage, "a body is JSON and nothing around it", "Content-Type",
              "send 'Content-Type: application/json'"});
      return false;
    }
    const std::string length = request.get_header_value("Content-Length");
    const auto bytes = NumberOf(length);
    if (!length.empty() && (!bytes || *bytes > options.body_bytes)) {
      Refuse(response, 413,
             {ErrorKind::kLimit,
              "the body is larger than " + std::to_string(options.body_bytes) + " bytes", "", ""});
      return false;
    }
    BoundedServer::AllowBody();
    return true;
  }

  void Get(const Request& request, Response& response) {
    const std::string client = ClientOf(request);
    const std::vector<std::string> parts = Parts(request.path);
    if (parts.size() < 2 || parts[0] != "v1") return NotThere(response);
    if (parts.size() == 2 && parts[1] == "models") {
      return Give(response, 200,
                  {{"models", options.models ? options.models(client) : Json::object()}});
    }
    if (parts.size() == 2 && parts[1] == "jobs") {
      Json jobs = Json::array();
      for (const Job& job : desk.List(client, kMostListed)) jobs.push_back(Shown(job));
      return Give(response, 200, {{"jobs", std::move(jobs)}});
    }
    const auto number = parts.size() > 2 ? NumberOf(parts[2]) : std::nullopt;
    if (!number) return NotThere(response);
    if (parts[1] == "rewards" && parts.size() == 3) return Rewards(client, *number, response);
    const std::optional<Job> job = desk.Find(client, *number);
    if (!job || parts[1] != "jobs") return NotThere(response);
    if (parts.size() == 3) return Give(response, 200, Shown(*job));
    if (parts.size() == 4 && parts[3] == "events")
      return Stream(client, *number, request, response);
    if (parts.size() == 4 && parts[3] == "verdict") {
      const Result<std::string> document = desk.Document(client, *number);
      if (!document) return Refuse(response, 404, document.error());
      return response.set_content(*document, "application/json");
    }
    if (parts[3] == "vetted" && parts.size() <= 5)
      return Vetted(client, *number, parts.size() == 5 ? parts[4] : std::string(), response);
    NotThere(response);
  }

  void Rewards(const std::string& client, std::uint64_t group, Response& response) {
    std::vector<Job> jobs = desk.Group(client, group);
    if (jobs.empty()) {
      if (const auto alone = desk.Find(client, group); alone && alone->kind == "reward")
        jobs.push_back(*alone);
    }
    if (jobs.empty()) return NotThere(response);
    Json rewards = Json::array();
    std::size_t over = 0;
    for (const Job& job : jobs) {
      over += job.Over() ? 1 : 0;
      Json reward = nullptr;
      if (job.state == Job::State::kEnded) {
        if (const auto text = desk.Document(client, job.number)) {
          if (auto json = ParseJson(*text, "reward")) reward = *std::move(json);
        }
      }
      rewards.push_back(std::move(reward));
    }
    Give(response, 200,
         {{"batch", group},
          {"of", jobs.size()},
          {"over", over},
          {"done", over == jobs.size()},
          {"rewards", std::move(rewards)}});
  }

  // Only names that the certificate names are looked for: a name is never made into a path before.
  // What is given out is what was recorded, to the byte.
  void Vetted(const std::string& client, std::uint64_t number, const std::string& name,
              Response& response) {
    const std::optional<Path> folder = desk.Vetted(client, number);
    const std::optional<Job> job = desk.Find(client, number);
    if (!folder || !job) return NotThere(response);
    auto files = Files(*folder, job->certificate);
    if (!files) return Refuse(response, files.error());
    if (name.empty()) {
      Json list = Json::object();
      for (const auto& [file, digest] : *files) list[file] = digest;
      return Give(response, 200, {{"files", std::move(list)}});
    }
    if (!files->contains(name)) return NotThere(response);
    const auto bytes = ReadFile(*folder / name);
    if (!bytes) return Refuse(response, bytes.error());
    if (const std::string& digest = files->at(name); !digest.empty() && Sha256Hex(*bytes) != digest)
      return Refuse(response, NotAsRecorded(name).error());
    response.set_content(*bytes, "application/octet-stream");
  }

  static std::unexpected<Error> NotAsRecorded(const std::string& file) {
    return Fail(ErrorKind::kEnvironment, "the file is not the one that was recorded", file,
                "the operator has to restore the state folder from a copy");
  }

  // Names and digests; the envelope, whose bytes no record names, has none.
  static Result<std::map<std::string, std::string>> Files(const Path& folder,
                                                          const std::string& digest) {
    ASSAY_TRY(const std::string text, ReadFile(folder / runs::kCertificateFile));
    if (Sha256Hex(text) != digest) return NotAsRecorded(runs::kCertificateFile);
    ASSAY_TRY(const Json certificate, ParseJson(text, runs::kCertificateFile));
    ASSAY_TRY(auto files, runs::FilesOf(certificate, runs::kCertificateFile));
    files[runs::kCertificateFile] = digest;
    if (certificate.contains("signer")) files[runs::kEnvelopeFile] = "";
    return files;
  }

  void Stream(const std::string& client, std::uint64_t number, const Request& request,
              Response& response) {
    {
      const std::lock_guard lock(mutex);
      if (streams[client] >= options.streams) {
        return Refuse(response, 429,
                      {ErrorKind::kLimit, "you follow as many jobs as one may", "",
                       "end one of the streams"});
      }
      // Who follows jobs leaves room for those who submit them.
      if (2 * all_streams >= options.connections) {
        return Refuse(response, 503,
                      {ErrorKind::kLimit, "as many jobs are followed as may be", "",
                       "ask for the state of the job instead: GET /v1/jobs/N"});
      }
      ++streams[client];
      ++all_streams;
    }
    const std::shared_ptr<void> counted(nullptr, [this, client](void*) {
      const std::lock_guard lock(mutex);
      --streams[client];
      --all_streams;
    });
    const auto seen = std::make_shared<std::uint64_t>(
        NumberOf(request.get_header_value("Last-Event-ID")).value_or(0));
    response.set_header("Cache-Control", "no-store");
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, client, number, seen, counted](std::size_t, httplib::DataSink& sink) {
          const Desk::News news = desk.Wait(client, number, *seen, options.heartbeat);
          std::string text;
          for (const Desk::Event& event : news.events) {
            text += "id: " + std::to_string(event.number) + "\nevent: " + event.name +
                    "\ndata: " + CompactJson(event.data) + "\n\n";
            *seen = event.number;
          }
          if (text.empty()) text = ": waiting\n\n";
          if (!sink.write(text.data(), text.size())) return false;
          if (news.over) sink.done();
          return true;
        });
  }

  // The body is read here, as it is: the library would take a form apart, which is what clients say
  // that say nothing (curl --data), and has another limit for those.
  void Post(const Request& request, Response& response, const httplib::ContentReader& reader) {
    const std::string client = ClientOf(request);
    std::string body;
    const bool whole = reader([&](const char* bytes, std::size_t size) {
      if (size > options.body_bytes - body.size()) return false;
      body.append(bytes, size);
      return true;
    });
    if (!whole) {
      return Refuse(response, body.size() < options.body_bytes ? 400 : 413,
                    {ErrorKind::kUsage, "the body cannot be read", "",
                     fmt::format("send {} bytes at most, all of them in {} s", options.body_bytes,
                                 options.request_time.count() / 1000)});
    }
    const Result<std::vector<Job>> jobs = Submit(client, request.path, body);
    if (!jobs) return Refuse(response, jobs.error());
    if (request.path != "/v1/rewards") return Give(response, 202, Shown(jobs->front()));
    const Job& first = jobs->front();
    Give(response, 202,
         {{"batch", first.group == 0 ? first.number : first.group}, {"of", jobs->size()}});
  }

  Result<std::vector<Job>> Submit(const std::string& client, const std::string& path,
                                  const std::string& text) {
    ASSAY_TRY(Json body, ParseJson(text, "body"));
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(body, "body"));
    ASSAY_TRY(const std::string key, KeyOf(reader));
    std::vector<Asked> asked;
    if (path == "/v1/checks" || path == "/v1/generations") {
      body.erase("key");
      asked.push_back({.kind = path == "/v1/checks" ? "check" : "generate",
                       .request = CompactJson(body),
                       .key = key});
    } else if (path == "/v1/rewards") {
      ASSAY_TRY(const Json candidates, reader.Required<Json>("candidates"));
      ASSAY_TRY_VOID(reader.Finish());
      if (!candidates.is_array())
        return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("candidates"));
      for (const Json& candidate : candidates) {
        asked.push_back({.kind = "reward",
                         .request = CompactJson(candidate),
                         .key = key.empty() ? key : key + "#" + std::to_string(asked.size())});
      }
    } else {
      return Fail(ErrorKind::kUsage, "nothing can be sent there", path,
                  "/v1/checks, /v1/rewards and /v1/generations take requests");
    }
    for (const Asked& one : asked) ASSAY_TRY_VOID(check(client, one.kind, one.request));
    return desk.Submit(client, std::move(asked));
  }

  void Delete(const Request& request, Response& response) {
    const std::string client = ClientOf(request);
    const std::vector<std::string> parts = Parts(request.path);
    const auto number = parts.size() == 3 && parts[0] == "v1" && parts[1] == "jobs"
                            ? NumberOf(parts[2])
                            : std::nullopt;
    if (!number || !desk.Find(client, *number)) return NotThere(response);
    const Result<bool> cancelled = desk.Cancel(client, *number);
    if (!cancelled) return Refuse(response, cancelled.error());
    if (!*cancelled) {
      return Refuse(response, 409,
                    {ErrorKind::kUsage, "the job is over", std::to_string(*number), ""});
    }
    Give(response, 200, {{"job", *number}, {"state", Name(Job::State::kCancelled)}});
  }

  Status Listen() {
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      return Admitted(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                         : httplib::Server::HandlerResponse::Handled;
    });
    const auto bind = [this](auto member) {
      return [this, member](const Request& request, Response& response) {
        (this->*member)(request, response);
      };
    };
    server.Get(".*", bind(&Impl::Get));
    server.Post(".*",
                [this](const Request& request, Response& response,
                       const httplib::ContentReader& reader) { Post(request, response, reader); });
    server.Delete(".*", bind(&Impl::Delete));
    server.set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
      Refuse(response, 500, {ErrorKind::kInternal, "the service failed at this", "", ""});
    });
    server.set_error_handler([](const Request&, Response& response) {
      if (!response.body.empty()) return;
      Refuse(response, response.status,
             {ErrorKind::kUsage, "the request cannot be read", "", "docs/serve.md"});
    });
    if (!server.is_valid()) return Fail(ErrorKind::kEnvironment, "no server can be made");
    port = options.port == 0 ? server.bind_to_any_port(options.address)
           : server.bind_to_port(options.address, options.port) ? options.port
                                                                : -1;
    if (port < 0) {
      return Fail(ErrorKind::kUsage, "cannot listen there",
                  options.address + ":" + std::to_string(options.port),
                  "choose another port with --listen ADDRESS:PORT");
    }
    thread = std::thread([this] {
      server.listen_after_bind();
      ended = true;
    });
    return {};
  }

  const ServiceOptions options;
  const Tokens tokens;
  Desk& desk;
  const CheckFunction check;
  BoundedServer server;
  std::mutex mutex;
  std::map<std::string, std::size_t> streams;
  std::size_t all_streams = 0;
  int port = -1;
  std::atomic<bool> ended{false};
  std::thread thread;
};

HttpService::HttpService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpService>> HttpService::Start(const ServiceOptions& options,
                                                        Tokens tokens, Desk& desk,
                                                        CheckFunction check) {
  auto impl = std::make_unique<Impl>(options, std::move(tokens), desk, std::move(check));
  ASSAY_TRY_VOID(impl->Listen());
  return std::unique_ptr<HttpService>(new HttpService(std::move(impl)));
}

HttpService::~HttpService() {
  // Streams end with the desk; without it stopped they would go on.
  impl_->desk.Stop();
  // Between binding and listening a server cannot be stopped.
  while (!impl_->server.is_running() && !impl_->ended) std::this_thread::yield();
  impl_->server.stop();
  impl_->thread.join();
}

int HttpService::port() const { return impl_->port; }

}  // namespace assay::serve
