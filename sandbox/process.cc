#include "sandbox/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace assay::sandbox {
namespace {

constexpr std::size_t kTailBytes = 4096;
/// Targets lie below: few descriptors may be open at all (ulimit -n).
constexpr int kMostTarget = 100;
/// Descriptors that one command maps.
constexpr std::size_t kMostMapped = 16;

std::unexpected<Error> SystemError(std::string_view what, std::string place = "process") {
  const int error = errno;
  return Fail(ErrorKind::kEnvironment, fmt::format("{}: {}", what, std::strerror(error)),
              std::move(place),
              CureOf(error, {}, "free resources or raise the limits of this account (ulimit -a)"));
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, prepared before fork: between fork and exec only
/// async-signal-safe calls are allowed.
struct ChildPlan {
  char* const* argv;
  char* const* environment;
  const Command* command;
  int output;
  int null;
  int report;
  pid_t parent;
};

[[noreturn]] void ReportAndExit(int report) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

void ResetSignals() {
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// If memory runs out, the kernel should take this process and not the one that supervises it.
void PreferForOomKiller() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, "1000", 4);
  ::close(fd);
}

/// Puts the wanted descriptors in place and marks all others close-on-exec. Returns false on
/// failure (errno is set).
bool ArrangeFds(const ChildPlan& plan, int* report) {
  // Everything is parked above every target before the first dup2: a target may be the number of
  // another one's source.
  int above = STDERR_FILENO;
  for (const FdMapping& mapping : plan.command->fds) above = std::max(above, mapping.target);
  const auto park = [above](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, above + 1); };
  const int output = park(plan.output);
  const int null = park(plan.null);
  const int parked_report = park(plan.report);
  if (output < 0 || null < 0 || parked_report < 0) return false;
  *report = parked_report;
  std::array<int, kMostMapped> parked{};
  for (std::size_t i = 0; i < plan.command->fds.size(); ++i) {
    parked[i] = park(plan.command->fds[i].source);
    if (parked[i] < 0) return false;
  }
  if (::dup2(null, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) return false;
  for (std::size_t i = 0; i < plan.command->fds.size(); ++i) {
    if (::dup2(parked[i], plan.command->fds[i].target) < 0) return false;
  }
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const FdMapping& mapping : plan.command->fds) {
    if (::fcntl(mapping.target, F_SETFD, 0) < 0) return false;
  }
  return true;
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  ResetSignals();
  ::setpgid(0, 0);
  if (plan.command->die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);  // The parent ended before the request took hold.
  }
  PreferForOomKiller();
  int report = plan.report;
  if (!ArrangeFds(plan, &report)) ReportAndExit(report);
  for (const ResourceLimit& limit : plan.command->limits) {
    rlimit current{};
    ::getrlimit(static_cast<__rlimit_resource>(limit.resource), &current);
    // Only ever lowered: a limit above the inherited hard one could not be set, and is kept
    // already.
    const rlim_t value = std::min<rlim_t>(limit.value, current.rlim_max);
    const rlimit wanted{value, value};
    if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &wanted) != 0) {
      ReportAndExit(report);
    }
  }
  ::execve(plan.argv[0], plan.argv, plan.environment);
  ReportAndExit(report);
}

Exit Decode(int status) {
  if (WIFSIGNALED(status)) return {true, WTERMSIG(status)};
  return {false, WEXITSTATUS(status)};
}

}  // namespace

int PollTimeout(Deadline deadline, std::chrono::milliseconds cap) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left.count(), std::chrono::milliseconds::rep{0}, cap.count()));
}

std::string Exit::Describe() const {
  if (!signalled) return fmt::format("exit {}", code);
  const char* name = ::sigdescr_np(code);
  return fmt::format("killed by signal {} ({})", code, name != nullptr ? name : "unknown");
}

Result<Process> Process::Start(const Command& command) {
  ASSAY_CHECK(!command.argv.empty(), "a command needs a program");
  ASSAY_CHECK(command.fds.size() <= kMostMapped, "too many descriptors");
  for (const FdMapping& mapping : command.fds) {
    ASSAY_CHECK(mapping.target > 2 && mapping.target < kMostTarget,
                "descriptor target out of range");
  }
  std::array<int, 2> output{}, report{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  UniqueFd output_read(output[0]), output_write(output[1]);
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  UniqueFd report_read(report[0]), report_write(report[1]);
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return SystemError("cannot open", "/dev/null");
  ::fcntl(output_read.get(), F_SETFL, O_NONBLOCK);

  const std::vector<char*> argv = Pointers(command.argv);
  const std::vector<char*> environment = Pointers(command.environment);
  const ChildPlan plan{argv.data(), environment.data(), &command,  output_write.get(),
                       null.get(),  report_write.get(), ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError("cannot start a process", command.argv[0]);
  if (pid == 0) RunChild(plan);

  Process process;
  process.pid_ = pid;
  process.output_ = std::move(output_read);
  ::setpgid(pid, pid);  // Also here: a kill may come before the child got to it.
  // Through syscall(2): glibc 2.36 declares pidfd_open without C linkage.
  process.pidfd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.pidfd_) return SystemError("cannot watch a process", command.argv[0]);
  report_write.Reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    return Fail(ErrorKind::kEnvironment, fmt::format("cannot execute: {}", std::strerror(error)),
                command.argv[0],
                CureOf(error, {}, "check that the program is installed and executable"));
  }
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  if (pid_ > 0 && !reaped_) Kill();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  output_ = std::move(other.output_);
  tail_ = std::move(other.tail_);
  reaped_ = std::exchange(other.reaped_, false);
  exit_ = other.exit_;
  return *this;
}

Process::~Process() {
  if (pid_ > 0 && !reaped_) Kill();
}

Exit Process::Reap() {
  if (reaped_) return exit_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  exit_ = Decode(status);
  return exit_;
}

Exit Process::Kill() {
  ASSAY_CHECK(pid_ > 0, "no process to kill");
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    DrainOutput();
  }
  return Reap();
}

Result<Exit> Process::Wait(Deadline deadline) {
  bool open = true;
  while (!reaped_) {
    std::array<pollfd, 2> watched{pollfd{pidfd_.get(), POLLIN, 0},
                                  pollfd{open ? output_.get() : -1, POLLIN, 0}};
    const int timeout = PollTimeout(deadline);
    if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
      return SystemError("cannot wait for a process");
    }
    if (watched[1].revents != 0) open = DrainOutput();
    if (watched[0].revents != 0) return Reap();
    if (timeout == 0) return Fail(ErrorKind::kLimit, "the process did not end in time", "process");
  }
  return exit_;
}

bool Process::DrainOutput() {
  std::array<char, 4096> chunk;
  // Bounded: a child that writes without end must not keep its supervisor here.
  for (int round = 0; round < 64; ++round) {
    const ssize_t got = ::read(output_.get(), chunk.data(), chunk.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    tail_.append(chunk.data(), static_cast<std::size_t>(got));
    if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  return true;
}

std::string Process::OutputTail() const {
  std::string tail = tail_.substr(tail_.size() - std::min(tail_.size(), kTailBytes));
  for (char& c : tail) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  }
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail;
}

Path FindProgram(std::string_view name, std::string_view search_path) {
  while (!search_path.empty()) {
    const std::size_t colon = std::min(search_path.find(':'), search_path.size());
    const std::string_view folder = search_path.substr(0, colon);
    search_path.remove_prefix(std::min(colon + 1, search_path.size()));
    if (folder.empty() || folder.front() != '/')
      continue;  // A relative entry would depend on the working folder.
    Path candidate = Path(folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace assay::sandbox
