#include "ops/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/digest.h"
#include "ops/names.h"

namespace assay::ops {
namespace {

constexpr std::string_view kSchema = "assay.launch/1";
constexpr std::size_t kMaxKernels = 64;
constexpr std::size_t kMaxWorkspace = 64;
constexpr std::size_t kMaxArgs = 128;
constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{1} << 37;
// The largest of any target; the compile gate knows the chosen target's own limit.
constexpr std::int64_t kMaxSharedBytes = 228 * 1024;

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

Result<Json> ArrayAt(ObjectReader& reader, std::string_view key, bool required,
                     std::size_t at_most) {
  Json array = Json::array();
  if (required) {
    ASSAY_TRY(array, reader.Required<Json>(key));
  } else {
    ASSAY_TRY(array, reader.Optional<Json>(key, Json::array()));
  }
  if (!array.is_array()) {
    return Bad(fmt::format("must be an array, not {}", array.type_name()), reader.PlaceOf(key));
  }
  if (array.size() > at_most) {
    return Bad(fmt::format("has {} entries, and at most {} are allowed", array.size(), at_most),
               reader.PlaceOf(key));
  }
  return array;
}

// A number, an expression, or an array of up to three of them; missing ones are 1.
Result<std::array<Expression, 3>> ReadDim3(ObjectReader& reader, std::string_view key,
                                           bool required, const std::vector<std::string>& axes) {
  Json value = 1;
  if (required) {
    ASSAY_TRY(value, reader.Required<Json>(key));
  } else {
    ASSAY_TRY(value, reader.Optional<Json>(key, Json(1)));
  }
  if (!value.is_array()) value = Json::array({value});
  if (value.empty()) return Bad("needs one to three extents", reader.PlaceOf(key));
  ASSAY_TRY(const auto extents, ReadExpressions(value, reader.PlaceOf(key), axes, 3));
  std::array<Expression, 3> dim3;
  std::ranges::copy(extents, dim3.begin());
  return dim3;
}

Result<std::uint32_t> Extent(const Expression& expression, const AxisValues& axes, std::int64_t low,
                             std::int64_t high, std::string_view what) {
  ASSAY_TRY(const std::int64_t value, expression.Evaluate(axes));
  if (value < low || value > high) {
    return Bad(fmt::format("{} comes to {}, outside of [{}, {}]", what, value, low, high),
               expression.place(),
               value < low ? "" : "spread the work over another dimension, or loop in the kernel");
  }
  return static_cast<std::uint32_t>(value);
}

Result<ResolvedKernel> ResolveKernel(const KernelPlan& plan, const AxisValues& axes,
                                     std::string_view where) {
  constexpr std::array<std::int64_t, 3> kGridLimits{kMostBlocksAlongX, 65535, 65535};
  constexpr std::array<std::int64_t, 3> kBlockLimits{1024, 1024, 64};
  constexpr std::array<char, 3> kLetters{'x', 'y', 'z'};
  ResolvedKernel kernel;
  kernel.entry = plan.entry;
  kernel.args = plan.args;
  kernel.cooperative = plan.cooperative;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSAY_TRY(kernel.grid[i],
              Extent(plan.grid[i], axes, 0, kGridLimits[i], fmt::format("grid.{}", kLetters[i])));
    ASSAY_TRY(kernel.block[i], Extent(plan.block[i], axes, 1, kBlockLimits[i],
                                      fmt::format("block.{}", kLetters[i])));
    ASSAY_TRY(kernel.cluster[i],
              Extent(plan.cluster[i], axes, 1, 16, fmt::format("cluster.{}", kLetters[i])));
    if (kernel.grid[i] % kernel.cluster[i] != 0) {
      return Bad(fmt::format("grid.{} ({}) is no multiple of cluster.{} ({})", kLetters[i],
                             kernel.grid[i], kLetters[i], kernel.cluster[i]),
                 std::string(where), "use round_up in the grid's expression");
    }
  }
  const std::uint64_t threads = std::uint64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
  if (threads > 1024) {
    return Bad(fmt::format("the block has {} threads, and 1024 is the limit", threads),
               std::string(where));
  }
  if (std::uint64_t{kernel.cluster[0]} * kernel.cluster[1] * kernel.cluster[2] > 16) {
    return Bad("the cluster has more than 16 blocks", std::string(where));
  }
  ASSAY_TRY(const std::int64_t shared, plan.shared_bytes.Evaluate(axes));
  if (shared < 0 || shared > kMaxSharedBytes) {
    return Bad(fmt::format("shared_bytes comes to {}, outside of [0, {}]", shared, kMaxSharedBytes),
               plan.shared_bytes.place());
  }
  kernel.shared_bytes = static_cast<std::uint64_t>(shared);
  return kernel;
}

}  // namespace

