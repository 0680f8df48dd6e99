#include "validator/emu/special.h"

#include <algorithm>
#include <string_view>

#include "validator/emu/address_space.h"

namespace assay::emu {
namespace {

using ptx::SpecialRegister;

/// Of the machine that the emulator resembles; kernels may size themselves by it.
constexpr std::uint64_t kMultiprocessors = 132;
constexpr std::uint64_t kWarpSlots = 64;
/// Nanoseconds since 1970, as %globaltimer counts them, when a run begins.
constexpr std::uint64_t kEpoch = 1'800'000'000'000'000'000;
/// Shared memory that the system keeps of each block.
constexpr std::uint64_t kSystemShared = 1024;

std::uint64_t Component(const Dim3& dim, int component) {
  return component < 3 ? dim[static_cast<std::size_t>(component)] : 0;
}

Dim3 Divide(const Dim3& a, const Dim3& b) { return {a[0] / b[0], a[1] / b[1], a[2] / b[2]}; }
Dim3 Modulo(const Dim3& a, const Dim3& b) { return {a[0] % b[0], a[1] % b[1], a[2] % b[2]}; }

/// Where a block runs is the scheduler's choice, which kernels must not rely on: `plain` where it
/// deals blocks out in turn, anywhere under the other schedules.
std::uint64_t Anywhere(const Block& block, std::string_view what, std::uint64_t plain,
                       std::uint64_t places) {
  const Schedule& schedule = block.device->execution.schedule;
  if (schedule.policy == Schedule::Policy::kSequential) return plain % places;
  return Mix64(DeriveSeed(schedule.seed, what) + block.number) % places;
}

/// Registers with one value for the whole warp.
std::uint64_t UniformValue(const CoreWarp& warp, SpecialRegister special, int component) {
  const Device& device = *warp.device;
  const LaunchState& launch = device.launch;
  const Block& block = *warp.block;
  switch (special) {
    case SpecialRegister::kNtid:
      return Component(launch.block, component);
    case SpecialRegister::kWarpid:
      return (Anywhere(block, "warp slots", 0, kWarpSlots) + warp.index) % kWarpSlots;
    case SpecialRegister::kNwarpid:
      return kWarpSlots;
    case SpecialRegister::kCtaid:
      return Component(block.id, component);
    case SpecialRegister::kNctaid:
      return Component(launch.grid, component);
    case SpecialRegister::kSmid:
      return Anywhere(block, "multiprocessors", block.number, kMultiprocessors);
    case SpecialRegister::kNsmid:
      return kMultiprocessors;
    case SpecialRegister::kGridid:
      return launch.number + 1;
    case SpecialRegister::kIsExplicitCluster:
      return launch.blocks_per_cluster > 1;
    case SpecialRegister::kClusterid:
      return Component(Divide(block.id, launch.cluster), component);
    case SpecialRegister::kNclusterid:
      return Component(Divide(launch.grid, launch.cluster), component);
    case SpecialRegister::kClusterCtaid:
      return Component(Modulo(block.id, launch.cluster), component);
    case SpecialRegister::kClusterNctaid:
      return Component(launch.cluster, component);
    case SpecialRegister::kClusterCtarank:
      return block.cluster_rank;
    case SpecialRegister::kClusterNctarank:
      return launch.blocks_per_cluster;
    // Time is counted in instructions, so that it is the same on every run.
    case SpecialRegister::kClock:
    case SpecialRegister::kClock64:
      return device.counters.warp_steps;
    case SpecialRegister::kClockHi:
      return device.counters.warp_steps >> 32;
    case SpecialRegister::kGlobaltimer:
      return kEpoch + device.counters.warp_steps;
    case SpecialRegister::kGlobaltimerLo:
      return (kEpoch + device.counters.warp_steps) & 0xffffffffu;
    case SpecialRegister::kGlobaltimerHi:
      return (kEpoch + device.counters.warp_steps) >> 32;
    case SpecialRegister::kReservedSmemOffsetBegin:
    case SpecialRegister::kReservedSmemOffset0:
    case SpecialRegister::kReservedSmemOffset1:
      return device.program.reserved_shared;
    case SpecialRegister::kReservedSmemOffsetEnd:
      return device.program.reserved_shared + kReservedSharedBytes;
    case SpecialRegister::kReservedSmemOffsetCap:
      return kReservedSharedCapacity;
    case SpecialRegister::kTotalSmemSize:
    case SpecialRegister::kAggrSmemSize:
      return device.program.shared_static_bytes + launch.dynamic_shared + kSystemShared;
    case SpecialRegister::kDynamicSmemSize:
      return launch.dynamic_shared;
    // Cooperative groups finds its grid workspace in these two.
    case SpecialRegister::kEnvreg1:
      return launch.grid_workspace >> 32;
    case SpecialRegister::kEnvreg2:
      return launch.grid_workspace & 0xffffffffu;
    default:
      return 0;
  }
}

}  // namespace

bool IsOfTheWarp(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::kTid:
    case SpecialRegister::kNtid:
    case SpecialRegister::kNctaid:
    case SpecialRegister::kLaneid:
    case SpecialRegister::kLanemaskEq:
    case SpecialRegister::kLanemaskLt:
    case SpecialRegister::kLanemaskLe:
    case SpecialRegister::kLanemaskGt:
    case SpecialRegister::kLanemaskGe:
      return true;
    default:
      return false;
  }
}

void SpecialValues(const CoreWarp& warp, SpecialRegister special, int component,
                   std::uint64_t* lanes) {
  const Dim3& block = warp.device->launch.block;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t thread = warp.index * kWarpSize + lane;
    const std::uint64_t bit = std::uint64_t{1} << lane;
    switch (special) {
      case SpecialRegister::kTid: {
        const Dim3 id = {thread % block[0], thread / block[0] % block[1],
                         thread / block[0] / block[1]};
        lanes[lane] = Component(id, component);
        break;
      }
      case SpecialRegister::kLaneid:
        lanes[lane] = lane;
        break;
      case SpecialRegister::kLanemaskEq:
        lanes[lane] = bit;
        break;
      case SpecialRegister::kLanemaskLt:
        lanes[lane] = bit - 1;
        break;
      case SpecialRegister::kLanemaskLe:
        lanes[lane] = bit | (bit - 1);
        break;
      case SpecialRegister::kLanemaskGt:
        lanes[lane] = ~(bit | (bit - 1)) & 0xffffffffu;
        break;
      case SpecialRegister::kLanemaskGe:
        lanes[lane] = ~(bit - 1) & 0xffffffffu;
        break;
      default:
        std::fill_n(lanes, kWarpSize, UniformValue(warp, special, component));
        return;
    }
  }
}

}  // namespace assay::emu
