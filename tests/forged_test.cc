// Folders, transcripts and counterexamples that somebody has forged: nothing is executed, nothing is sent, nothing outside is written,
// and each is refused with the reason. A table of forgeries over a record that is genuine; the genuine one is the twin of all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "agent/loop/request_json.h"
#include "agent/testing/fakes.h"
#include "agent/testing/fault_server.h"
#include "base/digest.h"
#include "base/text.h"
#include "runs/events.h"
#include "runs/extract.h"
#include "runs/folder.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
constexpr const char* kLaunch = "{\"schema\": \"assay.launch/1\", \"kernels\": []}\n";

/// A folder that holds a genuine run, and what forgers want to reach.
class Scene {
 public:
  Scene() {
    Write(scratch_ / "secret", "the-secret-of-this-user\n");
    Write(scratch_ / "outside", "untouched\n");
    Write(
        transcript(),
        R"({"schema": "assay.transcript/1", "written": "by hand", "note": "written by hand for a test"})"
        "\n");
    FakeClock clock;
    const ops::Instance instance = testing::RmsNorm();
    loop::GenerateRequest request{.instance = instance,
                                  .model = {.spec = "replay/" + transcript().string()}};
    request.strategy.attempts = 1;
    auto run = runs::RunFolder::Create(this->run(), clock, "go on");
    ASSAY_CHECK(run.has_value());
    const runs::ModelReply reply{.text = testing::ReplyWith("accept"), .model = "m"};
    const std::string kernel = runs::ExtractCandidate(reply)->kernel;
    const std::string launch = runs::ExtractCandidate(reply)->launch;
    vetted_ = "vetted/" + instance.Id();
    certificate_ = {
        {"schema", "assay.certificate/1"},
        {"op", {{"sha256", instance.op.digest}}},
        {"sha256", {{"kernel.cu", Sha256Hex(kernel)}, {"launch.json", Sha256Hex(launch)}}}};
    std::filesystem::create_directories(this->run() / vetted_);
    Write(this->run() / vetted_ / "kernel.cu", kernel);
    Write(this->run() / vetted_ / "launch.json", launch);
    Write(this->run() / vetted_ / "certificate.json", PrettyJson(certificate_));
    const auto record = [&](runs::Event event) {
      ASSAY_CHECK(run->Record(std::move(event)).has_value());
    };
    record(runs::RunStarted{loop::RequestToJson(request, {}, "d"), "d"});
    record(runs::AttemptsPlanned{
        {{1, runs::DraftKind::kFirst, 0, {{runs::Role::kUser, "write it"}}}}});
    record(runs::ReplyReceived{1, reply, true});
    record(runs::AttemptJudged{
        1,
        testing::VerdictOf(instance, {.kernel = kernel, .launch = launch}, "accept"),
        {7},
        vetted_,
        Sha256Hex(PrettyJson(certificate_))});
    record(runs::RunStopped{verdict::Outcome::kAccepted, "attempt 1 passed every gate", false});
    const std::string log = testing::Slurp(this->run() / "events.jsonl");
    for (const std::string_view line : SplitLines(log))
      events.push_back(*ParseJson(line, "events.jsonl"));
  }

  static void Write(const Path& file, const std::string& text) {
    ASSAY_CHECK(WriteFileAtomically(file, text).has_value(), file.string());
  }
  /// The events as the forger left them, or `raw` in their place.
  void Save() const {
    if (keep_log) return;
    std::string text = raw;
    for (const Json& event : events) text += raw.empty() ? CompactJson(event) + "\n" : "";
    Write(run() / "events.jsonl", text);
  }
  Json& request() { return events[0]["request"]; }
  Json& judged() { return events[3]; }
  /// Puts a certificate in place whose digest is recorded, as a forger would.
  void Certify(const Json& certificate) {
    Write(folder() / "certificate.json", PrettyJson(certificate));
    judged()["certificate"] = Sha256Hex(PrettyJson(certificate));
  }

  Path run() const { return scratch_ / "run"; }
  Path folder() const { return run() / vetted_; }
  Path transcript() const { return scratch_ / "t.jsonl"; }
  Path canary() const { return scratch_ / "canary"; }
  Path secret() const { return scratch_ / "secret"; }
  Path outside() const { return scratch_ / "outside"; }
  Path operator/(const std::string& name) const { return scratch_ / name; }
  const Json& certificate() const { return certificate_; }

