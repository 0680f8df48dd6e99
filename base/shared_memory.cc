#include "base/shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace assay {
namespace {

std::unexpected<Error> MemoryError(const char* what, std::size_t bytes) {
  const int error = errno;
  return Fail(
      ErrorKind::kEnvironment,
      std::string(what) + " of " + std::to_string(bytes) + " bytes: " + std::strerror(error),
      "shared memory", CureOf(error, {}, "free memory or raise the process's limits (ulimit -a)"));
}

}  // namespace

Result<SharedMemory> SharedMemory::Create(std::size_t bytes, const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return MemoryError("cannot create shared memory", bytes);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return MemoryError("cannot size shared memory", bytes);
  }
  return Map(std::move(fd), bytes, Access::kReadWrite);
}

Result<SharedMemory> SharedMemory::Map(UniqueFd fd, std::size_t bytes, Access access) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || static_cast<std::size_t>(info.st_size) < bytes) {
    return Fail(ErrorKind::kMalformedInput, "shared memory is smaller than announced",
                "shared memory");
  }
  SharedMemory memory;
  memory.fd_ = std::move(fd);
  memory.size_ = bytes;
  if (bytes == 0) return memory;
  const int flags = (access == Access::kPrivateCopy ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, memory.fd_.get(), 0);
  if (data == MAP_FAILED) return MemoryError("cannot map shared memory", bytes);
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SharedMemory::~SharedMemory() { Unmap(); }

void SharedMemory::Unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
}

}  // namespace assay
