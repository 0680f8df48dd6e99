// PTX of other compilers through the command line: modules as Triton and Numba write them, run by
// `assay sanitize` with all checks, and their results compared with the same computation here.
#include <gtest/gtest.h>

#include <cmath>

#include "base/dtype.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using Values = std::vector<double>;

/// Runs tests/modules/NAME.ptx by NAME.json, in a folder of its own, which holds what it saves.
class Module {
 public:
  explicit Module(const std::string& name) {
    const Path modules = Path(ASSAY_SOURCE_DIR) / "tests/modules";
    std::filesystem::copy(modules / (name + ".json"), scratch_ / "launch.json");
    ran_ = RunProgram(Path(ASSAY_BINARY_DIR) / "bin/assay",
                      {"sanitize", (modules / (name + ".ptx")).string(), "--launch",
                       (scratch_ / "launch.json").string(), "--arch", "sm_90a"});
  }
  const Ran& ran() const { return ran_; }
  Values Saved(const std::string& file, DType dtype) const {
    const auto bytes = ReadFile(scratch_ / file);
    EXPECT_TRUE(bytes) << file;
    Values values;
    for (std::size_t at = 0; bytes && at < bytes->size(); at += SizeOf(dtype))
      values.push_back(LoadAsDouble(dtype, reinterpret_cast<const std::byte*>(bytes->data()) + at));
    return values;
  }

 private:
  Scratch scratch_;
  Ran ran_;
};

TEST(Modules, TritonSoftmax) {
  const Module module("triton_softmax");
  ASSERT_EQ(module.ran().exit, 0) << module.ran().err;
  const Values x = module.Saved("x.bin", DType::kF32);
  const Values y = module.Saved("y.bin", DType::kF32);
  ASSERT_EQ(y.size(), 3000u);
  for (std::size_t row = 0; row < 3000; row += 1000) {
    double sum = 0;
    for (std::size_t i = row; i < row + 1000; ++i) sum += std::exp(x[i]);
    for (std::size_t i = row; i < row + 1000; ++i)
      EXPECT_NEAR(y[i], std::exp(x[i]) / sum, 1e-5 * y[i]) << i;
  }
}

/// Its tensor maps are made in the kernel, by tensormap.replace.
TEST(Modules, TritonProductThroughDescriptors) {
  const Module module("triton_descriptors");
  ASSERT_EQ(module.ran().exit, 0) << module.ran().err;
  const Values a = module.Saved("a.bin", DType::kF16);
  const Values b = module.Saved("b.bin", DType::kF16);
  const Values c = module.Saved("c.bin", DType::kF16);
  constexpr std::size_t kSize = 128;
  ASSERT_EQ(c.size(), kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + j];
      ASSERT_NEAR(c[i * kSize + j], sum, 2e-3 + 1e-3 * std::abs(sum)) << i << ", " << j;
    }
  }
}

TEST(Modules, NumbaHistogram) {
  const Module module("numba_histogram");
  ASSERT_EQ(module.ran().exit, 0) << module.ran().err;
  Values bins(10);
  for (const double x : module.Saved("x.bin", DType::kI32)) {
    const int rest = static_cast<int>(x) % 10;
    ++bins[static_cast<std::size_t>(rest < 0 ? rest + 10 : rest)];
  }
  EXPECT_EQ(module.Saved("h.bin", DType::kI32), bins);
}

}  // namespace
}  // namespace assay::tests
