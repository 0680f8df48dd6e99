// A program of the user's that cannot outlive us.
//
// It runs below a guard: a process that we fork, that waits for the program's end or for ours, and
// then kills whatever the program has started, in sessions of their own too (as their subreaper it
// inherits what is orphaned). Ours shows as the end of a pipe that nobody else holds, so SIGKILL,
// SIGTERM and a crash are all the same to it. Where /proc is missing, only the program's process
// group is killed.
//
//   ASSAY_TRY(GuardedProgram program, GuardedProgram::Start({"cat"}, {"PATH=/usr/bin"}));
//   write(program.in.get(), ...); ... while (!program.Ended()) ...
//
// The program gets the environment that is named and three pipes, nothing else of ours: neither it
// nor the guard keeps a descriptor (the lock of a run, say) beyond our end. Move-only; destruction
// kills. Not internally synchronised.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace assay::models {

class GuardedProgram {
 public:
  /// `argv[0]` is looked for on our PATH; `environment` is "NAME=value". Fails where the program
  /// cannot be executed.
  static Result<GuardedProgram> Start(const std::vector<std::string>& argv,
                                      const std::vector<std::string>& environment);

  GuardedProgram() = default;
  GuardedProgram(GuardedProgram&& other) noexcept;
  GuardedProgram& operator=(GuardedProgram&&) = delete;
  ~GuardedProgram() { Kill(); }

  /// Ends of the program's standard streams, non-blocking.
  UniqueFd in, out, err;

  /// Whether the program has ended, and with it all that it started. Never blocks.
  bool Ended();
  /// As waitpid gives it, once Ended.
  int status() const { return status_; }
  /// Kills the program and all that it started, and waits for that.
  void Kill();

 private:
  pid_t guard_ = -1;
  UniqueFd alive_;  // the guard sees its end
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace assay::models
