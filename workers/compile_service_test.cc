// The compile service as it is used: through a pool, in a jailed `assay-worker`.
#include "workers/compile_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "sandbox/health.h"
#include "sandbox/worker_pool.h"

namespace assay::workers {
namespace {

using namespace std::chrono_literals;
using sandbox::CallOutcome;
using sandbox::PoolOptions;
using sandbox::Reply;
using sandbox::Request;
using sandbox::WorkerKind;
using sandbox::WorkerPool;
using testing::HasSubstr;
using testing::Not;

constexpr auto kPatience = 120s;

/// One pool for all tests of this program: workers stay warm, as in use.
WorkerPool& Pool() {
  static const std::unique_ptr<WorkerPool> pool = [] {
    auto created = WorkerPool::Create({});
    if (!created) ADD_FAILURE() << ToString(created.error());
    return created ? *std::move(created) : nullptr;
  }();
  ASSAY_CHECK(pool != nullptr, "no pool");
  return *pool;
}

Result<Reply> Ask(Json header, std::string_view source,
                  std::chrono::milliseconds deadline = kPatience) {
  if (!header.contains("arch")) header["arch"] = "sm_90";
  Request request;
  request.header = std::move(header);
  request.payload = source;
  return Pool().Call(WorkerKind::kCompile, request, deadline);
}

/// The reply's header; fails the test if there is none.
Json Compile(std::string_view source, Json header = Json::object()) {
  auto reply = Ask(std::move(header), source);
  if (!reply) {
    ADD_FAILURE() << ToString(reply.error());
    return Json::object();
  }
  EXPECT_EQ(reply->outcome, CallOutcome::kReplied) << reply->detail;
  return reply->message.header;
}

constexpr std::string_view kRmsNorm = R"(
#include <cuda_bf16.h>
template <typename T, int kThreads>
__global__ void rms(const T* x, T* y, int n) {
  __shared__ float partial[kThreads];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += kThreads) sum += float(x[i]) * float(x[i]);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += kThreads) y[i] = T(float(x[i]) * rsqrtf(partial[0] / n));
}
)";

TEST(CompileService, GivesPtxCubinLoweredNamesAndResources) {
  auto reply = Ask({{"entries", {"rms<__nv_bfloat16, 256>"}}}, kRmsNorm);
  ASSERT_TRUE(reply) << ToString(reply.error());
  ASSERT_EQ(reply->outcome, CallOutcome::kReplied) << reply->detail;
  const Json& header = reply->message.header;
  ASSERT_TRUE(header["ok"].get<bool>()) << header["log"];
  const auto ptx_bytes = header["ptx_bytes"].get<std::size_t>();
  const auto cubin_bytes = header["cubin_bytes"].get<std::size_t>();
  ASSERT_EQ(reply->message.payload.size(), ptx_bytes + cubin_bytes);
  const std::string ptx = reply->message.payload.substr(0, ptx_bytes);
  EXPECT_THAT(ptx, HasSubstr(".target sm_90"));
  EXPECT_THAT(ptx, HasSubstr(".loc"));
  EXPECT_THAT(ptx, HasSubstr("kernel.cu"));
  EXPECT_EQ(reply->message.payload.substr(ptx_bytes, 4),
            "\x7f"
            "ELF");
  const std::string mangled = header["lowered"]["rms<__nv_bfloat16, 256>"].get<std::string>();
  EXPECT_THAT(ptx, HasSubstr(mangled));
  const Json& resources = header["resources"][mangled];
  EXPECT_GT(resources["registers"].get<int>(), 8);
  EXPECT_EQ(resources["shared_bytes"].get<int>(), 1024);
  EXPECT_EQ(resources["spill_store_bytes"].get<int>(), 0);
  EXPECT_TRUE(resources["spills_known"].get<bool>());
  EXPECT_TRUE(resources["entry"].get<bool>());
  const Json& facts = header["program"]["facts"];
  EXPECT_EQ(facts["fault"], "");
  EXPECT_EQ(facts["functions"][0]["name"], mangled);
  EXPECT_EQ(facts["functions"][0]["weak"], true);
  EXPECT_EQ(facts["functions"][0]["barriers"], "yes");
  EXPECT_EQ(facts["functions"][0]["blocks_depend"], "no");
}

