// The judge as others call it, through the program: an agent over MCP, a team over HTTP, an editor that
// saves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <csignal>
#include <fstream>

#include "base/json.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
const Path kNaive = Path(ASSAY_SOURCE_DIR) / "ops" / "row_sum" / "naive";

std::string Read(const Path& path) { return ReadFile(path).value_or(""); }

// Right but for its last column.
std::string WrongKernel() {
  std::string text = Read(kNaive / "kernel.cu");
  const std::size_t at = text.find("j < columns");
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, 11, "j + 1 < columns");
}

// A program with a pipe to its input and one from its output.
class Child {
 public:
  Child(std::vector<std::string> arguments, int listen_to) {
    int in[2];
    int out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (listen_to != STDERR_FILENO)
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], listen_to);
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), kAssay.string());
    for (std::string& text : arguments) argv.push_back(text.data());
    argv.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, kAssay.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = UniqueFd(in[1]);
    out_ = UniqueFd(out[0]);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  void Say(const Json& json) {
    const std::string line = CompactJson(json) + "\n";
    EXPECT_EQ(::write(in_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  /// The next line that holds `word`; empty at the end.
  std::string LineWith(const std::string& word) {
    std::string line;
    for (char byte = 0; ::read(out_.get(), &byte, 1) == 1;) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      if (line.find(word) != std::string::npos) return line;
      line.clear();
    }
    return {};
  }
  void CloseOutput() { out_.Reset(); }
  void Signal(int signal) const { ::kill(pid_, signal); }
  int EndOf() {
    in_.Reset();
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
};

class Agent {
 public:
  Agent() : child_({"mcp"}, STDOUT_FILENO) {
    Ask("initialize", {{"protocolVersion", "2025-06-18"}, {"capabilities", Json::object()}});
  }
  Json Ask(const std::string& method, const Json& params) {
    child_.Say({{"jsonrpc", "2.0"}, {"id", ++id_}, {"method", method}, {"params", params}});
    const auto json = ParseJson(child_.LineWith("\"id\":" + std::to_string(id_)), "answer");
    return json ? *json : Json();
  }
  Json Call(const std::string& tool, const Json& arguments) {
    return Ask("tools/call", {{"name", tool}, {"arguments", arguments}})
        .value("result", Json::object());
  }
  static std::string TextOf(const Json& result) {
    return result.at("content").at(0).at("text").get<std::string>();
  }
  int EndOf() { return child_.EndOf(); }

 private:
  Child child_;
  int id_ = 0;
};

Json CheckOf(const std::string& kernel) {
  return {{"op", "row_sum"},
          {"effort", "quick"},
          {"kernel", kernel},
          {"launch", *ParseJson(Read(kNaive / "launch.json"), "launch")}};
}

TEST(Mcp, AnAgentRepairsAKernel) {
  Agent agent;
  EXPECT_EQ(agent.Ask("tools/list", Json::object()).at("result").at("tools").size(), 5u);
  EXPECT_THAT(Agent::TextOf(agent.Call("ops_list", Json::object())), HasSubstr("row_sum"));
  EXPECT_THAT(Agent::TextOf(agent.Call("ops_show", {{"op", "row_sum"}})), HasSubstr("contract"));

  const Json wrong = agent.Call("check", CheckOf(WrongKernel()));
  EXPECT_EQ(wrong.at("isError"), false);
  ASSERT_EQ(wrong.at("structuredContent").at("outcome"), "refuted") << wrong;
  Json counterexample;
  for (const Json& gate : wrong.at("structuredContent").at("gates")) {
    if (counterexample.is_null() && !gate.at("counterexamples").empty())
      counterexample = gate.at("counterexamples").at(0);
  }
  ASSERT_FALSE(counterexample.is_null());
  EXPECT_THAT(Agent::TextOf(wrong), HasSubstr("wrong_value"));

  const Json again = agent.Call("replay", {{"counterexample", counterexample}});
  EXPECT_EQ(again.at("structuredContent").at("passes"), false);
  counterexample["kernel"] = Read(kNaive / "kernel.cu");
  const Json repaired = agent.Call("replay", {{"counterexample", counterexample}});
  EXPECT_EQ(repaired.at("structuredContent").at("passes"), true) << repaired;

  const Json right = agent.Call("check", CheckOf(Read(kNaive / "kernel.cu")));
  EXPECT_EQ(right.at("structuredContent").at("outcome"), "accepted") << Agent::TextOf(right);
  EXPECT_EQ(agent.EndOf(), 0);
}

TEST(Mcp, NothingThatIsAskedIsAPathOrAnOption) {
  Agent agent;
  const auto refused = [&](const std::string& tool, const Json& arguments) {
    const Json result = agent.Call(tool, arguments);
    return result.value("isError", false) ? Agent::TextOf(result) : "taken";
  };
  EXPECT_THAT(refused("ops_show", {{"op", "/etc"}}), HasSubstr("by its name"));
  Json check = CheckOf("");
  check["op"] = kNaive.parent_path().string();
  EXPECT_THAT(refused("check", check), HasSubstr("by its name"));
  Json launch = {
      {"schema", "assay.launch/1"},
      {"kernels", Json::array({{{"entry", "k"}, {"grid", {1}}, {"block", {32}}, {"args", {"x"}}}})},
      {"buffers", {{"x", {{"dtype", "f32"}, {"elements", 32}, {"init", {{"kind", "zero"}}}}}}}};
  const char* const race = "extern \"C\" __global__ void k(float* x) { x[0] = threadIdx.x; }";
  const Json found = agent.Call("sanitize", {{"kernel", race}, {"launch", launch}});
  EXPECT_THAT(Agent::TextOf(found), HasSubstr("data_race"));
  Json file = launch;
  file["buffers"]["x"]["init"] = {{"kind", "file"}, {"path", "/etc/passwd"}};
  EXPECT_THAT(refused("sanitize", {{"kernel", race}, {"launch", file}}),
              HasSubstr("name no files"));
  file = launch;
  file["buffers"]["x"]["save"] = "/tmp/x";
  EXPECT_THAT(refused("sanitize", {{"kernel", race}, {"launch", file}}),
              HasSubstr("name no files"));
  file = launch;
  file["options"] = {"-DN=1"};
  EXPECT_THAT(refused("sanitize", {{"kernel", race}, {"launch", file}}),
              HasSubstr("no compiler options"));
}

TEST(Serve, AKernelIsVettedFetchedAndVerified) {
  const Scratch scratch;
  const std::string state = (scratch / "state").string();
  Child service({"serve", "--listen", "127.0.0.1:0", "--state", state}, STDERR_FILENO);
  const std::string said = service.LineWith("serving on 127.0.0.1:");
  ASSERT_FALSE(said.empty());
  const int port = std::stoi(said.substr(said.rfind(':') + 1));
  const std::string tokens = Read(Path(state) / "tokens");
  const std::string token = tokens.substr(6, 48);
  httplib::Client http("127.0.0.1", port);
  http.set_default_headers({{"Authorization", "Bearer " + token}});
  http.set_read_timeout(300);
  const auto post = [&](const char* path, const Json& body) {
    const auto result = http.Post(path, CompactJson(body), "application/json");
    EXPECT_TRUE(result);
    return result ? *ParseJson(result->body, "answer") : Json();
  };
  const auto get = [&](const std::string& path) {
    const auto result = http.Get(path.c_str());
    return result && result->status == 200 ? result->body : std::string();
  };
  const Json right = post("/v1/checks", CheckOf(Read(kNaive / "kernel.cu")));
  const Json wrong = post("/v1/checks", CheckOf(WrongKernel()));
  const Json rewards =
      post("/v1/rewards", {{"candidates", Json::array({{{"op", "row_sum"}, {"reply", "no kernel"}},
                                                       {{"op", "/etc"}, {"reply", "x"}}})}});
  Json path = CheckOf("x");
  path["op"] = "/etc";
  EXPECT_THAT(post("/v1/checks", path).dump(), HasSubstr("by its name"));
  const std::string at = "/v1/jobs/" + right.at("job").dump();
  EXPECT_THAT(get(at + "/events"), HasSubstr("\"outcome\":\"accepted\""));
  EXPECT_THAT(get("/v1/jobs/" + wrong.at("job").dump() + "/events"),
              HasSubstr("\"outcome\":\"refuted\""));
  EXPECT_THAT(get("/v1/jobs/" + wrong.at("job").dump() + "/verdict"), HasSubstr("wrong_value"));

  const Path vetted = scratch / "vetted";
  std::filesystem::create_directory(vetted);
  const auto listed = ParseJson(get(at + "/vetted"), "files");
  ASSERT_TRUE(listed);
  for (const auto& [name, digest] : listed->at("files").items())
    std::ofstream(vetted / name, std::ios::binary) << get(at + "/vetted/" + name);
  const Ran verified = RunProgram(kAssay, {"verify", vetted.string(), "--current"});
  EXPECT_EQ(verified.exit, 0) << verified.err;

  const std::uint64_t batch = rewards.at("batch");
  for (const std::uint64_t job : {batch, batch + 1})
    EXPECT_THAT(get("/v1/jobs/" + std::to_string(job) + "/events"), HasSubstr("ended"));
  const Json given = *ParseJson(get("/v1/rewards/" + std::to_string(batch)), "rewards");
  EXPECT_EQ(given.at("rewards").at(0).at("outcome"), "refuted");
  EXPECT_EQ(given.at("rewards").at(0).at("gates").at(0).at("gate"), "format");
  EXPECT_EQ(given.at("rewards").at(1).at("outcome"), "invalid");
  service.Signal(SIGTERM);
  EXPECT_EQ(service.EndOf(), 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(state)) {
    if (!entry.is_regular_file() || entry.path().filename() == "tokens") continue;
    EXPECT_THAT(Read(entry.path()), Not(HasSubstr(token))) << entry.path();
  }
}

TEST(Serve, BeyondTheLoopbackClientsAreNamed) {
  const Scratch scratch;
  const Ran ran =
      RunProgram(kAssay, {"serve", "--listen", "0.0.0.0:0", "--state", (scratch / "s").string()});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("--tokens FILE"));
}

TEST(Watch, EverySaveIsJudgedAndCtrlCEnds) {
  const Scratch scratch;
  const Path folder = scratch / "mine";
  std::filesystem::create_directory(folder);
  std::filesystem::copy(kNaive / "launch.json", folder / "launch.json");
  const auto save = [&](const std::string& text) { std::ofstream(folder / "kernel.cu") << text; };
  save("extern \"C\" __global__ void row_sum() { nothing; }\n");
  Child watch({"check", folder.string(), "--op", "row_sum", "--effort", "quick", "--watch",
               "--format", "compiler", "--sarif", (scratch / "out.sarif").string()},
              STDERR_FILENO);
  EXPECT_THAT(watch.LineWith("kernel.cu:1"), HasSubstr("[compile_error]"));
  EXPECT_FALSE(watch.LineWith("waiting for").empty());
  EXPECT_THAT(Read(scratch / "out.sarif"), HasSubstr("\"compile_error\""));
  save("\n\nextern \"C\" __global__ void row_sum() { nothing; }\n");
  EXPECT_THAT(watch.LineWith("kernel.cu:3"), HasSubstr("[compile_error]"));
  EXPECT_FALSE(watch.LineWith("waiting for").empty());
  // An editor that writes another file and renames it; and one that takes the file away for a while.
  std::ofstream(folder / "new") << Read(kNaive / "kernel.cu");
  std::filesystem::rename(folder / "new", folder / "kernel.cu");
  EXPECT_FALSE(watch.LineWith("accepted: ").empty());
  EXPECT_FALSE(watch.LineWith("waiting for").empty());
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.EndOf(), 0) << "the last verdict's";
}

