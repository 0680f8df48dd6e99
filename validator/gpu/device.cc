#include "validator/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "validator/execution/arguments.h"

namespace assay::gpu {
namespace {

/// What stops a kernel on a GPU, and what it says of it.
struct FaultRow {
  int code;
  FindingKind kind;
  std::string_view meaning;
};
constexpr FaultRow kFaults[] = {
    {700, FindingKind::kOutOfBounds, "an access to memory that is nobody's"},
    {716, FindingKind::kMisaligned, "a misaligned access"},
    {717, FindingKind::kOutOfBounds, "an instruction that met an address of another space"},
    {718, FindingKind::kTrap, "a jump to where no instruction is"},
    {714, FindingKind::kTrap, "a fault of the hardware's stack"},
    {715, FindingKind::kTrap, "an illegal instruction"},
    {710, FindingKind::kTrap, "a failed assertion"},
    {719, FindingKind::kTrap, "a launch that failed"},
    {1, FindingKind::kLaunchFailure, "a launch with values that the driver refuses"},
    {701, FindingKind::kLaunchFailure, "a launch that needs more than the GPU has"},
    {720, FindingKind::kLaunchFailure, "a cooperative launch that does not fit on the GPU at once"},
    {912, FindingKind::kLaunchFailure, "clusters that the GPU cannot form"},
};

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

/// Writes 3 * x + i for its element i: arithmetic, special registers, loads and stores.
constexpr char kCanary[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry canary(.param .u64 at) {
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [at];
cvta.to.global.u64 %d1, %d0;
mov.u32 %r0, %tid.x;
mul.wide.u32 %d2, %r0, 4;
add.u64 %d3, %d1, %d2;
ld.global.u32 %r1, [%d3];
mad.lo.u32 %r2, %r1, 3, %r0;
st.global.u32 [%d3], %r2;
ret;
}
)";

}  // namespace

Result<std::unique_ptr<Device>> Device::Open(const Driver& driver, int number) {
  const auto fail = [&](int code, std::string_view call) {
    return Fail(ErrorKind::kEnvironment, fmt::format("{}: {}", call, driver.NameOf(code)), "gpu",
                "nvidia-smi says how the GPU and its driver are");
  };
  if (const int code = driver.init(0)) return fail(code, "cuInit");
  int count = 0;
  if (const int code = driver.device_count(&count)) return fail(code, "cuDeviceGetCount");
  if (number < 0 || number >= count) {
    return Fail(ErrorKind::kUsage,
                fmt::format("there is no GPU {}: this machine has {}", number, count),
                "--engine gpu:N");
  }
  char name[256] = {};
  int version = 0, major = 0, minor = 0;
  if (const int code = driver.device_name(name, sizeof name - 1, number))
    return fail(code, "cuDeviceGetName");
  if (const int code = driver.version(&version)) return fail(code, "cuDriverGetVersion");
  if (const int code = driver.device_attribute(&major, kComputeCapabilityMajor, number))
    return fail(code, "cuDeviceGetAttribute");
  if (const int code = driver.device_attribute(&minor, kComputeCapabilityMinor, number))
    return fail(code, "cuDeviceGetAttribute");
  std::unique_ptr<Device> device(
      new Device(driver, number,
                 fmt::format("{} (sm_{}{}), driver for CUDA {}.{}", name, major, minor,
                             version / 1000, version % 1000 / 10)));
  ASSAY_TRY_VOID(device->Renew());
  return device;
}

Device::~Device() {
  if (retained_) driver_.context_release(number_);
}

Status Device::Renew() {
  const auto fail = [&](int code, std::string_view call) {
    return Fail(ErrorKind::kEnvironment,
                fmt::format("{}: {}: {}", name_, call, driver_.NameOf(code)), "gpu",
                "nvidia-smi says how the GPU is; a reboot may be needed");
  };
  module_ = nullptr;
  program_.clear();
  memory_.Forget();
  if (retained_) {
    driver_.context_set(nullptr);
    driver_.context_release(number_);
    retained_ = false;
    if (const int code = driver_.context_reset(number_))
      return fail(code, "cuDevicePrimaryCtxReset");
  }
  Context context = nullptr;
  if (const int code = driver_.context_retain(&context, number_))
    return fail(code, "cuDevicePrimaryCtxRetain");
  retained_ = true;
  if (const int code = driver_.context_set(context)) return fail(code, "cuCtxSetCurrent");
  ASSAY_TRY_VOID(Canary());
  sick_ = false;
  return {};
}

Status Device::Canary() {
  const auto fail = [&](int code, std::string_view call) {
    return Fail(
        ErrorKind::kEnvironment,
        fmt::format("{}: a kernel with a known answer: {}: {}", name_, call, driver_.NameOf(code)),
        "gpu");
  };
  constexpr std::uint32_t kThreads = 256;
  std::array<std::uint32_t, kThreads> values{};
  for (std::uint32_t i = 0; i < kThreads; ++i) values[i] = i * 2654435761u;
  Module module = nullptr;
  if (const int code = driver_.module_load(&module, kCanary)) return fail(code, "cuModuleLoadData");
  Function function = nullptr;
  if (const int code = driver_.module_function(&function, module, "canary"))
    return fail(code, "cuModuleGetFunction");
  DeviceAddress at = 0;
  if (const int code = driver_.allocate(&at, sizeof values)) return fail(code, "cuMemAlloc");
  if (const int code = driver_.to_device(at, values.data(), sizeof values))
    return fail(code, "cuMemcpyHtoD");
  LaunchConfig config{.block = {kThreads, 1, 1}};
  void* parameters[] = {&at};
  if (const int code = driver_.launch(&config, function, parameters, nullptr))
    return fail(code, "cuLaunchKernelEx");
  std::array<std::uint32_t, kThreads> got{};
  if (const int code = driver_.to_host(got.data(), at, sizeof got))
    return fail(code, "cuMemcpyDtoH");
  driver_.free(at);
  driver_.module_unload(module);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    if (got[i] == 3 * values[i] + i) continue;
    return Fail(ErrorKind::kEnvironment, name_ + " computes wrongly", "gpu",
                "a kernel with a known answer gave another one: the GPU is broken");
  }
  return {};
}

