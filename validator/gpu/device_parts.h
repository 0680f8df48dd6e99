// What Device's own files share.
#pragma once

#include <vector>

#include "validator/gpu/device.h"

namespace assay::gpu {

struct Device::Scratch {
  explicit Scratch(const Driver& a_driver) : driver(a_driver) {}
  ~Scratch() {
    if (address != 0) driver.free(address);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Outcome Allocate(std::uint64_t wanted) {
    if (const int code = driver.allocate(&address, wanted)) {
      address = 0;
      return DriverFault{code, "cuMemAlloc"};
    }
    bytes = wanted;
    return std::nullopt;
  }

  const Driver& driver;
  DeviceAddress address = 0;
  std::uint64_t bytes = 0;
};

/// An event; ends with its owner.
class Mark {
 public:
  explicit Mark(const Driver& driver) : driver_(driver) {
    if (driver_.event_create(&event_, 0) != kSuccess) event_ = nullptr;
  }
  ~Mark() {
    if (event_ != nullptr) driver_.event_destroy(event_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  Event get() const { return event_; }

 private:
  const Driver& driver_;
  Event event_ = nullptr;
};

struct Device::Slots {
  std::uint32_t count = 0;
  std::uint32_t buffers = 0;   ///< Of a slot.
  std::uint32_t launches = 0;  ///< Of a slot.
  std::vector<PreparedLaunch> prepared;
  std::span<const BufferSpec> specs;
  std::span<const std::span<std::byte>> host;
  /// What outputs that overwrite an input start as; their host memory comes to hold results.
  std::vector<std::vector<std::byte>> first;
};

}  // namespace assay::gpu
