#include "validator/engine/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace assay::engine {
namespace {

ops::TensorSpec Spec(std::string name, std::vector<std::string> shape, std::string dtype,
                     bool scalar = false) {
  ops::TensorSpec spec;
  spec.name = std::move(name);
  spec.dtype_name = std::move(dtype);
  spec.is_scalar = scalar;
  for (const std::string& extent : shape)
    spec.shape.push_back(ops::Expression::Parse(extent, "test").value());
  return spec;
}

class BindTest : public testing::Test {
 protected:
  BindTest() {
    ops::Axis n;
    n.name = "n";
    instance_.op.name = "scale";
    instance_.op.axes = {n};
    instance_.op.inputs = {Spec("x", {"n"}, "bf16"), Spec("factor", {}, "f32", true)};
    instance_.op.outputs = {Spec("y", {"n"}, "bf16")};
    instance_.arch = "sm_80";
    compiled_.ptx = "ptx";
    compiled_.lowered = {{"scale<4>", "_Z5scale"}};
    plan_.kernels = {{.entry = "scale<4>",
                      .grid = {2, 1, 1},
                      .block = {64, 1, 1},
                      .cluster = {1, 1, 1},
                      .shared_bytes = 512,
                      .cooperative = false,
                      .args = {"x", "sums", "y", "factor", "n"}}};
    plan_.workspace = {{.name = "sums", .dtype = DType::kF32, .elements = 10, .zero = true}};
    inputs_.emplace("x", Tensor::Create(DType::kBF16, {5}).value());
    inputs_.emplace("factor", Tensor::Create(DType::kF32, {}).value());
    inputs_.find("factor")->second.Set(0, 2.5);
  }

  Result<Binding> BindOnce(const BindOptions& options = {}) {
    const Call call{&plan_, &axes_, &inputs_};
    return Bind(instance_, compiled_, {&call, 1}, options);
  }

