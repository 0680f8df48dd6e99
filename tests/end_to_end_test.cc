// The program as a user runs it: generate, check, replay, a chat-completions server, and bad input of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <thread>

#include "base/json.h"
#include "runs/testing/keys.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
const Path kOps = Path(ASSAY_SOURCE_DIR) / "ops";
constexpr const char* kDemoOp = "embedding_rmsnorm_backward";

Ran Assay(const std::vector<std::string>& arguments,
          const std::vector<std::string>& environment = {}) {
  return RunProgram(kAssay, arguments, environment);
}

std::string Read(const Path& path) {
  auto text = ReadFile(path);
  EXPECT_TRUE(text.has_value()) << (text ? "" : ToString(text.error()));
  return text.value_or("");
}

Json Parse(const std::string& text) {
  auto json = ParseJson(text, "output");
  EXPECT_TRUE(json.has_value()) << text;
  return json.value_or(Json::object());
}

/// The replies of the demo's transcript, in order.
std::vector<std::string> DemoReplies() {
  std::vector<std::string> replies;
  std::istringstream lines(Read(kOps / kDemoOp / "transcript.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Parse(line);
    if (json.contains("reply")) replies.push_back(json["reply"]["text"]);
  }
  return replies;
}

/// What the demo must end with, wherever the replies came from.
void ExpectDemoOutcome(const Path& run) {
  const auto first = [&](int attempt) {
    return Parse(
        Read(run / "attempts" / std::to_string(attempt) / "counterexample.json"))["findings"][0];
  };
  const Json precision = first(1);
  EXPECT_THAT(precision["kind"].get<std::string>(), HasSubstr("precision"));
  EXPECT_FALSE(precision["statistics"].empty());
  const Json race = first(2);
  EXPECT_EQ(race["kind"], "data_race");
  ASSERT_EQ(race["accesses"].size(), 2u);
  for (const Json& side : race["accesses"]) {
    EXPECT_GT(side["site"]["line"], 0);
    EXPECT_TRUE(side.contains("thread"));
  }
  EXPECT_NE(race["accesses"][0]["thread"], race["accesses"][1]["thread"]);
  EXPECT_NE(race["accesses"][0]["site"]["line"], race["accesses"][1]["site"]["line"]);
  const Json bounds = first(3);
  EXPECT_EQ(bounds["kind"], "out_of_bounds");
  EXPECT_TRUE(bounds["memory"].contains("address"));
  const Json smallest = Parse(Read(run / "attempts/3/counterexample.json"))["case"]["axes"];
  for (const auto& [axis, value] : smallest.items()) EXPECT_EQ(value, 1) << axis;
  EXPECT_EQ(Parse(Read(run / "attempts/4/verdict.json"))["outcome"], "accepted");
  const Path vetted = run / "vetted" / (std::string(kDemoOp) + "-T=bf16-sm_90");
  for (const char* file : {"kernel.cu", "launch.json", "kernel.ptx", "kernel.sm_90.cubin",
                           "kernel.py", "kernel.hpp", "certificate.json"}) {
    EXPECT_TRUE(std::filesystem::exists(vetted / file)) << file;
  }
}

// --- the demo

class Demo : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    assay::testing::WriteKeys(scratch_->path(), "ours");
    assay::testing::WriteKeys(scratch_->path(), "other");
    ran_ = new Ran(Assay({"generate", kDemoOp, "--out", (*scratch_ / "run").string(), "--sign-key",
                          (*scratch_ / "ours.pem").string()}));
  }
  static void TearDownTestSuite() {
    delete ran_;
    delete scratch_;
  }
  static Path run() { return *scratch_ / "run"; }
  static Scratch* scratch_;
  static Ran* ran_;
};
Scratch* Demo::scratch_ = nullptr;
Ran* Demo::ran_ = nullptr;

TEST_F(Demo, RefutesThreeAndAcceptsTheFourth) {
  ASSERT_EQ(ran_->exit, 0) << ran_->err;
  EXPECT_THAT(ran_->err, HasSubstr("written by hand"));
  EXPECT_THAT(ran_->err, HasSubstr("vetted kernel: " + (run() / "vetted").string()));
  EXPECT_THAT(ran_->err, Not(HasSubstr("\x1b["))) << "no terminal, no escape codes";
  ExpectDemoOutcome(run());
}

