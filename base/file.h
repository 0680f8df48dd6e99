// Files and descriptors: whole-file reads, writes that are never half done, and a move-only descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace assay {

using Path = std::filesystem::path;

/// A file descriptor with one owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(-1); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Reads a whole regular file; refuses one above `max_bytes`.
Result<std::string> ReadFile(const Path& path, std::uintmax_t max_bytes = 256u << 20);
/// Writes to a temporary sibling, syncs, renames: a reader sees the old text or the new one, never a part.
Status WriteFileAtomically(const Path& path, std::string_view text);
/// Appends one line and flushes it to the disk's cache before it returns.
Status AppendLine(const Path& path, std::string_view line);
Status MakeFolders(const Path& path);
/// The folder of the running program: `assay-worker`, ops/ and prompts/ are looked for beside it.
Path ProgramFolder();

}  // namespace assay
