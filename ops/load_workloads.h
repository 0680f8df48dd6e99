// workloads.jsonl: one shape a line, {"axes": {"tokens": 4096}, "note": "..."}; also the lines of
// flashinfer-trace, which wrap it in "workload". A missing file is an op without workloads.
#pragma once

#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace assay::ops {

Result<std::vector<Workload>> LoadWorkloads(const OpSpec& op);

}  // namespace assay::ops
