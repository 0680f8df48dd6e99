// HttpModel against a real server on loopback, over both protocols, with every fault the server
// knows.
#include "agent/models/http_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/models/http_answer.h"
#include "agent/testing/fault_server.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::Fault;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "sk-test-0123456789abcdef";
constexpr std::size_t kMaxText = 256 * 1024;
constexpr milliseconds kPatience{
    3'600'000};  // of the fake clock: a Poll then lasts until the model's next deadline

struct Outcome {
  Result<ModelReply> reply{ModelReply{}};
  int dones = 0;
  std::vector<milliseconds> waits;
  std::vector<Error> errors;
  Usage lost;
};

class Client {
 public:
  Client(testing::FaultServer& server, const Protocol& protocol, std::uint64_t seed = 1,
         const std::function<void(HttpModelOptions&)>& adjust = {}) {
    HttpModelOptions options;
    options.model = "fake-1";
    options.base_url = server.base_url();
    options.key = Secret(kKey);
    options.key_hint = "check the key";
    options.dialect.old_token_limit = true;
    options.max_text_bytes = kMaxText;
    options.max_response_bytes = 4u << 20;
    if (adjust) adjust(options);
    auto real = MakeCurlTransport({});
    EXPECT_TRUE(real);
    model_ = std::make_unique<HttpModel>(
        protocol, options,
        std::make_unique<testing::PatientTransport>(*std::move(real), clock_, &server), clock_,
        Rng(seed));
  }

  HttpModel& model() { return *model_; }
  FakeClock& clock() { return clock_; }

  static ModelRequest Request(const std::string& text = "hi") {
    return {.name = "attempt-1",
            .conversation = {{{Role::kSystem, "be right", true}, {Role::kUser, text, false}}},
            .max_output_tokens = 100,
            .temperature = {}};
  }

  Outcome Run() {
    Outcome outcome;
    model_->Start(1, Request());
    while (outcome.dones == 0) {
      for (ModelEvent& event : model_->Poll(kPatience)) Take(event, outcome);
    }
    return outcome;
  }

  static void Take(ModelEvent& event, Outcome& outcome) {
    outcome.lost += event.lost;
    if (event.kind == ModelEvent::Kind::kRetrying) {
      outcome.waits.push_back(event.wait);
      outcome.errors.push_back(event.error);
    }
    if (event.kind == ModelEvent::Kind::kDone) {
      ++outcome.dones;
      outcome.reply = std::move(event.reply);
    }
  }

 private:
  FakeClock clock_;
  std::unique_ptr<HttpModel> model_;
};

class HttpModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  const Protocol& protocol() const {
    return std::string_view(GetParam()) == "openai" ? OpenAiProtocol() : AnthropicProtocol();
  }
  bool openai() const { return &protocol() == &OpenAiProtocol(); }

  Outcome RunWith(std::vector<Fault> script, std::uint64_t seed = 1) {
    server_.Script(std::move(script));
    return Client(server_, protocol(), seed).Run();
  }

  testing::FaultServer server_;
};

TEST_P(HttpModelTest, StreamsAReply) {
  server_.Say("one two three");
  const Outcome outcome = RunWith({Fault::kFine});
  ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
  EXPECT_EQ(outcome.reply->text, "one two three");
  EXPECT_EQ(outcome.reply->stop, StopReason::kEnd);
  EXPECT_EQ(
      outcome.reply->usage,
      (Usage{
          .input_tokens = 11, .cached_input_tokens = 0, .output_tokens = 7, .estimated = false}));
  EXPECT_EQ(outcome.reply->model, "fake-1");
  EXPECT_FALSE(outcome.reply->request_id.empty());
}