std::vector<Json> Errors(const Json& header) {
  std::vector<Json> errors;
  for (const Json& diagnostic : header["diagnostics"]) {
    if (diagnostic["severity"] == "error") errors.push_back(diagnostic);
  }
  return errors;
}

TEST(CompileService, KnowsWhatAKernelKeeps) {
  constexpr std::string_view kSource =
      "__device__ int calls;\n__device__ const int table[4] = {1, 2, 3, 4};\n"
      "__global__ void k(int* x) {\n  static int more;\n  calls += 1;\n  more += 2;\n"
      "  x[threadIdx.x] = table[x[threadIdx.x] & 3] + calls + more;\n}\n";
  const Json header = Compile(kSource);
  std::map<std::string, std::string> written;
  for (const Json& variable : header["program"]["facts"]["variables"]) {
    written[variable["shown"].get<std::string>()] = variable["written"].get<std::string>();
    if (variable["shown"] == "calls") {
      EXPECT_EQ(variable["writes"][0]["own_line"], 5);
    }
  }
  EXPECT_EQ(written["calls"], "yes");
  EXPECT_EQ(written["k(int*)::more"], "yes") << header["program"]["facts"]["variables"];
  for (const auto& [name, answer] : written) {
    if (name.find("table") != std::string::npos) {
      EXPECT_EQ(answer, "no");
    }
  }
}

TEST(CompileService, FindsUnmangledKernelsInNamespaces) {
  constexpr std::string_view kSource =
      "namespace a { extern \"C\" __global__ void k(int* x) { x[0] = 1; } }\n"
      "__global__ void m(int* x) { x[0] = 2; }\n"
      "namespace b { __global__ void n(int* x) { x[0] = 3; } }\n";
  const Json found = Compile(kSource, {{"entries", {"k", "m", "b::n"}}});
  ASSERT_TRUE(found["ok"].get<bool>()) << found["log"];
  EXPECT_EQ(found["lowered"]["k"], "k");
  EXPECT_EQ(found["lowered"]["m"], "_Z1mPi");
  EXPECT_EQ(found["lowered"]["b::n"], "_ZN1b1nEPi");
  // A mangled one is only found by its whole name.
  const Json lost = Compile(kSource, {{"entries", {"n"}}});
  EXPECT_FALSE(lost["ok"].get<bool>());
  EXPECT_THAT(Errors(lost).at(0)["message"].get<std::string>(), HasSubstr("entry 'n'"));
}

TEST(CompileService, PtxThatCannotBeReadIsSaidSo) {
  const Json header = Compile(
      "__global__ void k(int* x) {\n  int y;\n"
      "  asm volatile(\"vadd4.s32.s32.s32 %0, %1, %1, %1;\" : \"=r\"(y) : \"r\"(x[0]));\n  x[0] = "
      "y;\n}\n");
  ASSERT_TRUE(header["ok"].get<bool>()) << header["log"];
  EXPECT_THAT(header["program"]["fault"].get<std::string>(), HasSubstr("vadd4"));
  EXPECT_FALSE(header["program"].contains("facts"));
}

TEST(CompileService, LocatesASyntaxError) {
  const Json header = Compile("__global__ void k(float* x) {\n  x[0] = ;\n}\n");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_EQ(errors.size(), 1u) << header["log"];
  EXPECT_EQ(errors[0]["file"], "kernel.cu");
  EXPECT_EQ(errors[0]["line"], 2);
  EXPECT_EQ(errors[0]["column"], 10);
  EXPECT_EQ(errors[0]["message"], "expected an expression");
  EXPECT_EQ(errors[0]["excerpt"], "  x[0] = ;");
}