void Device::NoteFault(const DriverFault& fault, std::string_view where, Report& report) {
  report.reason = fmt::format("{}{}{}: {}", where, where.empty() ? "" : ": ", fault.call,
                              driver_.NameOf(fault.code));
  if (fault.code == kOutOfMemory) {
    report.stop = Stop::kResourceLimit;
    report.reason = fmt::format("the GPU has no room for {} MiB of buffers and what runs beside",
                                memory_.slab_bytes() >> 20);
    return;
  }
  sick_ = spent_ = true;
  const auto row = std::ranges::find(kFaults, fault.code, &FaultRow::code);
  if (row == std::end(kFaults)) {
    report.stop = Stop::kEngineFailure;
    return;
  }
  report.stop = Stop::kFault;
  Finding finding;
  finding.kind = row->kind;
  finding.message = fmt::format("on the GPU, {} was ended by {} ({})", where, row->meaning,
                                driver_.NameOf(fault.code));
  report.findings.push_back(std::move(finding));
}

bool Device::Launch(const assay::Launch& launch, Report& report) {
  const std::string where = "kernel '" + launch.entry + "'";
  const auto refuse = [&](std::string message) {
    Finding finding;
    finding.kind = FindingKind::kLaunchFailure;
    finding.message = where + ": " + message;
    report.findings.push_back(std::move(finding));
    report.stop = Stop::kFault;
    report.reason = std::move(message);
    return false;
  };
  Function function = nullptr;
  if (driver_.module_function(&function, module_, launch.entry.c_str()) != kSuccess)
    return refuse("the program has no such kernel");
  // Arguments: one block of bytes each, as long as the kernel's parameter.
  std::vector<std::vector<std::uint8_t>> values;
  std::vector<TensorMapImage> maps(launch.args.size());
  std::vector<void*> parameters;
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const Argument& argument = launch.args[i];
    std::size_t offset = 0, bytes = 0;
    if (driver_.parameter_info(function, i, &offset, &bytes) != kSuccess)
      return refuse(fmt::format("it takes fewer than the {} arguments given", launch.args.size()));
    std::vector<std::uint8_t>& value = values.emplace_back();
    if (argument.kind == Argument::Kind::kBuffer) {
      const DeviceAddress address = memory_.AddressOf(argument.buffer);
      value.resize(sizeof address);
      std::memcpy(value.data(), &address, sizeof address);
    } else if (argument.kind == Argument::Kind::kTensorMap) {
      const TensorMapSpec& map = argument.map;
      const std::vector<std::uint32_t> ones(map.shape.size(), 1);
      const int code = driver_.encode_tiled(
          &maps[i], TypeInMaps(map.dtype), static_cast<std::uint32_t>(map.shape.size()),
          reinterpret_cast<void*>(memory_.AddressOf(argument.buffer)), map.shape.data(),
          map.strides.data(), map.box.data(), ones.data(), 0, map.swizzle, 0, map.fill_nan ? 1 : 0);
      if (code != kSuccess) {
        return refuse(fmt::format("tensor map '{}': cuTensorMapEncodeTiled: {}", argument.name,
                                  driver_.NameOf(code)));
      }
      value.resize(sizeof maps[i]);
    } else {
      value = FitScalar(argument, bytes);
    }
    if (value.size() != bytes) {
      return refuse(fmt::format("argument '{}' has {} bytes, its parameter {}", argument.name,
                                argument.bytes.size(), bytes));
    }
    parameters.push_back(argument.kind == Argument::Kind::kTensorMap
                             ? static_cast<void*>(&maps[i])
                             : static_cast<void*>(value.data()));
  }
  std::size_t offset = 0, bytes = 0;
  if (driver_.parameter_info(function, launch.args.size(), &offset, &bytes) == kSuccess)
    return refuse(fmt::format("it takes more than the {} arguments given", launch.args.size()));
  if (launch.shared_bytes > 48 * 1024) {
    const int code = driver_.function_attribute(function, kMaxDynamicSharedBytes,
                                                static_cast<int>(launch.shared_bytes));
    if (code != kSuccess)
      return refuse(fmt::format("{} bytes of dynamic shared memory: {}", launch.shared_bytes,
                                driver_.NameOf(code)));
  }
  std::vector<LaunchAttribute> attributes;
  if (launch.cooperative) attributes.push_back({.id = LaunchAttribute::kCooperative, .value = {1}});
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (cluster > 1) {
    if (cluster > 8) driver_.function_attribute(function, kNonPortableClusterSize, 1);
    attributes.push_back({.id = LaunchAttribute::kClusterDimension,
                          .value = {launch.cluster[0], launch.cluster[1], launch.cluster[2]}});
  }
  LaunchConfig config{.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                      .block = {launch.block[0], launch.block[1], launch.block[2]},
                      .shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes),
                      .attributes = attributes.data(),
                      .attribute_count = static_cast<std::uint32_t>(attributes.size())};
  if (const int code = driver_.launch(&config, function, parameters.data(), nullptr)) {
    NoteFault({code, "cuLaunchKernelEx"}, where, report);
    return false;
  }
  if (const int code = driver_.synchronise()) {
    NoteFault({code, "cuCtxSynchronize"}, where, report);
    return false;
  }
  return true;
}

