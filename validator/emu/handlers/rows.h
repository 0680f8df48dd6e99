// The resolver tables of all instruction families, joined by resolver.cc.
//
// Each family file under handlers/ exports one table: a row an opcode. An opcode without a row, or a row whose resolver returns
// null for a form, makes the program `inconclusive` at load time, naming the instruction and its line.
#pragma once

#include <span>

#include "validator/emu/exec.h"

namespace assay::emu {

std::span<const ResolverRow> IntegerRows();  ///< integer.cc
std::span<const ResolverRow>
ArithmeticRows();                         ///< arithmetic.cc: opcodes that integers and floats share
std::span<const ResolverRow> MoveRows();  ///< move.cc
std::span<const ResolverRow> CompareRows();    ///< compare.cc
std::span<const ResolverRow> FloatRows();      ///< float.cc
std::span<const ResolverRow> ConvertRows();    ///< convert.cc
std::span<const ResolverRow> MatrixRows();     ///< matrix.cc
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
