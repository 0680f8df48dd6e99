// A litmus test as a PTX kernel, for the emulator and for GPUs.
//
// One launch runs `instances` of the test, each on memory of its own. Block b of the grid plays block
// b / instances of instance b % instances, so that the blocks of one instance lie far apart; blocks
// behind those make traffic on `scratch` for `rounds` rounds. With a gate the threads of an instance
// wait for each other first, for a bounded time.
//
// Parameters of the entry `litmus`, in order:
//   u64 memory     instances * stride bytes of zeros; location k of instance i at i * stride +
//                  k * spread. Holds the locations in the end, those in shared memory too.
//   u64 results    u32, instances * RegisterCount(test): the registers, thread after thread
//   u64 gate       u32 a instance, zeros; 0: no gate
//   u64 scratch    of kScratchBytes, for the traffic
//   u32 instances, u32 stride, u32 spread, u32 rounds
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/litmus/litmus.h"

namespace assay::litmus {

inline constexpr std::uint32_t kScratchBytes = 1 << 20;

std::string KernelOf(const Test& test);

std::uint32_t RegisterCount(const Test& test);
/// The outcome of one instance: its registers, and its locations as 32-bit words at
/// memory[k * spread / 4].
Outcome OutcomeOf(const Test& test, std::span<const std::uint32_t> registers,
                  std::span<const std::uint32_t> memory, std::uint32_t spread);

}  // namespace assay::litmus
