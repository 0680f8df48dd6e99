// Which split, warp and block runs next. Internal to validator/emu.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// Instructions that a ready split may be passed over before it gets a turn.
inline constexpr std::uint64_t kSplitPatience = 8192;

/// Runs one launch to its end, or to the end of the run.
void RunLaunch(Device& device);

/// Runs a warp for at most `budget` instructions. Returns how many it ran; 0 means that none of its
/// splits can.
std::uint64_t RunWarp(CoreWarp& warp, std::uint64_t budget);

/// Adds a split that is not running; merges it with one that stands at the same place.
void AddSplit(CoreWarp& warp, std::uint32_t pc, LaneMask mask, Frame* frame, Wait wait,
              LaneMask need, std::uint8_t barrier);
/// Ends lanes of the running split (exit, ret of the kernel). Barriers and warp-wide waits are
/// looked at again.
void ExitLanes(CoreWarp& warp, LaneMask lanes);

/// Frames: finds or creates the register file of `function` at `depth`.
Frame& FrameOf(CoreWarp& warp, std::uint32_t function, std::uint32_t depth);
/// Sets the constants of a frame that depend on its place in local memory, for `lanes`.
void PlaceFrameLocals(CoreWarp& warp, Frame& frame, LaneMask lanes);

/// For a block that begins: every register undefined, the block's special registers filled in.
void ResetFrames(CoreWarp& warp);
/// Fills in the special registers of one frame again (clocks).
void RefreshSpecials(CoreWarp& warp, Frame& frame);
/// Makes room for `bytes` of local memory a lane. False: beyond the limit.
bool ReserveLocal(CoreWarp& warp, std::uint64_t bytes);
/// Loads a split's place into the warp.
void Enter(CoreWarp& warp, const Split& split);

/// Blocks (block.cc).
void StartBlock(Device& device, Block& block, BlockNumber number);
/// Threads of a warp arrive at a barrier. True when the barrier completed, so that they need not
/// wait.
bool ArriveAtBarrier(CoreWarp& warp, const Decoded& op, std::uint32_t barrier, LaneMask lanes,
                     std::uint32_t expected, bool waits, LaneMask predicate);
/// Writes the result of bar.red to the lanes of a split that stands at the barrier (barrier.cc).
void FinishBarrier(CoreWarp& warp, const Split& split, const NamedBarrier& barrier);
/// True for barriers that a warp must reach as a whole.
bool IsAligned(const ptx::Instruction& in);
/// After threads exited: completes barriers that waited only for them.
void RecheckBarriers(Block& block);
/// No warp of the block can run: says who waits for what, and ends the run.
void ReportStuck(Block& block);
/// What the threads of a block do, one example of each place, in the order of warps.
std::vector<Access> WaitsOf(const Block& block);

/// barrier.cluster (cluster.cc).
void ClusterArrive(CoreWarp& warp, LaneMask lanes, bool relaxed);
/// True when the phase that `lanes` arrived at is over; they then have passed it.
bool ClusterWaitOver(CoreWarp& warp, LaneMask lanes);
/// After threads exited.
void RecheckCluster(Block& block);

}  // namespace assay::emu
