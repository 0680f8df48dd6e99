// The buffers of an execution, mapped from the descriptors that came with a request.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "sandbox/frame.h"
#include "validator/execution/execution.h"

namespace assay::workers {

struct MappedBuffers {
  std::vector<SharedMemory> mappings;
  std::vector<std::span<std::byte>> bytes;  ///< Of each buffer, as long as its specification says.
};

/// Inputs are mapped copy-on-write: a write stays in this process. An Error where descriptors are
/// missing or memory is smaller than its buffer.
Result<MappedBuffers> MapBuffers(const Execution& execution, std::vector<UniqueFd> fds);

}  // namespace assay::workers
