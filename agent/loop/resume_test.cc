#include "agent/loop/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fakes.h"
#include "base/digest.h"
#include "runs/extract.h"

namespace assay::loop {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ReplyWith;

class ResumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.out = folder_.path() / "run";
    request_.strategy.attempts = 1;
    request_.model.spec = "exec/scripted";
    testing::ScriptedModel model({ReplyWith("refute race data_race")});
    Environment environment{.clock = clock_,
                            .make_judges = testing::ScriptedJudges(),
                            .prompts = testing::PromptsFolder(),
                            .model = &model};
    ASSERT_TRUE(Generate(request_, environment));
    whole_ = testing::Slurp(request_.out / "events.jsonl");
  }

  // What a resumption says to a run whose record somebody has edited.
  std::string Resumed(const std::function<void(Json&)>& edit, const Repeated& repeated) {
    const std::size_t end = whole_.find('\n');
    Json first = *ParseJson(whole_.substr(0, end), "events.jsonl");
    first.at("request")["model"] = "replay/t.jsonl";
    edit(first.at("request"));
    EXPECT_TRUE(WriteFileAtomically(request_.out / "events.jsonl",
                                    CompactJson(first) + whole_.substr(end)));
    auto request = RequestOfRun(request_.out, library_, repeated);
    if (!request) return ToString(request.error());
    resumed_ = *std::move(request);
    return "(fine)";
  }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
  ops::Library library_{{Path(ASSAY_SOURCE_DIR) / "ops"}};
  GenerateRequest request_{.instance = testing::RmsNorm(), .model = {}};
  GenerateRequest resumed_;
  std::string whole_;
};

TEST_F(ResumeTest, ARunThatReachesNowhereNeedsNothing) {
  EXPECT_EQ(Resumed([](Json&) {}, {}), "(fine)");
  EXPECT_EQ(resumed_.model.spec, "replay/t.jsonl");
  EXPECT_TRUE(resumed_.resume);
}

TEST_F(ResumeTest, AProgramIsNamedAgainOrNotRun) {
  const auto edit = [](Json& run) { run["model"] = "exec/rm -r 'a'"; };
  EXPECT_THAT(Resumed(edit, {}),
              AllOf(HasSubstr("to run the program rm -r 'a'"), HasSubstr("may come from anybody"),
                    HasSubstr(R"(--model 'exec/rm -r '\''a'\''')")));
  EXPECT_THAT(Resumed(edit, {.model = "exec/ollama run m"}), HasSubstr("cannot be changed"));
  EXPECT_EQ(Resumed(edit, {.model = "exec/rm -r 'a'"}), "(fine)");
}

TEST_F(ResumeTest, AServiceThatGetsAKeyIsNamedAgain) {
  const auto edit = [](Json& run) { run["model"] = "openai/gpt-5"; };
  EXPECT_THAT(Resumed(edit, {}), HasSubstr("with a key, to openai/gpt-5"));
  EXPECT_THAT(Resumed(edit, {.model = "openai/gpt-5-mini"}), HasSubstr("cannot be changed"));
  EXPECT_EQ(Resumed(edit, {.model = "openai/gpt-5"}), "(fine)");
}

TEST_F(ResumeTest, AServerIsNamedAgainAndThatOneIsTaken) {
  const auto edit = [](Json& run) { run["model_options"]["base_url"] = "https://evil.example/v1"; };
  EXPECT_THAT(Resumed(edit, {}), AllOf(HasSubstr("to talk to the server https://evil.example/v1"),
                                       HasSubstr("--base-url")));
  EXPECT_EQ(Resumed(edit, {.base_url = "http://localhost:1/v1"}), "(fine)");
  EXPECT_EQ(resumed_.model.base_url, "http://localhost:1/v1");
}

TEST_F(ResumeTest, FilesAreNamedAgainAndThoseAreTaken) {
  const auto key = [](Json& run) { run["model_options"]["key_file"] = "/home/u/.ssh/id"; };
  EXPECT_THAT(Resumed(key, {}), HasSubstr("to send what is in the file /home/u/.ssh/id"));
  EXPECT_EQ(Resumed(key, {.key_file = "mine"}), "(fine)");
  EXPECT_EQ(resumed_.model.key_file, "mine");
  const auto prices = [](Json& run) { run["budget"]["prices"] = "/etc/passwd"; };
  EXPECT_THAT(Resumed(prices, {}), HasSubstr("to read prices from the file /etc/passwd"));
  EXPECT_EQ(Resumed(prices, {.prices = "p.json"}), "(fine)");
}