TEST_F(Demo, TheEmittedKernelIsAcceptedAgain) {
  const Ran check =
      Assay({"check", (run() / "vetted" / (std::string(kDemoOp) + "-T=bf16-sm_90")).string(),
             "--op", kDemoOp, "--seed", "77", "--json"});
  EXPECT_EQ(check.exit, 0) << check.err;
  EXPECT_EQ(Parse(check.out)["outcome"], "accepted");
}

TEST_F(Demo, TheEmittedFolderVerifies) {
  const std::string vetted = (run() / "vetted" / (std::string(kDemoOp) + "-T=bf16-sm_90")).string();
  const std::string key = (*scratch_ / "ours.pub.pem").string();
  const Ran right = Assay({"verify", vetted, "--key", key, "--current", "--json"});
  EXPECT_EQ(right.exit, 0) << right.err;
  EXPECT_THAT(right.err, HasSubstr("makes the same PTX and machine code"));
  EXPECT_THAT(right.err, HasSubstr("planned cases"));
  EXPECT_EQ(Parse(right.out)["outcome"], "verified");
  EXPECT_EQ(Assay({"verify", vetted, "--key", (*scratch_ / "other.pub.pem").string()}).exit, 1);
  // The key's bytes are nowhere in what the run left.
  const std::string secret = Read(*scratch_ / "ours.pem").substr(28, 40);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(Read(entry.path()), Not(HasSubstr(secret)));
  }
  EXPECT_THAT(ran_->err, Not(HasSubstr(secret)));
  // A sample of each file, through the program.
  const Path copy = *scratch_ / "copy";
  for (const auto& entry : std::filesystem::directory_iterator(vetted)) {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(vetted, copy);
    std::string text = Read(entry.path());
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
    std::ofstream(copy / entry.path().filename(), std::ios::binary) << text;
    const Ran changed = Assay({"verify", copy.string(), "--key", key, "--no-compile"});
    EXPECT_EQ(changed.exit, 1) << entry.path() << changed.err;
  }
}

TEST_F(Demo, EveryCounterexampleReplaysTheSame) {
  int replayed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run() / "attempts")) {
    if (!entry.path().filename().string().starts_with("counterexample")) continue;
    const Ran once = Assay({"replay", entry.path().string(), "--json"});
    const Ran again = Assay({"replay", entry.path().string(), "--json"});
    EXPECT_EQ(once.exit, 1) << entry.path() << once.err;
    EXPECT_EQ(once.out, again.out) << entry.path();
    EXPECT_EQ(Parse(once.out)["findings"], Parse(Read(entry.path()))["findings"]) << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 3);
}

TEST_F(Demo, HasAPageAndStandsInTheList) {
  const Path page = *scratch_ / "page.html";
  const Ran report = Assay({"report", run().string(), "--out", page.string(), "--json"});
  ASSERT_EQ(report.exit, 0) << report.err;
  EXPECT_EQ(Parse(report.out)["attempts"], 4);
  const std::string html = Read(page);
  EXPECT_LT(html.size(), 1'000'000u);
  EXPECT_THAT(html, HasSubstr("<strong>accepted</strong>"));
  // What this judge records is what the page draws.
  EXPECT_THAT(html, HasSubstr("Map of errors"));

  const Ran list = Assay({"runs", "list", scratch_->path().string(), "--json"});
  ASSERT_EQ(list.exit, 0) << list.err;
  ASSERT_EQ(Parse(list.out)["runs"].size(), 1u);
  EXPECT_EQ(Parse(list.out)["runs"][0]["state"], "accepted");
  EXPECT_EQ(Parse(list.out)["runs"][0]["vetted"], true);
  const Ran show = Assay({"runs", "show", run().string()});
  EXPECT_EQ(show.exit, 0);
  EXPECT_THAT(show.out, HasSubstr("accepted"));
  const Ran compare =
      Assay({"runs", "compare", (run() / "attempts/1").string(), run().string(), "--json"});
  ASSERT_EQ(compare.exit, 0) << compare.err;
  EXPECT_EQ(Parse(compare.out)["after"]["attempt"]["attempt"], 4);
  EXPECT_THAT(Parse(compare.out)["diff"].get<std::string>(), HasSubstr("@@ -"));
  EXPECT_FALSE(Parse(compare.out)["findings"]["gone"].empty());
  EXPECT_TRUE(Parse(compare.out)["findings"]["came"].empty());

  // Its kernel is vetted: it stays, whatever is asked for.
  const Ran clean =
      Assay({"runs", "clean", scratch_->path().string(), "--keep-bytes", "0", "--yes"});
  EXPECT_EQ(clean.exit, 0) << clean.err;
  EXPECT_THAT(clean.out, HasSubstr("holds a vetted kernel"));
  EXPECT_TRUE(std::filesystem::exists(run() / "events.jsonl"));
}

