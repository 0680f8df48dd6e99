// What stands between a launch and its first instruction: the limits of the device and of the
// kernel, and the parameters.
//
// A launch that the device would refuse is a finding (launch_failure) and ends the run; what only
// the emulator cannot hold is Stop::kResourceLimit. Buffers are named by index and must be in place
// (buffers.h).
//
// Cost: a look-up of the kernel's name and a copy of its parameters.
//
//   if (PrepareLaunch(device, execution.launches[i], i)) RunLaunch(device);
#pragma once

#include <cstdint>

#include "validator/emu/core.h"

namespace assay::emu {

/// Checks `launch` and sets device.launch, with the parameters' region. False: the run is over.
bool PrepareLaunch(Device& device, const Launch& launch, std::uint32_t number);

}  // namespace assay::emu
