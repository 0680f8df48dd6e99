// Runs a program of this machine that is trusted (Slurm's clients, python3 for a script of ours, the desktop's opener) to its end.
// What is not trusted runs in the jail (sandbox/), and what may outlive us under a guard (agent/models/guarded_program.h).
//
// No shell: the words are the vector that the program gets, the first one is looked for on the PATH. Its environment is ours.
//
//   ASSAY_TRY(const Ran ran, RunCommand({"sbatch", "--parsable"}, {.input = script}));
//   if (!ran.Succeeded()) ... ran.err ...
//
// Blocks. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace assay {

struct CommandOptions {
  std::string input;  ///< Its standard input.
  std::string cure;   ///< Of the error where there is no such program.
  /// What it says goes where ours goes, and it is in our group: Ctrl-C ends both. Else it is kept,
  /// and Ctrl-C is for us alone: we still want its answer.
  bool attached = false;
};

struct Ran {
  int exit = -1;    ///< 128 and more: killed by that signal.
  std::string out;  ///< The first 64 MiB of each.
  std::string err;

  bool Succeeded() const { return exit == 0; }
};

/// kEnvironment where it cannot be started; how it ended is the caller's to judge.
Result<Ran> RunCommand(const std::vector<std::string>& words, const CommandOptions& options = {});

}  // namespace assay