TEST(Generate, TheSameAgainstAChatCompletionsServer) {
  const std::vector<std::string> replies = DemoReplies();
  ASSERT_EQ(replies.size(), 4u);
  httplib::Server server;
  std::size_t asked = 0;
  std::string authorization;
  server.Post(
      "/v1/chat/completions", [&](const httplib::Request& request, httplib::Response& response) {
        authorization = request.get_header_value("Authorization");
        const Json reply = {
            {"id", "chatcmpl-1"},
            {"object", "chat.completion"},
            {"choices",
             {{{"index", 0},
               {"message",
                {{"role", "assistant"}, {"content", replies[std::min(asked, replies.size() - 1)]}}},
               {"finish_reason", "stop"}}}},
            {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 50}}}};
        ++asked;
        response.set_content(reply.dump(), "application/json");
      });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  const Scratch scratch;
  const Ran ran = Assay(
      {"generate", kDemoOp, "--model", "openai/test", "--base-url",
       "http://127.0.0.1:" + std::to_string(port) + "/v1", "--out", (scratch / "run").string()},
      {"OPENAI_API_KEY=sk-of-another-server", "ASSAY_API_KEY=sk-canary-4711",
       "no_proxy=127.0.0.1"});
  server.stop();
  serving.join();
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(asked, 4u);
  // A key for OpenAI's own server is never sent to another one.
  EXPECT_EQ(authorization, "Bearer sk-canary-4711");
  ExpectDemoOutcome(scratch / "run");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch / "run")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(Read(entry.path()), Not(HasSubstr("canary-4711"))) << entry.path();
  }
}

// --- bad input: each a message that names the place and the fix, the right exit code, an intact run folder

constexpr const char* kGoodPlan =
    R"({"schema": "assay.launch/1", "kernels": [{"entry": "k", "grid": ["tokens"], "block": [32],
  "args": ["x", "weight", "eps", "y", "tokens", "hidden"]}]})";

std::string Kernel(const std::string& body) {
  return "#include <cuda_bf16.h>\nextern \"C\" __global__ void k(const __nv_bfloat16* x, const "
         "__nv_bfloat16* w, float eps, "
         "__nv_bfloat16* y, long long tokens, long long hidden) {\n" +
         body + "\n}\n";
}

Ran Check(const std::string& kernel, const std::string& plan) {
  const Scratch scratch;
  EXPECT_TRUE(WriteFileAtomically(scratch / "kernel.cu", kernel).has_value());
  EXPECT_TRUE(WriteFileAtomically(scratch / "launch.json", plan).has_value());
  return Assay({"check", scratch.path().string(), "--op", "rms_norm", "--effort", "quick"});
}

TEST(BadCandidate, SyntaxError) {
  const Ran ran = Check(Kernel("  y[0] = ;"), kGoodPlan);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("kernel.cu:3"));
}

TEST(BadCandidate, IncludeOfAHostFile) {
  const Ran ran = Check("#include \"/etc/passwd\"\n" + Kernel(""), kGoodPlan);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("/etc/passwd"));
  EXPECT_THAT(ran.err, Not(HasSubstr("root:")));
}