TEST(CompileService, ReportsWarningsOfAKernelThatCompiles) {
  const Json header = Compile("__global__ void k(float* x) {\n  int unused;\n  x[0] = 1;\n}\n");
  EXPECT_TRUE(header["ok"].get<bool>());
  ASSERT_EQ(header["diagnostics"].size(), 1u);
  EXPECT_EQ(header["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(header["diagnostics"][0]["code"], "177-D");
  EXPECT_EQ(header["diagnostics"][0]["line"], 2);
}

TEST(CompileService, RefusesFilesOfTheHostWithoutReadingThem) {
  const Json header = Compile("\n#include \"/etc/passwd\"\n__global__ void k() {}\n");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["line"], 2);
  EXPECT_THAT(errors[0]["message"].get<std::string>(), HasSubstr("/etc/passwd"));
}

TEST(CompileService, FilesOfTheHostAreNotThereEither) {
  const Json header =
      Compile("#define FILE_NAME \"/etc/passwd\"\n#include FILE_NAME\n__global__ void k() {}\n");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_EQ(errors.size(), 1u) << header["log"];
  EXPECT_THAT(errors[0]["message"].get<std::string>(), HasSubstr("cannot open source file"));
  EXPECT_THAT(CompactJson(header), Not(HasSubstr("root:")));
}

TEST(CompileService, EndlessTemplateEndsAtTheDeadline) {
  constexpr std::string_view kEndless = R"(
template <int N, int M> struct Grow { static constexpr long v = Grow<N - 1, 2 * M>::v + Grow<N - 1, 2 * M + 1>::v; };
template <int M> struct Grow<0, M> { static constexpr long v = M; };
__global__ void k(long* x) { *x = Grow<40, 0>::v; }
)";
  auto reply = Ask(Json::object(), kEndless, 2s);
  ASSERT_TRUE(reply) << ToString(reply.error());
  // The memory limit may come first on a fast machine.
  EXPECT_TRUE(reply->outcome == CallOutcome::kTimedOut || reply->outcome == CallOutcome::kOverLimit)
      << Name(reply->outcome) << ": " << reply->detail;
  EXPECT_THAT(reply->detail, HasSubstr("killed"));
  // The next request is served as if nothing had happened.
  EXPECT_TRUE(Compile("__global__ void k(float* x) { x[0] = 1; }")["ok"].get<bool>());
}

TEST(CompileService, DeepTemplateIsAnErrorWithContext) {
  const Json header = Compile(
      "template <int N> struct A { static const int v = A<N + 1>::v; };\n"
      "__global__ void k(int* x) { *x = A<0>::v; }\n");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors[0]["message"].get<std::string>(), HasSubstr("excessive recursion"));
  EXPECT_THAT(errors[0]["context"].get<std::string>(), HasSubstr("instantiation of class"));
}

TEST(CompileService, DeepNestingCostsTheWorkerAtMost) {
  const std::string source =
      "__global__ void k(int* x) { *x = " + std::string(2000000, '(') + "1;}\n";
  auto reply = Ask(Json::object(), source);
  ASSERT_TRUE(reply) << ToString(reply.error());
  if (reply->outcome == CallOutcome::kReplied) {
    EXPECT_FALSE(reply->message.header["ok"].get<bool>());
  } else {
    EXPECT_TRUE(reply->outcome == CallOutcome::kCrashed ||
                reply->outcome == CallOutcome::kOverLimit)
        << reply->detail;
  }
  EXPECT_TRUE(Compile("__global__ void k(float* x) { x[0] = 1; }")["ok"].get<bool>());
}

