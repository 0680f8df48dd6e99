// The command line itself: what is refused, how it is said, and where it is written. Nothing here
// judges a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
const std::string kNaive = (Path(ASSAY_SOURCE_DIR) / "ops/rms_norm/naive").string();

Ran Assay(const std::vector<std::string>& arguments,
          const std::vector<std::string>& environment = {}) {
  return RunProgram(kAssay, arguments, environment);
}

TEST(CommandLine, WhatIsWrongComesWithPlaceAndCure) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"chekc"}, "there is no command 'chekc'\n  fix: did you mean 'check'?"},
      {{"ops", "lst"}, "assay ops: there is no command 'lst'\n  fix: did you mean 'list'?"},
      {{"doctor", "--jsno"}, "there is no option '--jsno'\n  fix: did you mean '--json'?"},
      {{"check", kNaive}, "assay check: --op is required"},
      {{"check", kNaive, "--op", "rms_norm", "--seed", "-1"}, "'-1' is not a whole number"},
      {{"check", kNaive, "--op", "rms_norm", "--seed", "18446744073709551616"}, "whole number"},
      {{"check", kNaive, "--op", "rms_norm", "--dtype", "T=f16", "--dtype", "T=f32"},
       "'T' is given twice"},
      {{"generate", "rms_norm", "--temperature", "nan"}, "'nan' is not a number from 0 to 2"},
      {{"generate", "rms_norm", "--budget-usd", "inf"}, "'inf' is not a number"},
      {{"generate", "rms_norm", "--budget-tokens", "-1"}, "'-1' is not a whole number"},
      {{"generate", "rms_norm", "--model", "replay/"}, "--model: 'replay/' names no model"},
      {{"generate", "rms_norm", "--model", "openai/m", "--base-url", "http://"}, "--base-url: "},
      {{"generate", "--resume", "/nowhere"}, "there is no run in this folder"},
      {{"generate", "--resume", "/nowhere", "--seed", "2"}, "--seed: cannot be changed"},
      {{"verify", "/nowhere"}, "there is no such folder"},
      {{"verify", kNaive, "--key", kNaive + "/kernel.cu"}, "no Ed25519 public key"},
      {{"report", "/nowhere"}, "there is no run in this folder"},
      {{"runs", "show", "/nowhere"}, "there is no run in this folder"},
      {{"runs", "compare", "/nowhere/attempts/x", "/nowhere"}, "names no attempt"},
      {{"runs", "lst"}, "assay runs: there is no command 'lst'\n  fix: did you mean 'list'?"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Ran ran = Assay(arguments);
    EXPECT_EQ(ran.exit, 3) << expected;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("error: "), HasSubstr(expected), HasSubstr("fix: ")));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(CommandLine, AUsageErrorIsAJsonDocumentWhereJsonIsAskedFor) {
  const Ran ran = Assay({"check", "--json", "--bogus"});
  EXPECT_EQ(ran.exit, 3);
  const auto json = ParseJson(ran.out, "stdout");
  ASSERT_TRUE(json) << ran.out;
  EXPECT_EQ(json->at("error").at("kind"), "usage");
}

TEST(CommandLine, ATargetThatTheCompilerDoesNotKnowRefutesNothing) {
  for (const char* const arch : {"sm_12", "sm_80a"}) {
    const Ran ran = Assay({"check", kNaive, "--op", "rms_norm", "--arch", arch});
    EXPECT_EQ(ran.exit, 3) << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("cannot compile for"), HasSubstr("sm_90")));
  }
}

TEST(CommandLine, EveryHelpHasAnExampleOfItsOwn) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"generate"},
                                                  {"check"},
                                                  {"replay"},
                                                  {"sanitize"},
                                                  {"doctor"},
                                                  {"verify"},
                                                  {"serve"},
                                                  {"mcp"},
                                                  {"ops"},
                                                  {"ops", "list"},
                                                  {"ops", "show"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const Ran ran = Assay(arguments);
    EXPECT_EQ(ran.exit, 0);
    std::string example = "  assay";
    for (const std::string& word : command) example += " " + word;
    EXPECT_THAT(ran.out, HasSubstr(example));
  }
  // Defaults are shown: before CLI11 2.4 as "=8".
  EXPECT_THAT(Assay({"generate", "--help"}).out,
              AnyOf(HasSubstr("--attempts INT:INT in [1 - 10000]=8"),
                    HasSubstr("--attempts INT:INT in [1 - 10000] [8]")));
}

