// One input or output of op.json, with its domain, checked against the axes and dtypes read so far.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

/// Reads all keys of a tensor but does not finish `reader`. Only an input may have a domain and may
/// be a scalar.
Result<TensorSpec> ReadTensor(ObjectReader& reader, const std::string& name, bool is_input,
                              const OpSpec& op);

}  // namespace assay::ops
