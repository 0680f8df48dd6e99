#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/file.h"

extern char** environ;

namespace assay {
namespace {

constexpr std::size_t kMostOutput = 64u << 20;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Fail(ErrorKind::kEnvironment,
                std::string("cannot make a pipe: ") + std::strerror(errno));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// How a child is started; frees what posix_spawn keeps of it.
class Spawning {
 public:
  Spawning() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~Spawning() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  void Take(const UniqueFd& fd, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, fd.get(), as);
  }
  void InAGroupOfItsOwn() { ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP); }
  Result<pid_t> Start(const std::vector<std::string>& words, const std::string& cure) {
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    const int failed =
        ::posix_spawnp(&child, argv[0], &actions_, &attributes_, argv.data(), environ);
    if (failed == 0) return child;
    return Fail(ErrorKind::kEnvironment, "cannot run " + words[0] + ": " + std::strerror(failed),
                words[0], cure);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A file in memory, so that a program may leave its input unread without a signal for us.
Result<UniqueFd> InputOf(std::string_view text) {
  UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  while (fd && !text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fd && text.empty() && ::lseek(fd.get(), 0, SEEK_SET) == 0) return fd;
  return Fail(ErrorKind::kEnvironment,
              std::string("cannot hold a program's input: ") + std::strerror(errno));
}

// Reads both to their ends; a program that says much on one must not wait for the other.
void Drain(UniqueFd& out, UniqueFd& err, Ran& ran) {
  std::array<char, 8192> buffer{};
  const auto read = [&](UniqueFd& fd, std::string& into) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return fd.Reset();
    if (into.size() < kMostOutput) into.append(buffer.data(), static_cast<std::size_t>(got));
  };
  while (out || err) {
    std::array<pollfd, 2> fds = {{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) read(out, ran.out);
    if (fds[1].revents != 0) read(err, ran.err);
  }
}

int ExitOf(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<Ran> RunCommand(const std::vector<std::string>& words, const CommandOptions& options) {
  ASSAY_CHECK(!words.empty());
  Ran ran;
  Spawning spawning;
  if (options.attached) {
    ASSAY_TRY(const pid_t child, spawning.Start(words, options.cure));
    ran.exit = ExitOf(child);
    return ran;
  }
  ASSAY_TRY(const UniqueFd in, InputOf(options.input));
  ASSAY_TRY(Pipe out, MakePipe());
  ASSAY_TRY(Pipe err, MakePipe());
  spawning.Take(in, STDIN_FILENO);
  spawning.Take(out.write, STDOUT_FILENO);
  spawning.Take(err.write, STDERR_FILENO);
  spawning.InAGroupOfItsOwn();
  ASSAY_TRY(const pid_t child, spawning.Start(words, options.cure));
  out.write.Reset();
  err.write.Reset();
  Drain(out.read, err.read, ran);
  ran.exit = ExitOf(child);
  return ran;
}

}  // namespace assay
