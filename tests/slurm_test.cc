// assay batch on a real Slurm of this machine: an array of twenty, a node that dies in between, a
// cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "tests/slurm_fixture.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";

Json Parse(const Path& file) {
  auto json = ReadJsonFile(file.string());
  EXPECT_TRUE(json.has_value()) << (json ? "" : ToString(json.error()));
  return json.value_or(Json::object());
}

class SlurmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = Slurm::Missing(); !missing.empty()) {
      GTEST_SKIP() << "Slurm is not there (" << missing
                   << "): install slurmctld, slurmd, slurm-client and munge";
    }
    ASSERT_EQ(slurm_.Start(), "");
    // The model: notes who asks, waits until the gate is open, answers with words alone.
    ASSERT_TRUE(WriteFileAtomically(scratch_ / "model.sh",
                                    "cat > /dev/null\n"
                                    "echo x >> '" +
                                        (scratch_ / "asked").string() +
                                        "'\n"
                                        "while [ ! -e '" +
                                        (scratch_ / "gate").string() +
                                        "' ]; do sleep 0.2; done\n"
                                        "echo 'no kernel today'\n"));
    ASSERT_TRUE(WriteFileAtomically(scratch_ / "plan.json", PlanText()));
  }

  // Twenty instances without leaders. A reply without a kernel is refuted at once.
  std::string PlanText() const {
    const Json all = {{{"T", "bf16"}}, {{"T", "f16"}}, {{"T", "f32"}}};
    Json ops = Json::array();
    for (const char* const op : {"cumsum", "softmax", "gemm", "row_sum", "rms_norm", "layer_norm"})
      ops.push_back({{"op", op}, {"dtypes", all}});
    ops.push_back({{"op", "attention"}, {"dtypes", {{{"T", "bf16"}}, {{"T", "f16"}}}}});
    return PrettyJson(
        {{"schema", "assay.batch_plan/1"},
         {"defaults", {{"model", "exec/sh " + (scratch_ / "model.sh").string()}, {"attempts", 1}}},
         {"share", false},
         {"ops", ops}});
  }

  std::vector<std::string> Words(std::vector<std::string> more) const {
    std::vector<std::string> words = {"batch",      "--plan",  (scratch_ / "plan.json").string(),
                                      "--executor", "slurm",   "--cpus",
                                      "1",          "--store", (scratch_ / "store").string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::size_t Asked() const { return ReadFile(scratch_ / "asked").value_or("").size() / 2; }
  std::size_t Results() const {
    std::size_t results = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(batch_ / "tasks", error)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".json") && name.find_first_not_of("0123456789") == name.size() - 5)
        ++results;
    }
    return results;
  }
  std::size_t Running(const std::string& node) const {
    std::istringstream lines(slurm_.Queue());
    std::size_t running = 0;
    for (std::string line; std::getline(lines, line);)
      running += line.ends_with("RUNNING " + node) ? 1u : 0u;
    return running;
  }

  Scratch scratch_;
  Path batch_ = scratch_ / "batch";
  Slurm slurm_{scratch_ / "slurm"};
};

