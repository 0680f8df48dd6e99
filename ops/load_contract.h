// The parts of op.json that speak about results: `precision`, the contract, and `properties`.
#pragma once

#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

/// `op` must have its outputs.
Result<Contract> ReadContract(ObjectReader& reader, const OpSpec& op);
/// `op` must have its axes and tensors.
Result<std::vector<Property>> ReadProperties(ObjectReader& reader, const OpSpec& op);

}  // namespace assay::ops
