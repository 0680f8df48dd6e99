// The device's address space as the emulator lays it out.
//
// A generic address is (allocation number << 40) + offset, so that an overrun of any 32-bit index
// never reaches a neighbour. The offset starts at kAllocationBase plus the requested misalignment,
// so that small negative indices stay inside of the window too. Allocation 0 is nobody's: null
// pointers fault. Shared and local memory have windows of their own; const, global and parameter
// addresses are generic addresses.
//
// Shared addresses have 32 bits: block in the cluster (5 bits, 0: own), variable (9 bits), offset
// (18 bits).
#pragma once

#include <cstdint>

namespace assay::emu {

inline constexpr int kAllocationBits = 40;
inline constexpr std::uint64_t kAllocationBase = std::uint64_t{1} << 36;
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{0x3ffff0} << kAllocationBits;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{0x3ffff1} << kAllocationBits;
inline constexpr std::uint64_t kCodeWindow = std::uint64_t{0x3ffff2} << kAllocationBits;
inline constexpr std::uint64_t kWindowMask = ~((std::uint64_t{1} << kAllocationBits) - 1);

inline constexpr int kSharedVariableBits = 18;
inline constexpr int kSharedBlockBits = 27;
/// The part of a shared address without the block.
inline constexpr std::uint64_t kSharedOffsetMask = (std::uint64_t{1} << kSharedBlockBits) - 1;
inline constexpr std::uint64_t kMaxSharedVariables = 500;
/// Where variables start when wgmma descriptors must be able to name them.
inline constexpr std::uint64_t kCompactSharedBase = 1024;

/// Shared memory of a block that belongs to system software (%reserved_smem_offset_*); cooperative
/// groups keep the barriers of tiles of several warps there. Sizes are an H200's: what is in use, and
/// what is set aside.
inline constexpr std::uint64_t kReservedSharedBytes = 288;
inline constexpr std::uint64_t kReservedSharedCapacity = 1024;

/// First address of a thread's local memory.
inline constexpr std::uint64_t kLocalBase = 256;
/// Bytes between two variables of a frame.
inline constexpr std::uint64_t kFrameGap = 32;
/// Local memory a thread may use; deeper recursion is a stack overflow.
inline constexpr std::uint64_t kMaxLocalBytes = 256 * 1024;

}  // namespace assay::emu
