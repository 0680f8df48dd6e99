// From the race detector's records to findings that name both sides.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// Adds a finding for every race that the detector has found since the last call. Called while the
/// launch's state still stands.
void ReportRaces(Device& device);

}  // namespace assay::emu
