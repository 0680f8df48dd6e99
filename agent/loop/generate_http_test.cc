// `generate` over HTTP: the same outcome as with a scripted model, through every fault, and not a
// trace of the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/loop/generate.h"
#include "agent/models/http_model.h"
#include "agent/testing/fakes.h"
#include "agent/testing/fault_server.h"

namespace assay::loop {
namespace {

using testing::Fault;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReplyWith;

constexpr const char* kKey = "sk-very-secret-0123456789";

class GenerateHttpTest : public ::testing::TestWithParam<const char*> {
 protected:
  GenerateHttpTest() {
    request_.model.spec = std::string(GetParam()) + "/fake-1";
    request_.model.base_url = server_.base_url();
    request_.out = folder_.path() / "run";
    variables_["ASSAY_API_KEY"] = kKey;
    variables_["OPENAI_API_KEY"] = "sk-for-openai-alone";
    variables_["ANTHROPIC_API_KEY"] = "sk-for-anthropic-alone";
  }

  Result<RunOutcome> Run(models::Model* model = nullptr) {
    Environment environment{
        .clock = clock_,
        .make_judges = testing::ScriptedJudges(),
        .observe = [this](const Notice& notice) { Remember(notice); },
        .entropy = [] { return std::uint64_t{5}; },
        .variable = [this](const std::string& name) -> std::optional<std::string> {
          const auto found = variables_.find(name);
          return found == variables_.end() ? std::nullopt : std::optional(found->second);
        },
        .prompts = testing::PromptsFolder(),
        .model = model};
    return Generate(request_, environment);
  }

  void Remember(const Notice& notice) {
    if (const auto* retrying = std::get_if<Retrying>(&notice))
      told_ += ToString(retrying->error) + "\n";
    if (const auto* replied = std::get_if<Replied>(&notice)) told_ += replied->reply->text + "\n";
    if (const auto* began = std::get_if<RunBegan>(&notice))
      told_ += began->model + began->notice + "\n";
  }

  std::string EverythingWritten() {
    std::string all = told_;
    for (const std::string& file : testing::FilesBelow(request_.out))
      all += testing::Slurp(request_.out / file);
    return all;
  }

  testing::FaultServer server_;
  testing::TemporaryFolder folder_;
  FakeClock clock_;
  std::map<std::string, std::string> variables_;
  std::string told_;
  GenerateRequest request_{.instance = testing::RmsNorm(), .model = {}};
};

TEST_P(GenerateHttpTest, SameOutcomeAsAnyOtherModel) {
  server_.SayInOrder({ReplyWith("refute precision precision_row"),
                      ReplyWith("refute race data_race"), ReplyWith("refute memory out_of_bounds"),
                      ReplyWith("accept")});
  const auto outcome = Run();
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 4);
  EXPECT_EQ(outcome->usage.output_tokens, 28u);
  EXPECT_EQ(outcome->usage.input_tokens, 44u);
}

TEST_P(GenerateHttpTest, TheKeyIsInNoFileAndInNoMessage) {
  request_.model.base_url = "http://user:pass-word-1@" + server_.base_url().substr(7);
  server_.Script({Fault::kServerError, Fault::kFine, Fault::kFine, Fault::kUnauthorised});
  server_.SayInOrder({std::string("Your key: ") + kKey,
                      ReplyWith("refute race data_race // " + std::string(kKey))});
  auto real = models::MakeCurlTransport({});
  models::HttpModelOptions options;
  options.model = "fake-1";
  options.base_url = request_.model.base_url;
  options.key = models::Secret(kKey);
  options.dialect.old_token_limit = true;
  models::HttpModel model(
      std::string_view(GetParam()) == "openai" ? models::OpenAiProtocol()
                                               : models::AnthropicProtocol(),
      options, std::make_unique<testing::PatientTransport>(*std::move(real), clock_, &server_),
      clock_, Rng(1));
  const auto outcome = Run(&model);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(ToString(outcome.error()), HasSubstr("401"));
  const std::string all = EverythingWritten() + ToString(outcome.error());
  EXPECT_THAT(all, HasSubstr("[key]"));
  EXPECT_THAT(all, Not(HasSubstr(kKey)));
  EXPECT_THAT(all, Not(HasSubstr("pass-word-1")));
}

TEST_P(GenerateHttpTest, AServerOfSomebodyElseNeverGetsTheProvidersKey) {
  variables_.erase("ASSAY_API_KEY");
  server_.Script({Fault::kServerError, Fault::kUnauthorised});
  server_.SayInOrder({});
  request_.model.tries = 1;
  const auto outcome = Run();
  // The server echoes the key that it was sent: none.
  ASSERT_FALSE(outcome);
  EXPECT_THAT(ToString(outcome.error()), HasSubstr("headers were"));
  EXPECT_THAT(ToString(outcome.error()), Not(HasSubstr("alone")));
}

TEST_P(GenerateHttpTest, AMissingKeyIsAnErrorBeforeAnythingIsWritten) {
  request_.model.base_url.clear();
  variables_.clear();
  const auto outcome = Run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ExitCodeOf(outcome.error()), 3);
  EXPECT_THAT(ToString(outcome.error()), HasSubstr("_API_KEY"));
  EXPECT_FALSE(std::filesystem::exists(request_.out));
}

