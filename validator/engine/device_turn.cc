#include "validator/engine/device_turn.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace assay::engine {
namespace {

// Of the file, a byte is a lock. Whoever wants the card holds the first until he has the second, so that those who go
// beside others do not keep out for ever who waits to be alone.
constexpr off_t kNext = 0;
constexpr off_t kCard = 1;

bool Set(int file, off_t byte, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  // Of this opening of the file: two threads of a process wait for each other like two processes.
  while (::fcntl(file, F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

DeviceTurn::DeviceTurn(const std::filesystem::path& file, Use use) {
  if (file.empty() || !MakeFolders(file.parent_path())) return;
  // Another lock may not be had through a link that somebody laid there.
  UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!opened || !Set(opened.get(), kNext, F_WRLCK) ||
      !Set(opened.get(), kCard, use == Use::kAlone ? F_WRLCK : F_RDLCK))
    return;
  Set(opened.get(), kNext, F_UNLCK);
  file_ = std::move(opened);
}

}  // namespace assay::engine
