#include "serve/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs/testing/fakes.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RequestsTest : public ::testing::Test {
 protected:
  Result<CheckRequest> Parse(const Json& changes = Json::object()) {
    Json json = {{"op", "rms_norm"}, {"kernel", "k"}, {"launch", {{"schema", "x"}}}};
    json.update(changes);
    return ParseCheck(
        json, "body",
        [&](const std::string& name) -> Result<ops::OpSpec> {
          found_.push_back(name);
          return instance_.op;
        },
        "sm_90");
  }
  std::string Refused(const Json& changes) {
    const auto parsed = Parse(changes);
    return parsed ? "taken" : ToString(parsed.error());
  }
  const ops::Instance instance_ = testing::RmsNorm();
  std::vector<std::string> found_;
};

TEST_F(RequestsTest, ACheckIsAnInstanceAndACandidate) {
  const auto check = Parse({{"binding", {{"T", "f16"}}}, {"effort", "quick"}, {"arch", "sm_80"}});
  ASSERT_TRUE(check) << ToString(check.error());
  EXPECT_EQ(check->instance.Id(), "rms_norm-T=f16-sm_80");
  EXPECT_EQ(check->candidate.kernel, "k");
  EXPECT_THAT(check->candidate.launch, HasSubstr("\"schema\": \"x\""));
  EXPECT_EQ(check->effort, "quick");
  EXPECT_EQ(Parse({{"launch", "{ }"}})->candidate.launch, "{ }");
}

TEST_F(RequestsTest, NothingOfARequestIsAPath) {
  for (const char* const op : {"/etc", "../ops/rms_norm", "a/b", ".", "", "rms norm", "x\ny"}) {
    EXPECT_THAT(Refused({{"op", op}}), HasSubstr("by its name")) << op;
  }
  EXPECT_TRUE(found_.empty());
}

TEST_F(RequestsTest, WhatIsNotKnownIsRefused) {
  EXPECT_THAT(Refused({{"kernle", "x"}}), HasSubstr("did you mean 'kernel'"));
  EXPECT_THAT(Refused({{"effort", "none"}}), HasSubstr("no effort"));
  EXPECT_THAT(Refused({{"binding", {1}}}), HasSubstr("must be an object"));
  EXPECT_THAT(Refused({{"binding", {{"T", "f99"}}}}), Not(HasSubstr("taken")));
  EXPECT_THAT(Refused({{"kernel", nullptr}}), HasSubstr("must be a string"));
  EXPECT_THAT(Refused({{"kernel", std::string(5u << 20, 'x')}}), HasSubstr("4 MiB"));
}

TEST_F(RequestsTest, AGenerationNamesAModelAndNothingOfWhereItIs) {
  const auto parse = [&](const Json& changes) {
    Json json = {{"op", "rms_norm"}, {"model", "small"}};
    json.update(changes);
    return ParseGenerate(
        json, "body", [&](const std::string&) -> Result<ops::OpSpec> { return instance_.op; },
        "sm_90");
  };
  const auto asked = parse({{"binding", {{"T", "f16"}}}, {"attempts", 3}});
  ASSERT_TRUE(asked) << ToString(asked.error());
  EXPECT_EQ(asked->instance.Id(), "rms_norm-T=f16-sm_90");
  EXPECT_EQ(asked->model, "small");
  EXPECT_EQ(asked->attempts, 3);
  EXPECT_FALSE(parse(Json::object())->attempts);
  for (const Json& changes :
       {Json{{"attempts", 0}}, Json{{"attempts", -1}}, Json{{"attempts", 1e9}},
        Json{{"base_url", "http://x"}}, Json{{"key_file", "/etc/shadow"}}, Json{{"kernel", "k"}},
        Json{{"model", nullptr}}, Json{{"op", "/etc"}}, Json{{"effort", "none"}}})
    EXPECT_FALSE(parse(changes)) << changes;
}

TEST_F(RequestsTest, TheAuthorSeesNothingOfTheHoldoutGate) {
  verdict::Verdict verdict;
  for (const char* const gate : {"numeric", "holdout"}) {
    verdict::GateResult result{.gate = gate, .status = verdict::GateStatus::kRefuted};
    result.seeds = {77};
    result.reason = "secret case";
    verdict::Counterexample counterexample;
    counterexample.gate = gate;
    counterexample.description = "secret case";
    result.counterexamples.push_back(counterexample);
    verdict.gates.push_back(result);
  }
  verdict.outcome = verdict::Outcome::kRefuted;
  verdict.reason = "holdout: secret case";
  EXPECT_THAT(ForAuthor(verdict).at("reason").get<std::string>(), HasSubstr("not shown"));
  verdict.reason = "numeric: secret case";
  EXPECT_EQ(ForAuthor(verdict).at("reason"), "numeric: secret case") << "which is shown anyway";
  verdict.gates[1].status = verdict::GateStatus::kInconclusive;
  EXPECT_THAT(ForAuthor(verdict).at("gates").at(1).dump(), Not(HasSubstr("secret")));
  verdict.gates[1].status = verdict::GateStatus::kRefuted;
  const Json shown = ForAuthor(verdict);
  EXPECT_EQ(shown.at("gates").at(0).at("counterexamples").size(), 1u);
  EXPECT_THAT(shown.at("gates").at(1).dump(), Not(HasSubstr("secret")));
  EXPECT_THAT(shown.at("gates").at(1).dump(), Not(HasSubstr("77")));
  EXPECT_TRUE(verdict::VerdictFromJson(shown, "shown")) << "it is still a verdict";
}

}  // namespace
}  // namespace assay::serve