TEST_P(GenerateHttpTest, NoServerIsAClearErrorAndAnIntactRun) {
  request_.model.base_url = "http://127.0.0.1:1/v1";
  const auto outcome = Run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ExitCodeOf(outcome.error()), 3);
  EXPECT_THAT(ToString(outcome.error()), HasSubstr("is the server running"));
  request_.model.base_url = server_.base_url();
  request_.resume = true;
  server_.Say(ReplyWith("accept"));
  const auto resumed = Run();
  ASSERT_TRUE(resumed) << ToString(resumed.error());
  EXPECT_EQ(resumed->ExitCode(), 0);
}

TEST_P(GenerateHttpTest, FaultsLoseNoAttemptAndCountNoTokenTwice) {
  server_.Script({Fault::kReset, Fault::kRateLimited, Fault::kFine, Fault::kHung, Fault::kTruncated,
                  Fault::kMalformedEvent, Fault::kFine, Fault::kDislikesParameter, Fault::kEmpty,
                  Fault::kFineWhole});
  server_.SayInOrder(
      {ReplyWith("refute race data_race"), ReplyWith("inconclusive"), ReplyWith("accept")});
  auto real = models::MakeCurlTransport({});
  models::HttpModelOptions options;
  options.model = "fake-1";
  options.base_url = server_.base_url();
  options.dialect.old_token_limit = true;
  options.idle_timeout = std::chrono::milliseconds(2000);
  models::HttpModel model(
      std::string_view(GetParam()) == "openai" ? models::OpenAiProtocol()
                                               : models::AnthropicProtocol(),
      options, std::make_unique<testing::PatientTransport>(*std::move(real), clock_, &server_),
      clock_, Rng(1));
  const auto outcome = Run(&model);
  ASSERT_TRUE(outcome) << ToString(outcome.error());
  EXPECT_EQ(outcome->ExitCode(), 0);
  EXPECT_EQ(outcome->attempts, 3);
  // Three replies of 7 tokens, and what was received of those that broke, once.
  const std::string events = testing::Slurp(request_.out / "events.jsonl");
  std::uint64_t answered = 0;
  std::uint64_t lost = 0;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = events.find('\n', at);
    const Json event = *ParseJson(std::string_view(events).substr(at, end - at), "event");
    if (event.at("type") == "reply_received")
      answered += event.at("reply").at("usage").at("output").get<std::uint64_t>();
    if (event.at("type") == "try_failed")
      lost += event.at("lost").at("output").get<std::uint64_t>();
    at = end + 1;
  }
  EXPECT_EQ(answered, 21u);
  EXPECT_EQ(outcome->usage.output_tokens, answered + lost);
}

INSTANTIATE_TEST_SUITE_P(Protocols, GenerateHttpTest, ::testing::Values("openai", "anthropic"),
                         [](const auto& protocol) { return std::string(protocol.param); });

}  // namespace
}  // namespace assay::loop
