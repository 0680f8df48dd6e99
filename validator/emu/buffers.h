// The buffers of an execution in the device's address space.
//
// Buffers lie one after the other under the plain schedule, at other multiples of 512 bytes to
// 2 MiB, near 2^47 or far below, and in
// another order under each of the others: what follows from an address follows from chance.
//
// Each buffer has a region: memory, size, definedness, race state. Most lie in an allocation of
// their own for the whole run. One that takes over another's address (BufferSpec::reuse) moves into
// that one's allocation when its launch comes, and what lay there is gone: kernels that kept the
// address find the new buffer, with its own bounds and content. Device::buffers keeps the regions of
// all of them, before, during and after their lives. Launch::fresh fills some anew in their place, or restores what they
// were handed over with.
//
//   if (AddBuffers(device, memory)) PlaceBuffers(device, 0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "validator/emu/core.h"

namespace assay::emu {

/// Makes the regions of all buffers and puts in place those that live from the start. False: the
/// request does not hold together, and the run is over.
bool AddBuffers(Device& device, std::span<const std::span<std::byte>> buffers);

/// Puts in place the buffers whose life begins with launch `number`, and fills anew what it asks for.
void PlaceBuffers(Device& device, std::uint32_t number);

}  // namespace assay::emu
