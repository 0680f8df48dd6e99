#include "report/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runs/testing/schema.h"

namespace assay::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Files kFiles{.kernel = "a b/kernel.cu", .launch = "a b/launch.json"};

Finding Race() {
  Finding finding{.kind = FindingKind::kDataRace, .message = "two threads write s[0]"};
  finding.missing = "no barrier between line 14 and line 18";
  finding.accesses = {
      {.what = "write",
       .site = {.file = "/x/kernel.cu", .line = 14, .column = 3, .excerpt = "  s[0] = v;"},
       .thread = {.thread = {1, 0, 0}},
       .threads = 32},
      {.what = "read", .site = {.file = "kernel.cu", .line = 18}, .thread = {}}};
  return finding;
}

Json SchemaOfSarif() { return testing::ReadSchema("report/schemas/sarif.schema.json"); }

// One of each kind: no kind of finding can make a log that a code host refuses.
std::vector<Diagnostic> OneOfEach() {
  std::vector<Diagnostic> all;
#define X(name, json, family, meaning)               \
  {                                                  \
    Finding finding = Race();                        \
    finding.kind = FindingKind::k##name;             \
    all.push_back(DiagnosticOf(finding, kFiles));    \
    finding.accesses.clear();                        \
    finding.message = "two\nlines \xff and \x1b[2J"; \
    all.push_back(DiagnosticOf(finding, kFiles));    \
  }
  ASSAY_FINDING_KINDS(X)
#undef X
  return all;
}

TEST(Diagnostics, ARaceIsOnItsLineWithTheOtherSideAsANote) {
  const std::string text = CompilerText({DiagnosticOf(Race(), kFiles)});
  EXPECT_EQ(text,
            "a b/kernel.cu:14:3: error: two threads write s[0]; no barrier between line 14 and "
            "line 18 [data_race]\n"
            "a b/kernel.cu:14:3: note: write by thread (1,0,0) of block (0,0,0) and 31 more\n"
            "a b/kernel.cu:18: note: read by thread (0,0,0) of block (0,0,0)\n");
}

TEST(Diagnostics, WhatHasNoLineIsAboutTheFirst) {
  Finding finding{.kind = FindingKind::kWrongValue, .message = "y[3] is wrong"};
  EXPECT_EQ(CompilerText({DiagnosticOf(finding, kFiles)}),
            "a b/kernel.cu:1: error: y[3] is wrong [wrong_value]\n");
  // The twin: the line where its error entered is known.
  finding.origins = {{.site = {}, .share = 0.5},
                     {.site = {.file = "kernel.cu", .line = 7}, .share = 0.4}};
  EXPECT_THAT(CompilerText({DiagnosticOf(finding, kFiles)}), HasSubstr("a b/kernel.cu:7: error"));
}

TEST(Diagnostics, ALineOfAHeaderIsToldAtItsCall) {
  Finding finding = Race();
  finding.accesses[0].site = {.file = "cuda_fp16.hpp", .line = 900, .called_at = {31, 12}};
  EXPECT_THAT(CompilerText({DiagnosticOf(finding, kFiles)}), HasSubstr("a b/kernel.cu:12: error"));
  finding.accesses[0].site.called_at.clear();
  EXPECT_THAT(CompilerText({DiagnosticOf(finding, kFiles)}), HasSubstr("a b/kernel.cu:1: error"));
}

TEST(Diagnostics, PtxHasItsOwnLinesAndAPlanItsOwnFile) {
  Finding finding = Race();
  finding.accesses[0].site.ptx_line = 77;
  EXPECT_THAT(CompilerText({DiagnosticOf(finding, {.kernel = "k.ptx", .launch = "l.json"})}),
              HasSubstr("k.ptx:77: error"));
  finding = {.kind = FindingKind::kMalformedPlan, .message = "no grid"};
  EXPECT_THAT(CompilerText({DiagnosticOf(finding, kFiles)}), HasSubstr("launch.json:1: error"));
}

TEST(Diagnostics, EachDefectOfAVerdictIsToldOnce) {
  verdict::Verdict verdict;
  verdict.gates.resize(2);
  verdict.gates[0].counterexamples.resize(1);
  verdict.gates[0].counterexamples[0].gate = "race";
  verdict.gates[0].counterexamples[0].description = "rows=3";
  verdict.gates[0].counterexamples[0].findings = {Race()};
  verdict.gates[1] = verdict.gates[0];
  verdict.gates[1].counterexamples[0].findings.push_back(
      {.kind = FindingKind::kTrap, .message = "trapped"});
  const auto all = DiagnosticsOf(verdict, kFiles);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(CompilerText(all), HasSubstr("(case rows=3) [data_race]"));
  EXPECT_THAT(CompilerText(all), HasSubstr("[trap]"));
}

TEST(Diagnostics, EveryKindMakesOneLineThatSteersNothing) {
  for (const Diagnostic& diagnostic : OneOfEach()) {
    const std::string text = CompilerText({diagnostic});
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')),
              1 + diagnostic.notes.size());
    EXPECT_THAT(text, HasSubstr("[" + std::string(Name(diagnostic.kind)) + "]\n"));
    EXPECT_THAT(text, Not(HasSubstr("\xff")));
  }
}

TEST(Sarif, KeepsToTheSchema) {
  const Json log = SarifLog("0.1.0", OneOfEach(), {.conclusive = false, .reason = "a time-out"});
  EXPECT_EQ(testing::Violation(SchemaOfSarif(), log, ""), "");
  EXPECT_EQ(testing::Violation(SchemaOfSarif(), SarifLog("0.1.0", {}, {}), ""), "");
  // The twin: the schema refuses what is none.
  Json wrong = log;
  wrong["runs"][0]["results"][0].erase("message");
  EXPECT_NE(testing::Violation(SchemaOfSarif(), wrong, ""), "");
  wrong = log;
  wrong["runs"][0]["results"][0]["level"] = "fatal";
  EXPECT_NE(testing::Violation(SchemaOfSarif(), wrong, ""), "");
}

TEST(Sarif, PlacesRulesAndEndingsAreRight) {
  Diagnostic race = DiagnosticOf(Race(), kFiles);
  race.gate = "race";
  const Json log =
      SarifLog("0.1.0", {race, race, DiagnosticOf({.kind = FindingKind::kTrap}, kFiles)},
               {.conclusive = false, .reason = "a step limit"});
  const Json& run = log.at("runs").at(0);
  const Json& rules = run.at("tool").at("driver").at("rules");
  ASSERT_EQ(rules.size(), 2u);
  for (const Json& result : run.at("results"))
    EXPECT_EQ(rules.at(result.at("ruleIndex").get<std::size_t>()).at("id"), result.at("ruleId"));
  const Json& place = run.at("results").at(0).at("locations").at(0).at("physicalLocation");
  EXPECT_EQ(place.at("artifactLocation").at("uri"), "a%20b/kernel.cu");
  EXPECT_EQ(place.at("region").at("startLine"), 14);
  EXPECT_EQ(run.at("results").at(0).at("partialFingerprints"),
            run.at("results").at(1).at("partialFingerprints"));
  EXPECT_EQ(run.at("invocations").at(0).at("executionSuccessful"), false);
  EXPECT_THAT(run.at("invocations").at(0).dump(), HasSubstr("a step limit"));
  EXPECT_EQ(UriOf("/x/ä.cu"), "file:///x/%C3%A4.cu");
}

}  // namespace
}  // namespace assay::report
