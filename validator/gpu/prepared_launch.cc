#include "validator/gpu/prepared_launch.h"

#include <fmt/format.h>

#include <cstring>

#include "validator/execution/arguments.h"

namespace assay::gpu {
namespace {

constexpr int TypeInMaps(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 6;
    case DType::kBF16:
      return 9;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    default:
      break;
  }
  switch (SizeOf(dtype)) {
    case 1:
      return 0;
    case 2:
      return 1;
    case 4:
      return dtype == DType::kI32 ? 3 : 2;
    default:
      return dtype == DType::kI64 ? 5 : 4;
  }
}

std::string EncodeMap(const Driver& driver, const Argument& argument, const DeviceMemory& memory,
                      TensorMapImage& image) {
  const TensorMapSpec& map = argument.map;
  const std::vector<std::uint32_t> ones(map.shape.size(), 1);
  const int code = driver.encode_tiled(
      &image, TypeInMaps(map.dtype), static_cast<std::uint32_t>(map.shape.size()),
      reinterpret_cast<void*>(memory.AddressOf(argument.buffer)), map.shape.data(),
      map.strides.data(), map.box.data(), ones.data(), 0, map.swizzle, 0, map.fill_nan ? 1 : 0);
  if (code == kSuccess) return {};
  return fmt::format("tensor map '{}': cuTensorMapEncodeTiled: {}", argument.name,
                     driver.NameOf(code));
}

/// One block of bytes an argument, as long as the kernel's parameter.
std::string LayArguments(const Driver& driver, const assay::Launch& launch,
                         const DeviceMemory& memory, PreparedLaunch& prepared) {
  std::size_t offset = 0, bytes = 0;
  prepared.maps.resize(launch.args.size());
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const Argument& argument = launch.args[i];
    if (driver.parameter_info(prepared.function, i, &offset, &bytes) != kSuccess)
      return fmt::format("it takes fewer than the {} arguments given", launch.args.size());
    std::vector<std::uint8_t>& value = prepared.values.emplace_back();
    if (argument.kind == Argument::Kind::kBuffer) {
      const DeviceAddress address = memory.AddressOf(argument.buffer);
      value.resize(sizeof address);
      std::memcpy(value.data(), &address, sizeof address);
    } else if (argument.kind == Argument::Kind::kTensorMap) {
      std::string refusal = EncodeMap(driver, argument, memory, prepared.maps[i]);
      if (!refusal.empty()) return refusal;
      value.resize(sizeof prepared.maps[i]);
    } else {
      value = FitScalar(argument, bytes);
    }
    if (value.size() != bytes) {
      return fmt::format("argument '{}' has {} bytes, its parameter {}", argument.name,
                         argument.bytes.size(), bytes);
    }
  }
  if (driver.parameter_info(prepared.function, launch.args.size(), &offset, &bytes) == kSuccess)
    return fmt::format("it takes more than the {} arguments given", launch.args.size());
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    prepared.parameters.push_back(launch.args[i].kind == Argument::Kind::kTensorMap
                                      ? static_cast<void*>(&prepared.maps[i])
                                      : static_cast<void*>(prepared.values[i].data()));
  }
  return {};
}

}  // namespace

bool IsEmpty(const assay::Launch& launch) {
  return launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0;
}

std::string PrepareLaunch(const Driver& driver, Module module, const assay::Launch& launch,
                          const DeviceMemory& memory, PreparedLaunch& prepared) {
  if (driver.module_function(&prepared.function, module, launch.entry.c_str()) != kSuccess)
    return "the program has no such kernel";
  if (std::string refusal = LayArguments(driver, launch, memory, prepared); !refusal.empty())
    return refusal;
  if (launch.shared_bytes > 48 * 1024) {
    const int code = driver.function_attribute(prepared.function, kMaxDynamicSharedBytes,
                                               static_cast<int>(launch.shared_bytes));
    if (code != kSuccess) {
      return fmt::format("{} bytes of dynamic shared memory: {}", launch.shared_bytes,
                         driver.NameOf(code));
    }
  }
  if (launch.cooperative)
    prepared.attributes.push_back({.id = LaunchAttribute::kCooperative, .value = {1}});
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (cluster > 1) {
    if (cluster > 8) driver.function_attribute(prepared.function, kNonPortableClusterSize, 1);
    prepared.attributes.push_back(
        {.id = LaunchAttribute::kClusterDimension,
         .value = {launch.cluster[0], launch.cluster[1], launch.cluster[2]}});
  }
  prepared.config = {.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                     .block = {launch.block[0], launch.block[1], launch.block[2]},
                     .shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes),
                     .attributes = prepared.attributes.data(),
                     .attribute_count = static_cast<std::uint32_t>(prepared.attributes.size())};
  return {};
}

int Start(const Driver& driver, PreparedLaunch& prepared, Stream stream) {
  prepared.config.stream = stream;
  return driver.launch(&prepared.config, prepared.function, prepared.parameters.data(), nullptr);
}

}  // namespace assay::gpu