  std::vector<Json> events;
  std::string raw;
  bool keep_log = false;
  std::string url;  ///< Of a server that nobody should ask.
  std::vector<std::string> arguments;

 private:
  Scratch scratch_;
  std::string vetted_;
  Json certificate_;
};

struct Forgery {
  const char* name;
  std::function<void(Scene&)> forge;
  const char* reason;
};
void PrintTo(const Forgery& forgery, std::ostream* out) { *out << forgery.name; }

void Model(Scene& scene, const std::string& spec) { scene.request()["model"] = spec; }
Json& Options(Scene& scene) { return scene.request()["model_options"]; }

/// An op of the forger's, under the library's name.
void OwnOp(Scene& scene, const Path& folder) {
  std::filesystem::copy(Path(ASSAY_SOURCE_DIR) / "ops/rms_norm", folder,
                        std::filesystem::copy_options::recursive);
  ASSAY_CHECK(AppendLine(folder / "reference.cu", "// anything goes").has_value());
  scene.request()["op"]["folder"] = folder.string();
  scene.request()["op"]["sha256"] = ops::LoadOp(folder)->digest;
}

const Forgery kRuns[] = {
    // What would be executed or sent.
    {"program", [](Scene& s) { Model(s, "exec/touch " + s.canary().string()); },
     "to run the program touch"},
    {"program_in_a_shell",
     [](Scene& s) { Model(s, "exec/sh -c 'touch " + s.canary().string() + "'"); },
     "to run the program"},
    {"paid_model", [](Scene& s) { Model(s, "openai/gpt-5"); }, "with a key, to openai/gpt-5"},
    {"paid_model_of_another", [](Scene& s) { Model(s, "anthropic/m"); },
     "with a key, to anthropic/m"},
    {"server", [](Scene& s) { Options(s)["base_url"] = s.url; }, "to talk to the server"},
    {"model_at_a_server",
     [](Scene& s) {
       Model(s, "openai/m");
       Options(s)["base_url"] = s.url;
     },
     "with a key, to openai/m"},
    {"key_file", [](Scene& s) { Options(s)["key_file"] = s.secret().string(); },
     "to send what is in the file"},
    {"prices", [](Scene& s) { s.request()["budget"]["prices"] = s.secret().string(); },
     "to read prices from the file"},
    {"variables", [](Scene& s) { Options(s)["exec_variables"] = {"HOME"}; },
     "to give $HOME to its program"},
    {"no_jail", [](Scene& s) { s.request()["unsafe_no_jail"] = true; }, "without a jail"},
    {"unknown_provider", [](Scene& s) { Model(s, "ftp/x"); }, "ftp/x"},
    {"transcript_elsewhere",
     [](Scene& s) {
       s.events.pop_back();
       s.events.pop_back();
       Model(s, "replay/" + s.secret().string());
     },
     "secret"},
    // What it is judged by.
    {"own_op", [](Scene& s) { OwnOp(s, s / "rms_norm"); }, "is not the library's"},
    {"op_by_path",
     [](Scene& s) {
       OwnOp(s, s / "rms_norm");
       s.request()["op"]["name"] = (s / "rms_norm").string();
     },
     "is not the library's"},
    {"op_above", [](Scene& s) { s.request()["op"]["name"] = "../../etc"; }, "op"},
    {"op_of_another_digest", [](Scene& s) { s.request()["op"]["sha256"] = "0"; },
     "has changed since"},
    {"binding", [](Scene& s) { s.request()["binding"]["T"] = "f4"; }, "f4"},
    {"arch", [](Scene& s) { s.request()["arch"] = "sm_90; rm -rf /"; }, "sm_90; rm"},
    {"strategy", [](Scene& s) { s.request()["settings"]["strategy"] = "evolve"; }, "evolve"},
    {"attempts_without_end", [](Scene& s) { s.request()["settings"]["attempts"] = 1'000'000'000; },
     "--attempts"},
    {"attempts_below_zero", [](Scene& s) { s.request()["settings"]["attempts"] = -1; },
     "/attempts"},
    {"effort", [](Scene& s) { s.request()["settings"]["effort"] = "none"; }, "none"},
    {"unknown_key", [](Scene& s) { s.request()["hook"] = "touch x"; }, "unknown key"},
    // Where it would write.
    {"log_is_a_link",
     [](Scene& s) {
       s.keep_log = true;
       std::filesystem::remove(s.run() / "events.jsonl");
       std::filesystem::create_symlink(s.outside(), s.run() / "events.jsonl");
     },
     "no links or pipes"},
    {"attempts_is_a_link",
     [](Scene& s) {
       std::filesystem::remove_all(s.run() / "attempts");
       std::filesystem::create_directory_symlink("/tmp", s.run() / "attempts");
     },
     "no links or pipes"},
    {"reply_is_a_link",
     [](Scene& s) {
       std::filesystem::remove(s.run() / "attempts/1/reply.md");
       std::filesystem::create_symlink(s.outside(), s.run() / "attempts/1/reply.md");
     },
     "no links or pipes"},
    {"verdict_is_a_pipe",
     [](Scene& s) {
       std::filesystem::remove(s.run() / "attempts/1/verdict.json");
       ::mkfifo((s.run() / "attempts/1/verdict.json").c_str(), 0600);
     },
     "no links or pipes"},
    {"vetted_is_a_link",
     [](Scene& s) {
       std::filesystem::remove_all(s.run() / "vetted");
       std::filesystem::create_directory_symlink("/tmp", s.run() / "vetted");
     },
     "no links or pipes"},
    {"vetted_above", [](Scene& s) { s.judged()["vetted"] = "vetted/../../outside"; }, "vetted"},
    {"vetted_absolute", [](Scene& s) { s.judged()["vetted"] = "/tmp/x"; }, "vetted"},
    {"log_is_a_folder",
     [](Scene& s) {
       s.keep_log = true;
       std::filesystem::remove(s.run() / "events.jsonl");
       std::filesystem::create_directory(s.run() / "events.jsonl");
     },
     "events.jsonl"},
    // A log that does not hold together.
    {"line_missing", [](Scene& s) { s.events.erase(s.events.begin() + 1); },
     "events are missing or out of order"},
    {"line_twice", [](Scene& s) { s.events.insert(s.events.begin() + 1, s.events[1]); },
     "events are missing or out of order"},
    {"another_beginning",
     [](Scene& s) {
       s.events.erase(s.events.begin());
       for (std::size_t i = 0; i < s.events.size(); ++i) s.events[i]["n"] = i;
     },
     "must be an object"},
    {"reply_to_nobody", [](Scene& s) { s.events[2]["attempt"] = 9; },
     "a reply that nobody waits for"},
    {"verdict_of_nobody", [](Scene& s) { s.judged()["attempt"] = 7; },
     "a verdict that nobody waits for"},
    {"unknown_event", [](Scene& s) { s.events[2]["type"] = "run_program"; }, "run_program"},
    {"extra_key", [](Scene& s) { s.judged()["exec"] = "x"; }, "exec"},
    {"seeds_are_no_list", [](Scene& s) { s.judged()["holdout_seeds"] = 5; }, "must be an array"},
    {"bytes",
     [](Scene& s) { s.raw = std::string("\0\xff\xfe{\n", 5) + CompactJson(s.events[1]) + "\n"; },
     "events.jsonl:1"},
    {"nested", [](Scene& s) { s.raw = std::string(5000, '[') + "\n{}\n"; }, "events.jsonl:1"},
    {"key_twice", [](Scene& s) { s.raw = "{\"n\": 0, \"n\": 0}\n{}\n"; }, "events.jsonl:1"},
    {"number_without_end", [](Scene& s) { s.raw = "{\"n\": 1e999}\n{}\n"; }, "events.jsonl:1"},
    {"nothing", [](Scene& s) { s.raw = "\n"; }, "the run had not begun"},
    // A kernel that was never judged.
    {"other_kernel", [](Scene& s) { Scene::Write(s.folder() / "kernel.cu", "evil"); }, "kernel.cu"},
    {"other_kernel_certified",
     [](Scene& s) {
       Scene::Write(s.folder() / "kernel.cu", "evil");
       Json certificate = s.certificate();
       certificate["sha256"]["kernel.cu"] = Sha256Hex("evil");
       s.Certify(certificate);
     },
     "not the accepted reply's"},
    {"other_launch_certified",
     [](Scene& s) {
       Scene::Write(s.folder() / "launch.json", kLaunch + std::string(" "));
       Json certificate = s.certificate();
       certificate["sha256"]["launch.json"] = Sha256Hex(kLaunch + std::string(" "));
       s.Certify(certificate);
     },
     "not the accepted reply's"},
    {"certificate_edited", [](Scene& s) { Scene::Write(s.folder() / "certificate.json", "{}"); },
     "certificate"},
    {"certificate_of_another_op",
     [](Scene& s) {
       Json c = s.certificate();
       c["op"]["sha256"] = "0";
       s.Certify(c);
     },
     "its op is not the run's"},
    {"certificate_of_a_number",
     [](Scene& s) {
       Json c = s.certificate();
       c["op"] = 5;
       s.Certify(c);
     },
     "its op is not the run's"},
    {"certificate_of_a_numbered_op",
     [](Scene& s) {
       Json c = s.certificate();
       c["op"]["sha256"] = 5;
       s.Certify(c);
     },
     "its op is not the run's"},
    {"certificate_of_numbers",
     [](Scene& s) {
       Json c = s.certificate();
       c["sha256"]["kernel.cu"] = 5;
       s.Certify(c);
     },
     "the certificate names"},
    {"certificate_without_digests",
     [](Scene& s) {
       Json c = s.certificate();
       c.erase("sha256");
       s.Certify(c);
     },
     "vetted"},
    {"certificate_that_names_paths",
     [](Scene& s) {
       Json c = s.certificate();
       c["sha256"]["../../../outside"] = "0";
       s.Certify(c);
     },
     "vetted"},
    {"certificate_is_no_document",
     [](Scene& s) {
       Scene::Write(s.folder() / "certificate.json", "[[");
       s.judged()["certificate"] = Sha256Hex("[[");
     },
     "certificate"},
    {"file_too_many", [](Scene& s) { Scene::Write(s.folder() / "install.sh", "touch x"); },
     "install.sh"},
    {"file_missing", [](Scene& s) { std::filesystem::remove(s.folder() / "launch.json"); },
     "launch.json"},
    {"folder_missing", [](Scene& s) { std::filesystem::remove_all(s.run() / "vetted"); }, "vetted"},
    {"another_instance",
     [](Scene& s) {
       std::filesystem::rename(s.folder(), s.run() / "vetted/other");
       s.judged()["vetted"] = "vetted/other";
     },
     "another instance"},
};

class ForgedRun : public ::testing::TestWithParam<Forgery> {
 protected:
  /// Resumes the scene's run; says what came of it, after it was seen that nothing else did.
  Ran Resume(Scene& scene) {
    testing::FaultServer server;
    scene.url = server.base_url();
    GetParam().forge(scene);
    scene.Save();
    const Ran ran = RunProgram(
        kAssay, {"generate", "--resume", scene.run().string()},
        {"OPENAI_API_KEY=sk-canary-0123456789", "ANTHROPIC_API_KEY=sk-canary-0123456789"});
    EXPECT_FALSE(std::filesystem::exists(scene.canary())) << "a program ran";
    EXPECT_EQ(server.requests(), 0) << "a server was asked";
    EXPECT_EQ(testing::Slurp(scene.outside()), "untouched\n");
    EXPECT_THAT(ran.err + ran.out, Not(HasSubstr("the-secret-of-this-user")));
    EXPECT_THAT(ran.err + ran.out, Not(HasSubstr("sk-canary")));
    return ran;
  }
};

TEST_P(ForgedRun, IsRefusedWithTheReason) {
  Scene scene;
  const Ran ran = Resume(scene);
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("error: "), HasSubstr(GetParam().reason)));
}

