#include "cli/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace assay::cli {
namespace {

// Editors write a file in several steps; a moment without a further one is the end of a save.
constexpr int kQuietMilliseconds = 100;

int woken = -1;  // an eventfd: what a handler of signals may write to

void OnInterrupt(int) {
  constexpr std::string_view kNote =
      "\ninterrupted: no longer watching (Ctrl-C again leaves at once)\n";
  const std::uint64_t one = 1;
  [[maybe_unused]] ssize_t ignored = ::write(woken, &one, sizeof one);
  ignored = ::write(STDERR_FILENO, kNote.data(), kNote.size());
  std::signal(SIGINT, SIG_DFL);
}

std::unexpected<Error> CannotWatch(const Path& folder) {
  return Fail(ErrorKind::kEnvironment,
              std::string("the folder cannot be watched: ") + std::strerror(errno), folder.string(),
              "check that it is there; where too much is watched already, raise "
              "fs.inotify.max_user_watches");
}

}  // namespace

Result<FolderWatch> FolderWatch::Make(const Path& folder, std::set<std::string> names) {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd || ::inotify_add_watch(
                 fd.get(), folder.c_str(),
                 IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) < 0)
    return CannotWatch(folder);
  if (woken < 0) woken = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (woken < 0) return CannotWatch(folder);
  std::signal(SIGINT, &OnInterrupt);
  return FolderWatch(folder, std::move(names), std::move(fd));
}

Result<bool> FolderWatch::Drain() {
  bool saved = false;
  alignas(inotify_event) std::array<char, 16 * 1024> bytes;
  while (true) {
    const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return saved;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* const event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) {
        return Fail(ErrorKind::kEnvironment, "the folder has gone", folder_.string(),
                    "watch it again where it is now");
      }
      // Where events were lost, ours may be among them.
      if ((event->mask & IN_Q_OVERFLOW) != 0 || (event->len > 0 && names_.contains(event->name)))
        saved = true;
    }
  }
}

Result<FolderWatch::Event> FolderWatch::Wait() {
  bool saved = false;
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{woken, POLLIN, 0}, pollfd{fd_.get(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), saved ? kQuietMilliseconds : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return CannotWatch(folder_);
    if (fds[0].revents != 0) return Event::kInterrupted;
    if (ready == 0) return Event::kSaved;
    ASSAY_TRY(const bool more, Drain());
    saved = saved || more;
  }
}

}  // namespace assay::cli
