// zstd over whole texts: what the corpus keeps its blobs in, and what exports may be written as.
// Deterministic for a version of the library. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::dataset {

/// A zstd frame that says how long its content is.
std::string Pack(std::string_view text);
/// The content of one frame, of at most `most` bytes: a small frame may claim to be a huge one.
Result<std::string> Unpack(std::string_view packed, std::size_t most = std::size_t{1} << 30);

}  // namespace assay::dataset