TEST_P(HttpModelTest, SendsTheConversation) {
  RunWith({Fault::kFine});
  const Json body = *ParseJson(server_.bodies().at(0), "body");
  EXPECT_EQ(body.at("model"), "fake-1");
  EXPECT_EQ(body.at("stream"), true);
  if (openai()) {
    EXPECT_EQ(body.at("messages").at(0).at("role"), "system");
    EXPECT_EQ(body.at("messages").at(1).at("content"), "hi");
    EXPECT_EQ(body.at("max_tokens"), 100);
  } else {
    EXPECT_EQ(body.at("system").at(0).at("text"), "be right");
    EXPECT_TRUE(body.at("system").at(0).contains("cache_control"));
    EXPECT_EQ(body.at("messages").at(0).at("content").at(0).at("text"), "hi");
    EXPECT_FALSE(body.at("messages").at(0).at("content").at(0).contains("cache_control"));
  }
  EXPECT_THAT(server_.bodies().at(0), Not(HasSubstr(kKey)));
}

TEST_P(HttpModelTest, EveryFormOfAFineReplyIsRead) {
  server_.Say("text of the reply");
  for (const Fault fault :
       {Fault::kFineWhole, Fault::kFinePlainType, Fault::kFineJsonType, Fault::kFineWholeEvents,
        Fault::kFineGzip, Fault::kFineNoDone, Fault::kFineCarriageReturns}) {
    const Outcome outcome = RunWith({fault});
    ASSERT_TRUE(outcome.reply) << static_cast<int>(fault) << ToString(outcome.reply.error());
    // Closing without the last event: Anthropic's stop reason has come as well.
    EXPECT_EQ(outcome.reply->text, "text of the reply");
    EXPECT_EQ(outcome.reply->usage.output_tokens, 7u);
    EXPECT_TRUE(outcome.errors.empty());
  }
}

TEST_P(HttpModelTest, InvalidUtf8IsReplaced) {
  server_.Say("ok");
  const Outcome outcome = RunWith({Fault::kFineInvalidUtf8});
  ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
  EXPECT_EQ(outcome.reply->text, "ok\xef\xbf\xbd");
}

TEST_P(HttpModelTest, AReplyOfTenMegabytesIsCutAndToldSo) {
  const Outcome outcome = RunWith({Fault::kFineHuge});
  ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
  EXPECT_EQ(outcome.reply->stop, StopReason::kLength);
  EXPECT_GT(outcome.reply->text.size(), kMaxText);
  EXPECT_LE(outcome.reply->text.size(), kMaxText + 64 * 1024);
  EXPECT_EQ(server_.requests(), 1);
}

TEST_P(HttpModelTest, WaitsAsLongAsTheServerAsks) {
  const Outcome outcome = RunWith({Fault::kRateLimited, Fault::kRateLimitedDate, Fault::kFine});
  ASSERT_TRUE(outcome.reply);
  ASSERT_EQ(outcome.waits.size(), 2u);
  EXPECT_GE(outcome.waits[0], milliseconds(7000));
  EXPECT_LT(outcome.waits[0], milliseconds(8000));
  EXPECT_GE(outcome.waits[1], milliseconds(9000));
  EXPECT_LT(outcome.waits[1], milliseconds(10000));
}

TEST_P(HttpModelTest, BackoffDoublesWithJitterAndEnds) {
  const Outcome outcome = RunWith(std::vector<Fault>(20, Fault::kServerError));
  ASSERT_FALSE(outcome.reply);
  EXPECT_EQ(server_.requests(), 6);
  ASSERT_EQ(outcome.waits.size(), 5u);
  milliseconds full{1000};
  for (const milliseconds wait : outcome.waits) {
    EXPECT_GE(wait, full / 2);
    EXPECT_LE(wait, full);
    full *= 2;
  }
  EXPECT_THAT(outcome.reply.error().message, HasSubstr("tried 6 times"));
  // Another seed, other waits: many clients must not come back together.
  EXPECT_NE(RunWith(std::vector<Fault>(20, Fault::kServerError), 2).waits, outcome.waits);
}

