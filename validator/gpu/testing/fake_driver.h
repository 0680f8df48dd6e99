// A driver whose device is this process: addresses are host addresses, kernels are functions.
//
//   FakeGpu gpu;
//   gpu.kernel = [](FakeLaunch& launch) { *launch.At<float*>(0) = 1; return 0; };
//   auto device = Device::Open(gpu.driver(), 0);
//
// One at a time: the driver's functions find it through a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "validator/gpu/driver.h"

namespace assay::gpu {

struct FakeLaunch {
  const LaunchConfig& config;
  void** parameters;
  template <class T>
  T At(std::size_t index) const {
    return *static_cast<T*>(parameters[index]);
  }
};

class FakeGpu {
 public:
  FakeGpu();
  ~FakeGpu();
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  Driver driver() const;

  /// What every kernel but the canary does. Returns the code that synchronising gives.
  std::function<int(FakeLaunch&)> kernel = [](FakeLaunch&) { return 0; };
  std::vector<std::size_t> parameter_bytes;  ///< Of every kernel.
  std::size_t room = std::size_t{1} << 30;   ///< Bytes that can be allocated.
  bool broken = false;                       ///< Computes the canary wrongly.
  int contexts = 0;                          ///< Made so far.
  int launches = 0;                          ///< Of kernels that are not ours.
  double clock = 0;                          ///< Seconds; every launch of a kernel takes one.
  int sweeps = 0;                            ///< Times that the caches were emptied.

 private:
  friend struct FakeCalls;
  std::map<DeviceAddress, std::vector<std::byte>> memory_;
  std::map<Event, double> events_;
  std::vector<std::function<int()>> recorded_;  ///< Launches of the graph, if one is recorded.
  bool recording_ = false;
  int pending_ = 0;  ///< What the next synchronising call says; sticky until the context goes.
};

}  // namespace assay::gpu