void Device::Execute(const Execution& execution, std::span<const std::span<std::byte>> buffers,
                     Report& report) {
  if (const Outcome fault = memory_.Lay(execution.buffers, buffers))
    return NoteFault(*fault, "", report);
  for (std::uint32_t i = 0; i < execution.launches.size(); ++i) {
    const assay::Launch& launch = execution.launches[i];
    if (!launch.only.empty()) {
      report.stop = Stop::kUnsupported;
      report.reason = "a GPU runs whole grids";
      return;
    }
    if (const Outcome fault = memory_.Enter(i, launch.fresh, report.findings))
      return NoteFault(*fault, "", report);
    // An empty grid is how a plan says that a kernel has nothing to do.
    if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) continue;
    if (!Launch(launch, report)) return;
  }
  if (const Outcome fault = memory_.Leave(report.findings)) NoteFault(*fault, "", report);
}

Report Device::Run(const Execution& execution, std::span<const std::span<std::byte>> buffers) {
  Report report;
  report.unwritten_bytes.assign(buffers.size(), 0);
  report.first_unwritten.assign(buffers.size(), -1);
  const std::string& code = execution.cubin.empty() ? execution.ptx : execution.cubin;
  std::string digest = Sha256Hex(code);
  if (sick_ || digest != program_) {
    if (const Status well = Renew(); !well) {
      report.stop = Stop::kEngineFailure;
      report.reason = ToString(well.error());
      return report;
    }
    if (const int failed = driver_.module_load(&module_, code.c_str())) {
      report.stop = Stop::kUnsupported;
      report.reason = "cuModuleLoadData: " + driver_.NameOf(failed);
      return report;
    }
    program_ = std::move(digest);
  }
  Execute(execution, buffers, report);
  return report;
}

}  // namespace assay::gpu