// The service as a program, which may be killed and begun again on its state.
class Team {
 public:
  explicit Team(const Path& folder) : folder_(folder) {}
  void Begin(std::vector<std::string> more) {
    std::vector<std::string> words = {"serve", "--listen", "127.0.0.1:0", "--state",
                                      (folder_ / "state").string()};
    words.insert(words.end(), more.begin(), more.end());
    child_ = std::make_unique<Child>(words, STDERR_FILENO);
    const std::string said = child_->LineWith("serving on 127.0.0.1:");
    ASSERT_FALSE(said.empty());
    http_ =
        std::make_unique<httplib::Client>("127.0.0.1", std::stoi(said.substr(said.rfind(':') + 1)));
    http_->set_default_headers(
        {{"Authorization", "Bearer " + Read(folder_ / "state" / "tokens").substr(6, 48)}});
    http_->set_read_timeout(300);
  }
  void Kill() {
    child_->Signal(SIGKILL);
    child_->EndOf();
  }
  int End() {
    child_->Signal(SIGTERM);
    return child_->EndOf();
  }
  std::pair<int, Json> Post(const std::string& path, const Json& body) {
    const auto result = http_->Post(path.c_str(), CompactJson(body), "application/json");
    if (!result) return {0, nullptr};
    return {result->status, *ParseJson(result->body, "answer")};
  }
  int Delete(std::uint64_t job) {
    return http_->Delete(("/v1/jobs/" + std::to_string(job)).c_str())->status;
  }
  std::string Get(const std::string& path) {
    const auto result = http_->Get(path.c_str());
    return result && result->status == 200 ? result->body : std::string();
  }
  /// What the job's stream says, up to the event that holds `word` or its end.
  std::string EventsTo(std::uint64_t job, const std::string& word) {
    std::string said;
    http_->Get(("/v1/jobs/" + std::to_string(job) + "/events").c_str(),
               [&](const char* bytes, std::size_t size) {
                 said.append(bytes, size);
                 const std::size_t at = word.empty() ? std::string::npos : said.find(word);
                 return at == std::string::npos || said.find("\n\n", at) == std::string::npos;
               });
    return said;
  }

