#include "validator/policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/policy/source_scan.h"

namespace assay::policy {
namespace {

std::vector<std::uint32_t> Lines(const std::vector<Finding>& findings) {
  std::vector<std::uint32_t> lines;
  for (const Finding& finding : findings) lines.push_back(finding.accesses.at(0).site.line);
  return lines;
}

struct Row {
  const char* name;
  const char* fires;
  const char* twin;        // Looks like it and must not fire.
  std::uint32_t line = 3;  // Of the finding; what is behind the prefix begins at 3.
};

class SourcePolicyTest : public testing::TestWithParam<Row> {};

TEST_P(SourcePolicyTest, FiresAndTwinDoesNot) {
  const std::string prefix = "// first line\n\n";
  const auto findings = CheckSourcePolicy(prefix + GetParam().fires);
  ASSERT_FALSE(findings.empty()) << GetParam().fires;
  EXPECT_EQ(findings[0].kind, FindingKind::kForbiddenConstruct);
  EXPECT_EQ(findings[0].accesses.at(0).site.line, GetParam().line);
  EXPECT_FALSE(findings[0].cause.empty());
  const auto twin = CheckSourcePolicy(prefix + GetParam().twin);
  EXPECT_TRUE(twin.empty()) << GetParam().twin << " -> " << (twin.empty() ? "" : twin[0].message);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SourcePolicyTest,
    testing::Values(
        Row{"nanosleep", "__nanosleep(100);", "// __nanosleep(100);"},
        Row{"clock", "long long t = clock64();", "int clock = 3; f(clock);"},
        Row{"globaltimer", "__globaltimer();", "const char* s = \"__globaltimer()\";"},
        Row{"printf", "printf(\"%d\", i);", "/* printf(\"%d\", i); */"},
        Row{"member", "free(p);", "pool.free(p); pool->free(p);"},
        Row{"malloc", "void* p = malloc(4);", "int malloc_count = 0;"},
        Row{"assert", "assert(i < n);", "static_assert(sizeof(int) == 4, \"assert(i)\");"},
        Row{"trap", "__trap();", "const char* s = R\"(__trap();)\";"},
        Row{"macro body", "#define DIE() __trap()", "#define TRAPEZE 1"},
        Row{"splice", "__na\\\nnosleep(3);", "// a comment \\\n__nanosleep(100);"},
        Row{"passwd", "#include \"/etc/passwd\"", "#include <cuda_bf16.h>"},
        Row{"host header", "#include <iostream>", "#include <cuda/std/limits>"},
        Row{"computed include", "#include HEADER", "#include <cooperative_groups/reduce.h>"},
        Row{"climb", "#include <cuda/../../etc/passwd>", "#include <cuda/pipeline>"},
        Row{"digraph", "%:include <stdio.h>", "int a = 7 %3;"},
        Row{"line", "#line 99 \"other.cu\"", "int line = 3;"},
        Row{"line marker", "# 99 \"other.cu\"", "#if 0\n#endif"},
        Row{"pragma", "#pragma nv_diag_suppress 177", "#pragma unroll 4"},
        Row{"_Pragma", "_Pragma(\"diag_suppress 177\")", "_Pragma(\"unroll\")"},
        Row{"attribute", "__attribute__((weak)) int f();", "__launch_bounds__(128) int f();"},
        Row{"extern", "extern __device__ int counter;", "extern __shared__ float tile[];"},
        Row{"extern C", "extern int other();", "extern \"C\" __global__ void k() {}"},
        Row{"launch", "k<<<1, 1>>>();", "x = a << 3 << b;"},
        Row{"raw address", "float* p = (float*)0x7f0000;", "float* p = (float*)0;"},
        Row{"reinterpreted", "auto p = reinterpret_cast<int*>(4096);",
            "auto p = reinterpret_cast<int*>(base + 4096);"},
        Row{"build time", "const char* s = __TIME__;", "int a__TIME__b = 1;"},
        Row{"runtime", "cudaMemset(p, 0, 4);", "int cudaMemset = 1;"},
        // What hid behind quotes, comment signs and their like.
        Row{"quote in a macro", "long long t = 0;\n#define Q \"\\\"/*\"\nt = clock64(); // */\"",
            "const char* s = \"\\\"/*\"; int clock64 = 0; // */", 5},
        Row{"error line", "#error it's\nint a = clock64(); // '", "#error \"it's\""},
        Row{"hexadecimal quote", "int a = 0x'/*'; int t = clock64(); // */'",
            "int a = 0x1'ff'00, b = 1'000;"},
        Row{"raw prefixes", "auto s = u8R\"(\")\"; long long t = clock64(); // \")\";",
            "auto s = u8R\"(clock64())\"; auto t = LR\"x()\"clock64())x\";"},
        Row{"raw string in a macro", "#define S R\"(\")\" + clock64() //\")\"",
            "#define S R\"(clock64())\""},
        Row{"raw string over lines", "#define S R\"(\n)\"", "auto s = R\"(\n#include <x>\n)\";"},
        Row{"splice in a raw string", "auto s = R\"(\\\n)\"; long t = clock64();",
            "auto s = R\"(\\\n\")\\\n\" clock64())\";", 4},
        Row{"trigraph", "int a; // ?\?/\nclock64();", "int a = b ? c : d;"},
        Row{"blank behind a backslash", "int a; // \\ \nint b = 1;", "int a; // \\ n\nint b = 1;"},
        Row{"carriage return", "int a; // \rclock64();", "int a;\r\nint b;\r\n"},
        Row{"universal name", "int t = cl\\u006fck64();", "const char* s = \"\\u006f\";"},
        Row{"unfinished comment", "int a; /* clock64();", "int a; /* clock64(); */"},
        Row{"header name", "#include <x/*> \n #include <iostream> // */",
            "#include <cuda/atomic> // x */"},
        Row{"in a skipped group", "#if 0\n#include </etc/passwd>\n#endif",
            "#if 0\n#define A 1\n#endif", 4},
        Row{"standard attribute of a vendor", "[[gnu::weak]] int f();",
            "[[nodiscard]] int f(); a[b[c::d]];"},
        Row{"pragma by pieces", "_Pragma(\"nv_diag_suppress 1\")", "_Pragma(\"unroll 4\")"},
        // Who compiles?
        Row{"rtc", "#ifdef __CUDACC_RTC__\n#endif", "#ifdef __CUDA_ARCH__\n#endif"},
        Row{"rtc in an expression", "#if 1 && defined(__CUDACC_RTC__)\n#endif",
            "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#endif"},
        Row{"version", "#if __CUDACC_VER_MAJOR__ >= 13\n#endif", "#ifdef __CUDACC__\n#endif"},
        Row{"features of the target", "#if defined(__CUDA_ARCH_FEAT_SM90_ALL)\n#endif",
            "#if __CUDA_ARCH__ == 900\n#endif"},
        Row{"features by their number", "int a = __CUDA_ARCH_SPECIFIC__;",
            "int a = __CUDA_ARCH__;"},
        Row{"file", "const char* f = __FILE__;", "const char* f = \"__FILE__\";"},
        Row{"line number", "int a = __LINE__;", "int a__LINE__ = 1;"},
        Row{"counter", "int a = __COUNTER__;", "int counter = 1;"},
        Row{"in a macro", "#define V __NVCC__", "#define V ASSAY_T"},
        Row{"by paste", "#define CAT(a, b) a##b\n#if CAT(__CUDACC, _RTC__)\n#endif",
            "#define CAT(a, b) a##b\nint CAT(x, _RTC__);", 4},
        Row{"by paste of digraphs", "#define CAT(a, b) a %:%: b\nint x = CAT(__LI, NE__);",
            "#define TEXT(a) #a\nauto s = TEXT(__LI);", 4},
        Row{"headers", "#if __has_include(<vector>)\n#endif", "#if ASSAY_N > 3\n#endif"},
        Row{"guards of headers", "#ifdef __CUDA_BF16_H__\n#endif",
            "#ifndef MY_KERNEL\n#define MY_KERNEL\n#endif"},
        Row{"infinity tells", "#ifndef INFINITY\n#define INFINITY 1e39f\n#define RTC 1\n#endif",
            "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif"},
        Row{"builtin", "const char* f = __builtin_FILE();", "int x = __builtin_popcount(3);"},
        Row{"source location", "auto l = cuda::std::source_location::current();",
            "int source = 1, location = 2;"}),
    [](const testing::TestParamInfo<Row>& param) {
      std::string name;
      for (const char* c = param.param.name; *c != '\0'; ++c) {
        if (std::isalnum(static_cast<unsigned char>(*c))) name.push_back(*c);
      }
      return name;
    });

TEST(SourceMacros, FeaturesMayBeAskedForWhereTheTargetNamesThem) {
  constexpr std::string_view kSource = "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#endif\n";
  EXPECT_EQ(CheckSourcePolicy(kSource, "sm_90").size(), 1u);
  EXPECT_TRUE(CheckSourcePolicy(kSource, "sm_90a").empty());
}

TEST(SourceScanTest, SurvivesAnyBytes) {
  for (const std::string text :
       {"\"unterminated", "/* unterminated", "R\"(", "R\"xxxxxxxxxxxxxxxxxxxxxxxxxx(", "'", "\\",
        "#", "%:", "\\\n\\\n", "0x", "1e+", "..."}) {
    ScanSource(text);
    CheckSourcePolicy(text);
  }
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * 7919 >> 3));
  ScanSource(bytes);
  CheckSourcePolicy(bytes);
}

