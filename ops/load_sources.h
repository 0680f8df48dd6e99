// The files beside op.json: reference, generator, known-good candidate, recorded transcript.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

/// Beside the reference's launch file there may be another one, by which single elements are computed
/// where it takes the whole to compute any of them by the first (docs/ops.md). Its kernels stand in the reference's
/// source, or in one of their own, which compiles beside that.
inline constexpr std::string_view kPartsFile = "parts.json";
inline constexpr std::string_view kPartsSource = "parts.cu";

/// Fills the paths of `op` from op.json. Each must exist and stay inside the op's folder. Reads no
/// file; op.inputs must be there, for a generator goes with a generated input.
Status ReadSources(ObjectReader& reader, OpSpec& op);

/// The launch plans of reference and generator must be plans for `op`, which is otherwise complete.
Status CheckPlans(const OpSpec& op);

}  // namespace assay::ops
