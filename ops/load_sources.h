// The files beside op.json: reference, generator, known-good candidate, recorded transcript.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

/// Fills the paths of `op` from op.json. Each must exist and stay inside the op's folder. Reads no
/// file; op.inputs must be there, for a generator goes with a generated input.
Status ReadSources(ObjectReader& reader, OpSpec& op);

/// The launch plans of reference and generator must be plans for `op`, which is otherwise complete.
Status CheckPlans(const OpSpec& op);

}  // namespace assay::ops
