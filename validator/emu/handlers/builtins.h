// Functions that the CUDA ABI provides: vprintf, malloc, free, __assertfail.
#pragma once

#include <string_view>

#include "validator/emu/core.h"

namespace assay::emu {

/// Calls a builtin for `lanes` of the running split. Sets warp.outcome only when the run is over.
void CallBuiltin(CoreWarp& warp, const CallSite& site, std::string_view name, LaneMask lanes);

}  // namespace assay::emu
