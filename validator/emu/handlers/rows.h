// The resolvers of all instruction families, joined by resolver.cc.
//
// Families that compute lane by lane have one resolver for all of their opcodes, compiled for
// several levels of x86-64 (levels.h); each other family exports a table, a row an opcode. An opcode
// without a resolver, or one whose resolver returns null for a form, makes the program
// `inconclusive` at load time, naming the instruction and its line.
#pragma once

#include <span>

#include "validator/emu/exec.h"

namespace assay::emu {

/// Of arithmetic, integer, move, compare, float and convert, for this processor; null for others.
Resolver LaneResolver(ptx::Family family);

std::span<const ResolverRow> MatrixRows();     ///< matrix.cc: products and transpositions
std::span<const ResolverRow> MemoryRows();     ///< memory.cc
std::span<const ResolverRow> AtomicRows();     ///< atomic.cc
std::span<const ResolverRow> WarpRows();       ///< warp.cc
std::span<const ResolverRow> BarrierRows();    ///< barrier.cc
std::span<const ResolverRow> FenceRows();      ///< fence.cc
std::span<const ResolverRow> ControlRows();    ///< control.cc
std::span<const ResolverRow> AsyncCopyRows();  ///< async_copy.cc
std::span<const ResolverRow> MbarrierRows();   ///< mbarrier.cc
std::span<const ResolverRow> FragmentRows();   ///< fragments.cc, wgmma.cc

}  // namespace assay::emu
