// Memory that two processes can share: a memfd and its mapping.
//
// Tensors live in these, so that a worker gets them without a copy. Pages that nobody touches cost nothing, which makes tensors of
// many gigabytes affordable as long as a case touches few of their pages. Move-only; not internally synchronised.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "base/error.h"
#include "base/file.h"

namespace assay {

class SharedMemory {
 public:
  enum class Access {
    kReadWrite,
    kPrivateCopy
  };  ///< kPrivateCopy: writes stay in this process (copy on write).

  SharedMemory() = default;
  /// New zeroed memory of `bytes` bytes (0 is allowed). `name` shows in /proc for debugging.
  static Result<SharedMemory> Create(std::size_t bytes, const char* name = "assay");
  /// Maps memory received from another process. Fails if it holds fewer than `bytes` bytes, unless it repeats (repeating_memory.h).
  static Result<SharedMemory> Map(UniqueFd fd, std::size_t bytes, Access access);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// Memory that repeats is mapped when somebody asks for it, which may be from several threads: mostly that is only the other
  /// process. Throws std::bad_alloc where that fails.
  std::span<std::byte> bytes() { return {Data(), size_}; }
  std::span<const std::byte> bytes() const { return {Data(), size_}; }
  std::size_t size() const { return size_; }
  int fd() const { return fd_.get(); }

 private:
  // Of memory that repeats.
  struct Repeated {
    std::size_t pattern = 0;  // Bytes.
    std::mutex mutex;
    std::atomic<std::byte*> data = nullptr;
  };

  std::byte* Data() const { return repeated_ == nullptr ? data_ : MappedRepeated(); }
  std::byte* MappedRepeated() const;
  void Unmap();

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::unique_ptr<Repeated> repeated_;
  std::size_t size_ = 0;
  std::size_t repetitions_ = 0;  // Mappings, of memory that repeats.
};

}  // namespace assay