 private:
  const Path folder_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<httplib::Client> http_;
};

TEST(Serve, AModelWritesAKernelThroughAKill) {
  const Scratch scratch;
  const Path file = scratch / "models.json";
  const std::string op = "embedding_rmsnorm_backward";
  const std::string transcript =
      (Path(ASSAY_SOURCE_DIR) / "ops" / op / "transcript.jsonl").string();
  const auto write = [&](const Json& models) {
    std::ofstream(file) << Json{{"schema", "assay.serve_models/1"}, {"models", models}}.dump();
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  };
  write(
      {{"hand",
        {{"model", "replay/" + transcript}, {"attempts", 4}, {"clients", Json::array({"local"})}}},
       {"slow", {{"model", "exec/sleep 600"}, {"attempts", 1}}},
       {"anns", {{"model", "exec/true"}, {"clients", Json::array({"ann"})}}}});
  Team team(scratch.path());
  team.Begin({"--models", file.string()});
  const Json models = *ParseJson(team.Get("/v1/models"), "models");
  EXPECT_EQ(models.at("models"), (Json{{"hand", {{"attempts", 4}}}, {"slow", {{"attempts", 1}}}}));
  EXPECT_THAT(models.dump(), Not(HasSubstr("replay")));

  const Json request = {{"op", op}, {"model", "hand"}};
  const std::pair<const char*, Json> changes[] = {{"model", "anns"},
                                                  {"model", "none"},
                                                  {"model", "exec/touch x"},
                                                  {"model", "replay/" + transcript},
                                                  {"attempts", 5},
                                                  {"op", "/etc"},
                                                  {"base_url", "http://127.0.0.1:1"}};
  for (const auto& [key, value] : changes) {
    Json bad = request;
    bad[key] = value;
    EXPECT_EQ(team.Post("/v1/generations", bad).first, 400) << bad;
  }
  const std::uint64_t slow =
      team.Post("/v1/generations", {{"op", "row_sum"}, {"model", "slow"}}).second.at("job");
  const std::uint64_t job = team.Post("/v1/generations", request).second.at("job");
  EXPECT_THAT(team.EventsTo(slow, "event: attempt"), HasSubstr("event: attempt"));
  EXPECT_EQ(team.Delete(slow), 200);  // or the other would wait for ten minutes
  EXPECT_THAT(team.EventsTo(job, "event: judged"),
              HasSubstr("event: judged\ndata: {\"attempt\":1,\"outcome\":\"refuted\""));
  team.Kill();
  const Path events = scratch / "state" / "runs" / std::to_string(job) / "events.jsonl";
  const std::string before = Read(events);

  team.Begin({"--models", file.string()});
  const std::string said = team.EventsTo(job, "");
  EXPECT_THAT(said, HasSubstr("\"outcome\":\"accepted\""));
  EXPECT_THAT(said, Not(HasSubstr("judged\ndata: {\"attempt\":1,"))) << "that was known";
  EXPECT_TRUE(Read(events).starts_with(before.substr(0, before.rfind('\n') + 1)));
  const std::string at = "/v1/jobs/" + std::to_string(job);
  const Json document = *ParseJson(team.Get(at + "/verdict"), "document");
  EXPECT_EQ(document.at("schema"), "assay.generated/1");
  EXPECT_EQ(document.at("outcome"), "accepted");
  EXPECT_EQ(document.at("model"), "hand");
  EXPECT_EQ(document.at("attempts").size(), 4u);
  EXPECT_EQ(document.at("verdict").at("outcome"), "accepted");
  EXPECT_THAT(document.dump(), Not(HasSubstr(scratch.path().string())));
  EXPECT_THAT(document.dump(), Not(HasSubstr(transcript)));

  const Path vetted = scratch / "vetted";
  std::filesystem::create_directory(vetted);
  const Json listed = *ParseJson(team.Get(at + "/vetted"), "files");
  for (const auto& [name, digest] : listed.at("files").items())
    std::ofstream(vetted / name, std::ios::binary) << team.Get(at + "/vetted/" + name);
  const Ran verified = RunProgram(kAssay, {"verify", vetted.string(), "--current"});
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_EQ(team.End(), 0);
}