TEST(CompileService, AHugeLogIsBounded) {
  std::string source;
  for (int i = 0; i < 20000; ++i) source += "#warning " + std::string(200, 'w') + "\n";
  source += "__global__ void k() {}\n";
  const Json header = Compile(source);
  EXPECT_TRUE(header["log_truncated"].get<bool>());
  EXPECT_LT(header["log"].get<std::string>().size(), 70000u);
  EXPECT_EQ(header["diagnostics"].size(), 64u);
  EXPECT_GT(header["diagnostics_dropped"].get<int>(), 1000);
}

TEST(CompileService, ReportsSpills) {
  const Json header = Compile(R"(
extern "C" __global__ void spill(float* x) {
  float v[300];
#pragma unroll
  for (int i = 0; i < 300; i++) v[i] = x[i * threadIdx.x];
  __syncthreads();
  float s = 0;
#pragma unroll
  for (int i = 0; i < 300; i++) { s += v[i] * v[299 - i]; x[i] = v[i] + s; }
  x[0] = s;
})",
                              {{"entries", {"spill"}}});
  ASSERT_TRUE(header["ok"].get<bool>()) << header["log"];
  EXPECT_EQ(header["lowered"]["spill"], "spill");
  const Json& resources = header["resources"]["spill"];
  EXPECT_EQ(resources["registers"].get<int>(), 255);
  EXPECT_GT(resources["spill_store_bytes"].get<int>(), 0);
  EXPECT_GT(resources["spill_load_bytes"].get<int>(), 0);
  EXPECT_GT(resources["stack_bytes"].get<int>(), 0);
}

TEST(CompileService, SaysWhyTooMuchSharedMemoryDoesNotAssemble) {
  const Json header = Compile(
      "__global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = 1; "
      "__syncthreads();\n"
      "  x[0] = s[threadIdx.x ^ 1]; }\n");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0]["message"].get<std::string>(),
              HasSubstr("80000 bytes of static shared memory"));
}

TEST(CompileService, ReportsPtxErrors) {
  const Json header = Compile("__global__ void k() { asm volatile(\"nosuch.op x;\"); }");
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0]["file"], "ptx");
  EXPECT_GT(errors[0]["line"].get<int>(), 0);
}

TEST(CompileService, NamesAnEntryThatDoesNotExist) {
  const Json header = Compile("__global__ void k() {}", {{"entries", {"other"}}});
  EXPECT_FALSE(header["ok"].get<bool>());
  const auto errors = Errors(header);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors[0]["message"].get<std::string>(), HasSubstr("entry 'other'"));
}

TEST(CompileService, AnEntryCannotCarryCode) {
  for (const char* entry : {"k; int injected", "k\n#include \"x\"", "k\\", ""}) {
    const Json header = Compile("__global__ void k() {}", {{"entries", {entry}}});
    EXPECT_FALSE(header["ok"].get<bool>()) << entry;
    ASSERT_EQ(Errors(header).size(), 1u) << entry;
    EXPECT_THAT(Errors(header)[0]["message"].get<std::string>(), HasSubstr("not a kernel's name"))
        << entry;
  }
}

TEST(CompileService, VirtualHeadersAreFound) {
  const Json header =
      Compile("#include \"answer.h\"\n__global__ void k(int* x) { *x = kAnswer; }\n",
              {{"headers", {{"answer.h", "constexpr int kAnswer = 42;\n"}}}, {"cubin", false}});
  EXPECT_TRUE(header["ok"].get<bool>()) << header["log"];
  EXPECT_EQ(header["cubin_bytes"].get<int>(), 0);
  EXPECT_GT(header["ptx_bytes"].get<int>(), 0);
}