TEST(SourceScanTest, PhasesOfTranslation) {
  using Kind = SourceToken::Kind;
  const auto texts = [](std::string_view source) {
    std::vector<std::string> out;
    for (const SourceToken& token : ScanSource(source))
      out.push_back((token.kind == Kind::kProblem ? "!" : "") + token.text);
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(texts("a/*b*/c"), ElementsAre("a", "c"));
  EXPECT_THAT(texts("ab\\\ncd"), ElementsAre("abcd"));
  EXPECT_THAT(texts("/\\\n/ x\\\ny\nz"), ElementsAre("z"));
  EXPECT_THAT(texts("1'000'000 0x1.8p-3f 1e+5"), ElementsAre("1'000'000", "0x1.8p-3f", "1e+5"));
  EXPECT_THAT(texts("'\\'' \"\\\"\" u8\"x\" L'y'"), ElementsAre("\\'", "\\\"", "x", "y"));
  EXPECT_THAT(texts("R\"d(a)\"b)d\"s"), ElementsAre("a)\"b", "s"));
  EXPECT_THAT(texts("R\"(a\\\nb)\" c"), ElementsAre("a\\\nb", "c"));
  EXPECT_THAT(texts("# /* */ define /* \n */ A \"/*\" // b\nc"), ElementsAre("define", "c"));
  EXPECT_THAT(texts("a # b"), ElementsAre("a", "#", "b"));
  EXPECT_THAT(texts("'a\nb"), ElementsAre("!a quote without its partner", "a", "b"));
  const auto tokens = ScanSource("x\n%: include \\\n <a/*b> // c\ny");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1].text, "include");
  EXPECT_EQ(tokens[1].line, 2u);
  ASSERT_EQ(tokens[1].inner.size(), 1u);
  EXPECT_EQ(tokens[1].inner[0].text, "<a/*b>");
  EXPECT_EQ(tokens[2].line, 4u);
}

