#include "serve/http_service.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "runs/signature.h"
#include "runs/testing/fakes.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using std::chrono_literals::operator""ms;

constexpr const char* kAnn = "Bearer token-of-ann-0001";
constexpr const char* kBob = "Bearer token-of-bob-0002";

class HttpServiceTest : public ::testing::Test {
 protected:
  HttpServiceTest() { Start({}); }
  ~HttpServiceTest() override { service_.reset(); }

  void Start(ServiceOptions options) {
    service_.reset();
    desk_.reset();
    const Path file = folder_.path() / "tokens";
    EXPECT_TRUE(WriteFileAtomically(file, "ann token-of-ann-0001\nbob token-of-bob-0002\n"));
    ::chmod(file.c_str(), 0600);
    desk_ = *Desk::Open(folder_.path() / "state", {.waiting = 8},
                        [this](const Call& call, unsigned) { return Judge(call); });
    service_ = *HttpService::Start(
        options, *Tokens::Load(file), *desk_,
        [](const std::string&, const std::string&, const std::string& request) -> Status {
          if (request.find("unfit") == std::string::npos) return {};
          return Fail(ErrorKind::kUsage, "no op 'unfit'", "body: /op");
        });
  }
  Answer Judge(const Call& call) {
    if (call.job.request.find("hold") != std::string::npos) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any changed;
      changed.wait(lock, call.stop, [] { return false; });
    }
    call.progress({.gate = "memory", .detail = "case 1", .fraction = 0.5});
    Answer answer{
        .outcome = "refuted", .reason = "r", .document = {{"reward", 0.5}}, .certificate = {}};
    if (call.job.request.find("emit") == std::string::npos) return answer;
    const Path fresh = call.vetted.string() + ".new";
    const std::string certificate =
        runs::SealedText({{"schema", "assay.certificate/1"},
                          {"sha256", {{"kernel.cu", Sha256Hex(std::string_view("k"))}}}});
    EXPECT_TRUE(MakeFolders(fresh));
    EXPECT_TRUE(WriteFileAtomically(fresh / "kernel.cu", "k"));
    EXPECT_TRUE(WriteFileAtomically(fresh / "certificate.json", certificate));
    answer.certificate = Sha256Hex(certificate);
    return answer;
  }

  httplib::Client Http(const char* token = kAnn) const {
    httplib::Client client("127.0.0.1", service_->port());
    if (*token != '\0') client.set_default_headers({{"Authorization", token}});
    client.set_read_timeout(30);
    return client;
  }
  // {status, body}
  static std::pair<int, Json> Seen(const httplib::Result& result) {
    if (!result) return {0, nullptr};
    const auto json = ParseJson(result->body, "answer");
    return {result->status, json ? *json : Json(result->body)};
  }
  std::pair<int, Json> Get(const std::string& path, const char* token = kAnn) const {
    httplib::Client client = Http(token);
    return Seen(client.Get(path.c_str()));
  }
  std::pair<int, Json> Post(const std::string& path, const std::string& body,
                            const char* token = kAnn) const {
    httplib::Client client = Http(token);
    return Seen(client.Post(path.c_str(), body, "application/json"));
  }
  std::uint64_t Submit(const std::string& word) const {
    const auto [status, json] = Post("/v1/checks", R"({"op": ")" + word + "\"}");
    EXPECT_EQ(status, 202) << json;
    return json.value("job", std::uint64_t{0});
  }
  std::string Events(std::uint64_t job) const {
    const httplib::Result result =
        Http().Get(("/v1/jobs/" + std::to_string(job) + "/events").c_str());
    return result ? result->body : "";
  }
  // A connection by hand; what comes back to its end.
  int Connect() const {
    const int sock = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(service_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(sock, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return sock;
  }
  static std::string Raw(int sock, const std::string& text) {
    (void)::send(sock, text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    char bytes[4096];
    for (ssize_t got; (got = ::recv(sock, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(got));
    ::close(sock);
    return answer;
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Desk> desk_;
  std::unique_ptr<HttpService> service_;
};

TEST_F(HttpServiceTest, ACheckFromSubmissionToVerdict) {
  const std::uint64_t job = Submit("x");
  const std::string events = Events(job);
  EXPECT_THAT(events,
              HasSubstr("event: progress\ndata: {\"gate\":\"memory\",\"detail\":\"case 1\""));
  EXPECT_THAT(events, HasSubstr("event: ended\ndata: {\"outcome\":\"refuted\""));
  const std::string at = "/v1/jobs/" + std::to_string(job);
  EXPECT_EQ(Get(at).second.at("outcome"), "refuted");
  EXPECT_EQ(Get(at + "/verdict").second.at("reward"), 0.5);
  EXPECT_EQ(Get("/v1/jobs").second.at("jobs").size(), 1u);
  EXPECT_EQ(Get(at + "/vetted").first, 404);
}

TEST_F(HttpServiceTest, NobodyGetsInWithoutAToken) {
  const std::uint64_t job = Submit("x");
  const std::string at = "/v1/jobs/" + std::to_string(job);
  for (const char* const token :
       {"", "Bearer wrong-token-00000", "token-of-ann-0001", "Basic eDp5"}) {
    for (const std::string& path : {at, at + "/verdict", at + "/events", std::string("/v1/jobs"),
                                    std::string("/"), std::string("/v1/rewards/1")}) {
      EXPECT_EQ(Get(path, token).first, 401) << path;
    }
    EXPECT_EQ(Post("/v1/checks", "{}", token).first, 401);
  }
  EXPECT_EQ(Get("/v1/health", "").first, 200);
  // The body of one who may not come in is not even read.
  const std::string answer =
      Raw(Connect(), "POST /v1/checks HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("401"));
}

TEST_F(HttpServiceTest, WhatIsAnothersIsNotThere) {
  const std::uint64_t job = Submit("emit");
  Events(job);
  const std::string at = "/v1/jobs/" + std::to_string(job);
  for (const char* const path : {"", "/verdict", "/events", "/vetted", "/vetted/kernel.cu"})
    EXPECT_EQ(Get(at + path, kBob).first, 404) << path;
  EXPECT_EQ(Seen(Http(kBob).Delete(at.c_str())).first, 404);
  EXPECT_EQ(Seen(Http().Delete(at.c_str())).first, 409) << "its own, but over";
}

TEST_F(HttpServiceTest, VettedFilesByNameAndNothingElse) {
  const std::uint64_t job = Submit("emit");
  Events(job);
  const std::string at = "/v1/jobs/" + std::to_string(job) + "/vetted";
  EXPECT_THAT(Get(at).second.at("files").dump(), HasSubstr("kernel.cu"));
  EXPECT_EQ(Get(at + "/kernel.cu").second, "k");
  EXPECT_EQ(Get(at + "/certificate.json").first, 200);
  for (const char* const name : {"/../../tokens", "/..%2f..%2f..%2ftokens", "/%2e%2e", "/.",
                                 "/kernel.ptx", "/kernel.cu/x", "/kernel.cu%00"})
    EXPECT_NE(Get(at + name).first, 200) << name;
}

TEST_F(HttpServiceTest, WhatIsNotFitIsRefusedBeforeItIsTaken) {
  EXPECT_EQ(Post("/v1/checks", R"({"op": "unfit"})").first, 400);
  EXPECT_EQ(Post("/v1/checks", R"({"op": "unfit"})").second.at("error").at("message"),
            "no op 'unfit'");
  for (const char* const body : {"", "[]", "{", "null", "{\"key\": 1}", "{\"a\":1,\"a\":2}"})
    EXPECT_EQ(Post("/v1/checks", body).first, 400) << body;
  EXPECT_EQ(Post("/v1/checks", std::string(100'000, '[')).first, 400);
  EXPECT_EQ(Post("/v1/other", "{}").first, 400);
  EXPECT_EQ(Get("/v1/jobs/99999999999999999999").first, 404);
  EXPECT_EQ(Get("/v1/jobs/-1").first, 404);
  EXPECT_EQ(Get("/" + std::string(4000, 'a')).first, 414);
  EXPECT_TRUE(desk_->List("ann", 10).empty());
}

TEST_F(HttpServiceTest, ABatchGivesRewardsInOrder) {
  const std::string body = R"({"key": "b", "candidates": [{"n": 1}, {"n": 2}, {"n": 3}]})";
  const auto [status, json] = Post("/v1/rewards", body);
  ASSERT_EQ(status, 202) << json;
  const std::uint64_t batch = json.at("batch");
  for (std::uint64_t job = batch; job < batch + 3; ++job) Events(job);
  const Json rewards = Get("/v1/rewards/" + std::to_string(batch)).second;
  EXPECT_EQ(rewards.at("done"), true);
  EXPECT_EQ(rewards.at("rewards").size(), 3u);
  EXPECT_EQ(rewards.at("rewards").at(2).at("reward"), 0.5);
  EXPECT_EQ(Post("/v1/rewards", body).second.at("batch"), batch) << "asked again";
  EXPECT_EQ(Get("/v1/rewards/" + std::to_string(batch), kBob).first, 404);
}

TEST_F(HttpServiceTest, CancelledJobsEndTheirStreams) {
  const std::uint64_t held = Submit("hold");
  const std::uint64_t waiting = Submit("hold too");
  EXPECT_EQ(Seen(Http().Delete(("/v1/jobs/" + std::to_string(waiting)).c_str())).first, 200);
  EXPECT_THAT(Events(waiting), HasSubstr("\"outcome\":\"cancelled\""));
  std::string events;
  std::thread reader([&] { events = Events(held); });
  EXPECT_EQ(Seen(Http().Delete(("/v1/jobs/" + std::to_string(held)).c_str())).first, 200);
  reader.join();
  EXPECT_THAT(events, HasSubstr("\"outcome\":\"cancelled\""));
}

TEST_F(HttpServiceTest, AClientHasSoManyJobs) {
  for (int i = 0; i < 8; ++i) Submit("hold" + std::to_string(i));
  EXPECT_EQ(Post("/v1/checks", "{}").first, 429);
  EXPECT_EQ(Post("/v1/checks", "{}", kBob).first, 202);
}

TEST_F(HttpServiceTest, OversizedBodiesAreRefused) {
  Start({.body_bytes = 1000});
  EXPECT_EQ(Post("/v1/checks", std::string(1001, ' ')).first, 413);
  EXPECT_EQ(Post("/v1/checks", "{\"op\": \"" + std::string(900, 'x') + "\"}").first, 202);
  // Without a length it is cut where the limit is.
  std::string chunks =
      "POST /v1/checks HTTP/1.1\r\nHost: x\r\nAuthorization: " + std::string(kAnn) +
      "\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) chunks += "400\r\n" + std::string(1024, ' ') + "\r\n";
  EXPECT_THAT(Raw(Connect(), chunks + "0\r\n\r\n"), Not(HasSubstr("202")));
  // A head without an end, of nobody.
  EXPECT_THAT(Raw(Connect(), std::string(1u << 20, 'x')), Not(HasSubstr("200")));
  std::string head = "GET /v1/jobs HTTP/1.1\r\n";
  for (int i = 0; i < 10'000; ++i) head += "X-" + std::to_string(i) + ": 0123456789\r\n";
  EXPECT_THAT(Raw(Connect(), head + "\r\n"), Not(HasSubstr("200")));
  EXPECT_EQ(Get("/v1/jobs").first, 200) << "others are served";
}

// What a library would unpack or repeat.
TEST_F(HttpServiceTest, AFewBytesDoNotBecomeMany) {
  httplib::Client http = Http();
  EXPECT_EQ(
      http.Post("/v1/checks", {{"Content-Encoding", "gzip"}}, "x", "application/json")->status,
      400);
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 500; ++i) ranges += ",0-";
  EXPECT_EQ(http.Get("/v1/jobs", {{"Range", ranges}})->status, 400);
  EXPECT_EQ(http.Get("/v1/jobs")->status, 200);
}

TEST_F(HttpServiceTest, SlowClientsAreClosedAndTooManyTurnedAway) {
  Start({.connections = 2, .request_time = 300ms});
  const int first = Connect();
  const int second = Connect();
  const std::string half = "GET /v1/jobs HTTP/1.1\r\nAuthor";
  (void)::send(first, half.data(), half.size(), MSG_NOSIGNAL);
  (void)::send(second, half.data(), half.size(), MSG_NOSIGNAL);
  const std::string turned = Raw(Connect(), "GET /v1/health HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(turned.empty() || turned.find("503") != std::string::npos) << turned;
  EXPECT_THAT(Raw(first, ""), Not(HasSubstr("200")));  // returns once it is closed
  EXPECT_THAT(Raw(second, ""), Not(HasSubstr("200")));
  // They are counted until their ends are heard of.
  std::string answer;
  while (answer.empty() || answer.find("503") != std::string::npos)
    answer = Raw(Connect(), "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("200"));
}

// A client that asks and does not read holds nobody up.
TEST_F(HttpServiceTest, WhoDoesNotReadHoldsNobodyUp) {
  const std::uint64_t held = Submit("hold");
  const int silent = Connect();
  const std::string ask = "GET /v1/jobs/" + std::to_string(held) +
                          "/events HTTP/1.1\r\nHost: x\r\nAuthorization: " + std::string(kAnn) +
                          "\r\n\r\n";
  (void)::send(silent, ask.data(), ask.size(), MSG_NOSIGNAL);
  EXPECT_EQ(Get("/v1/jobs").first, 200);
  EXPECT_EQ(Seen(Http().Delete(("/v1/jobs/" + std::to_string(held)).c_str())).first, 200);
  ::close(silent);
}

TEST_F(HttpServiceTest, AClientFollowsSoManyJobs) {
  Start({.streams = 1});
  const std::uint64_t held = Submit("hold");
  const std::string at = "/v1/jobs/" + std::to_string(held);
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
  std::thread first([&] {
    Http().Get((at + "/events").c_str(), [&](const char*, std::size_t) {
      const std::lock_guard lock(mutex);
      begun = true;
      changed.notify_all();
      return true;
    });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun; });
  }
  EXPECT_EQ(Get(at + "/events").first, 429);
  EXPECT_EQ(Seen(Http().Delete(at.c_str())).first, 200);
  first.join();
}

TEST_F(HttpServiceTest, GarbageIsAnsweredOrClosed) {
  for (const std::string& text :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("\0\1\2\3\r\n\r\n", 8),
        std::string("POST /v1/checks HTTP/1.1\r\nAuthorization: ") + kAnn +
            "\r\nContent-Length: -5\r\n\r\n",
        std::string("POST /v1/checks HTTP/1.1\r\nAuthorization: ") + kAnn +
            "\r\nContent-Length: 99999999999999999999\r\n\r\n",
        std::string("BREW / HTTP/9.9\r\n\r\n")}) {
    const int sock = Connect();
    (void)::send(sock, text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(sock, SHUT_WR);
    EXPECT_THAT(Raw(sock, ""), Not(HasSubstr("HTTP/1.1 20"))) << text;
  }
  EXPECT_EQ(Get("/v1/jobs").first, 200);
}

// As curl sends it when it is told nothing: the library has a limit of its own for forms.
TEST_F(HttpServiceTest, ABodyIsTakenWhateverItIsSaidToBe) {
  httplib::Client http = Http();
  const std::string body = R"({"op": "x", "kernel": ")" + std::string(50'000, 'k') + "\"}";
  EXPECT_EQ(http.Post("/v1/checks", body, "application/x-www-form-urlencoded")->status, 202);
  EXPECT_EQ(http.Post("/v1/checks", body, "text/plain")->status, 202);
  EXPECT_EQ(
      http.Post("/v1/checks", "--b\r\n\r\n--b--\r\n", "multipart/form-data; boundary=b")->status,
      415);
}

TEST_F(HttpServiceTest, StreamsLeaveRoomForThoseWhoSubmit) {
  // A connection is open a moment longer than its answer is read: one more than two that follow
  // and one that asks.
  Start({.connections = 4, .streams = 3});
  const std::string at = "/v1/jobs/" + std::to_string(Submit("hold"));
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t following = 0;
  std::vector<std::jthread> followers;
  for (int follower = 0; follower < 2; ++follower)
    followers.emplace_back([&] {
      bool begun = false;
      Http().Get((at + "/events").c_str(), [&](const char*, std::size_t) {
        const std::lock_guard lock(mutex);
        if (!std::exchange(begun, true)) ++following;
        changed.notify_all();
        return true;
      });
    });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return following == 2; });
  }
  EXPECT_EQ(Get(at + "/events", kAnn).first, 503);
  EXPECT_EQ(Seen(Http().Delete(at.c_str())).first, 200);
}

TEST_F(HttpServiceTest, AVettedFileThatWasChangedIsNotGivenOut) {
  const std::uint64_t job = Submit("emit");
  Events(job);
  const std::string at = "/v1/jobs/" + std::to_string(job) + "/vetted";
  const Path folder = folder_.path() / "state" / "vetted" / std::to_string(job);
  ASSERT_TRUE(WriteFileAtomically(folder / "kernel.cu", "other"));
  EXPECT_EQ(Get(at + "/kernel.cu").first, 503);
  EXPECT_EQ(Get(at + "/certificate.json").first, 200);
  // A certificate that names other files, as one that leads out of the folder.
  ASSERT_TRUE(WriteFileAtomically(folder / "certificate.json",
                                  R"({"sha256": {"kernel.cu": "x", "../../../tokens": "x"}})"));
  for (const char* const name : {"", "/certificate.json", "/kernel.cu"})
    EXPECT_EQ(Get(at + name).first, 503) << name;
}

TEST_F(HttpServiceTest, NoModelsAreOfferedUnlessSomebodySetThem) {
  EXPECT_EQ(Get("/v1/models").second.at("models"), Json::object());
  Start({.models = [](const std::string& client) { return Json{{client, Json::object()}}; }});
  EXPECT_TRUE(Get("/v1/models", kBob).second.at("models").contains("bob"));
  EXPECT_EQ(Get("/v1/models", "").first, 401);
  const auto [status, json] = Post("/v1/generations", R"({"op": "x", "model": "m", "key": "k"})");
  EXPECT_EQ(status, 202) << json;
  EXPECT_EQ(json.at("kind"), "generate");
  EXPECT_EQ(Post("/v1/generations", R"({"op": "x", "model": "m", "key": "k"})").second.at("job"),
            json.at("job"));
}

}  // namespace
}  // namespace assay::serve