TEST(CompileService, AHeaderOfTheRequestIsReadFirstAndNoOther) {
  const Json header = Compile("__global__ void k(int* x) { *x = kAnswer + no_such_name; }\n",
                              {{"headers", {{"a/answer.h", "constexpr int kAnswer = 42;\n"}}},
                               {"pre_include", "a/answer.h"}});
  // The place is that of the source: what is read first moves no line.
  ASSERT_EQ(Errors(header).size(), 1u) << header["log"];
  EXPECT_EQ(Errors(header)[0]["line"].get<int>(), 1);
  EXPECT_EQ(Errors(header)[0]["file"].get<std::string>(), "kernel.cu");
  EXPECT_THAT(Errors(header)[0]["message"].get<std::string>(), HasSubstr("no_such_name"));
  const auto reply = Ask({{"pre_include", "/etc/passwd"}}, "__global__ void k() {}");
  ASSERT_FALSE(reply);
  EXPECT_THAT(ToString(reply.error()), HasSubstr("pre_include"));
}

TEST(CompileService, FunctionsMayBelongToTheDeviceByDefault) {
  const std::string_view source =
      "int twice(int a) { return 2 * a; }\n"
      "__global__ void k(int* x) { *x = twice(*x); }\n";
  EXPECT_FALSE(Compile(source)["ok"].get<bool>());
  for (const char* option : {"-default-device", "--device-as-default-execution-space"}) {
    const Json header = Compile(source, {{"options", {option}}});
    EXPECT_TRUE(header["ok"].get<bool>()) << header["log"];
  }
}

TEST(CompileService, MacrosPassAndPathsDoNot) {
  EXPECT_TRUE(
      Compile("__global__ void k(int* x) { *x = N; }", {{"options", {"-DN=4"}}})["ok"].get<bool>());
  for (const char* option : {"-I/etc", "--include-path=/etc", "-include=/etc/passwd",
                             "--pch-dir=/tmp", "-time=/tmp/x", "-D"}) {
    const auto reply = Ask({{"options", {option}}}, "__global__ void k() {}");
    ASSERT_FALSE(reply) << option;
    EXPECT_EQ(reply.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(reply.error().message, HasSubstr(option));
  }
}

TEST(CompileService, MalformedRequestsAreErrors) {
  EXPECT_THAT(Ask({{"arch", "sm_90 --x"}}, "").error().message, HasSubstr("no architecture"));
  // A target that NVRTC does not know is no diagnostic of the source.
  EXPECT_THAT(Ask({{"arch", "sm_12"}}, "").error().message, HasSubstr("refuses its options"));
  EXPECT_THAT(ToString(Ask({{"optoins", Json::array()}}, "").error()), HasSubstr("options"));
  EXPECT_THAT(Ask({{"action", "nosuch"}}, "").error().message, HasSubstr("nosuch"));
}

TEST(CompileService, BytesThatAreNoTextAreTheCandidatesFault) {
  EXPECT_FALSE(Compile(std::string_view("__global__ void k() {}\0int x;", 29))["ok"].get<bool>());
  EXPECT_FALSE(Compile("\xff\xfe\x80 \xc3(")["ok"].get<bool>());
}

TEST(CompileService, ToolkitHeadersOfEverydayKernelsCompile) {
  const Json header = Compile(R"(
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/std/type_traits>
#include <cuda/std/cstdint>
namespace cg = cooperative_groups;
__global__ void k(__half* x, cuda::std::uint32_t n) {
  auto block = cg::this_thread_block();
  if (block.thread_rank() < n) x[block.thread_rank()] = __float2half(1.0f);
})");
  EXPECT_TRUE(header["ok"].get<bool>()) << header["log"];
}

TEST(CompileService, ProbeSaysWhatIsThere) {
  const auto health = sandbox::ProbeCompiler(Pool());
  ASSERT_TRUE(health) << ToString(health.error());
  EXPECT_THAT(health->nvrtc, HasSubstr("."));
  EXPECT_THAT(health->library, HasSubstr("/cuda/lib/libnvrtc.so"));  // Inside: nothing of the host.
  EXPECT_THAT(health->architectures, testing::Contains(90));
}

}  // namespace
}  // namespace assay::workers