bool IsEntryName(std::string_view entry) {
  if (entry.empty() || entry.size() > 256) return false;
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_:<>, *&.-").contains(c);
  };
  const char first = entry.front();
  return (std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '_') &&
         std::ranges::all_of(entry, allowed);
}

Result<KernelPlan> ReadKernelPlan(const Json& document, const std::string& place,
                                  const std::vector<std::string>& axes,
                                  const std::vector<std::string>& arguments) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  KernelPlan kernel;
  ASSAY_TRY(kernel.entry, reader.Required<std::string>("entry"));
  if (!IsEntryName(kernel.entry)) {
    return Bad("is not the name of a kernel or of a template's instantiation",
               reader.PlaceOf("entry"), "for example \"scatter\" or \"rms<float, 256>\"");
  }
  ASSAY_TRY(kernel.grid, ReadDim3(reader, "grid", true, axes));
  ASSAY_TRY(kernel.block, ReadDim3(reader, "block", true, axes));
  ASSAY_TRY(kernel.cluster, ReadDim3(reader, "cluster", false, axes));
  ASSAY_TRY(const Json shared, reader.Optional<Json>("shared_bytes", Json(0)));
  ASSAY_TRY(kernel.shared_bytes, ReadExpression(shared, reader.PlaceOf("shared_bytes"), axes));
  ASSAY_TRY(kernel.cooperative, reader.Optional<bool>("cooperative", false));
  ASSAY_TRY(kernel.args, reader.Required<std::vector<std::string>>("args"));
  if (kernel.args.size() > kMaxArgs) {
    return Bad(fmt::format("a kernel has at most {} arguments", kMaxArgs), reader.PlaceOf("args"));
  }
  for (std::size_t i = 0; i < kernel.args.size(); ++i) {
    if (std::ranges::find(arguments, kernel.args[i]) == arguments.end()) {
      return UnknownName("argument", kernel.args[i], arguments,
                         fmt::format("{}/{}", reader.PlaceOf("args"), i));
    }
  }
  ASSAY_TRY_VOID(reader.Finish());
  return kernel;
}