TEST(BadCandidate, EndlessLoop) {
  const Ran ran = Check(Kernel("  volatile int go = 1;\n  while (go) {}"), kGoodPlan);
  EXPECT_EQ(ran.exit, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("kernel.cu:4"));
  EXPECT_THAT(ran.err, HasSubstr("livelock"));
}

TEST(BadCandidate, EndlessTemplate) {
  const Ran ran =
      Check("template <int N> struct A { static constexpr int v = A<N + 1>::v + A<N + 2>::v; };\n" +
                Kernel("  y[0] = A<0>::v;"),
            kGoodPlan);
  EXPECT_THAT(ran.exit, ::testing::AnyOf(1, 2)) << ran.err;
}

TEST(BadCandidate, PlanDividesByZero) {
  const Ran ran = Check(
      Kernel(""),
      R"js({"schema": "assay.launch/1", "kernels": [{"entry": "k", "grid": ["tokens / (hidden - hidden)"],
    "block": [32], "args": ["x", "weight", "eps", "y", "tokens", "hidden"]}]})js");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("launch.json"));
  EXPECT_THAT(ran.err, HasSubstr("zero"));
}

TEST(BadCandidate, PlanNamesAnUnknownTensor) {
  const Ran ran =
      Check(Kernel(""),
            R"({"schema": "assay.launch/1", "kernels": [{"entry": "k", "grid": [1], "block": [32],
    "args": ["x", "wieght", "eps", "y", "tokens", "hidden"]}]})");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("'wieght'"));
  EXPECT_THAT(ran.err, HasSubstr("weight"));
}

TEST(BadOp, MisspelledKey) {
  const Scratch scratch;
  std::filesystem::copy(kOps / "rms_norm", scratch / "op",
                        std::filesystem::copy_options::recursive);
  std::string text = Read(scratch / "op" / "op.json");
  const std::size_t at = text.find("\"outputs\"");
  ASSERT_NE(at, std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(scratch / "op" / "op.json", text.replace(at, 9, "\"ouptuts\""))
                  .has_value());
  const Ran ran = Assay({"ops", "show", (scratch / "op").string()});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("outputs"));
  EXPECT_THAT(ran.err, HasSubstr("op.json"));
}

TEST(BadRun, NoServerAtTheUrl) {
  const Scratch scratch;
  const Ran ran =
      Assay({"generate", "rms_norm", "--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1",
             "--out", (scratch / "run").string(), "--budget-seconds", "5"},
            {"OPENAI_API_KEY=k", "no_proxy=127.0.0.1"});
  EXPECT_THAT(ran.exit, ::testing::AnyOf(2, 3)) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("127.0.0.1:9"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "events.jsonl"));
}

TEST(BadRun, MissingKey) {
  const Scratch scratch;
  const Ran ran =
      Assay({"generate", "rms_norm", "--model", "openai/x", "--out", (scratch / "run").string()},
            {"OPENAI_API_KEY="});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("OPENAI_API_KEY"));
}

TEST(BadRun, EmptyReply) {
  const Scratch scratch;
  const Ran ran = Assay({"generate", "rms_norm", "--model", "exec/true", "--attempts", "2", "--out",
                         (scratch / "run").string()});
  EXPECT_THAT(ran.exit, ::testing::AnyOf(1, 2, 3)) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("empty"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "events.jsonl"));
}

TEST(BadUsage, IsExitThreeWithAHint) {
  EXPECT_EQ(Assay({}).exit, 3);
  EXPECT_EQ(Assay({"frobnicate"}).exit, 3);
  EXPECT_EQ(Assay({"--help"}).exit, 0);
  const Ran unknown = Assay({"generate", "rms_nrom"});
  EXPECT_EQ(unknown.exit, 3);
  EXPECT_THAT(unknown.err, HasSubstr("rms_norm"));
  const Ran model = Assay({"generate", "softmax"});
  EXPECT_EQ(model.exit, 3);
  EXPECT_THAT(model.err, HasSubstr("openai/"));
}

}  // namespace
}  // namespace assay::tests