TEST_P(HttpModelTest, FinalErrorsAreClearAndNotTriedAgain) {
  const std::pair<Fault, const char*> cases[] = {{Fault::kHtml, "Sign in"},
                                                 {Fault::kUnauthorised, "check the key"},
                                                 {Fault::kNotFound, "does not exist"},
                                                 {Fault::kRedirect, "elsewhere.example"},
                                                 {Fault::kComeBackTomorrow, "86400 s"},
                                                 {Fault::kComeBackNever, "go away; it asks"},
                                                 {Fault::kContextTooShort, "--max-output-tokens"}};
  for (const auto& [fault, expected] : cases) {
    const Outcome outcome = RunWith({fault});
    ASSERT_FALSE(outcome.reply);
    EXPECT_THAT(ToString(outcome.reply.error()), HasSubstr(expected));
    EXPECT_THAT(outcome.reply.error().place, HasSubstr("http://127.0.0.1:"));
    EXPECT_FALSE(outcome.reply.error().cure.empty());
    EXPECT_EQ(server_.requests(), 1) << expected;
    EXPECT_THAT(ToString(outcome.reply.error()), Not(HasSubstr(kKey)));
  }
}

TEST_P(HttpModelTest, WhatTheServerSaysInsteadOfAReplyIsTold) {
  const std::pair<Fault, const char*> cases[] = {{Fault::kErrorString, "model 'm' not found"},
                                                 {Fault::kErrorEvent, ": the server broke off"}};
  for (const auto& [fault, expected] : cases) {
    const Outcome outcome = RunWith({fault, Fault::kFine});
    ASSERT_EQ(outcome.errors.size(), 1u);
    EXPECT_THAT(ToString(outcome.errors[0]), HasSubstr(expected));
  }
}

TEST_P(HttpModelTest, ACallOfAToolIsNotAnEmptyReply) {
  const Outcome outcome = RunWith({Fault::kFineToolCall});
  ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
  EXPECT_THAT(outcome.reply->text, HasSubstr("tool"));
}

TEST_P(HttpModelTest, ADislikedParameterIsLeftOut) {
  const Outcome outcome = RunWith({Fault::kDislikesParameter, Fault::kFine});
  ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
  EXPECT_TRUE(outcome.waits.empty());
  const Json second = *ParseJson(server_.bodies().at(1), "body");
  EXPECT_FALSE(second.contains("stream_options"));
  EXPECT_EQ(second.contains("stream"), openai());
}

TEST_P(HttpModelTest, SilenceIsGivenUpAfterTheIdleLimit) {
  for (const Fault fault : {Fault::kHung, Fault::kHungBeforeHeaders}) {
    const Outcome outcome = RunWith({fault, Fault::kFine});
    ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
    ASSERT_EQ(outcome.errors.size(), 1u);
    EXPECT_THAT(outcome.errors[0].message, HasSubstr("silent for 120 s"));
  }
}

TEST_P(HttpModelTest, ALostReplyIsPaidOnceAndCountedApart) {
  server_.Say(std::string(4000, 'a'));
  const Outcome outcome = RunWith({Fault::kTruncated, Fault::kFine});
  ASSERT_TRUE(outcome.reply);
  EXPECT_EQ(outcome.reply->usage.output_tokens, 7u);
  EXPECT_EQ(outcome.lost.output_tokens, 1000u);  // what was received, at four bytes a token
  EXPECT_TRUE(outcome.lost.estimated);
}

TEST_P(HttpModelTest, TheKeyIsNeverEchoed) {
  server_.Say(std::string("your key is ") + kKey + ", isn't it?");
  const Outcome outcome = RunWith({Fault::kServerError, Fault::kFine});
  ASSERT_TRUE(outcome.reply);
  EXPECT_EQ(outcome.reply->text, "your key is [key], isn't it?");
  ASSERT_EQ(outcome.errors.size(), 1u);
  EXPECT_THAT(outcome.errors[0].message, HasSubstr("[key]"));
  EXPECT_THAT(outcome.errors[0].message, Not(HasSubstr(kKey)));
}

TEST_P(HttpModelTest, SixtyFourStreamsRunOnOneThread) {
  constexpr int kStreams = 64;
  server_.MeetBeforeAnswering(kStreams);  // none is answered before all have come
  server_.Say("concurrent");
  Client client(server_, protocol());
  for (Ticket ticket = 1; ticket <= kStreams; ++ticket)
    client.model().Start(ticket, Client::Request());
  std::set<Ticket> done;
  while (done.size() < kStreams) {
    for (ModelEvent& event : client.model().Poll(kPatience)) {
      if (event.kind != ModelEvent::Kind::kDone) continue;
      ASSERT_TRUE(event.reply) << ToString(event.reply.error());
      EXPECT_EQ(event.reply->text, "concurrent");
      EXPECT_TRUE(done.insert(event.ticket).second) << "told twice";
    }
  }
  EXPECT_EQ(server_.requests(), kStreams);
}