facts::Use Used(facts::Use::Kind kind, const char* name, std::uint32_t line, bool in_header) {
  facts::Site site;
  site.ptx_line = 40;
  site.own_line = line;
  site.in_header = in_header;
  site.instruction = "the instruction";
  return {.kind = kind, .name = name, .count = 1, .sites = {site}, .sites_left_out = 0};
}

std::vector<Finding> Check(facts::Use use) {
  facts::Facts program;
  program.uses.push_back(std::move(use));
  return CheckPtxPolicy(program);
}

TEST(PtxPolicyTest, FiresAtTheLineOfTheSource) {
  using Kind = facts::Use::Kind;
  const std::pair<Kind, const char*> used[] = {{Kind::kOpcode, "nanosleep"},
                                               {Kind::kOpcode, "trap"},
                                               {Kind::kOpcode, "brkpt"},
                                               {Kind::kSpecialRegister, "%clock64"},
                                               {Kind::kSpecialRegister, "%gridid"},
                                               {Kind::kSpecialRegister, "%globaltimer_hi"},
                                               {Kind::kCallee, "vprintf"},
                                               {Kind::kCallee, "malloc"},
                                               {Kind::kCallee, "cudaLaunchDeviceV2"},
                                               {Kind::kLiteralAddress, "ld"}};
  for (const auto& [kind, name] : used) {
    const auto findings = Check(Used(kind, name, 14, false));
    EXPECT_EQ(Lines(findings), std::vector<std::uint32_t>{14}) << name;
    EXPECT_EQ(findings.at(0).accesses.at(0).site.file, "kernel.cu");
    EXPECT_FALSE(findings.at(0).cause.empty());
  }
  EXPECT_EQ(Check(Used(Kind::kOpcode, "trap", 0, false)).at(0).accesses.at(0).site.file, "");
}