TEST(CommandLine, ControlCharactersOfOthersDoNotReachTheTerminal) {
  const Ran ran = Assay({"check", kNaive, "--op", "\x1b[2J\xc2\x9b\xe2\x80\xaex\ty"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ran.err, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(ran.err, Not(HasSubstr("\xe2\x80\xae")));
  EXPECT_THAT(ran.err, HasSubstr("x\ty"));
}

// A shell does the redirections.
Ran Shell(const std::string& script) {
  return RunProgram("/bin/sh", {"-c", script}, {"ASSAY=" + kAssay.string()});
}

TEST(CommandLine, AJsonDocumentThatCannotBeWrittenIsAnError) {
  const Ran full = Shell("\"$ASSAY\" ops list --json > /dev/full");
  EXPECT_EQ(full.exit, 3);
  EXPECT_THAT(full.err, AllOf(HasSubstr("standard output"), HasSubstr("No space left")));
  // The twin: a reader that has seen enough.
  const Ran pipe = Shell("(\"$ASSAY\" ops list --json; echo $? >&2) | head -1");
  EXPECT_EQ(pipe.err, "0\n");
}

TEST(CommandLine, ClosedStandardStreamsDoNotLandInTheRun) {
  const Scratch scratch;
  const std::string run = (scratch / "run").string();
  Shell("\"$ASSAY\" generate rms_norm --model exec/false --out " + run + " <&- >&- 2>&-");
  const std::string events = ReadFile(Path(run) / "events.jsonl").value_or("");
  EXPECT_THAT(events, HasSubstr("run_started"));
  EXPECT_THAT(events, Not(HasSubstr("error: ")));
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(ParseJson(line, "events.jsonl")) << line;
}

// A record that somebody has edited: nothing of it is run before the command line says so.
TEST(CommandLine, AResumedRunStartsNoProgramThatTheCommandLineDoesNotName) {
  const Scratch scratch;
  const std::string run = (scratch / "run").string();
  Shell("\"$ASSAY\" generate rms_norm --model exec/false --out " + run);
  const std::string victim = (scratch / "victim").string();
  Shell("sed -i 's#exec/false#exec/touch " + victim + "#' " + run + "/events.jsonl");
  const Ran refused = Shell("\"$ASSAY\" generate --resume " + run);
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("to run the program touch"), HasSubstr("--model")));
  EXPECT_FALSE(std::filesystem::exists(victim));
  // The twin: who names it gets it.
  Shell("\"$ASSAY\" generate --resume " + run + " --model 'exec/touch " + victim + "'");
  EXPECT_TRUE(std::filesystem::exists(victim));
}

TEST(CommandLine, CleaningTouchesNothingUntilItIsTold) {
  const Scratch scratch;
  const std::string run = (scratch / "run").string();
  Shell("\"$ASSAY\" generate rms_norm --model exec/false --out " + run);
  ASSERT_TRUE(std::filesystem::exists(run));
  const std::string folder = scratch.path().string();
  EXPECT_THAT(Assay({"runs", "clean", folder}).err, HasSubstr("nothing says which runs are to go"));
  for (const char* const bad : {"30", "-1d", "1.5d", "d", "99999999999999999999d", "30days"})
    EXPECT_EQ(Assay({"runs", "clean", folder, "--older-than", bad}).exit, 3) << bad;
  const Ran young = Assay({"runs", "clean", folder, "--older-than", "1h", "--yes"});
  EXPECT_THAT(young.out, HasSubstr("within the limits"));
  const Ran dry = Assay({"runs", "clean", folder, "--keep-bytes", "0"});
  EXPECT_EQ(dry.exit, 0);
  EXPECT_THAT(dry.out, HasSubstr("to go"));
  EXPECT_TRUE(std::filesystem::exists(run));
  const Ran done = Assay({"runs", "clean", folder, "--keep-bytes", "0", "--yes", "--json"});
  EXPECT_EQ(done.exit, 0) << done.err;
  EXPECT_EQ(ParseJson(done.out, "stdout")->at("runs").at(0).at("removed"), true);
  EXPECT_FALSE(std::filesystem::exists(run));
}

}  // namespace
}  // namespace assay::tests
