// From the race detector's records to findings that name both sides.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// Adds a finding for every race that the detector has found since the last call. Called while the
/// launch's state still stands.
void ReportRaces(Device& device);

/// What an access at line `to` lacks that has not acquired what follows the one at `from`. `who`:
/// what its thread is called.
std::string MissingAcquire(const Device& device, const OrderGap& gap, const std::string& from,
                           const std::string& to, std::string_view who);

}  // namespace assay::emu
