// A child process with one owner: started from an argument vector, watched through a pidfd, killed
// with its whole group.
//
// No shell is involved anywhere: a Command is the exact vector that execve gets, with an explicit
// environment and an explicit set of descriptors; everything else is closed. The child's standard
// input is /dev/null, its standard output and error go to one pipe whose last few kilobytes are
// kept.
//
// A child started with `die_with_parent` gets SIGKILL when the *thread* that started it ends (that
// is what Linux offers), so start such children from a thread that lives long enough; WorkerPool
// does.
//
// Move-only; destruction kills and reaps. Not internally synchronised.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::sandbox {

using Deadline = std::chrono::steady_clock::time_point;

/// Milliseconds until `deadline` for poll(2): never negative, never above `cap`.
int PollTimeout(Deadline deadline, std::chrono::milliseconds cap = std::chrono::hours(1));

/// A descriptor of ours and the number that the child sees it under.
struct FdMapping {
  int source = -1;
  int target = -1;
};

/// One setrlimit(2): soft and hard alike.
struct ResourceLimit {
  int resource = 0;
  std::uint64_t value = 0;
};

struct Command {
  std::vector<std::string> argv;         ///< argv[0] is the program's path, taken as it is.
  std::vector<std::string> environment;  ///< "NAME=value"; nothing is inherited.
  std::vector<FdMapping> fds;            ///< Borrowed until Start returns. Targets must be above 2.
  std::vector<ResourceLimit> limits;
  bool die_with_parent = true;
};

/// How a process ended.
struct Exit {
  bool signalled = false;
  int code = 0;  ///< Exit code, or the signal's number.

  /// "exit 3", "killed by signal 11 (Segmentation fault)".
  std::string Describe() const;
};

class Process {
 public:
  /// Starts `command`. Fails if the program cannot be executed, naming it.
  static Result<Process> Start(const Command& command);

  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  /// Readable (POLLIN) once the process has ended.
  int pidfd() const { return pidfd_.get(); }
  /// The read end of the output pipe, non-blocking.
  int output_fd() const { return output_.get(); }

  /// Sends SIGKILL to the child and its process group, and reaps it.
  Exit Kill();
  /// Waits for the end; fails with kLimit at the deadline, and then the process still runs. Drains
  /// output meanwhile.
  Result<Exit> Wait(Deadline deadline);

  /// Reads what the child wrote so far. False once the pipe is at its end.
  bool DrainOutput();
  /// The last kilobytes of standard output and error, bytes that are not printable ASCII replaced.
  std::string OutputTail() const;

 private:
  Exit Reap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd output_;
  std::string tail_;
  bool reaped_ = false;
  Exit exit_;
};

/// Finds a program by name in the folders of `search_path` (as in $PATH), or returns an empty path.
Path FindProgram(std::string_view name, std::string_view search_path);

}  // namespace assay::sandbox
