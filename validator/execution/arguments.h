// Scalars as a kernel's parameters want them.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/execution/execution.h"

namespace assay {

/// The value of a scalar argument, narrowed or widened to the `bytes` of a kernel's parameter. Empty
/// where it does not fit: a float of another size, an integer whose value would change.
std::vector<std::uint8_t> FitScalar(const Argument& argument, std::uint64_t bytes);

}  // namespace assay