TEST_P(HttpModelTest, ACancelledRequestIsNotHeardOfAgain) {
  server_.Script({Fault::kHung, Fault::kFine});
  Client client(server_, protocol());
  client.model().Start(1, Client::Request());
  while (server_.hanging() == 0) client.model().Poll(milliseconds(0));
  client.model().Cancel(1);
  client.model().Start(2, Client::Request());
  bool done = false;
  while (!done) {
    for (const ModelEvent& event : client.model().Poll(kPatience)) {
      EXPECT_EQ(event.ticket, 2u);
      done = done || event.kind == ModelEvent::Kind::kDone;
    }
  }
}

// 250 generated sequences for each protocol. What must come out follows from the sequence; none may
// crash, hang, be told twice or be counted twice.
TEST_P(HttpModelTest, GeneratedFaultSequences) {
  constexpr int kSequences = 250;
  constexpr std::uint32_t kTries = 6;
  Rng rng(openai() ? 100 : 200);
  std::map<testing::Consequence, int> seen;
  for (int n = 0; n < kSequences; ++n) {
    std::vector<Fault> script(rng.Below(9));
    for (Fault& fault : script) {
      do {
        fault = static_cast<Fault>(rng.Below(testing::kFaults));
        // Faults that are survived are the interesting ones; final errors end a sequence at once.
      } while (testing::ConsequenceOf(fault) == testing::Consequence::kFinalError &&
               rng.Below(4) != 0);
    }
    const std::string text = "reply " + std::to_string(n);
    server_.Say(text);

    // What should happen.
    std::uint32_t tried = 0;
    int requests = 0;
    int rephrasings = openai() ? 2 : 1;
    bool replied = false;
    Fault last = Fault::kFine;
    for (std::size_t i = 0;; ++i) {
      last = i < script.size() ? script[i] : Fault::kFine;
      ++requests;
      const testing::Consequence consequence = testing::ConsequenceOf(last);
      ++seen[consequence];
      if (consequence == testing::Consequence::kRephrased && rephrasings-- > 0) continue;
      if (consequence == testing::Consequence::kAgain && ++tried < kTries) continue;
      replied = consequence == testing::Consequence::kReply;
      break;
    }

    std::string story;
    for (const Fault fault : script) story += std::to_string(static_cast<int>(fault)) + " ";
    const Outcome outcome = RunWith(script, static_cast<std::uint64_t>(n));
    EXPECT_EQ(outcome.dones, 1) << story;
    EXPECT_EQ(outcome.reply.has_value(), replied)
        << story << (outcome.reply ? "" : ToString(outcome.reply.error()));
    EXPECT_EQ(server_.requests(), requests) << story;
    EXPECT_EQ(outcome.errors.size(), std::min(tried, kTries - 1)) << story;
    for (const Error& error : outcome.errors) EXPECT_THAT(ToString(error), Not(HasSubstr(kKey)));
    if (!outcome.reply) {
      EXPECT_FALSE(outcome.reply.error().cure.empty()) << story;
      EXPECT_THAT(ToString(outcome.reply.error()), Not(HasSubstr(kKey)));
      continue;
    }
    if (last == Fault::kFineHuge) {
      EXPECT_EQ(outcome.reply->stop, StopReason::kLength);
      continue;
    }
    const std::string said = last == Fault::kFineInvalidUtf8 ? text + "\xef\xbf\xbd"
                             : last == Fault::kFineToolCall  ? "(a call of a tool, and no text)"
                                                             : text;
    EXPECT_EQ(outcome.reply->text, said) << story;
    EXPECT_EQ(outcome.reply->usage.output_tokens, 7u) << story;
    EXPECT_EQ(outcome.reply->usage.input_tokens, 11u) << story;
  }
  for (const auto consequence :
       {testing::Consequence::kReply, testing::Consequence::kAgain,
        testing::Consequence::kRephrased, testing::Consequence::kFinalError}) {
    EXPECT_GT(seen[consequence], 5);
  }
}

