#include "validator/emu/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "validator/emu/launch_shape.h"
#include "validator/emu/memory.h"
#include "validator/emu/tensor_map.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/execution/arguments.h"

namespace assay::emu {
namespace {

/// `at`: the kernel whose declaration the launch contradicts, where it does.
void LaunchFailure(Device& device, std::string message, const ptx::Function* at = nullptr) {
  Finding finding;
  finding.kind = FindingKind::kLaunchFailure;
  finding.message = message;
  if (at != nullptr) {
    Access declared{
        .what = "declares the kernel", .site = {}, .thread = {}, .threads = 0, .value = {}};
    declared.site.ptx_line = at->ptx_line;
    declared.site.instruction = device.program.Line(at->ptx_line);
    finding.accesses.push_back(std::move(declared));
  }
  device.findings.Add(std::move(finding), kNoPc, device.launch.number);
  device.End(Stop::kFault, std::move(message));
}

/// Limits that the device or the emulator has, beyond what the launch itself says.
bool CheckSizes(Device& device, const ptx::Function& function, const FunctionCode& code) {
  constexpr std::uint64_t kMaxParameterBytes = 32764;
  constexpr std::uint64_t kMaxStaticShared = 16u << 20;
  if (code.param_bytes > kMaxParameterBytes) {
    LaunchFailure(device,
                  fmt::format("the parameters of '{}' take {} bytes, more than the limit of {}",
                              function.name, code.param_bytes, kMaxParameterBytes));
    return false;
  }
  if (device.program.shared_static_bytes > kMaxStaticShared) {
    device.End(Stop::kResourceLimit, fmt::format("the module declares {} bytes of shared memory",
                                                 device.program.shared_static_bytes));
    return false;
  }
  return true;
}

/// A tensor map, as the bytes of its parameter.
bool TensorMapArgument(Device& device, const Argument& argument, std::uint64_t bytes,
                       const std::string& kernel, std::vector<std::uint8_t>& value) {
  std::string why;
  TensorMap map;
  if (argument.buffer >= device.buffers.size() || bytes != kTensorMapBytes) {
    why = fmt::format("its parameter has {} bytes, not {}", bytes, kTensorMapBytes);
  } else {
    const MemoryRegion& region = device.buffers[argument.buffer].region;
    why = MakeTensorMap(argument.map, region.base, region.size, map);
  }
  if (!why.empty()) {
    LaunchFailure(device,
                  fmt::format("tensor map '{}' of kernel '{}': {}", argument.name, kernel, why));
    return false;
  }
  const TensorMapImage image = Pack(map);
  value.resize(image.size());
  std::memcpy(value.data(), image.data(), image.size());
  return true;
}

/// Pointers that the kernel does not simply load to use them as addresses: their bytes are the
/// machine's choice (machine_flow.h), and what a tensor map holds is nobody's business.
void MarkPointers(Device& device, const ptx::Function& function, const FunctionCode& code,
                  const Launch& launch) {
  const std::vector<bool>& pointers = device.program.pointer_params[device.launch.function];
  DefinedMap* const defined = device.regions[device.launch.params_region].defined;
  const std::uint8_t number = StoredChoiceNumber(device, {.whole_address = true});
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const std::size_t variable = function.returns.size() + i;
    if (launch.args[i].kind != Argument::Kind::kBuffer || pointers[variable]) continue;
    const PlacedVariable& place = code.variables[variable];
    if (place.bytes > 1) defined->SetChosen(place.offset + 1, place.bytes - 1, number);
  }
}

bool SetParameters(Device& device, const ptx::Function& function, const FunctionCode& code,
                   const Launch& launch) {
  if (launch.args.size() != function.params.size()) {
    LaunchFailure(device, fmt::format("kernel '{}' takes {} parameters, but the launch gives {}",
                                      function.name, function.params.size(), launch.args.size()));
    return false;
  }
  std::vector<std::byte>& storage =
      device.owned.emplace_back(std::max<std::uint64_t>(1, code.param_bytes));
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const Argument& argument = launch.args[i];
    const std::size_t variable = function.returns.size() + i;
    const PlacedVariable& place = code.variables[variable];
    std::vector<std::uint8_t> value;
    if (argument.kind == Argument::Kind::kBuffer) {
      if (argument.buffer >= device.buffers.size() || place.bytes != 8) {
        LaunchFailure(
            device, fmt::format("argument '{}' is a buffer, but parameter {} of '{}' has {} bytes",
                                argument.name, i + 1, function.name, place.bytes));
        return false;
      }
      const std::uint64_t address = device.buffers[argument.buffer].region.base;
      value.resize(8);
      std::memcpy(value.data(), &address, 8);
    } else if (argument.kind == Argument::Kind::kTensorMap) {
      if (!TensorMapArgument(device, argument, place.bytes, function.name, value)) return false;
    } else {
      value = FitScalar(argument, place.bytes);
      if (value.size() != place.bytes) {
        LaunchFailure(
            device,
            fmt::format("argument '{}' ({}, {} bytes) does not fit parameter {} of '{}' ({} bytes)",
                        argument.name, Name(argument.dtype), argument.bytes.size(), i + 1,
                        function.name, place.bytes));
        return false;
      }
    }
    std::memcpy(storage.data() + place.offset, value.data(), value.size());
  }
  MemoryRegion region;
  region.kind = MemoryRegion::Kind::kParams;
  region.data = storage.data();
  region.size = code.param_bytes;
  region.writable = false;
  region.name = "parameters";
  device.launch.params_region = AddRegion(device, std::move(region), 0, true);
  if (device.track_defined) MarkPointers(device, function, code, launch);
  return true;
}

}  // namespace

