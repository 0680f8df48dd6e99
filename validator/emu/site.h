// From program counters, lanes and addresses to what findings say: source sites, threads, places in
// memory.
#pragma once

#include <string>
#include <string_view>

#include "validator/emu/core.h"

namespace assay::emu {

/// Where in the source an instruction stands.
struct SourcePlace {
  std::string_view file;  ///< Without its folders; empty without line information.
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::int32_t location = -1;  ///< The module's, where the line is known.
};
SourcePlace SourcePlaceOf(const Device& device, std::uint32_t pc);
SourceSite SiteOf(const Device& device, std::uint32_t pc);
ThreadId ThreadOf(const Device& device, BlockNumber block, std::uint32_t warp_in_block, int lane);
ThreadId ThreadOf(const CoreWarp& warp, int lane);
/// "line 14", or "PTX line 80" without line information.
std::string LineOf(const Device& device, std::uint32_t pc);

/// The place that `address` means to this warp in this space, whether or not it is inside of
/// anything.
MemoryPlace PlaceOf(const CoreWarp& warp, ptx::Space space, std::uint64_t address, int lane,
                    std::uint32_t bytes);
MemoryPlace PlaceIn(const MemoryRegion& region, std::string_view space, std::uint64_t address,
                    std::uint32_t bytes);

/// What is missing where a block reaches the shared memory of another one that may have ended.
inline constexpr std::string_view kMissingLife =
    "a barrier of the cluster (cluster.sync()) behind the last access to other blocks, which all "
    "of "
    "its blocks pass: shared memory is there as long as its block is";

/// "read", "write", "atomic add": by the instruction.
std::string VerbOf(const ptx::Instruction& in);
/// The first lane of a mask.
int FirstLane(LaneMask lanes);

/// Records a finding about `lanes` at `pc`.
void Report1(CoreWarp& warp, FindingKind kind, std::uint32_t pc, LaneMask lanes,
             std::string message, std::string what,
             std::optional<MemoryPlace> memory = std::nullopt, std::string missing = {},
             std::string cause = {}, std::uint32_t other_pc = kNoPc);
/// Remembers where an instruction first read undefined bytes, for the findings that follow from it.
void NoteUndefinedRead(CoreWarp& warp, const Decoded& op, ptx::Space space, std::uint64_t address,
                       int lane, std::uint32_t bytes);
/// Reports the use of undefined bytes; `origin` is where they were read, or kNoPc.
void ReportUndefined(CoreWarp& warp, std::uint32_t pc, LaneMask lanes, std::string message,
                     std::string what, std::uint32_t origin,
                     std::optional<MemoryPlace> memory = std::nullopt);

}  // namespace assay::emu