Result<LaunchPlan> ParseLaunchPlan(const Json& document, const std::string& file,
                                   const OpSpec& op) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, file));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSchema) {
    return Bad(fmt::format("unknown schema '{}'", schema), reader.PlaceOf("schema"),
               fmt::format("this version reads {}", kSchema));
  }
  const std::vector<std::string> axes = AxisNames(op);
  std::vector<std::string> arguments = axes;
  std::vector<std::string> tensor_names;
  for (const auto* tensors : {&op.inputs, &op.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      arguments.push_back(tensor.name);
      if (!tensor.is_scalar) tensor_names.push_back(tensor.name);
    }
  }

  LaunchPlan plan;
  ASSAY_TRY(const Json workspace, ArrayAt(reader, "workspace", false, kMaxWorkspace));
  for (std::size_t i = 0; i < workspace.size(); ++i) {
    ASSAY_TRY(ObjectReader item,
              ObjectReader::Of(workspace[i], fmt::format("{}/{}", reader.PlaceOf("workspace"), i)));
    WorkspacePlan buffer;
    ASSAY_TRY(buffer.name, item.Required<std::string>("name"));
    if (!IsIdentifier(buffer.name)) {
      return Bad(fmt::format("'{}' is not a name", buffer.name), item.PlaceOf("name"),
                 "use letters, digits and underscores");
    }
    if (std::ranges::find(arguments, buffer.name) != arguments.end()) {
      return Bad(fmt::format("the name '{}' is taken", buffer.name), item.PlaceOf("name"),
                 "choose one that no axis, tensor or workspace has");
    }
    ASSAY_TRY(buffer.dtype_name, item.Required<std::string>("dtype"));
    ASSAY_TRY_VOID(CheckDType(op, buffer.dtype_name, item.PlaceOf("dtype")));
    ASSAY_TRY(const Json shape, item.Required<Json>("shape"));
    ASSAY_TRY(buffer.shape, ReadExpressions(shape, item.PlaceOf("shape"), axes, 8));
    ASSAY_TRY(const std::string init, item.Optional<std::string>("init", "uninitialised"));
    if (init == "zero") {
      buffer.init = WorkspacePlan::Init::kZero;
    } else if (init != "uninitialised" && init != "uninitialized") {
      return Bad(fmt::format("unknown init '{}'", init), item.PlaceOf("init"),
                 "use zero or uninitialised");
    }
    ASSAY_TRY_VOID(item.Finish());
    arguments.push_back(buffer.name);
    tensor_names.push_back(buffer.name);
    plan.workspace.push_back(std::move(buffer));
  }
  ASSAY_TRY(plan.tensor_maps, ReadTensorMaps(reader, axes, tensor_names, arguments));

  ASSAY_TRY(const Json kernels, ArrayAt(reader, "kernels", true, kMaxKernels));
  if (kernels.empty()) return Bad("names no kernel", reader.PlaceOf("kernels"), "add one");
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    ASSAY_TRY(KernelPlan kernel,
              ReadKernelPlan(kernels[i], fmt::format("{}/{}", reader.PlaceOf("kernels"), i), axes,
                             arguments));
    plan.kernels.push_back(std::move(kernel));
  }
  ASSAY_TRY_VOID(reader.Finish());
  plan.digest = Sha256Hex(CompactJson(document));
  return plan;
}

Result<ResolvedPlan> Resolve(const LaunchPlan& plan, const Instance& instance,
                             const AxisValues& axes) {
  ResolvedPlan resolved;
  std::int64_t total = 0;
  for (const WorkspacePlan& buffer : plan.workspace) {
    TensorSpec spec;
    spec.name = buffer.name;
    spec.dtype_name = buffer.dtype_name;
    spec.shape = buffer.shape;
    ResolvedWorkspace workspace;
    workspace.name = buffer.name;
    workspace.dtype = instance.TypeOf(spec);
    workspace.zero = buffer.init == WorkspacePlan::Init::kZero;
    ASSAY_TRY(const Shape shape, ResolveShape(spec, axes));
    ASSAY_TRY(workspace.elements, ElementCount(shape));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(workspace.elements,
                               static_cast<std::int64_t>(SizeOf(workspace.dtype)), &bytes) ||
        __builtin_add_overflow(total, bytes, &total) || total > kMaxWorkspaceBytes) {
      // A limit of the machine, not a fault of the plan: large shapes simply need that much.
      return Fail(ErrorKind::kLimit,
                  fmt::format("the workspace needs more than {} GiB", kMaxWorkspaceBytes >> 30),
                  "workspace " + buffer.name, "use a smaller one");
    }
    resolved.workspace.push_back(std::move(workspace));
  }
  for (const TensorMapPlan& map : plan.tensor_maps) {
    ASSAY_TRY(ResolvedTensorMap tensor_map, ResolveTensorMap(map, axes));
    resolved.tensor_maps.push_back(std::move(tensor_map));
  }
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    ASSAY_TRY(ResolvedKernel kernel,
              ResolveKernel(plan.kernels[i], axes, fmt::format("launch.json: /kernels/{}", i)));
    if (std::ranges::find(kernel.grid, 0u) == kernel.grid.end())
      resolved.kernels.push_back(std::move(kernel));
  }
  return resolved;
}

}  // namespace assay::ops
