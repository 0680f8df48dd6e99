// The gates that look at a candidate before it runs: format, compile, policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/gates/gatekeeper.h"
#include "validator/gates/testing/fakes.h"

namespace assay::gates {
namespace {

using ::testing::HasSubstr;
using verdict::GateResult;
using verdict::GateStatus;
using verdict::Outcome;

// --- compile

TEST(TextGatesTest, CompileErrorsAreLocated) {
  FakeBench bench;
  bench.compiler.outcome = {};
  bench.compiler.outcome.kind = engine::CompileOutcome::Kind::kRefused;
  bench.compiler.outcome.diagnostics = {{.severity = engine::Diagnostic::Severity::kError,
                                         .file = "kernel.cu",
                                         .line = 2,
                                         .column = 7,
                                         .message = "expected a \";\"",
                                         .context = "during instantiation of \"f<int>\""}};
  const Judgement judgement = bench.Judge();
  EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  const Finding& finding =
      GateOf(judgement.verdict, "compile").counterexamples.at(0).findings.at(0);
  EXPECT_EQ(finding.kind, FindingKind::kCompileError);
  EXPECT_EQ(finding.message, "expected a \";\" (during instantiation of \"f<int>\")");
  EXPECT_EQ(finding.accesses.at(0).site.line, 2u);
  EXPECT_EQ(finding.accesses.at(0).site.column, 7u);
  EXPECT_EQ(finding.accesses.at(0).threads, 0u) << "no thread has run";
  EXPECT_EQ(bench.engine.runs, 0);
}

TEST(TextGatesTest, WarningsRefuteExceptBenignOnes) {
  FakeBench bench;
  engine::Diagnostic warning{.severity = engine::Diagnostic::Severity::kWarning,
                             .file = "kernel.cu",
                             .line = 2,
                             .message = "variable \"i\" was declared but never referenced"};
  bench.compiler.outcome.diagnostics = {warning};
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kAccepted);
  bench.compiler.outcome.diagnostics[0].message = "integer conversion resulted in a change of sign";
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kAccepted);
  bench.compiler.outcome.diagnostics[0].message = "shift count is too large";
  EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kRefuted);
}

TEST(TextGatesTest, SpillsAndSharedMemoryBeyondTheTargetRefute) {
  FakeBench spills;
  spills.compiler.outcome.kernel.resources["_Z5twicePKfPfx"].spill_store_bytes = 1 << 20;
  EXPECT_EQ(spills.Judge().verdict.outcome, Outcome::kRefuted);
  FakeBench registers;
  registers.compiler.outcome.kernel.resources["_Z5twicePKfPfx"].registers = 255;
  EXPECT_EQ(registers.Judge().verdict.outcome, Outcome::kAccepted);  // 128 threads
  FakeBench shared;
  shared.instance.arch = "sm_89";  // 99 KiB a block
  shared.instance.op.axes[0].max = 50000;
  shared.candidate.launch = R"({"schema": "assay.launch/1", "kernels": [
    {"entry": "twice", "grid": [1], "block": [128], "shared_bytes": "n * 4", "args": ["x", "y", "n"]}]})";
  const Judgement judgement = shared.Judge();
  ASSERT_EQ(judgement.verdict.outcome, Outcome::kRefuted);
  EXPECT_EQ(GateOf(judgement.verdict, "compile").counterexamples.at(0).findings.at(0).kind,
            FindingKind::kResourceLimit);
}

TEST(TextGatesTest, ACompilerThatTimesOutOrDiesIsInconclusive) {
  for (const auto kind :
       {engine::CompileOutcome::Kind::kTimedOut, engine::CompileOutcome::Kind::kCrashed}) {
    FakeBench bench;
    bench.compiler.outcome = {};
    bench.compiler.outcome.kind = kind;
    EXPECT_EQ(bench.Judge().verdict.outcome, Outcome::kInconclusive);
  }
}

// --- format

TEST(TextGatesTest, MalformedCandidatesAreRefutedWithPlaceAndCure) {
  struct Row {
    std::string kernel, launch, expected;
  };
  const std::string good = campaign::DoubleCandidate().kernel;
  const std::string plan = campaign::DoubleCandidate().launch;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = plan;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<Row> rows = {
      {"", plan, "kernel.cu is empty"},
      {good + std::string(1, '\0'), plan, "NUL"},
      {good + "// \xff\xfe", plan, "UTF-8"},
      {good + std::string(1 << 20, ' '), plan, "bytes, more than"},
      {good, "", "launch.json is empty"},
      {good, "{", "launch.json"},
      {good, with("\"x\", \"y\"", "\"x\", \"z\""), "z"},
      {good, with("ceil_div(n, 128)", "n / (n - n)"), "zero"},
      {good, with("[128]", "[\"n\"]"), "block"},
      {good, with("\"twice\"", "\"thrice\""), "thrice"},
      {"int x;", plan, "__global__"},
  };
  for (const Row& row : rows) {
    FakeBench bench;
    bench.candidate = {row.kernel, row.launch};
    const Judgement judgement = bench.Judge();
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kRefuted) << row.expected;
    const GateResult& gate = GateOf(judgement.verdict, "format");
    ASSERT_FALSE(gate.counterexamples.empty()) << row.expected;
    EXPECT_THAT(gate.counterexamples[0].findings.at(0).message, HasSubstr(row.expected));
    EXPECT_EQ(bench.engine.runs, 0);
  }
}

// --- policy

TEST(TextGatesTest, PolicyLooksAtSourceAndPtx) {
  FakeBench source;
  source.candidate.kernel += "__device__ void p() { printf(\"x\"); }\n";
  EXPECT_EQ(GateOf(source.Judge().verdict, "policy").status, GateStatus::kRefuted);
  FakeBench ptx;
  engine::CompiledKernel& kernel = ptx.compiler.outcome.kernel;
  const std::string head = kernel.ptx;
  campaign::FakeCompiler::SetPtx(kernel, head + ".func f() {\n nanosleep.u32 100;\n}\n");
  EXPECT_EQ(GateOf(ptx.Judge().verdict, "policy").status, GateStatus::kRefuted);
  // What cannot be read is not known to be harmless.
  FakeBench unread;
  campaign::FakeCompiler::SetPtx(unread.compiler.outcome.kernel,
                                 head + ".func f() {\n what.is.this;\n}\n");
  const Judgement judgement = unread.Judge();
  EXPECT_EQ(GateOf(judgement.verdict, "policy").status, GateStatus::kInconclusive);
  EXPECT_THAT(GateOf(judgement.verdict, "policy").reason, HasSubstr("ptx:5"));
}

}  // namespace
}  // namespace assay::gates
