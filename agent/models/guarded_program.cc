#include "agent/models/guarded_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace assay::models {
namespace {

// Below: what runs between fork and exec, and in the guard, which never executes anything. The
// process that was forked may have had threads that held locks, so only async-signal-safe calls are
// made there: no allocation, no streams.

// Where the guard finds its descriptors.
constexpr int kAlive = 3;
constexpr int kReport = 4;
constexpr int kFirstParked = 10;

struct Plan {
  char* const* argv;
  char* const* environment;
  std::array<int, 5> fds;  // of standard input, output and error, kAlive, kReport
};

void OnChild(int) {}  // only so that it interrupts ppoll

[[noreturn]] void ReportAndExit(int error) {
  [[maybe_unused]] const ssize_t written = ::write(kReport, &error, sizeof error);
  ::_exit(127);
}

void ResetSignals() {
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool ArrangeFds(const Plan& plan) {
  std::array<int, 5> parked{};
  for (std::size_t i = 0; i < parked.size(); ++i) {
    parked[i] = ::fcntl(plan.fds[i], F_DUPFD_CLOEXEC, kFirstParked);
    if (parked[i] < 0) return false;
  }
  for (std::size_t i = 0; i < parked.size(); ++i) {
    if (::dup2(parked[i], static_cast<int>(i)) < 0) return false;
  }
  ::fcntl(kAlive, F_SETFD, FD_CLOEXEC);
  ::fcntl(kReport, F_SETFD, FD_CLOEXEC);
  return ::close_range(kReport + 1, ~0U, 0) == 0;
}

// The parent of a process, from "PID (NAME) STATE PARENT ..."; the name may hold parentheses.
pid_t ParentOf(const char* pid) {
  char path[64] = "/proc/";
  const std::size_t digits = std::strlen(pid);
  if (digits > 20) return -1;
  std::memcpy(path + 6, pid, digits);
  std::memcpy(path + 6 + digits, "/stat", 6);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[512];
  const ssize_t size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || std::strlen(at) < 5) return -1;
  pid_t parent = 0;
  for (at += 4; *at >= '0' && *at <= '9'; ++at) parent = parent * 10 + (*at - '0');
  return parent;
}

// Children of ours cannot vanish before we reap them, so no stranger gets the signal.
void KillChildren() {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(dirent64) char entries[4096];
  long size = 0;
  while ((size = ::syscall(SYS_getdents64, proc, entries, sizeof entries)) > 0) {
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (ParentOf(entry->d_name) != ::getpid()) continue;
      pid_t pid = 0;
      for (const char* digit = entry->d_name; *digit >= '0' && *digit <= '9'; ++digit)
        pid = pid * 10 + (*digit - '0');
      ::kill(pid, SIGKILL);
    }
  }
  ::close(proc);
}

// Until no child is left: what is orphaned by a kill becomes a child of the guard.
void EndAll(pid_t program) {
  ::kill(-program, SIGKILL);
  while (true) {
    bool reaped = false;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) reaped = true;
    if (ended < 0 && errno == ECHILD) return;
    KillChildren();
    if (!reaped) ::poll(nullptr, 0, 5);
  }
}

[[noreturn]] void ExecuteProgram(const Plan& plan, pid_t guard) {
  ResetSignals();
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if somebody kills the guard
  if (::getppid() != guard) ::_exit(127);
  ::execvpe(plan.argv[0], plan.argv, plan.environment);
  ReportAndExit(errno);
}

[[noreturn]] void Guard(const Plan& plan) {
  ResetSignals();
  ::setpgid(0, 0);  // Ctrl-C is for us to handle, not for the guard
  if (!ArrangeFds(plan)) {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(plan.fds[4], &error, sizeof error);
    ::_exit(127);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action{};
  action.sa_handler = &OnChild;
  ::sigaction(SIGCHLD, &action, nullptr);
  sigset_t child, before;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, &before);  // delivered within ppoll alone
  const pid_t self = ::getpid();
  const pid_t program = ::fork();
  if (program < 0) ReportAndExit(errno);
  if (program == 0) ExecuteProgram(plan, self);
  ::setpgid(program, program);
  // A reader or writer that we kept open would hide the program's end from the other side.
  for (const int fd : {0, 1, 2, kReport}) ::close(fd);
  int status = 0;
  bool ended = false;
  while (!ended) {
    int one = 0;
    for (pid_t pid = 0; !ended && (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
      if (pid == program) {
        status = one;
        ended = true;
      }
    }
    if (ended) break;
    pollfd alive{kAlive, POLLIN, 0};
    if (::ppoll(&alive, 1, nullptr, &before) > 0) break;  // nobody waits for the program any more
  }
  EndAll(program);
  if (WIFSIGNALED(status)) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::kill(self, WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

// From here on: our own side.

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return Fail(ErrorKind::kEnvironment, std::string("cannot make a pipe: ") + std::strerror(error),
                "exec/", CureOf(error, {}, "raise the limit on open files (ulimit -n)"));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void SetNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<GuardedProgram> GuardedProgram::Start(const std::vector<std::string>& argv,
                                             const std::vector<std::string>& environment) {
  ASSAY_CHECK(!argv.empty(), "a program has a name");
  ASSAY_TRY(Pipe in, MakePipe());
  ASSAY_TRY(Pipe out, MakePipe());
  ASSAY_TRY(Pipe err, MakePipe());
  ASSAY_TRY(Pipe alive, MakePipe());
  ASSAY_TRY(Pipe report, MakePipe());
  const std::vector<char*> words = Pointers(argv);
  const std::vector<char*> variables = Pointers(environment);
  const Plan plan{
      words.data(),
      variables.data(),
      {in.read.get(), out.write.get(), err.write.get(), alive.read.get(), report.write.get()}};
  const pid_t guard = ::fork();
  if (guard < 0) {
    const int error = errno;
    return Fail(ErrorKind::kEnvironment,
                std::string("cannot start a process: ") + std::strerror(error), "exec/" + argv[0],
                CureOf(error, {}, "raise the limit on processes (ulimit -u)"));
  }
  if (guard == 0) Guard(plan);
  GuardedProgram program;
  program.guard_ = guard;
  program.alive_ = std::move(alive.write);
  program.in = std::move(in.write);
  program.out = std::move(out.read);
  program.err = std::move(err.read);
  report.write.Reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    // The guard may be the last process that this user may have.
    const bool exhausted = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
    return Fail(exhausted ? ErrorKind::kEnvironment : ErrorKind::kUsage,
                std::string("cannot start the program: ") + std::strerror(error), "exec/" + argv[0],
                exhausted ? CureOf(error, {}, "end other programs")
                          : "name a program that is on the PATH, or its full path");
  }
  for (const UniqueFd* const fd : {&program.in, &program.out, &program.err})
    SetNonBlocking(fd->get());
  return program;
}

GuardedProgram::GuardedProgram(GuardedProgram&& other) noexcept
    : in(std::move(other.in)),
      out(std::move(other.out)),
      err(std::move(other.err)),
      guard_(std::exchange(other.guard_, -1)),
      alive_(std::move(other.alive_)),
      ended_(other.ended_),
      status_(other.status_) {}

bool GuardedProgram::Ended() {
  if (guard_ > 0 && !ended_) ended_ = ::waitpid(guard_, &status_, WNOHANG) == guard_;
  return ended_;
}

void GuardedProgram::Kill() {
  if (guard_ <= 0) return;
  alive_.Reset();
  while (!ended_ && ::waitpid(guard_, &status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  guard_ = -1;
}

}  // namespace assay::models
