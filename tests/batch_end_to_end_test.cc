// assay batch as a user runs it, with the real judge: ops of the library, models that replay
// transcripts, kills, a second run, a recheck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>

#include "base/json.h"
#include "base/rng.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
const Path kOps = Path(ASSAY_SOURCE_DIR) / "ops";
constexpr const char* kNames[] = {"cumsum", "row_sum", "softmax"};

Json Parse(const Path& file) {
  auto json = ReadJsonFile(file.string());
  EXPECT_TRUE(json.has_value()) << (json ? "" : ToString(json.error()));
  return json.value_or(Json::object());
}

class BatchEndToEnd : public ::testing::Test {
 protected:
  // A model for each op: says nothing of use, then a kernel that does not compile, then the op's own
  // naive one; softmax's never gets there.
  void SetUp() override {
    Json ops = Json::array();
    for (const std::string op : kNames) {
      const std::string kernel = ReadFile(kOps / op / "naive/kernel.cu").value_or("");
      const std::string launch = ReadFile(kOps / op / "naive/launch.json").value_or("");
      ASSERT_FALSE(kernel.empty());
      const auto reply = [&](const std::string& source) {
        return "```cuda\n" + source + "\n```\n```json\n" + launch + "\n```\n";
      };
      std::string text = CompactJson({{"schema", "assay.transcript/1"},
                                      {"written", "by hand"},
                                      {"note", "for a test"},
                                      {"instance", op},
                                      {"model", "a person"}}) +
                         "\n";
      int number = 0;
      for (const std::string& says :
           {std::string("I cannot."), reply("this does not compile"),
            op == "softmax" ? std::string("Still not.") : reply(kernel)}) {
        text += CompactJson({{"type", "exchange"},
                             {"name", "attempt-" + std::to_string(++number)},
                             {"reply", {{"text", says}, {"stop", "end"}}}}) +
                "\n";
      }
      const Path file = scratch_ / (op + ".jsonl");
      ASSERT_TRUE(WriteFileAtomically(file, text));
      ops.push_back({{"op", op}, {"model", "replay/" + file.string()}});
    }
    ASSERT_TRUE(WriteFileAtomically(
        scratch_ / "plan.json", PrettyJson({{"schema", "assay.batch_plan/1"},
                                            {"defaults", {{"attempts", 3}, {"effort", "quick"}}},
                                            {"ops", ops}})));
  }