INSTANTIATE_TEST_SUITE_P(Table, ForgedRun, ::testing::ValuesIn(kRuns),
                         [](const auto& forgery) { return std::string(forgery.param.name); });

TEST(GenuineRun, IsTakenAtItsWordWhichIsSaid) {
  Scene scene;
  scene.Save();
  const Ran ran = RunProgram(kAssay, {"generate", "--resume", scene.run().string()});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err + ran.out, HasSubstr("says the run's record; nothing was judged now"));
}

struct ForgedFile {
  const char* name;
  std::string text;
  const char* reason;
};
void PrintTo(const ForgedFile& file, std::ostream* out) { *out << file.name; }

const std::string kHand = R"({"schema": "assay.transcript/1", "written": "by hand", "note": "n"})"
                          "\n";
const std::string kRecorded = R"({"schema": "assay.transcript/1", "written": "recorded"})"
                              "\n";

const ForgedFile kTranscripts[] = {
    {"empty", "", "the transcript is empty"},
    {"schema", R"({"schema": "assay.transcript/9", "written": "recorded"})", "this version reads"},
    {"no_note", R"({"schema": "assay.transcript/1", "written": "by hand"})",
     "must say so in its note"},
    {"program",
     R"({"schema": "assay.transcript/1", "written": "by hand", "note": "n", "exec": "touch x"})",
     "unknown key"},
    {"type", kHand + R"({"type": "exec", "command": "touch x"})", "one of exchange, judged"},
    {"no_digest", kRecorded + R"({"type": "exchange", "name": "attempt-1", "reply": {}})",
     "needs a name and a digest"},
    {"lost_message",
     kRecorded +
         R"({"type": "exchange", "name": "attempt-1", "digest": "d", "messages": [{"role": "user", "digest": "e"}], "reply": {}})",
     "lost lines"},
    {"role",
     kRecorded +
         R"({"type": "exchange", "name": "a", "digest": "d", "messages": [{"role": "root", "digest": "e", "text": ""}], "reply": {}})",
     "one of system, user, assistant"},
    {"seeds", kHand + R"({"type": "judged", "attempt": 1, "holdout_seeds": "all"})",
     "must be an array"},
    {"attempt", kHand + R"({"type": "judged", "attempt": 0, "holdout_seeds": [1]})",
     "must be an attempt's number"},
    {"bytes", std::string("\0\1\2", 3), "t.jsonl:1"},
    {"another_run",
     kRecorded +
         R"({"type": "exchange", "name": "attempt-1", "digest": "d", "messages": [{"role": "user", "digest": "e", "text": "other"}], "reply": {"text": "x", "stop": "end", "usage": {"input_tokens": 1, "output_tokens": 1}}})",
     "t.jsonl:2"},
};

