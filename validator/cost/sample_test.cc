// Naive kernels of the library at their workloads, and answers of a worker that lies.
#include "validator/cost/sample.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "ops/host_headers.h"
#include "ops/prelude.h"
#include "validator/engine/toolbox.h"

namespace assay::cost {
namespace {

struct Loaded {
  ops::Instance instance;
  ops::LaunchPlan plan;
  engine::CompiledKernel compiled;
  Subject subject() const { return {.instance = instance, .plan = plan, .compiled = compiled}; }
};

Result<Loaded> Load(engine::Compiler& compiler, const std::string& op, const std::string& source,
                    const std::string& launch) {
  ASSAY_TRY(ops::OpSpec spec, ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / op));
  Loaded loaded;
  ASSAY_TRY(loaded.instance, ops::MakeInstance(std::move(spec), {{"T", "f32"}}, "sm_90"));
  ASSAY_TRY(const Json document, ParseJson(launch, "launch.json"));
  ASSAY_TRY(loaded.plan, ops::ParseLaunchPlan(document, "launch.json", loaded.instance.op));
  engine::CompileRequest request{.source = source};
  request.headers = ops::HostHeaders();
  request.pre_include = ops::kHostNames;
  request.defines = ops::CandidateDefines(loaded.instance);
  for (const ops::KernelPlan& kernel : loaded.plan.kernels) request.entries.push_back(kernel.entry);
  ASSAY_TRY(engine::CompileOutcome outcome, compiler.Compile(request));
  if (outcome.kind != engine::CompileOutcome::Kind::kCompiled)
    return Fail(ErrorKind::kMalformedInput, "the kernel does not compile");
  loaded.compiled = std::move(outcome.kernel);
  return loaded;
}

class SampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto toolbox = engine::Toolbox::Create({.jail = false});
    ASSERT_TRUE(toolbox) << ToString(toolbox.error());
    toolbox_ = std::move(*toolbox);
  }
  Result<SpeedEstimate> At(const std::string& op, const std::string& source,
                           const std::string& launch, const ops::AxisValues& axes) {
    ASSAY_TRY(const Loaded loaded, Load(toolbox_->compiler(), op, source, launch));
    const Sampler sampler(toolbox_->workers(), {.steps = 2'000'000, .most_steps = 60'000'000});
    return sampler.At(loaded.subject(), {.axes = axes, .note = "a test"}, *FindChip("h100"));
  }
  std::unique_ptr<engine::Toolbox> toolbox_;
};

// One thread a row, or one warp: the same work, with 32 times the requests' sectors.
std::string RowSum(bool warp) {
  return std::string(R"(
extern "C" __global__ void row_sum(const float* x, float* y, long long rows, long long columns) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
)") + (warp ? R"(
  const long long row = thread / 32;
  if (row >= rows) return;
  float sum = 0;
  for (long long c = threadIdx.x % 32; c < columns; c += 32) sum += x[row * columns + c];
  for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, i);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}
)"
            : R"(
  if (thread >= rows) return;
  float sum = 0;
  for (long long c = 0; c < columns; ++c) sum += x[thread * columns + c];
  y[thread] = sum;
}
)");
}
std::string Plan(const std::string& grid) {
  return R"({"schema": "assay.launch/1", "kernels": [{"entry": "row_sum", "grid": [")" + grid +
         R"("], "block": [128], "args": ["x", "y", "rows", "columns"]}]})";
}

TEST_F(SampleTest, ReadingAcrossRowsIsWorseThanAlongThem) {
  const ops::AxisValues axes = {{"rows", 8192}, {"columns", 4096}};
  const auto along = At("row_sum", RowSum(true), Plan("ceil_div(rows, 4)"), axes);
  const auto across = At("row_sum", RowSum(false), Plan("ceil_div(rows, 128)"), axes);
  ASSERT_TRUE(along) << ToString(along.error());
  ASSERT_TRUE(across) << ToString(across.error());
  ASSERT_EQ(along->left_out, "");
  ASSERT_EQ(across->left_out, "");
  ASSERT_EQ(along->launches.size(), 1);
  EXPECT_EQ(along->launches[0].blocks, 2048);
  EXPECT_GT(along->launches[0].sampled, 8);
  EXPECT_LT(along->launches[0].sampled, 2048);
  EXPECT_NEAR(along->launches[0].sectors_a_request, 4, 0.01);
  EXPECT_NEAR(across->launches[0].sectors_a_request, 32, 0.01);
  // 128 MiB, whichever way.
  EXPECT_NEAR(along->launches[0].dram_bytes, 4.0 * 8192 * 4096, 1e6);
  EXPECT_EQ(along->limiter, Limiter::kDram) << along->Words();
  EXPECT_GT(across->bound, 2 * along->bound);
  EXPECT_GT(along->ShareOfLimit(), 0.9);
  EXPECT_LT(across->ShareOfLimit(), 0.5);
}

