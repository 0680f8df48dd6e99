// What a machine with a GPU needs to time a kernel at the op's workloads, and nothing else of ours:
// machine code, and launches as numbers (format assay.launches/1; read by bench/cost/measure.py).
#pragma once

#include "base/error.h"
#include "base/file.h"
#include "validator/cost/sample.h"

namespace assay::cli {

/// Writes kernel.cubin and launches.json to `folder`, which is made.
Status ExportLaunches(const cost::Subject& subject, const Path& folder);

}  // namespace assay::cli