class ForgedTranscript : public ::testing::TestWithParam<ForgedFile> {};

TEST_P(ForgedTranscript, IsRefusedWithTheReason) {
  const Scratch scratch;
  Scene::Write(scratch / "t.jsonl", GetParam().text);
  const Ran ran = RunProgram(
      kAssay, {"generate", "rms_norm", "--attempts", "1", "--model",
               "replay/" + (scratch / "t.jsonl").string(), "--out", (scratch / "run").string()});
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(Table, ForgedTranscript, ::testing::ValuesIn(kTranscripts),
                         [](const auto& file) { return std::string(file.param.name); });

struct ForgedCounterexample {
  const char* name;
  std::function<void(Json&)> forge;
  const char* reason;
};
void PrintTo(const ForgedCounterexample& forged, std::ostream* out) { *out << forged.name; }

const ForgedCounterexample kCounterexamples[] = {
    {"schema", [](Json& x) { x["schema"] = "assay.counterexample/9"; }, "schema"},
    {"own_op", [](Json& x) { x["op"] = "/tmp/rms_norm"; }, "not one of the library's"},
    {"op_above", [](Json& x) { x["op"] = "../rms_norm"; }, "not one of the library's"},
    {"op_unknown", [](Json& x) { x["op"] = "nosuch"; }, "nosuch"},
    {"binding", [](Json& x) { x["binding"]["T"] = "f4"; }, "f4"},
    {"engine", [](Json& x) { x["engine"] = "exec"; }, "the engine 'exec'"},
    {"unknown_key", [](Json& x) { x["hook"] = "touch x"; }, "unknown key"},
    {"kernel_is_no_text", [](Json& x) { x["kernel"] = 5; }, "/kernel"},
    {"findings_are_no_list", [](Json& x) { x["findings"] = "none"; }, "/findings"},
    {"binding_is_no_object", [](Json& x) { x["binding"] = 3; }, "/binding"},
};

class ForgedReplay : public ::testing::TestWithParam<ForgedCounterexample> {};

TEST_P(ForgedReplay, IsRefusedWithTheReason) {
  const ops::Instance instance = testing::RmsNorm();
  const verdict::Candidate candidate{.kernel = "#error no\n", .launch = kLaunch};
  Finding finding;
  finding.kind = FindingKind::kCompileError;
  finding.message = "no";
  Json document =
      ToJson(verdict::MakeCounterexample(instance, candidate, "emulator", "compile", {finding}));
  GetParam().forge(document);
  const Scratch scratch;
  Scene::Write(scratch / "x.json", PrettyJson(document));
  const Ran ran = RunProgram(kAssay, {"replay", (scratch / "x.json").string()});
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(Table, ForgedReplay, ::testing::ValuesIn(kCounterexamples),
                         [](const auto& forged) { return std::string(forged.param.name); });

}  // namespace
}  // namespace assay::tests
