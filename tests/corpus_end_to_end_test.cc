// From a run to data and back: ingest, split, export, replay; rewards in order, resumed, cached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
const Path kSource = ASSAY_SOURCE_DIR;

Ran Assay(const std::vector<std::string>& arguments) { return RunProgram(kAssay, arguments); }

std::string Reply(const std::string& change_from = "", const std::string& change_to = "") {
  std::string kernel = *ReadFile(kSource / "ops/rms_norm/naive/kernel.cu");
  if (!change_from.empty()) kernel.replace(kernel.find(change_from), change_from.size(), change_to);
  const std::string launch = *ReadFile(kSource / "ops/rms_norm/naive/launch.json");
  return "```cuda\n" + kernel + "```\n\n```json\n" + launch + "```\n";
}

TEST(CorpusEndToEnd, EveryExportedFailureOfARunFailsAgain) {
  const Scratch scratch;
  const std::string run = (scratch / "run").string();
  const std::string corpus = (scratch / "c.sqlite").string();
  const std::string out = (scratch / "out").string();
  ASSERT_EQ(
      Assay({"generate", "embedding_rmsnorm_backward", "--effort", "quick", "--out", run}).exit, 0);
  const Ran ingested = Assay({"corpus", "ingest", run, "--corpus", corpus, "--json"});
  ASSERT_EQ(ingested.exit, 0) << ingested.err;
  EXPECT_GE((*ParseJson(ingested.out, "out"))["attempts"], 4);
  EXPECT_EQ((*ParseJson(Assay({"corpus", "ingest", run, "--corpus", corpus, "--json"}).out,
                        "out"))["attempts"],
            0);
  EXPECT_NE(Assay({"corpus", "export", out, "--corpus", corpus}).exit, 0);  // no split yet
  ASSERT_EQ(Assay({"corpus", "split", "--corpus", corpus}).exit, 0);
  ASSERT_EQ(Assay({"corpus", "export", out, "--corpus", corpus}).exit, 0);
  const Ran replayed = Assay({"corpus", "replay", out, "--corpus", corpus, "--json"});
  EXPECT_EQ(replayed.exit, 0) << replayed.err;
  const Json result = *ParseJson(replayed.out, "out");
  EXPECT_GE(result["replayed"], 3);
  EXPECT_EQ(result["fates"]["same"], result["replayed"]);
  const Ran sample = Assay({"corpus", "replay", "--corpus", corpus, "--sample", "1", "--json"});
  EXPECT_EQ((*ParseJson(sample.out, "out"))["replayed"], 1);
  const Ran stats = Assay({"corpus", "stats", "--corpus", corpus, "--json"});
  EXPECT_EQ((*ParseJson(stats.out, "out"))["attempts_to_acceptance"]["4"], 1);
}

// A reply that holds no candidate is read again; one whose candidate is malformed is judged again.
TEST(CorpusEndToEnd, MalformedRepliesFailAgainAsTheyDid) {
  const Scratch scratch;
  Json lines = Json::array({{{"schema", "assay.transcript/1"},
                             {"written", "by hand"},
                             {"note", "for a test"},
                             {"instance", "rms_norm"},
                             {"model", "a person"}}});
  for (const std::string& says : {std::string("I cannot."), Reply("__global__", "__globule__")}) {
    lines.push_back({{"type", "exchange"},
                     {"name", "attempt-" + std::to_string(lines.size())},
                     {"reply", {{"text", says}, {"stop", "end"}}}});
  }
  std::string transcript;
  for (const Json& line : lines) transcript += CompactJson(line) + "\n";
  ASSERT_TRUE(WriteFileAtomically(scratch / "replies.jsonl", transcript));
  const std::string run = (scratch / "run").string();
  const std::string corpus = (scratch / "c.sqlite").string();
  ASSERT_EQ(Assay({"generate", "rms_norm", "--attempts", "2", "--out", run, "--model",
                   "replay/" + (scratch / "replies.jsonl").string()})
                .exit,
            1);
  ASSERT_EQ(Assay({"corpus", "ingest", run, "--corpus", corpus}).exit, 0);
  const Ran replayed = Assay({"corpus", "replay", "--corpus", corpus, "--json"});
  EXPECT_EQ(replayed.exit, 0) << replayed.err;
  EXPECT_EQ((*ParseJson(replayed.out, "out"))["fates"]["same"], 2) << replayed.out;
}

TEST(RewardEndToEnd, InOrderCachedAndResumed) {
  const Scratch scratch;
  const std::vector<std::string> replies = {Reply(), Reply("+ eps", ""), "I cannot.", Reply()};
  std::string input;
  for (const std::string& reply : replies)
    input += CompactJson({{"op", "rms_norm"}, {"binding", "T=f32"}, {"reply", reply}}) + "\n";
  input += "not JSON\n";
  const std::string file = (scratch / "in.jsonl").string();
  ASSERT_TRUE(WriteFileAtomically(file, input));
  const std::vector<std::string> plain = {"reward", file,      "--effort",
                                          "quick",  "--cache", (scratch / "cache").string()};
  const Ran first = Assay(plain);
  EXPECT_EQ(first.exit, 3) << first.err;  // one line is invalid
  std::vector<std::string> outcomes;
  for (const std::string_view line : SplitLines(first.out))
    outcomes.push_back((*ParseJson(line, "out"))["outcome"].get<std::string>());
  EXPECT_EQ(outcomes,
            (std::vector<std::string>{"accepted", "refuted", "refuted", "accepted", "invalid"}));
  const Ran again = Assay(plain);
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("0 judged"));
  // A process that died in the second line: the next one goes on there.
  const Path out = scratch / "out.jsonl";
  ASSERT_TRUE(WriteFileAtomically(out, first.out.substr(0, first.out.find('\n') + 20)));
  std::vector<std::string> into = plain;
  into.insert(into.end(), {"--out", out.string()});
  EXPECT_THAT(Assay(into).err, HasSubstr("1 written earlier"));
  EXPECT_EQ(*ReadFile(out), first.out);
  // Rewards for other candidates are left alone.
  ASSERT_TRUE(WriteFileAtomically(file, input.substr(input.find('\n') + 1)));
  const Ran other = Assay(into);
  EXPECT_EQ(other.exit, 3);
  EXPECT_THAT(other.err, HasSubstr("not what the rewards written there were for"));
  EXPECT_EQ(*ReadFile(out), first.out);
}

TEST(RewardEndToEnd, TheExamplesRunWithoutATrainer) {
  if (RunProgram("/usr/bin/env", {"python3", "-c", "pass"}).exit != 0) GTEST_SKIP() << "no python3";
  for (const char* const example : {"trl_reward.py", "verl_compute_score.py"}) {
    const Scratch scratch;
    const Ran ran = RunProgram("/usr/bin/env",
                               {"-C", scratch.path().string(), "python3",
                                (kSource / "examples/rewards" / example).string()},
                               {"ASSAY=" + kAssay.string()});
    ASSERT_EQ(ran.exit, 0) << ran.err;
    const auto lines = SplitLines(ran.out);
    ASSERT_EQ(lines.size(), 3u) << ran.out;
    EXPECT_EQ(lines[0], "1.0");
    EXPECT_LT(std::stod(std::string(lines[1])), 1.0);
    EXPECT_EQ(lines[2], "0.0");
  }
}

}  // namespace
}  // namespace assay::tests
