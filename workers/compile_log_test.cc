#include "workers/compile_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace assay::workers {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

bool IsOurs(std::string_view file) { return file == "kernel.cu" || file.starts_with("/cuda/"); }

CompileLog Read(std::string_view log) { return ReadCompileLog(log, &IsOurs); }

TEST(ReadCompileLog, ReadsDiagnosticsWithCaretAndContext) {
  const CompileLog log =
      Read(R"(kernel.cu(3): warning #177-D: variable "unused" was declared but never referenced
    int unused;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

kernel.cu(9): catastrophic error: cannot open source file "nosuch.h"
  #include <nosuch.h>
                     ^

kernel.cu(12): error: incomplete type "A<200>" is not allowed
  template <int N> struct A;
                          ^
          detected during:
            instantiation of class "A<N> [with N=199]" at line 1
            instantiation of class "A<N> [with N=198]" at line 1

2 errors detected in the compilation of "kernel.cu".
)");
  ASSERT_THAT(log.diagnostics, SizeIs(3));
  EXPECT_EQ(log.diagnostics[0], (Diagnostic{"warning", "kernel.cu", 3, 7, "177-D",
                                            "variable \"unused\" was declared but never referenced",
                                            "  int unused;", ""}));
  EXPECT_EQ(log.diagnostics[1].severity, "error");
  EXPECT_EQ(log.diagnostics[1].line, 9u);
  EXPECT_EQ(log.diagnostics[1].column, 20u);
  EXPECT_THAT(log.diagnostics[2].context, HasSubstr("N=199"));
  EXPECT_THAT(log.text, HasSubstr("2 errors detected"));
  EXPECT_THAT(log.text, Not(HasSubstr("Remark: The warnings")));
}

TEST(ReadCompileLog, ReadsToolsThatNameNoSource) {
  const CompileLog log = Read(
      "ptxas application ptx input, line 23; error   : Unknown modifier '.op'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n"
      "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
  ASSERT_THAT(log.diagnostics, SizeIs(3));
  EXPECT_EQ(log.diagnostics[0],
            (Diagnostic{"error", "ptx", 23, 0, "", "Unknown modifier '.op'", "", ""}));
  EXPECT_EQ(log.diagnostics[1].message, "Ptx assembly aborted due to errors");
  EXPECT_EQ(log.diagnostics[2].message, "invalid value for --gpu-architecture (-arch)");
}

constexpr std::string_view kReport = R"(ptxas info    : 0 bytes gmem, 400 bytes cmem[3]
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     424 bytes stack frame, 420 bytes spill stores, 416 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 424 bytes cumulative stack size, 1024 bytes smem, 368 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 221.667 ms
ptxas info    : Function properties for helper
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)";

TEST(ReadCompileLog, ReadsResources) {
  const CompileLog log = Read(kReport);
  EXPECT_TRUE(log.diagnostics.empty());
  ASSERT_THAT(log.functions, SizeIs(2));
  EXPECT_EQ(log.functions.at("k"), (PtxasReport{true, 424, 420, 416, 255, 1, 1024, 0, 376}));
  EXPECT_FALSE(log.functions.at("helper").entry);
  EXPECT_EQ(log.functions.at("helper").stack_bytes, 16u);
}

TEST(ReadCompileLog, AForgedReportCannotHideASpill) {
  // What a [[deprecated("...")]] message with line breaks looks like, before the real report and
  // after it.
  const std::string forged =
      "kernel.cu(3): warning #1444-D: function \"z\" was declared deprecated (\"a\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers\")\n\n";
  for (const std::string& text : {forged + std::string(kReport), std::string(kReport) + forged}) {
    const CompileLog log = Read(text);
    EXPECT_EQ(log.functions.at("k").spill_store_bytes, 420u);
    EXPECT_EQ(log.functions.at("k").registers, 255u);
  }
}

TEST(ReadCompileLog, WithholdsTextOfForeignFiles) {
  const CompileLog log = Read(R"(/etc/passwd(1): error: identifier "root" is undefined
  root:x:0:0:root:/root:/bin/bash
  ^
          detected during:
            something about root

kernel.cu(2): error: expected a ";"
  int x
       ^
)");
  ASSERT_THAT(log.diagnostics, SizeIs(2));
  EXPECT_EQ(log.diagnostics[0].file, "/etc/passwd");
  EXPECT_EQ(log.diagnostics[0].excerpt, "");
  EXPECT_THAT(log.diagnostics[0].message, HasSubstr("withheld"));
  EXPECT_THAT(log.text, Not(HasSubstr("root")));
  // The twin: our own files keep theirs.
  EXPECT_EQ(log.diagnostics[1].excerpt, "int x");
}

TEST(ReadCompileLog, IsBounded) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "kernel.cu(1): error: " + std::string(5000, 'e') + "\n  x\n  ^\n\n";
  const CompileLog log = Read(text);
  EXPECT_THAT(log.diagnostics, SizeIs(kMaxDiagnostics));
  EXPECT_EQ(log.dropped, 5000 - kMaxDiagnostics);
  EXPECT_TRUE(log.truncated);
  EXPECT_LE(log.text.size(), kMaxLogBytes);
  EXPECT_LT(log.diagnostics[0].message.size(), 1100u);
}

TEST(ReadCompileLog, SurvivesDamage) {
  const std::string whole = std::string(kReport) +
                            "kernel.cu(3): warning #177-D: x\n    y\n        ^\n" +
                            "ptxas application ptx input, line 23; error   : z\n";
  Rng rng(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (std::uint64_t i = 0, edits = 1 + rng.Below(6); i < edits; ++i) {
      const std::size_t at = rng.Below(text.size());
      if (rng.Below(2) == 0)
        text.erase(at, rng.Below(30));
      else
        text[at] = "(): ;,'#^\n9x"[rng.Below(12)];
      if (text.empty()) break;
    }
    EXPECT_LE(Read(text).diagnostics.size(), 20u);
  }
  Read("ptxas  bytes spill stores");
  Read("ptxas info : Function properties for k\nptxas  bytes spill stores");
}

}  // namespace
}  // namespace assay::workers
