#include "validator/findings/render.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TEST(Render, ShowsTheLineWithACaretAndBothSides) {
  Finding finding;
  finding.kind = FindingKind::kDataRace;
  finding.message = "tile[3] is written and read without an order";
  finding.accesses = {{.what = "write",
                       .site = {.file = "/x/kernel.cu", .line = 2, .column = 3},
                       .thread = {},
                       .threads = 32},
                      {.what = "read",
                       .site = {.file = "/x/kernel.cu", .line = 3},
                       .thread = {.thread = {1, 0, 0}}}};
  finding.memory = MemoryPlace{
      .space = "shared", .buffer = "tile", .index = 3, .elements = 32, .address = 12, .bytes = 4};
  finding.missing = "no barrier between line 2 and line 3";
  SourceText source;
  source.Add("kernel.cu", "a\n  tile[i] = x;\n\ty = tile[j];\n");
  EXPECT_EQ(RenderText(finding, source),
            "/x/kernel.cu:2:3: error: data_race: tile[3] is written and read without an order\n"
            "     2 |   tile[i] = x;\n"
            "       |   ^ write by thread (0,0,0) of block (0,0,0) (32 threads)\n"
            "  /x/kernel.cu:3: the other side:\n"
            "     3 | \ty = tile[j];\n"
            "       | \t^ read by thread (1,0,0) of block (0,0,0)\n"
            "  memory: tile[3], 4 bytes at 0xc, shared memory; tile has 32 elements\n"
            "  missing: no barrier between line 2 and line 3\n");
}

TEST(Render, TheCompilersFindingsNameNoThread) {
  Finding finding;
  finding.kind = FindingKind::kCompileError;
  finding.message = "expected a \";\"";
  finding.accesses = {{.what = "refused here",
                       .site = {.file = "kernel.cu", .line = 1, .column = 2},
                       .thread = {},
                       .threads = 0}};
  SourceText source;
  source.Add("kernel.cu", "f()\n");
  EXPECT_EQ(RenderText(finding, source),
            "kernel.cu:1:2: error: compile_error: expected a \";\"\n"
            "     1 | f()\n"
            "       |  ^ refused here\n");
}

TEST(Render, WithoutSourceFallsBackToTheInstruction) {
  Finding finding;
  finding.kind = FindingKind::kOutOfBounds;
  finding.message = "read past the end of x";
  finding.accesses = {
      {.what = "read", .site = {.ptx_line = 40, .instruction = "ld.global.f32 %f1, [%rd1];"}}};
  const std::string text = RenderText(finding, {});
  EXPECT_NE(text.find("kernel.ptx:40: error: out_of_bounds"), std::string::npos) << text;
  EXPECT_NE(text.find("ptx | ld.global.f32"), std::string::npos) << text;
}

TEST(Render, NumbersWithinTheirLimitsAreLeftOut) {
  Finding finding;
  finding.kind = FindingKind::kPrecisionRow;
  finding.statistics = {{"worst_element_in_allowances", 0.9, 1, "y[0]"},
                        {"worst_row_relative_error", 0.02, 0.01, "row 3"},
                        {"worst_column_relative_error", 0.001, 0.01, ""},
                        {"correctly_rounded_share", 0.8, 0, ""}};
  const std::string text = RenderText(finding, {});
  EXPECT_NE(text.find("worst_element_in_allowances"), std::string::npos) << text;
  EXPECT_NE(text.find("worst_row_relative_error"), std::string::npos) << text;
  EXPECT_EQ(text.find("worst_column_relative_error"), std::string::npos) << text;
  EXPECT_EQ(text.find("correctly_rounded_share"), std::string::npos) << text;
  finding.kind = FindingKind::kDataRace;
  EXPECT_NE(RenderText(finding, {}).find("correctly_rounded_share"), std::string::npos);
}

TEST(Render, ALimitIsToldOnlyWhereThereIsOne) {
  Finding finding;
  finding.kind = FindingKind::kDataRace;
  finding.statistics = {{"occurrences", 5, 0, ""}, {"share", 0.5, 0.25, ""}};
  const std::string text = RenderText(finding, {});
  EXPECT_NE(text.find("occurrences = 5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("share = 0.5 (limit 0.25)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("limit 0)"), std::string::npos) << text;
}

TEST(Render, AllowancesAreToldOfNumbersOnly) {
  Finding finding;
  finding.kind = FindingKind::kWrongValue;
  finding.element = ElementPlace{
      .output = "y", .index = {1}, .expected = 2, .got = std::nan(""), .allowance = 0.5};
  EXPECT_NE(RenderText(finding, {}).find("element: y[1]: expected 2, got nan\n"),
            std::string::npos);
  finding.element->got = 3;
  EXPECT_NE(RenderText(finding, {}).find("expected 2, got 3, allowance 0.5\n"), std::string::npos);
}

TEST(Render, ALineOfAHelperComesWithItsCall) {
  Finding finding;
  finding.kind = FindingKind::kOutOfBounds;
  finding.message = "read past the end";
  finding.accesses = {{.what = "read",
                       .site = {.file = "kernel.cu", .line = 1, .called_at = {2}},
                       .thread = {},
                       .threads = 1}};
  SourceText source;
  source.Add("kernel.cu", "float at(i) { return x[i]; }\ny = at(9);\n");
  std::string text = RenderText(finding, source);
  EXPECT_NE(text.find("  called at kernel.cu:2\n     2 | y = at(9);\n"), std::string::npos) << text;
  EXPECT_EQ(DescribeLine(finding.accesses[0].site), "line 1, called at line 2");
  finding.accesses[0].site.called_at.clear();
  text = RenderText(finding, source);
  EXPECT_EQ(text.find("called at"), std::string::npos) << text;
}

TEST(Render, OriginsAreNamedWithTheirLines) {
  std::vector<Finding> findings(1);
  Finding& finding = findings[0];
  finding.kind = FindingKind::kPrecisionElement;
  finding.message = "y is off";
  finding.origin = "97 % of the error enters at line 2";
  finding.origins = {{.site = {.file = "kernel.cu", .line = 2}, .share = 0.971},
                     {.site = {.file = "kernel.cu", .line = 1}, .share = 0.028},
                     {.site = {}, .share = 0.001}};
  SourceText source;
  source.Add("kernel.cu", "float s;\n  s = __hadd(s, v);  // adds\n");
  FillExcerpts(findings, source);
  EXPECT_EQ(RenderText(finding, source),
            "error: precision_element: y is off\n"
            "  origin: 97 % of the error enters at line 2\n"
            "  origin: line 2: `s = __hadd(s, v);`: 97 % of the error\n"
            "  origin: line 1: `float s;`: 3 % of the error\n");
  EXPECT_EQ(Describe(finding.origins[2]), "other lines: 0.1 % of the error");
  EXPECT_TRUE(DescribeOrigins(Finding{}).empty());
}

TEST(Render, ExcerptsAreFilledOnlyForKnownLines) {
  std::vector<Finding> findings(1);
  findings[0].accesses = {{.site = {.file = "kernel.cu", .line = 1}},
                          {.site = {.file = "kernel.cu", .line = 9}}};
  SourceText source;
  source.Add("kernel.cu", "int x;");
  FillExcerpts(findings, source);
  EXPECT_EQ(findings[0].accesses[0].site.excerpt, "int x;");
  EXPECT_EQ(findings[0].accesses[1].site.excerpt, "");
}

}  // namespace
}  // namespace assay
