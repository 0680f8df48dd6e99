// A launch made ready: kernel found, arguments laid out, attributes set. Starting it is one call of the
// driver, so that what is timed holds nothing else.
//
// Holds pointers into itself: movable, not copyable. Addresses are those that the buffers have now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validator/execution/execution.h"
#include "validator/gpu/driver.h"
#include "validator/gpu/memory.h"

namespace assay::gpu {

struct PreparedLaunch {
  PreparedLaunch() = default;
  PreparedLaunch(PreparedLaunch&&) = default;
  PreparedLaunch& operator=(PreparedLaunch&&) = default;

  Function function = nullptr;
  std::vector<std::vector<std::uint8_t>> values;
  std::vector<TensorMapImage> maps;
  std::vector<void*> parameters;
  std::vector<LaunchAttribute> attributes;
  LaunchConfig config;
};

/// An empty grid is how a plan says that a kernel has nothing to do.
bool IsEmpty(const assay::Launch& launch);

/// Why the launch does not fit the kernel; empty: it is ready.
std::string PrepareLaunch(const Driver& driver, Module module, const assay::Launch& launch,
                          const DeviceMemory& memory, PreparedLaunch& prepared);

/// The driver's code.
int Start(const Driver& driver, PreparedLaunch& prepared, Stream stream);

}  // namespace assay::gpu