TEST(PtxPolicyTest, TwinsDoNotFire) {
  using Kind = facts::Use::Kind;
  EXPECT_TRUE(Check(Used(Kind::kOpcode, "exit", 14, false)).empty());
  EXPECT_TRUE(Check(Used(Kind::kSpecialRegister, "%ctaid", 14, false)).empty());
  EXPECT_TRUE(Check(Used(Kind::kCallee, "my_malloc", 14, false)).empty());
  EXPECT_TRUE(Check(Used(Kind::kCallee, "trap", 14, false)).empty());
  // The toolkit's own checks trap, and its barriers wait with patience; it has no other exemption.
  EXPECT_TRUE(Check(Used(Kind::kOpcode, "trap", 14, true)).empty());
  EXPECT_TRUE(Check(Used(Kind::kSpecialRegister, "%globaltimer", 14, true)).empty());
  EXPECT_TRUE(Check(Used(Kind::kOpcode, "nanosleep", 14, true)).empty());
  EXPECT_FALSE(Check(Used(Kind::kSpecialRegister, "%clock64", 14, true)).empty());
}

TEST(PtxPolicyTest, OnlyWhatIsNotDefinedCanBeReplaced) {
  facts::Facts program;
  program.functions.push_back({.name = "f", .is_defined = true, .is_weak = true});
  EXPECT_TRUE(CheckPtxPolicy(program).empty());
  program.functions[0].is_defined = false;
  EXPECT_EQ(CheckPtxPolicy(program).size(), 1u);
}

facts::Facts Keeping(facts::Answer written) {
  facts::Facts program;
  facts::Variable& variable = program.variables.emplace_back();
  variable.name = variable.shown = "calls";
  variable.written = written;
  variable.writes.push_back({.function = "k", .ptx_line = 30, .own_line = 5});
  return program;
}

TEST(PtxPolicyTest, WhatOutlivesACallIsNotWritten) {
  const auto findings = CheckPtxPolicy(Keeping(facts::Answer::kYes));
  ASSERT_EQ(Lines(findings), std::vector<std::uint32_t>{5});
  EXPECT_THAT(findings[0].message, testing::HasSubstr("'calls' may not be written"));
  EXPECT_THAT(findings[0].cause, testing::HasSubstr("workspace in launch.json"));
  EXPECT_EQ(CheckPtxPolicy(Keeping(facts::Answer::kUnknown)).size(), 1u);
  EXPECT_TRUE(CheckPtxPolicy(Keeping(facts::Answer::kNo)).empty());
  // Strings that printf gets are not the point.
  facts::Facts prints = Keeping(facts::Answer::kUnknown);
  prints.uses.push_back(Used(facts::Use::Kind::kCallee, "vprintf", 7, false));
  EXPECT_EQ(Lines(CheckPtxPolicy(prints)), std::vector<std::uint32_t>{7});
}

}  // namespace
}  // namespace assay::policy
