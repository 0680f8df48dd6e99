// Grid, block and cluster of a launch, reconciled with what the kernel was compiled for.
//
// A kernel may carry bounds in the module (PTX ISA 11.4): .reqntid and .maxntid for its blocks,
// .reqnctapercluster, .maxclusterrank and .explicitcluster for its clusters. The driver takes the
// cluster from the module where the launch names none, and refuses a launch that says otherwise
// than the module; so does this. .maxnreg and .minnctapersm steer the compiler and limit no launch.
//
// The race detector divides a block's number by the blocks of a cluster to learn its cluster, which
// is why numbers run cluster by cluster.
//
//   const std::string problem = ShapeLaunch(function, launch, state);  // empty: it may run
#pragma once

#include <string>

#include "validator/emu/core.h"

namespace assay::emu {

/// Sets grid, block, cluster and the counts that follow from them. What is wrong, if anything is,
/// as a sentence; `state` is then of no use.
std::string ShapeLaunch(const ptx::Function& function, const Launch& launch, LaunchState& state);

/// The cluster, numbered x fastest, of the block at `id`.
std::uint32_t ClusterAt(const LaunchState& launch, const Dim3& id);
/// Blocks are numbered cluster by cluster, by rank within: without clusters x fastest.
Dim3 BlockId(const LaunchState& launch, BlockNumber block);

}  // namespace assay::emu
