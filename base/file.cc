#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/limits.h"

namespace assay {
namespace {

std::unexpected<Error> SystemError(std::string_view what, const Path& path,
                                   std::string_view cure = {}) {
  const int error = errno;
  return Fail(ErrorKind::kEnvironment, std::string(what) + ": " + std::strerror(error),
              path.string(), CureOf(error, path.parent_path(), cure));
}

Status WriteAll(int fd, std::string_view text, const Path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot write", path, "check free space and permissions");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<std::string> ReadFile(const Path& path, std::uintmax_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return SystemError("cannot open", path, "check the path and its permissions");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return SystemError("cannot stat", path);
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorKind::kEnvironment, "not a regular file", path.string(), "name a file");
  }
  if (static_cast<std::uintmax_t>(info.st_size) > max_bytes) {
    return Fail(ErrorKind::kMalformedInput,
                "the file has " + std::to_string(info.st_size) + " bytes; at most " +
                    std::to_string(max_bytes) + " are read",
                path.string(), "check that it is the file you mean");
  }
  std::string text;
  text.resize(static_cast<std::size_t>(info.st_size));
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("cannot read", path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

Status WriteFileAtomically(const Path& path, std::string_view text) {
  const Path temporary = path.string() + ".tmp." + std::to_string(::getpid());
  const auto write = [&]() -> Status {
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) return SystemError("cannot create", temporary, "check that the folder is writable");
    ASSAY_TRY_VOID(WriteAll(fd.get(), text, temporary));
    if (::fdatasync(fd.get()) != 0) return SystemError("cannot sync", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return SystemError("cannot rename", path);
    return {};
  };
  Status written = write();
  if (!written) ::unlink(temporary.c_str());  // a full disk is not made fuller
  return written;
}

Status AppendLine(const Path& path, std::string_view line) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd)
    return SystemError("cannot open for appending", path, "check the path and its permissions");
  std::string text(line);
  text += '\n';
  ASSAY_TRY_VOID(WriteAll(fd.get(), text, path));
  if (::fdatasync(fd.get()) != 0) return SystemError("cannot sync", path);
  return {};
}

Status MakeFolders(const Path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Fail(ErrorKind::kEnvironment, "cannot create the folder: " + error.message(),
                path.string(), CureOf(error.value(), path, "check that its parent is writable"));
  }
  return {};
}

Path ProgramFolder() {
  std::error_code error;
  const Path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? Path(".") : self.parent_path();
}

}  // namespace assay