TEST_F(SlurmTest, AnArrayOfTwentyOutlivesANode) {
  Ran ran;
  std::thread shell(
      [&] { ran = RunProgram(kAssay, Words({"--out", batch_.string()}), slurm_.Environment()); });
  // Tasks wait for their model on both nodes when one of them loses its power.
  const bool both =
      WaitUntil([&] { return Asked() >= 4 && Running("n1") > 0 && Running("n2") > 0; },
                std::chrono::seconds(120));
  EXPECT_TRUE(both) << slurm_.Queue();
  slurm_.KillNode(0);
  const bool moved = WaitUntil([&] { return Running("n1") == 0; }, std::chrono::seconds(120));
  EXPECT_TRUE(moved) << slurm_.Queue();
  EXPECT_TRUE(WriteFileAtomically(scratch_ / "gate", "open"));
  shell.join();
  EXPECT_EQ(ran.exit, 1) << ran.err;  // all were refuted

  const Json summary = Parse(batch_ / "summary.json");
  ASSERT_EQ(summary.at("instances").size(), 20u);
  std::set<std::string> requeued;
  for (const Json& row : summary.at("instances")) {
    EXPECT_EQ(row.at("outcome"), "refuted") << row.dump();
    EXPECT_EQ(row.at("attempts").size(), 1u);
  }
  EXPECT_EQ(Results(), 20u);
  // None twice: of every run one verdict, and of every claim but the last no result.
  std::size_t claims = 0;
  for (const auto& entry : std::filesystem::directory_iterator(batch_ / "tasks")) {
    const std::string name = entry.path().filename().string();
    if (name.find(".claim.") != std::string::npos) ++claims;
  }
  EXPECT_GT(claims, 20u);  // some had begun on the node that died
  EXPECT_EQ(Asked(), claims);
  for (const Json& row : summary.at("instances")) {
    const std::string events =
        ReadFile(batch_ / row.at("run").get<std::string>() / "events.jsonl").value_or("");
    std::size_t judged = 0;
    for (std::size_t at = events.find("attempt_judged"); at != std::string::npos;
         at = events.find("attempt_judged", at + 1))
      ++judged;
    EXPECT_EQ(judged, 1u) << row.at("instance");
  }
  for (const Json& cost : summary.at("measured").at("instances"))
    EXPECT_THAT(cost.at("where").get<std::string>(), HasSubstr("on n2"));
  const Json accounting = Parse(batch_ / "accounting.json");
  EXPECT_EQ(accounting.at("tasks").size(), 20u);
  EXPECT_EQ(slurm_.Queue(), "");

  // A second run of the same batch has nothing to do.
  const Ran again = RunProgram(kAssay, Words({"--resume", batch_.string()}), slurm_.Environment());
  EXPECT_THAT(again.err, HasSubstr("nothing to do"));
}

TEST_F(SlurmTest, CancellationLeavesNoJobAndNoProcess) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = (scratch_ / "log").string();
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT, 0600);
  std::vector<std::string> words = Words({"--out", batch_.string()});
  words.insert(words.begin(), kAssay.string());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string conf = slurm_.Environment().front();
  std::vector<char*> envp = {conf.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) envp.push_back(*entry);
  envp.push_back(nullptr);
  pid_t shell = 0;
  ASSERT_EQ(::posix_spawn(&shell, kAssay.c_str(), &actions, nullptr, argv.data(), envp.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  const bool both =
      WaitUntil([&] { return Asked() >= 4 && Running("n1") > 0 && Running("n2") > 0; },
                std::chrono::seconds(120));
  EXPECT_TRUE(both) << slurm_.Queue();
  EXPECT_FALSE(slurm_.ProcessesOf("n1").empty());
  ::kill(shell, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(shell, &status, 0), shell);
  EXPECT_TRUE(WIFEXITED(status)) << ReadFile(log).value_or("");
  EXPECT_EQ(WEXITSTATUS(status), 2) << ReadFile(log).value_or("");
  EXPECT_EQ(slurm_.Queue(), "");
  const bool gone = WaitUntil(
      [&] { return slurm_.ProcessesOf("n1").empty() && slurm_.ProcessesOf("n2").empty(); },
      std::chrono::seconds(20));
  EXPECT_TRUE(gone);
  EXPECT_EQ(Results(), 0u);
  const Json summary = Parse(batch_ / "summary.json");
  EXPECT_EQ(summary.at("totals").at("outcomes").at("waiting"), 20);
  EXPECT_EQ(summary.at("measured").at("stopped"), "interrupted");

  // It goes on from there.
  EXPECT_TRUE(WriteFileAtomically(scratch_ / "gate", "open"));
  const Ran resumed =
      RunProgram(kAssay, Words({"--resume", batch_.string()}), slurm_.Environment());
  EXPECT_EQ(resumed.exit, 1) << resumed.err;
  EXPECT_EQ(Parse(batch_ / "summary.json").at("totals").at("outcomes").at("refuted"), 20);
}

}  // namespace
}  // namespace assay::tests