// The end of a service breaks judgements off; that is no verdict on what was judged.
TEST(Serve, WhatItsEndBrokeOffIsJudgedAtTheNextStart) {
  const Scratch scratch;
  const Path file = scratch / "models.json";
  const Path op = Path(ASSAY_SOURCE_DIR) / "ops" / "embedding_rmsnorm_backward";
  std::ofstream(file) << Json{{"schema", "assay.serve_models/1"},
                              {"models",
                               {{"hand",
                                 {{"model", "replay/" + (op / "transcript.jsonl").string()},
                                  {"attempts", 1}}}}}}
                             .dump();
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  Team team(scratch.path());
  team.Begin({"--models", file.string()});
  const std::uint64_t job =
      team.Post("/v1/generations",
                {{"op", "embedding_rmsnorm_backward"}, {"model", "hand"}, {"effort", "quick"}})
          .second.at("job");
  EXPECT_THAT(team.EventsTo(job, "\"gate\":\"memory\""), Not(HasSubstr("judged")));
  EXPECT_EQ(team.End(), 0);
  const Path events = scratch / "state" / "runs" / std::to_string(job) / "events.jsonl";
  EXPECT_THAT(Read(events), HasSubstr("reply_received"));
  EXPECT_THAT(Read(events), Not(HasSubstr("\"attempt_judged\"")));
  team.Begin({"--models", file.string()});
  EXPECT_THAT(team.EventsTo(job, ""), HasSubstr("\"outcome\":\"refuted\""));
  EXPECT_THAT(Read(events), HasSubstr("\"attempt_judged\""));
  EXPECT_EQ(team.End(), 0);
}