  std::vector<std::string> Words(const std::string& store, std::vector<std::string> more) const {
    std::vector<std::string> words = {
        "batch", "--plan",  (scratch_ / "plan.json").string(), "--jobs",
        "2",     "--store", (scratch_ / store).string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static Json Compared(const Path& batch) {
    Json summary = Parse(batch / "summary.json");
    summary.erase("measured");
    return summary;
  }

  Scratch scratch_;
};

off_t SizeOf(const Path& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 ? info.st_size : 0;
}

TEST_F(BatchEndToEnd, KilledFiveTimesItComesToTheSameAndASecondRunDoesNothing) {
  const Path whole = scratch_ / "whole";
  const Ran ran = RunProgram(kAssay, Words("store", {"--out", whole.string()}));
  EXPECT_EQ(ran.exit, 1) << ran.err;  // softmax was refuted
  const Json summary = Compared(whole);
  EXPECT_EQ(summary.at("totals").at("outcomes").at("accepted"), 2) << ran.err;
  EXPECT_EQ(summary.at("instances")[2].at("outcome"), "refuted");
  for (int i = 0; i < 2; ++i) {
    const Json& row = summary.at("instances")[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.at("attempts").size(), 3u);
    EXPECT_TRUE(
        std::filesystem::exists(whole / row.at("vetted").get<std::string>() / "certificate.json"));
  }

  // Kills at random places of the batch's and its runs' logs.
  Rng rng(3);
  int round = 0;
  for (int kills = 0; kills < 5;) {
    const Path killed = scratch_ / ("killed-" + std::to_string(round));
    const std::string store = "store-" + std::to_string(round);
    const bool begun = SizeOf(killed / "events.jsonl") > 0;
    std::vector<std::string> words = Words(store, {begun ? "--resume" : "--out", killed.string()});
    words.insert(words.begin(), kAssay.string());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    ASSERT_EQ(::posix_spawn(&child, kAssay.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    const Path log =
        killed / "runs" / (std::string(kNames[rng.Below(3)]) + "-T=bf16-sm_90") / "events.jsonl";
    const off_t target = SizeOf(log) + static_cast<off_t>(rng.Below(6000));
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (SizeOf(log) > target) ::kill(child, SIGKILL);
      ::usleep(2000);
    }
    if (WIFSIGNALED(status) && ++kills < 5) continue;
    // It came to its end, or has been killed often enough.
    if (WIFSIGNALED(status)) {
      const Ran end = RunProgram(kAssay, Words(store, {"--resume", killed.string()}));
      EXPECT_EQ(end.exit, 1) << end.err;
    }
    EXPECT_EQ(Compared(killed), summary);
    ++round;
  }

  // A second run: what is accepted is up to date, by its key; the rest is at its end.
  Json plan = Parse(scratch_ / "plan.json");
  plan["ops"].erase(2);
  ASSERT_TRUE(WriteFileAtomically(scratch_ / "plan.json", PrettyJson(plan)));
  const Path second = scratch_ / "second";
  const auto began = std::chrono::steady_clock::now();
  const Ran nothing = RunProgram(kAssay, Words("store", {"--out", second.string(), "--json"}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  RecordProperty("second_run_seconds", std::to_string(took.count()));
  EXPECT_EQ(nothing.exit, 0) << nothing.err;
  EXPECT_THAT(nothing.err, HasSubstr("nothing to do"));
  EXPECT_FALSE(std::filesystem::exists(second));
  const auto json = ParseJson(nothing.out, "stdout");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->at("totals").at("up_to_date"), 2);

  // The same judge judges nothing again; a judge that was another one, by the record, does.
  const Ran recheck =
      RunProgram(kAssay, {"batch", "--recheck", "--store", (scratch_ / "store").string(), "--out",
                          (scratch_ / "recheck").string()});
  EXPECT_EQ(recheck.exit, 0) << recheck.err;
  EXPECT_THAT(recheck.err, HasSubstr("2 kernels judged again or known, no verdict changed"));
}

TEST_F(BatchEndToEnd, SaysWhatIsWrongWithAPlanBeforeAnythingIsDone) {
  ASSERT_TRUE(WriteFileAtomically(
      scratch_ / "plan.json",
      R"({"schema": "assay.batch_plan/1", "ops": [{"op": "softmax", "modle": "exec/x"}]})"));
  const Ran ran = RunProgram(kAssay, Words("store", {"--out", (scratch_ / "b").string()}));
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("/ops/0/modle"));
  EXPECT_THAT(ran.err, HasSubstr("did you mean 'model'"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "b"));
}

// What a folder from elsewhere would run is said again, or refused.
TEST_F(BatchEndToEnd, AFoldersProgramsAreNotRunUnasked) {
  ASSERT_TRUE(WriteFileAtomically(scratch_ / "model.sh",
                                  "touch " + (scratch_ / "ran").string() + "; echo nothing\n"));
  const std::string model = "exec/sh " + (scratch_ / "model.sh").string();
  const std::string batch = (scratch_ / "b").string();
  const std::string store = (scratch_ / "store").string();
  const Ran first = RunProgram(kAssay, {"batch", "softmax", "--model", model, "--attempts", "2",
                                        "--each-tokens", "1", "--out", batch, "--store", store});
  EXPECT_EQ(first.exit, 2) << first.err;
  std::filesystem::remove(scratch_ / "ran");
  const Ran refused = RunProgram(kAssay, {"batch", "--resume", batch, "--store", store});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.err, HasSubstr("may come from anybody"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "ran"));
}

}  // namespace
}  // namespace assay::tests