TEST_F(ResumeTest, VariablesOfAProgramAreNamedAgain) {
  const auto edit = [](Json& run) {
    run["model"] = "exec/curl";
    run["model_options"]["exec_variables"] = Json::array({"AWS_SECRET_ACCESS_KEY"});
  };
  EXPECT_THAT(Resumed(edit, {.model = "exec/curl"}), HasSubstr("$AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(Resumed(edit, {.model = "exec/curl", .exec_variables = {"OTHER"}}),
              HasSubstr("$AWS_SECRET_ACCESS_KEY"));
  EXPECT_EQ(Resumed(edit, {.model = "exec/curl", .exec_variables = {"AWS_SECRET_ACCESS_KEY"}}),
            "(fine)");
}

TEST_F(ResumeTest, TheJailIsNotTakenOffByARecord) {
  const auto edit = [](Json& run) { run["unsafe_no_jail"] = true; };
  EXPECT_THAT(Resumed(edit, {}), HasSubstr("without a jail"));
  EXPECT_EQ(Resumed(edit, {.unsafe_no_jail = true}), "(fine)");
  EXPECT_THAT(Resumed([](Json&) {}, {.unsafe_no_jail = true}), HasSubstr("cannot be changed"));
}

// An op is what a kernel is judged by: a record may not bring its own.
TEST_F(ResumeTest, AnOpIsTheLibrarysOrNamedAgain) {
  const Path own = folder_.path() / "rms_norm";
  std::filesystem::copy(Path(ASSAY_SOURCE_DIR) / "ops" / "rms_norm", own,
                        std::filesystem::copy_options::recursive);
  ASSERT_TRUE(AppendLine(own / "reference.cu", "// anything goes"));
  const auto op = ops::LoadOp(own);
  ASSERT_TRUE(op) << ToString(op.error());
  const auto edit = [&](Json& run) {
    run["op"]["folder"] = own.string();
    run["op"]["sha256"] = op->digest;
  };
  EXPECT_THAT(Resumed(edit, {}), AllOf(HasSubstr("is not the library's"), HasSubstr(own.string())));
  EXPECT_THAT(Resumed(edit, {.op = "rms_norm"}), HasSubstr("has changed"));
  EXPECT_THAT(Resumed(edit, {.op = "embedding_rmsnorm_backward"}), HasSubstr("cannot be changed"));
  EXPECT_EQ(Resumed(edit, {.op = own.string()}), "(fine)");
  EXPECT_EQ(resumed_.instance.op.folder, own);
  // Nor under a name that is a path.
  const auto path = [&](Json& run) {
    edit(run);
    run["op"]["name"] = own.string();
  };
  EXPECT_THAT(Resumed(path, {}), HasSubstr("is not the library's"));
  // The library's own may be repeated.
  EXPECT_EQ(Resumed([](Json&) {}, {.op = "rms_norm"}), "(fine)");
  EXPECT_THAT(Resumed([](Json& run) { run["op"]["sha256"] = "0"; }, {}),
              AllOf(HasSubstr("has changed since"), HasSubstr("restore")));
}

TEST(ResumeCommandTest, RepeatsWhatMustBeRepeated) {
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "replay/t.jsonl"}};
  EXPECT_EQ(ResumeCommand(request, "runs/x"), "assay generate --resume runs/x");
  request.model.spec = "exec/my model; rm";
  request.model.exec_variables = {"MY_KEY"};
  request.model.base_url = "https://user:secret@host/v1?k=1";
  request.model.key_file = "key file";
  request.budget.prices = "p.json";
  request.unsafe_no_jail = true;
  EXPECT_EQ(ResumeCommand(request, "runs/x"),
            "assay generate --resume runs/x --model 'exec/my model; rm' --exec-env MY_KEY "
            "--base-url https://host/v1 --key-file 'key file' --prices p.json --unsafe-no-jail");
}

class CheckVettedTest : public ::testing::Test {
 protected:
  // A run whose only attempt was accepted and emitted as `kernel`.
  std::string Checked(const std::string& kernel, const std::string& vetted,
                      const std::string& op_digest) {
    std::filesystem::remove_all(folder_.path() / "run");
    auto run = runs::RunFolder::Create(folder_.path() / "run", clock_, "go on");
    EXPECT_TRUE(run);
    const std::string launch = "{\"schema\": \"assay.launch/1\", \"kernels\": []}\n";
    const std::string certificate = PrettyJson(
        {{"schema", "assay.certificate/1"},
         {"op", {{"sha256", op_digest}}},
         {"sha256", {{"kernel.cu", Sha256Hex(kernel)}, {"launch.json", Sha256Hex(launch)}}}});
    const Path folder = run->path() / vetted;
    EXPECT_TRUE(MakeFolders(folder));
    EXPECT_TRUE(WriteFileAtomically(folder / "kernel.cu", kernel));
    EXPECT_TRUE(WriteFileAtomically(folder / "launch.json", launch));
    EXPECT_TRUE(WriteFileAtomically(folder / "certificate.json", certificate));
    EXPECT_TRUE(run->Record(runs::RunStarted{Json::object(), ""}));
    EXPECT_TRUE(run->Record(runs::AttemptsPlanned{{{1, runs::DraftKind::kFirst, 0, {}}}}));
    EXPECT_TRUE(run->Record(runs::ReplyReceived{1, {.text = ReplyWith("accept")}, true}));
    EXPECT_TRUE(run->Record(runs::AttemptJudged{
        1, testing::VerdictOf(instance_, {}, "accept"), {}, vetted, Sha256Hex(certificate)}));
    const Status checked = CheckVetted(*run, instance_);
    return checked ? "(fine)" : ToString(checked.error());
  }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
  ops::Instance instance_ = testing::RmsNorm();
};

TEST_F(CheckVettedTest, TheFilesAreTheJudgedKernelOfThisRun) {
  const std::string kernel = runs::ExtractCandidate({.text = ReplyWith("accept")})->kernel;
  const std::string vetted = "vetted/" + instance_.Id();
  EXPECT_EQ(Checked(kernel, vetted, instance_.op.digest), "(fine)");
  EXPECT_THAT(Checked(kernel + "// more", vetted, instance_.op.digest),
              HasSubstr("its source is not the accepted reply's"));
  EXPECT_THAT(Checked(kernel, vetted, "0"), HasSubstr("its op is not the run's"));
  EXPECT_THAT(Checked(kernel, "vetted/other", instance_.op.digest), HasSubstr("another instance"));
}

}  // namespace
}  // namespace assay::loop
