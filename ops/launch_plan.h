// The launch plan of a candidate or a reference (format assay.launch/1): which kernels run, how
// large, on what.
//
// A plan is data from an untrusted author: everything in it is an expression over axes or a name
// that must be known. It never carries compiler options or paths (the stand-alone form used by
// `assay sanitize`, sanitize_plan.h, does: its author is the user).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "ops/expression.h"
#include "ops/op.h"
#include "ops/tensor_map_plan.h"

namespace assay::ops {

struct KernelPlan {
  std::string entry;  ///< "scatter" or a template instantiation, "rms<float, 256>".
  std::array<Expression, 3> grid;
  std::array<Expression, 3> block;
  std::array<Expression, 3> cluster;
  Expression shared_bytes = Expression::Constant(0);
  bool cooperative = false;
  std::vector<std::string> args;  ///< Names of inputs, outputs, workspace, tensor maps, axes.
};

struct WorkspacePlan {
  std::string name;
  std::string dtype_name;  ///< A dtype, or a binding variable of the op.
  std::vector<Expression> shape;
  enum class Init : std::uint8_t { kUninitialised, kZero } init = Init::kUninitialised;
};

struct LaunchPlan {
  std::vector<KernelPlan> kernels;
  std::vector<WorkspacePlan> workspace;
  std::vector<TensorMapPlan> tensor_maps;
  std::string digest;
};

/// Reads a plan and checks names against the op: an unknown tensor or axis is an error naming its
/// place and the nearest known name.
Result<LaunchPlan> ParseLaunchPlan(const Json& document, const std::string& file, const OpSpec& op);

/// One entry of `kernels`; `arguments` are the names that args may use. Shared with the stand-alone
/// form.
Result<KernelPlan> ReadKernelPlan(const Json& document, const std::string& place,
                                  const std::vector<std::string>& axes,
                                  const std::vector<std::string>& arguments);
/// A kernel's name or a template's instantiation: letters, digits and `_:<>,*&.- ` only, as it is
/// handed to the compiler.
bool IsEntryName(std::string_view entry);

/// What CUDA takes of a grid along x; along y and z it is 65535.
inline constexpr std::int64_t kMostBlocksAlongX = 2147483647;

struct ResolvedKernel {
  std::string entry;
  std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
  std::uint64_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::string> args;
};
struct ResolvedWorkspace {
  std::string name;
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  bool zero = false;
};
struct ResolvedPlan {
  std::vector<ResolvedKernel>
      kernels;  ///< Kernels with an empty grid (an extent of 0) are left out.
  std::vector<ResolvedWorkspace> workspace;
  std::vector<ResolvedTensorMap> tensor_maps;
};

/// Evaluates all expressions for one shape; ranges of grid (2^31-1, 65535, 65535) and block (1024
/// threads) are checked.
Result<ResolvedPlan> Resolve(const LaunchPlan& plan, const Instance& instance,
                             const AxisValues& axes);

}  // namespace assay::ops
