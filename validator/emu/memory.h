// How a warp reaches memory: addresses of its lanes to host pointers, with every check on the way.
//
// The common case, all lanes within one allocation, costs one look-up and one vectorised
// comparison. Bounds, alignment and write protection are always checked; definedness and races when
// the template argument says so.
#pragma once

#include <cstdint>
#include <cstring>

#include "validator/emu/core.h"

namespace assay::emu {

struct alignas(64) LaneAccess {
  std::uint64_t address[kWarpSize];   ///< In the instruction's space.
  std::uintptr_t pointer[kWarpSize];  ///< Host addresses; those of `lanes` are valid.
  MemoryRegion* region[kWarpSize];    ///< Null for local memory. Only set when `common` is null.
  MemoryRegion* common = nullptr;     ///< The region of all lanes, where it is one,
  std::uint64_t least = 0;            ///< and in it the least offset of a lane,
  std::uint64_t greatest = 0;         ///< and the greatest.
  LaneMask lanes = 0;
  bool dense = false;  ///< All 32 lanes, at consecutive addresses.
  bool same = false;   ///< All of `lanes` at one address.
  bool local = false;  ///< Local memory: no region, no races.

  MemoryRegion* RegionOf(int lane) const { return common != nullptr ? common : region[lane]; }
  std::byte* at(int lane) const { return reinterpret_cast<std::byte*>(pointer[lane]); }
};

enum class AccessType : std::uint8_t { kLoad, kStore, kAtomic };

/// Fills access.address for the address operand `operand`.
void Addresses(CoreWarp& warp, const DecodedOperand& operand, LaneAccess& access);

/// Resolves access.address to pointers for `lanes`. False: a finding was recorded and the run is
/// over. `bytes` is the whole access of a lane; it must be aligned to it (or `alignment`, when not
/// 0).
bool Resolve(CoreWarp& warp, const Decoded& op, ptx::Space space, LaneMask lanes,
             std::uint32_t bytes, AccessType type, LaneAccess& access, std::uint32_t alignment = 0);

/// Lanes of access.lanes whose bytes [offset, offset + bytes) are not all defined.
LaneMask UndefinedLanes(CoreWarp& warp, const LaneAccess& access, std::uint32_t offset,
                        std::uint32_t bytes);
/// Of a lane, the undefined bits of `bytes` (at most 8) at `offset` of its access, as they are loaded.
std::uint64_t UndefinedBitsAt(const CoreWarp& warp, const LaneAccess& access, int lane,
                              std::uint32_t offset, std::uint32_t bytes);
/// Marks those bytes defined, or undefined in the lanes of `undefined`, whose bytes come from the
/// instruction at `origin`. Of the lanes of `undefined`, `chosen` store what the machine chose;
/// with
/// `whole_address`, a part of an address as it is.
void MarkStored(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t offset,
                std::uint32_t bytes, LaneMask undefined, std::uint32_t origin, LaneMask chosen = 0,
                bool whole_address = false);
/// A store of `bytes` a lane some of whose places the machine chose (machine.h), after its bytes were
/// marked.
void StoreAtChosenPlaces(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                         std::uint32_t bytes, const ChosenPlaces& places);
/// The same for what register `source` holds, byte by byte.
void MarkStoredRegister(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                        std::uint32_t offset, std::uint32_t bytes, const DecodedOperand& source);
/// Reports undefined bytes in an address register.
void CheckAddressDefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                         LaneMask lanes);

/// What the race detector needs to know of a memory instruction.
struct AccessOrder {
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
};
AccessOrder OrderOf(const ptx::Instruction& in);
/// The same packed into Decoded::aux, above the low 16 bits, so that it is looked up once.
std::uint32_t PackOrder(const ptx::Instruction& in);
inline AccessOrder UnpackOrder(const Decoded& op) {
  return {static_cast<Order>(op.aux >> 16 & 0xff), static_cast<Scope>(op.aux >> 24)};
}
/// What it needs to know of one access beside the addresses.
struct AccessEvent {
  AccessKind kind = AccessKind::kRead;
  AccessOrder order;
  bool atomic = false;
  bool returns_value = true;
  bool read_only_path = false;      ///< ld.global.nc.
  std::uint32_t element_bytes = 0;  ///< 0: the whole access is one element.
  /// For writes, before they happen: by element, the register with the lanes' new values. May be
  /// null.
  const std::byte* const* registers = nullptr;
  std::uint32_t register_bytes = 0;             ///< A lane.
  const Published* const* read_from = nullptr;  ///< WarpAccess::read_from.
  Published* aside = nullptr;                   ///< WarpAccess::aside.
};
/// Tells the race detector of `bytes` a lane.
void ReportAccess(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t bytes,
                  const AccessEvent& event);

/// The same of reads of a tile in `region`, whose offset is that of its first line in the region: all
/// but region and warp are filled in. False: nothing was told, and they are to be reported one by one.
bool ReportTileRead(CoreWarp& warp, const Decoded& op, const MemoryRegion& region, TileRead tile);

/// Where `bytes` at `address` lie, but for local memory. No region: an access would fault, or they
/// are local. Reports nothing.
struct RegionPlace {
  MemoryRegion* region = nullptr;
  std::uint64_t offset = 0;
};
RegionPlace RegionPlaceOf(CoreWarp& warp, ptx::Space space, std::uint64_t address,
                          std::uint64_t bytes);
/// Where the bytes at `address` are on the host, or null where an access would fault. Reports
/// nothing.
std::byte* HostAddress(CoreWarp& warp, ptx::Space space, std::uint64_t address, int lane,
                       std::uint32_t bytes);

/// The region of a shared address (of this block, or of a sibling in the cluster), or null.
MemoryRegion* SharedRegion(Block& block, std::uint64_t address);
/// The region of a generic address outside of the shared and local windows, or null.
MemoryRegion* GenericRegion(Device& device, std::uint64_t address);
/// Gives a region its address in allocation `number`, and what definedness and races need.
void TrackRegion(Device& device, MemoryRegion& region, std::uint32_t number, std::uint64_t misalign,
                 bool initially_defined);
/// Adds an allocation and returns its number.
std::uint32_t AddRegion(Device& device, MemoryRegion region, std::uint64_t misalign,
                        bool initially_defined);

/// Does one variable, or one block of alloca, of the calling lane's frames hold
/// [address, address + bytes) of local memory?
bool InLocalVariable(const CoreWarp& warp, int lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace assay::emu
