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
  const char* twin;  // Looks like it and must not fire.
};

class SourcePolicyTest : public testing::TestWithParam<Row> {};

TEST_P(SourcePolicyTest, FiresAndTwinDoesNot) {
  const std::string prefix = "// first line\n\n";
  const auto findings = CheckSourcePolicy(prefix + GetParam().fires);
  ASSERT_FALSE(findings.empty()) << GetParam().fires;
  EXPECT_EQ(findings[0].kind, FindingKind::kForbiddenConstruct);
  EXPECT_EQ(findings[0].accesses.at(0).site.line, 3u);
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
        Row{"runtime", "cudaMemset(p, 0, 4);", "int cudaMemset = 1;"}),
    [](const testing::TestParamInfo<Row>& param) {
      std::string name;
      for (const char* c = param.param.name; *c != '\0'; ++c) {
        if (std::isalnum(static_cast<unsigned char>(*c))) name.push_back(*c);
      }
      return name;
    });

TEST(SourceScanTest, SurvivesAnyBytes) {
  for (const std::string text :
       {"\"unterminated", "/* unterminated", "R\"(", "R\"xxxxxxxxxxxxxxxxxxxxxxxxxx(", "'", "\\",
        "#", "%:", "\\\n\\\n", "0x", "1e+", "..."}) {
    ScanSource(text);
    CheckSourcePolicy(text);
    CheckPtxPolicy(text);
  }
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * 7919 >> 3));
  ScanSource(bytes);
  CheckSourcePolicy(bytes);
  CheckPtxPolicy(bytes);
}

constexpr const char* kPtx = R"(.version 8.7
.target sm_90
.file 1 "kernel.cu"
.file 2 "cuda_bf16.hpp"
.visible .entry k() {
  .loc 1 12 3
  mov.u32 %r1, 1; // %clock is only mentioned
  .loc 2 900 5, function_name $L__info_string0, inlined_at 1 14 9
  INSTRUCTION
  ret;
}
)";

std::string With(std::string_view instruction) {
  std::string text = kPtx;
  return text.replace(text.find("INSTRUCTION"), 11, instruction);
}

TEST(PtxPolicyTest, TrapsOfTheSourceFireAndThoseOfTheToolkitDoNot) {
  EXPECT_TRUE(CheckPtxPolicy(With("@%p1 trap;")).empty());
  EXPECT_EQ(Lines(CheckPtxPolicy(With(".loc 1 20 3\n  @%p1 trap;"))),
            std::vector<std::uint32_t>{20});
  EXPECT_EQ(CheckPtxPolicy(".visible .entry k() {\n  trap;\n}\n").size(), 1u);
  // The table of files may stand at the end.
  EXPECT_EQ(CheckPtxPolicy(".visible .entry k() {\n  .loc 2 20 3\n  trap;\n}\n"
                           ".file 1 \"cuda_bf16.hpp\"\n.file 2 \"/tmp/kernel.cu\"\n")
                .size(),
            1u);
}

TEST(PtxPolicyTest, FiresAtTheLineOfTheSource) {
  for (const char* instruction :
       {"nanosleep.u32 %r1;", "mov.u64 %rd1, %clock64;", "mov.u64 %rd1, %globaltimer;", "brkpt;",
        "{ mov.u32 %r2, %clock; }", "call.uni (retval0), vprintf, (param0, param1);",
        "call.uni (retval0), malloc, (param0);", "ld.global.f32 %f1, [139637976727552];",
        "st.f32 [0x7f0000000000], %f1;", "call.uni __assertfail, (a, b);",
        "call (r), cudaLaunchDeviceV2, (p);"}) {
    const auto findings = CheckPtxPolicy(With(instruction));
    EXPECT_EQ(Lines(findings), std::vector<std::uint32_t>{14}) << instruction;
  }
}

TEST(PtxPolicyTest, TwinsDoNotFire) {
  for (const char* instruction :
       {"mov.u32 %r1, %ctaid.x;", "ld.shared.f32 %f1, [128];", "ld.global.f32 %f1, [%rd1+128];",
        "exit;", "call.uni (retval0), my_malloc_like, (param0);", "bra $L__trap;",
        "st.local.u32 [0], %r1;", "ld.param.u64 %rd1, [k_param_0];", "/* trap; */ ret;"}) {
    const auto findings = CheckPtxPolicy(With(instruction));
    EXPECT_TRUE(findings.empty()) << instruction << " -> " << findings.at(0).message;
  }
}

TEST(PtxPolicyTest, WeakSymbolsAreRefused) {
  EXPECT_FALSE(CheckPtxPolicy(".weak .func f() { ret; }\n").empty());
  EXPECT_TRUE(CheckPtxPolicy(".visible .func f() { ret; }\n").empty());
}

}  // namespace
}  // namespace assay::policy