// Answers every request with the same bytes: a server that echoes what it was sent, wherever it
// likes.
class EchoTransport final : public Transport {
 public:
  EchoTransport(int status, std::vector<std::pair<std::string, std::string>> headers,
                std::string body)
      : head_{status, std::move(headers)}, body_(std::move(body)) {}
  void Start(std::uint64_t id, HttpRequest) override {
    events_.push_back({.id = id, .kind = HttpEvent::Kind::kHead, .head = head_});
    events_.push_back({.id = id, .kind = HttpEvent::Kind::kBody, .bytes = body_});
    events_.push_back({.id = id, .kind = HttpEvent::Kind::kEnd});
  }
  void Cancel(std::uint64_t) override {}
  std::vector<HttpEvent> Poll(milliseconds) override { return std::exchange(events_, {}); }
  void Wake() override {}

 private:
  HttpHead head_;
  std::string body_;
  std::vector<HttpEvent> events_;
};

struct Echo {
  std::string what;
  int status = 401;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// Places where a server may repeat `secret` after `pad` bytes of its own.
std::vector<Echo> EchoesOf(const std::string& secret, std::size_t pad) {
  const std::string text = std::string(pad, 'x') + " " + secret + " is wrong";
  std::string escaped;
  for (const char c : text) escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  return {
      {"plain", 401, {}, text},
      {"title", 503, {}, "<html><title>" + text + "</title></html>"},
      {"json", 401, {}, R"({"error": {"message": ")" + text + "\"}}"},
      {"escaped", 400, {}, R"({"error": {"message": ")" + escaped + "\"}}"},
      {"detail", 422, {}, R"({"detail": ")" + text + "\"}"},
      {"torn json", 500, {}, R"({"error": {"message": ")" + text},
      {"error in 200", 200, {}, R"({"error": ")" + text + "\"}"},
      {"malformed", 200, {}, R"({"choices": ")" + text + "\\q\"}"},
      {"page in 200", 200, {{"content-type", "text/html"}}, "<title>" + text + "</title>"},
      {"content type", 200, {{"content-type", "text/x" + text}}, "a page"},
      {"redirect", 302, {{"location", "https://h/" + text}}, ""},
      {"stream",
       200,
       {{"content-type", "text/event-stream"}},
       "event: error\ndata: {\"type\": \"error\", \"error\": {\"message\": \"" + text + "\"}}\n\n"},
      {"bad event",
       200,
       {{"content-type", "text/event-stream"}},
       "event: message_start\ndata: {\"a\": \"" + text + "\\q\"}\n\n"}};
}

// The first eight bytes in a row of the key that `text` shows.
std::string PieceOfKey(const std::string& text) {
  const std::string key = kKey;
  for (std::size_t i = 0; i + 8 <= key.size(); ++i) {
    if (text.find(key.substr(i, 8)) != std::string::npos) return key.substr(i, 8);
  }
  return {};
}

TEST_P(HttpModelTest, NoErrorShowsAPieceOfTheKeyWhereverItIsEchoedAndCut) {
  for (std::size_t pad = 0; pad < 320; ++pad) {
    // Servers shorten, too.
    for (const std::string& secret : {std::string(kKey), std::string(kKey).substr(0, 18)}) {
      for (const Echo& echo : EchoesOf(secret, pad)) {
        FakeClock clock;
        HttpModel model(protocol(), {.model = "m", .key = Secret(kKey), .tries = 1},
                        std::make_unique<EchoTransport>(echo.status, echo.headers, echo.body),
                        clock, Rng(1));
        const auto reply = Ask(model, Client::Request());
        ASSERT_FALSE(reply) << echo.what;
        ASSERT_EQ(PieceOfKey(ToString(reply.error())), "") << echo.what << " after " << pad;
      }
    }
  }
}

