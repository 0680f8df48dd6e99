// One input or output of op.json, with its domain, checked against the axes and dtypes read so far.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "ops/op.h"

namespace assay::ops {

enum class TensorRole : std::uint8_t { kInput, kOutput, kHidden };

/// Reads all keys of a tensor but `hidden`, and does not finish `reader`. Only an input may have a
/// domain and may be a scalar; only an output has a relation, or overwrites an input (those are read
/// before); a hidden output has a shape alone.
Result<TensorSpec> ReadTensor(ObjectReader& reader, const std::string& name, TensorRole role,
                              const OpSpec& op);

}  // namespace assay::ops