bool PrepareLaunch(Device& device, const Launch& launch, std::uint32_t number) {
  LaunchState& state = device.launch;
  state = LaunchState{};
  state.number = number;
  state.launch = &launch;
  const ptx::Module& module = device.program.module;
  const auto found = std::ranges::find_if(module.functions, [&](const ptx::Function& function) {
    return function.is_entry && function.has_body && function.name == launch.entry;
  });
  if (found == module.functions.end()) {
    LaunchFailure(device, fmt::format("the PTX has no kernel '{}'", launch.entry));
    return false;
  }
  state.function = static_cast<std::uint32_t>(found - module.functions.begin());
  if (std::string problem = ShapeLaunch(*found, launch, state); !problem.empty()) {
    LaunchFailure(device, std::move(problem), &*found);
    return false;
  }
  constexpr std::uint64_t kMaxSharedBytes = 227 * 1024;
  if (launch.shared_bytes > kMaxSharedBytes) {
    LaunchFailure(device,
                  fmt::format("{} bytes of dynamic shared memory are beyond the limit of {}",
                              launch.shared_bytes, kMaxSharedBytes));
    return false;
  }
  constexpr std::uint64_t kMaxCooperativeThreads = 132 * 2048;
  if (launch.cooperative && std::uint64_t{state.blocks} * state.threads > kMaxCooperativeThreads) {
    LaunchFailure(device, "a cooperative launch must fit on the device at once: too many threads");
    return false;
  }
  state.dynamic_shared = launch.shared_bytes;
  if (launch.cooperative) {
    std::vector<std::byte>& storage = device.owned.emplace_back(4096);
    MemoryRegion region;
    region.kind = MemoryRegion::Kind::kGridWorkspace;
    region.data = storage.data();
    region.size = storage.size();
    region.element_bytes = 4;
    region.name = "grid workspace";
    state.grid_workspace = device.regions[AddRegion(device, std::move(region), 0, true)].base;
  }
  if (!CheckSizes(device, *found, device.program.functions[state.function])) return false;
  return SetParameters(device, *found, device.program.functions[state.function], launch);
}

}  // namespace assay::emu
