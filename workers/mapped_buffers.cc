#include "workers/mapped_buffers.h"

#include <sys/mman.h>

#include <utility>

#include "validator/emu/lazy_fill.h"

namespace assay::workers {
namespace {

/// Small buffers are touched page by page in any case, and all at once costs a third of that. Where the
/// kernel does not know how, nothing is lost.
void Touch(std::span<std::byte> bytes, BufferRole role) {
  if (bytes.empty() || bytes.size() > emu::kFilledAtOnce) return;
  const int advice = role == BufferRole::kInput ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  ::madvise(bytes.data(), bytes.size(), advice);
}

}  // namespace

Result<MappedBuffers> MapBuffers(const Execution& execution, std::vector<UniqueFd> fds) {
  if (fds.size() != execution.buffers.size()) {
    return Fail(ErrorKind::kUsage, "the number of descriptors differs from the number of buffers",
                "request");
  }
  MappedBuffers mapped;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const BufferSpec& spec = execution.buffers[i];
    const std::size_t bytes = SizeOf(spec.dtype) * static_cast<std::size_t>(spec.elements);
    // Inputs are views without write access; a private mapping lets a kernel's write stay in this
    // process all the same.
    const auto access = spec.role == BufferRole::kInput ? SharedMemory::Access::kPrivateCopy
                                                        : SharedMemory::Access::kReadWrite;
    ASSAY_TRY(SharedMemory memory, SharedMemory::Map(std::move(fds[i]), bytes, access));
    mapped.mappings.push_back(std::move(memory));
    mapped.bytes.push_back(mapped.mappings.back().bytes());
    Touch(mapped.bytes.back(), spec.role);
  }
  return mapped;
}

}  // namespace assay::workers