TEST_F(SampleTest, BlocksThatDependOnEachOtherAreCountedAllTheSame) {
  // The last block to come adds what the others left: in a sample none is the last.
  const std::string source = R"(
extern "C" __global__ void row_sum(const float* x, float* y, unsigned* count, long long rows,
                                   long long columns) {
  __shared__ bool last;
  const long long row = blockIdx.x;
  float sum = 0;
  for (long long c = threadIdx.x; c < columns; c += blockDim.x) sum += x[row * columns + c];
  atomicAdd(&y[row], sum);
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) *count = 0;
}
)";
  const std::string plan = R"({"schema": "assay.launch/1", "kernels": [{"entry": "row_sum",
    "grid": ["rows"], "block": [128], "args": ["x", "y", "count", "rows", "columns"]}],
    "workspace": [{"name": "count", "dtype": "u32", "shape": [1], "init": "zero"}]})";
  const auto estimate = At("row_sum", source, plan, {{"rows", 4096}, {"columns", 1024}});
  ASSERT_TRUE(estimate) << ToString(estimate.error());
  ASSERT_EQ(estimate->left_out, "");
  EXPECT_LT(estimate->launches[0].sampled, 4096);
  // 128 threads of a block add to one place, in turn.
  EXPECT_GT(estimate->Share(Limiter::kAtomics), 0);
}

TEST_F(SampleTest, WorkThatRepeatsAlongTheGridIsMetAtItsMean) {
  // As behind a causal mask: in every 1024 blocks the first has one turn and the last 64. Where the
  // repetition begins makes no difference to the whole.
  const auto bound = [&](int shift) {
    const std::string source = R"(
extern "C" __global__ void row_sum(const float* x, float* y, long long rows, long long columns) {
  const long long turns = (blockIdx.x + )" +
                               std::to_string(shift) + R"() % 1024 / 16 + 1;
  float sum = 0;
  for (long long i = 0; i < turns; ++i)
    for (long long c = threadIdx.x; c < columns; c += 128) sum += x[(i * 37 + blockIdx.x) % rows * columns + c];
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
)";
    const auto estimate = At("row_sum", source, Plan("rows"), {{"rows", 16384}, {"columns", 128}});
    EXPECT_TRUE(estimate) << ToString(estimate.error());
    EXPECT_EQ(estimate->left_out, "");
    return estimate->bound;
  };
  const double first = bound(0);
  for (const int shift : {256, 512, 1023}) {
    const double ratio = bound(shift) / first;
    EXPECT_GT(ratio, 0.5) << "from block " << shift;
    EXPECT_LT(ratio, 2) << "from block " << shift;
  }
}

TEST_F(SampleTest, WhatCannotBeSampledIsLeftOutWithItsReason) {
  const std::string forever = R"(
extern "C" __global__ void row_sum(const float* x, float* y, long long rows, long long columns) {
  volatile float* out = y;
  for (unsigned i = 0; i < 4000000000u; ++i) out[0] = x[0] + static_cast<float>(i);
}
)";
  const auto estimate = At("row_sum", forever, Plan("1"), {{"rows", 4}, {"columns", 4}});
  ASSERT_TRUE(estimate) << ToString(estimate.error());
  EXPECT_NE(estimate->left_out.find("did not run to their end"), std::string::npos)
      << estimate->left_out;
  EXPECT_EQ(estimate->launches.size(), 0);
}

TEST(SampleOf, AWorkerThatLiesIsNotBelieved) {
  auto toolbox = engine::Toolbox::Create({.jail = false});
  ASSERT_TRUE(toolbox) << ToString(toolbox.error());
  const auto loaded =
      Load((*toolbox)->compiler(), "row_sum", RowSum(true), Plan("ceil_div(rows, 4)"));
  ASSERT_TRUE(loaded) << ToString(loaded.error());
  Report report;
  report.unwritten_bytes = {0, 0};
  report.first_unwritten = {-1, -1};
  LaunchCounts none;
  for (const Json& counts : {Json("many"), Json::array(), Json({{{"blocks", -1}}}),
                             WriteJson(std::vector<LaunchCounts>{none})}) {
    sandbox::FakeWorkers workers([&](sandbox::WorkerKind, const sandbox::Request&,
                                     std::chrono::milliseconds) -> Result<sandbox::Reply> {
      sandbox::Reply reply;
      reply.message.header = {{"report", ToJson(report)}, {"counts", counts}};
      return reply;
    });
    const Sampler sampler(workers, {});
    const auto estimate =
        sampler.At(loaded->subject(), {.axes = {{"rows", 8}, {"columns", 8}}}, *FindChip("h100"));
    ASSERT_TRUE(estimate) << ToString(estimate.error());
    EXPECT_NE(estimate->left_out, "") << counts.dump();
  }
}

}  // namespace
}  // namespace assay::cost