TEST(Serve, TheFileOfModelsIsItsOperatorsAlone) {
  const Scratch scratch;
  const Path file = scratch / "models.json";
  const auto refused = [&](const std::string& text, std::filesystem::perms perms) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file, perms);
    const Ran ran = RunProgram(kAssay, {"serve", "--listen", "127.0.0.1:0", "--state",
                                        (scratch / "s").string(), "--models", file.string()});
    EXPECT_EQ(ran.exit, 3) << text;
    return ran.err;
  };
  using std::filesystem::perms;
  const std::string right =
      R"({"schema": "assay.serve_models/1", "models": {"m": {"model": "exec/true"}}})";
  EXPECT_THAT(refused(right, perms::all), HasSubstr("chmod go-w"));
  const auto own = perms::owner_read | perms::owner_write;
  EXPECT_THAT(refused(R"({"schema": "assay.serve_models/1", "models": {}})", own),
              HasSubstr("a model or more"));
  EXPECT_THAT(refused(R"({"schema": "assay.serve_models/1", "models": {"m": {"modl": "x"}}})", own),
              HasSubstr("model"));
  EXPECT_THAT(refused(R"({"schema": "assay.serve_models/1",
                          "models": {"m": {"model": "replay//nowhere.jsonl"}}})",
                      own),
              HasSubstr("nowhere.jsonl"));
  EXPECT_THAT(refused(R"({"schema": "assay.serve_models/1",
                          "models": {"a/b": {"model": "exec/true"}}})",
                      own),
              HasSubstr("plain name"));
}

// Its last request is still there, and nobody waits for the answer.
TEST(Mcp, AClientThatDiesIsNotWorkedFor) {
  Child child({"mcp"}, STDOUT_FILENO);
  child.Say({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "initialize"}, {"params", Json::object()}});
  EXPECT_FALSE(child.LineWith("\"id\":1").empty());
  Json arguments = CheckOf(Read(kNaive / "kernel.cu"));
  arguments["effort"] = "thorough";
  for (int id = 2; id < 18; ++id) {
    child.Say(
        {{"jsonrpc", "2.0"},
         {"id", id},
         {"method", "tools/call"},
         {"params",
          {{"name", "check"}, {"arguments", arguments}, {"_meta", {{"progressToken", "t"}}}}}});
  }
  EXPECT_FALSE(child.LineWith("notifications/progress").empty());  // it is at work
  child.CloseOutput();
  EXPECT_EQ(child.EndOf(), 0);  // sixteen thorough judgements would take many minutes
}

}  // namespace
}  // namespace assay::tests
