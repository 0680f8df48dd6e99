#include "validator/engine/device_turn.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace assay::engine {

DeviceTurn::DeviceTurn(const std::filesystem::path& file, Use use) {
  if (file.empty() || !MakeFolders(file.parent_path())) return;
  // Another lock may not be had through a link that somebody laid there.
  UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!opened) return;
  while (::flock(opened.get(), use == Use::kAlone ? LOCK_EX : LOCK_SH) != 0) {
    if (errno != EINTR) return;
  }
  file_ = std::move(opened);
}

}  // namespace assay::engine