// The twin: what is not the key is told in full.
TEST_P(HttpModelTest, WhatAServerSaysIsToldWhereItRepeatsNoKey) {
  for (const Echo& echo : EchoesOf("your key", 20)) {
    FakeClock clock;
    HttpModel model(protocol(), {.model = "m", .key = Secret(kKey), .tries = 1},
                    std::make_unique<EchoTransport>(echo.status, echo.headers, echo.body), clock,
                    Rng(1));
    const auto reply = Ask(model, Client::Request());
    ASSERT_FALSE(reply) << echo.what;
    EXPECT_THAT(ToString(reply.error()), Not(HasSubstr("[key]"))) << echo.what;
    if (echo.what == "malformed" || echo.what == "bad event") continue;  // say where, not what
    EXPECT_THAT(ToString(reply.error()), HasSubstr("xxx your key")) << echo.what;
  }
}

TEST_P(HttpModelTest, AReplyCutWithinTheKeyShowsNoneOfIt) {
  const std::string key = kKey;
  for (std::size_t shown = 8; shown <= key.size(); ++shown) {
    server_.Say("Your key is " + key);
    server_.Script({Fault::kFineWhole});
    const Outcome outcome = Client(server_, protocol(), 1, [&](HttpModelOptions& options) {
                              options.max_text_bytes = std::string("Your key is ").size() + shown;
                            }).Run();
    ASSERT_TRUE(outcome.reply) << ToString(outcome.reply.error());
    EXPECT_EQ(PieceOfKey(outcome.reply->text), "");
    EXPECT_THAT(outcome.reply->text, HasSubstr("Your key is "));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, HttpModelTest, ::testing::Values("openai", "anthropic"),
                         [](const auto& protocol) { return std::string(protocol.param); });

TEST(HttpModelNoServerTest, ARefusedConnectionIsAClearErrorAtOnce) {
  std::string url;
  {
    testing::FaultServer gone;
    url = gone.base_url();
  }
  FakeClock clock;
  HttpModelOptions options;
  options.model = "m";
  options.base_url = url;
  HttpModel model(OpenAiProtocol(), options, *MakeCurlTransport({}), clock, Rng(1));
  const auto reply = Ask(model, Client::Request());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kNetwork);
  EXPECT_THAT(ToString(reply.error()), HasSubstr("is the server running"));
  EXPECT_THAT(reply.error().place, HasSubstr("127.0.0.1"));
}

HttpHead HeadWith(std::vector<std::pair<std::string, std::string>> headers) {
  return {.status = 429, .headers = std::move(headers)};
}

TEST(RetryAfterTest, SecondsMillisecondsDatesAndNonsense) {
  EXPECT_EQ(ParseRetryAfter(HeadWith({{"retry-after", "3"}})), milliseconds(3000));
  EXPECT_EQ(ParseRetryAfter(HeadWith({{"retry-after", "0.5"}})), milliseconds(500));
  EXPECT_EQ(ParseRetryAfter(HeadWith({{"retry-after-ms", "250"}, {"retry-after", "3"}})),
            milliseconds(250));
  EXPECT_EQ(ParseRetryAfter(HeadWith({{"date", "Wed, 21 Oct 2026 07:28:00 GMT"},
                                      {"retry-after", "Wed, 21 Oct 2026 07:28:05 GMT"}})),
            milliseconds(5000));
  // As good as never, which is not the same as saying nothing.
  EXPECT_GT(ParseRetryAfter(HeadWith({{"retry-after", "99999999999999999999"}})),
            std::chrono::hours(24 * 365));
  for (const char* const nonsense : {"", "soon", "-1", "nan", "inf", "3 apples"}) {
    EXPECT_FALSE(ParseRetryAfter(HeadWith({{"retry-after", nonsense}}))) << nonsense;
  }
}

TEST(LearnFromTest, AServerThatRefusesBothNamesEndsTheExchange) {
  Dialect dialect;
  EXPECT_TRUE(LearnFrom("Unsupported parameter: max_completion_tokens", dialect));
  EXPECT_TRUE(dialect.old_token_limit);
  EXPECT_FALSE(LearnFrom("Unsupported parameter: max_completion_tokens", dialect));
  EXPECT_TRUE(LearnFrom("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                        dialect));
  EXPECT_FALSE(dialect.old_token_limit);
  EXPECT_FALSE(LearnFrom("your prompt is impolite", dialect));
}

}  // namespace
}  // namespace assay::models