  ops::Instance instance_;
  CompiledKernel compiled_;
  ops::ResolvedPlan plan_;
  ops::AxisValues axes_{{"n", 5}};
  TensorMap inputs_;
};

TEST_F(BindTest, TurnsNamesIntoBuffersAndScalars) {
  const auto binding = BindOnce({.poison = 0x3c, .misalign = 6});
  ASSERT_TRUE(binding) << ToString(binding.error());
  const Execution& execution = binding->execution;
  ASSERT_EQ(execution.buffers.size(), 3u);
  EXPECT_EQ(execution.buffers[0].role, BufferRole::kInput);
  EXPECT_EQ(execution.buffers[0].fill, BufferFill::kProvided);
  EXPECT_EQ(execution.buffers[1].name, "y");
  EXPECT_EQ(execution.buffers[1].fill, BufferFill::kUninitialised);
  EXPECT_EQ(execution.buffers[1].poison, 0x3c);
  EXPECT_EQ(execution.buffers[2].fill, BufferFill::kZero);
  // Misalignment keeps to each dtype's own size.
  EXPECT_EQ(execution.buffers[0].misalign, 6u);
  EXPECT_EQ(execution.buffers[2].misalign, 4u);
  EXPECT_EQ(execution.target_sm, "sm_80");
  ASSERT_EQ(execution.launches.size(), 1u);
  const Launch& launch = execution.launches[0];
  EXPECT_EQ(launch.entry, "_Z5scale");
  EXPECT_EQ(launch.shared_bytes, 512u);
  ASSERT_EQ(launch.args.size(), 5u);
  EXPECT_EQ(launch.args[0].kind, Argument::Kind::kBuffer);
  EXPECT_EQ(launch.args[1].buffer, 2u);
  float factor = 0;
  ASSERT_EQ(launch.args[3].bytes.size(), 4u);
  std::memcpy(&factor, launch.args[3].bytes.data(), 4);
  EXPECT_EQ(factor, 2.5f);
  std::int64_t n = 0;
  ASSERT_EQ(launch.args[4].bytes.size(), 8u);
  std::memcpy(&n, launch.args[4].bytes.data(), 8);
  EXPECT_EQ(n, 5);
  EXPECT_EQ(launch.args[4].dtype, DType::kI64);
}

TEST_F(BindTest, BlocksThatHaveNoNumbersAreALimitOfOurs) {
  plan_.kernels[0].grid = {131072, 16383, 1};
  EXPECT_TRUE(BindOnce());
  plan_.kernels[0].grid = {131072, 16384, 1};
  const auto binding = BindOnce();
  ASSERT_FALSE(binding);
  EXPECT_EQ(binding.error().kind, ErrorKind::kLimit);
}

TEST_F(BindTest, BuffersAreTheTensorsOwnMemoryAndStayThereWhenMoved) {
  auto first = BindOnce();
  ASSERT_TRUE(first);
  const Binding moved = *std::move(first);
  EXPECT_EQ(moved.buffers[0], &inputs_.find("x")->second.memory);
  EXPECT_EQ(moved.buffers[1], &moved.calls[0].outputs.find("y")->second.memory);
  EXPECT_EQ(moved.buffers[2], &moved.calls[0].workspace[0]);
  EXPECT_EQ(moved.calls[0].buffer_of.at("y"), 1u);
}

TEST_F(BindTest, CallsHaveBuffersOfTheirOwn) {
  const Call call{&plan_, &axes_, &inputs_};
  const std::vector<Call> calls(3, call);
  const auto binding = Bind(instance_, compiled_, calls);
  ASSERT_TRUE(binding);
  EXPECT_EQ(binding->execution.launches.size(), 3u);
  EXPECT_EQ(binding->execution.buffers.size(), 9u);
  EXPECT_EQ(binding->execution.buffers[1].name, "y@call1");
  EXPECT_EQ(binding->execution.buffers[7].name, "y");
  EXPECT_EQ(binding->execution.launches[2].args[2].buffer, 7u);
}

TEST_F(BindTest, CallsTakeOverTheAddressesOfTheCallBefore) {
  plan_.kernels.push_back(plan_.kernels[0]);
  const Call call{&plan_, &axes_, &inputs_};
  const std::vector<Call> calls(3, call);
  for (const bool reuse : {false, true}) {
    const auto binding = Bind(instance_, compiled_, calls, {.reuse_addresses = reuse});
    ASSERT_TRUE(binding);
    const std::vector<BufferSpec>& buffers = binding->execution.buffers;
    ASSERT_EQ(buffers.size(), 9u);
    for (std::uint32_t i = 0; i < 9; ++i) {
      const auto expected = reuse && i >= 3 ? std::optional(BufferReuse{i - 3, i / 3 * 2})
                                            : std::optional<BufferReuse>();
      EXPECT_EQ(buffers[i].reuse, expected) << i;
    }
    EXPECT_TRUE(CheckBuffers(binding->execution));
  }
}

TEST_F(BindTest, CallsWithoutKernelsHaveNoAddressesToTakeOver) {
  ops::ResolvedPlan nothing = plan_;
  nothing.kernels.clear();
  const Call call{&plan_, &axes_, &inputs_};
  const Call idle{&nothing, &axes_, &inputs_};
  for (const std::vector<Call>& calls :
       {std::vector<Call>{idle, call}, std::vector<Call>{call, idle}, std::vector<Call>{idle, idle},
        std::vector<Call>{call, idle, call}}) {
    const auto binding = Bind(instance_, compiled_, calls, {.reuse_addresses = true});
    ASSERT_TRUE(binding);
    EXPECT_TRUE(CheckBuffers(binding->execution));
  }
}

TEST_F(BindTest, OneCallIsMadeSeveralTimesOnItsBuffers) {
  plan_.kernels.push_back(plan_.kernels[0]);
  const std::vector<Call> calls = {{&plan_, &axes_, &inputs_, 3}, {&plan_, &axes_, &inputs_}};
  const auto binding = Bind(instance_, compiled_, calls, {.reuse_addresses = true});
  ASSERT_TRUE(binding);
  const Execution& execution = binding->execution;
  ASSERT_EQ(execution.buffers.size(), 6u);
  ASSERT_EQ(execution.launches.size(), 8u);
  // Its output and its workspace, before each further time.
  for (const std::size_t l : {2u, 4u})
    EXPECT_THAT(execution.launches[l].fresh, testing::ElementsAre(1, 2)) << l;
  for (const std::size_t l : {0u, 1u, 3u, 5u, 6u, 7u})
    EXPECT_TRUE(execution.launches[l].fresh.empty()) << l;
  EXPECT_EQ(execution.launches[5].args[2].buffer, 1u);
  EXPECT_EQ(execution.buffers[4].reuse, (BufferReuse{1, 6}));
  EXPECT_TRUE(CheckBuffers(execution));
}

TEST_F(BindTest, AnOutputThatOverwritesAnInputIsACopyOfItWithTwoNames) {
  ops::TensorSpec next = Spec("x_out", {"n"}, "bf16");
  next.updates = "x";
  instance_.op.outputs.push_back(next);
  plan_.kernels[0].args = {"x", "sums", "y", "factor", "x_out"};
  inputs_.find("x")->second.Set(4, 7);
  const std::vector<Call> calls = {{&plan_, &axes_, &inputs_, 2}, {&plan_, &axes_, &inputs_}};
  const auto binding = Bind(instance_, compiled_, calls, {.reuse_addresses = true});
  ASSERT_TRUE(binding) << ToString(binding.error());
  const Execution& execution = binding->execution;
  // y, x_out, sums, twice.
  ASSERT_EQ(execution.buffers.size(), 6u);
  EXPECT_EQ(execution.buffers[1].role, BufferRole::kOutput);
  EXPECT_EQ(execution.buffers[1].fill, BufferFill::kProvided);
  EXPECT_EQ(execution.launches[0].args[0].buffer, 1u);
  EXPECT_EQ(execution.launches[0].args[4].buffer, 1u);
  // Each call finds it as it was; and the input itself stays.
  EXPECT_THAT(execution.launches[1].fresh, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(execution.buffers[4].reuse, (BufferReuse{1, 2}));
  EXPECT_TRUE(CheckBuffers(execution));
  const Tensor& out = binding->calls[1].outputs.find("x_out")->second;
  EXPECT_NE(binding->buffers[4], &inputs_.find("x")->second.memory);
  EXPECT_EQ(binding->buffers[4], &out.memory);
  EXPECT_EQ(out.At(4), 7);
}

TEST_F(BindTest, UnknownNamesAreErrorsWithAPlace) {
  plan_.kernels[0].args = {"nobody"};
  const auto unknown = BindOnce();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kMalformedInput);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("nobody"));
  plan_.kernels[0].args = {};
  plan_.kernels[0].entry = "missing";
  EXPECT_THAT(BindOnce().error().message, testing::HasSubstr("missing"));
}

}  // namespace
}  // namespace assay::engine
