// Rows of families that fill more than one file.
#pragma once

#include <span>

#include "validator/emu/exec.h"

namespace assay::emu {

std::span<const ResolverRow> AddressRows();     ///< address.cc, part of MemoryRows
std::span<const ResolverRow> StackRows();       ///< stack.cc, part of MemoryRows
std::span<const ResolverRow> BulkRows();        ///< bulk_copy.cc, part of AsyncCopyRows
std::span<const ResolverRow> AsyncStoreRows();  ///< async_store.cc, part of AsyncCopyRows
std::span<const ResolverRow> TensorRows();      ///< tensor_copy.cc, part of AsyncCopyRows
std::span<const ResolverRow> TensorMapRows();   ///< tensor_replace.cc, part of AsyncCopyRows
std::span<const ResolverRow> WarpgroupRows();   ///< wgmma.cc, part of FragmentRows

}  // namespace assay::emu
