#include "validator/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "validator/gpu/tools.h"

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
  device->count_ = count;
  char bus[64] = {};
  if (driver.bus_id(bus, sizeof bus - 1, number) == kSuccess) device->management_.Open(bus);
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
  tools_ = nullptr;
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
  if (const int code = driver_.module_load(&tools_, kToolsPtx))
    return fail(code, "cuModuleLoadData");
  Function function = nullptr;
  if (const int code = driver_.module_function(&function, tools_, "canary"))
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

bool Device::Prepare(const assay::Launch& launch, PreparedLaunch& prepared, Report& report) {
  std::string refusal = PrepareLaunch(driver_, module_, launch, memory_, prepared);
  if (refusal.empty()) return true;
  Finding finding;
  finding.kind = FindingKind::kLaunchFailure;
  finding.message = fmt::format("kernel '{}': {}", launch.entry, refusal);
  report.findings.push_back(std::move(finding));
  report.stop = Stop::kFault;
  report.reason = std::move(refusal);
  return false;
}

bool Device::Launch(const assay::Launch& launch, Report& report) {
  PreparedLaunch prepared;
  if (!Prepare(launch, prepared, report)) return false;
  const std::string where = "kernel '" + launch.entry + "'";
  if (const int code = Start(driver_, prepared, nullptr)) {
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
    if (!launch.only.empty() || !launch.threads.empty()) {
      report.stop = Stop::kUnsupported;
      report.reason = "a GPU runs whole grids";
      return;
    }
    if (const Outcome fault = memory_.Enter(i, launch.fresh, report.findings))
      return NoteFault(*fault, "", report);
    if (IsEmpty(launch)) continue;
    if (!Launch(launch, report)) return;
  }
  if (const Outcome fault = memory_.Leave(report.findings)) NoteFault(*fault, "", report);
}

bool Device::Load(const Execution& execution, Report& report) {
  report.unwritten_bytes.assign(execution.buffers.size(), 0);
  report.first_unwritten.assign(execution.buffers.size(), -1);
  const std::string& code = execution.cubin.empty() ? execution.ptx : execution.cubin;
  std::string digest = Sha256Hex(code);
  if (!sick_ && digest == program_) return true;
  if (const Status well = Renew(); !well) {
    report.stop = Stop::kEngineFailure;
    report.reason = ToString(well.error());
    return false;
  }
  if (const int failed = driver_.module_load(&module_, code.c_str())) {
    report.stop = Stop::kUnsupported;
    report.reason = "cuModuleLoadData: " + driver_.NameOf(failed);
    return false;
  }
  program_ = std::move(digest);
  return true;
}

Report Device::Run(const Execution& execution, std::span<const std::span<std::byte>> buffers) {
  Report report;
  if (Load(execution, report)) Execute(execution, buffers, report);
  return report;
}

}  // namespace assay::gpu
