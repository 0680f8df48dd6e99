#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "base/limits.h"
#include "base/repeating_memory.h"

namespace assay {
namespace {

std::unexpected<Error> MemoryError(const char* what, std::size_t bytes) {
  const int error = errno;
  return Fail(
      ErrorKind::kEnvironment,
      std::string(what) + " of " + std::to_string(bytes) + " bytes: " + std::strerror(error),
      "shared memory", CureOf(error, {}, "free memory or raise the process's limits (ulimit -a)"));
}

// Nobody may change it any more.
constexpr int kPatternSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

// Of all memories that repeat, in this process.
std::atomic<std::size_t> repetitions{0};

// As many mappings for one more memory as leave room for dozens of them.
std::size_t RepetitionsToSpare() {
  constexpr std::size_t kOfAll = 32'768;
  const std::size_t now = std::min(repetitions.load(), kOfAll);
  return std::clamp((kOfAll - now) / 16, kFewRepetitions, kMostRepetitions);
}

bool Repeats(int fd, std::size_t pattern) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return pattern > 0 && pattern % kPatternPage == 0 && seals >= 0 &&
         (seals & kPatternSeals) == kPatternSeals;
}

// The pattern again and again, its pages shared by all places until somebody writes there. Null where that fails.
std::byte* MapRepeated(int fd, std::size_t pattern, std::size_t bytes) {
  void* const place =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  for (std::size_t at = 0; at < bytes; at += pattern) {
    const std::size_t length = std::min(pattern, bytes - at);
    if (::mmap(static_cast<std::byte*>(place) + at, length, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED) {
      ::munmap(place, bytes);
      return nullptr;
    }
  }
  return static_cast<std::byte*>(place);
}

// A copy of the file's written parts, its holes as memory of this process' own: read, they are one page of
// zeros for all places, where a hole of a memory file gets a page that is cleared for each.
Result<void*> MapCopy(int fd, std::size_t bytes) {
  // Below, pages are few; beyond, the parts are mapped as one.
  constexpr std::size_t kWorthIt = std::size_t{16} << 20;
  constexpr int kMostParts = 64;
  constexpr int kFlags = MAP_PRIVATE | MAP_NORESERVE;
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  const bool has_holes = bytes >= kWorthIt;
  void* const place = has_holes ? ::mmap(nullptr, bytes, kProtection, kFlags | MAP_ANONYMOUS, -1, 0)
                                : ::mmap(nullptr, bytes, kProtection, kFlags, fd, 0);
  if (place == MAP_FAILED) return MemoryError("cannot map shared memory", bytes);
  if (!has_holes) return place;
  // Millions of pages are not mapped one by one; without large pages it goes on with small ones.
  (void)::madvise(place, bytes, MADV_HUGEPAGE);
  const auto end = static_cast<off_t>(bytes);
  off_t at = 0;
  for (int part = 0; at < end; ++part) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    const off_t hole = part == kMostParts ? end : ::lseek(fd, data, SEEK_HOLE);
    const off_t first =
        data < 0 ? at : data / static_cast<off_t>(kPatternPage) * static_cast<off_t>(kPatternPage);
    const off_t last = data < 0 || hole < 0 ? end : std::min(hole, end);
    if (first >= last) break;
    if (::mmap(static_cast<std::byte*>(place) + first, static_cast<std::size_t>(last - first),
               kProtection, kFlags | MAP_FIXED, fd, first) == MAP_FAILED) {
      auto error = MemoryError("cannot map shared memory", bytes);
      ::munmap(place, bytes);
      return error;
    }
    at = last;
  }
  return place;
}

}  // namespace

Result<SharedMemory> Repeat(std::span<const std::byte> pattern, std::size_t bytes) {
  ASSAY_CHECK(!pattern.empty() && pattern.size() % kPatternPage == 0);
  UniqueFd fd(::memfd_create("assay-pattern", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return MemoryError("cannot create shared memory", pattern.size());
  // A long memory's file holds the pattern several times.
  const std::size_t most = RepetitionsToSpare() * pattern.size();
  const std::size_t length = std::max<std::size_t>(1, (bytes + most - 1) / most) * pattern.size();
  if (bytes > kMostRepeatedBytes)
    return Fail(ErrorKind::kLimit, "too much memory for a pattern", "shared memory");
  for (std::size_t at = 0; at < length;) {
    const std::span<const std::byte> rest = pattern.subspan(at % pattern.size());
    const ssize_t written = ::pwrite(fd.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    if (written <= 0) return MemoryError("cannot fill shared memory", length);
    at += static_cast<std::size_t>(written);
  }
  // Busy while the kernel moves one of its pages.
  constexpr int kMostTries = 40;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 5'000'000};
  int tries = 0;
  while (::fcntl(fd.get(), F_ADD_SEALS, kPatternSeals) != 0) {
    if (errno != EBUSY || ++tries == kMostTries)
      return MemoryError("cannot seal shared memory", pattern.size());
    ::nanosleep(&kPause, nullptr);
  }
  return SharedMemory::Map(std::move(fd), bytes, SharedMemory::Access::kPrivateCopy);
}

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
  const bool known = ::fstat(fd.get(), &info) == 0;
  const std::size_t held = known ? static_cast<std::size_t>(info.st_size) : 0;
  const bool repeats = held < bytes && access == Access::kPrivateCopy && Repeats(fd.get(), held);
  if (!known || (held < bytes && !repeats)) {
    return Fail(ErrorKind::kMalformedInput, "shared memory is smaller than announced",
                "shared memory");
  }
  SharedMemory memory;
  memory.fd_ = std::move(fd);
  memory.size_ = bytes;
  if (bytes == 0) return memory;
  if (repeats) {
    if (bytes / held > kMostRepetitions)
      return Fail(ErrorKind::kLimit, "a pattern is repeated too often", "shared memory");
    memory.repeated_ = std::make_unique<Repeated>();
    memory.repeated_->pattern = held;
    memory.repetitions_ = (bytes + held - 1) / held;
    repetitions += memory.repetitions_;
    return memory;
  }
  if (access == Access::kPrivateCopy) {
    ASSAY_TRY(void* const place, MapCopy(memory.fd_.get(), bytes));
    memory.data_ = static_cast<std::byte*>(place);
    return memory;
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                            memory.fd_.get(), 0);
  if (data == MAP_FAILED) return MemoryError("cannot map shared memory", bytes);
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      repeated_(std::move(other.repeated_)),
      size_(std::exchange(other.size_, 0)),
      repetitions_(std::exchange(other.repetitions_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    repeated_ = std::move(other.repeated_);
    size_ = std::exchange(other.size_, 0);
    repetitions_ = std::exchange(other.repetitions_, 0);
  }
  return *this;
}

SharedMemory::~SharedMemory() { Unmap(); }

std::byte* SharedMemory::MappedRepeated() const {
  if (std::byte* const mapped = repeated_->data.load(std::memory_order_acquire)) return mapped;
  const std::lock_guard lock(repeated_->mutex);
  if (std::byte* const mapped = repeated_->data) return mapped;
  std::byte* const place = MapRepeated(fd_.get(), repeated_->pattern, size_);
  if (place == nullptr) throw std::bad_alloc();
  repeated_->data.store(place, std::memory_order_release);
  return place;
}

void SharedMemory::Unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  if (repeated_ != nullptr && repeated_->data != nullptr) ::munmap(repeated_->data, size_);
  repeated_.reset();
  repetitions -= std::exchange(repetitions_, 0);
}

}  // namespace assay
