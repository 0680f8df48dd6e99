// Rows of the bulk copies, part of the family of asynchronous copies.
#pragma once

#include <span>

#include "validator/emu/exec.h"

namespace assay::emu {

std::span<const ResolverRow> BulkRows();  ///< bulk_copy.cc

}  // namespace assay::emu
