#include "validator/gpu/management.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <type_traits>

namespace assay::gpu {
namespace {

constexpr int kProcessorClock = 1;
constexpr int kMemoryClock = 2;

template <class Call>
bool FindCall(void* library, const char* name, Call& call) {
  call = reinterpret_cast<Call>(::dlsym(library, name));
  return call != nullptr;
}

}  // namespace

void Management::Open(const char* bus_id) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) {
    missing_ = "libnvidia-ml.so.1 cannot be opened";
    return;
  }
  int (*init)() = nullptr;
  int (*handle)(const char*, void**) = nullptr;
  if (!FindCall(library, "nvmlInit_v2", init) ||
      !FindCall(library, "nvmlDeviceGetHandleByPciBusId_v2", handle) ||
      !FindCall(library, "nvmlDeviceGetClockInfo", clock_) ||
      !FindCall(library, "nvmlDeviceGetPowerUsage", power_) ||
      !FindCall(library, "nvmlDeviceGetTemperature", temperature_) ||
      !FindCall(library, "nvmlDeviceGetCurrentClocksThrottleReasons", throttle_)) {
    missing_ = "libnvidia-ml.so.1 lacks what is needed";
    return;
  }
  if (const int code = init()) {
    missing_ = fmt::format("nvmlInit gives {}", code);
    return;
  }
  if (const int code = handle(bus_id, &device_)) {
    missing_ = fmt::format("nvmlDeviceGetHandleByPciBusId gives {}", code);
    device_ = nullptr;
    return;
  }
  missing_.clear();
}

Conditions Management::Now() const {
  Conditions now;
  now.unknown = missing_;
  if (device_ == nullptr) return now;
  unsigned milliwatts = 0;
  unsigned long long throttle = 0;
  if (const int code = clock_(device_, kProcessorClock, &now.sm_mhz)) {
    now.unknown = fmt::format("nvmlDeviceGetClockInfo gives {}", code);
    return now;
  }
  clock_(device_, kMemoryClock, &now.memory_mhz);
  if (power_(device_, &milliwatts) == 0) now.watts = milliwatts / 1000.0;
  temperature_(device_, 0, &now.celsius);
  if (throttle_(device_, &throttle) == 0) now.throttle = throttle;
  return now;
}

}  // namespace assay::gpu
