// From a policy to a running process: bubblewrap for the namespaces and mounts, libseccomp for the
// calls, rlimits for the rest.
//
//   orchestrator --fork/exec--> bwrap         [new namespaces, mounts, filter stage 1]
//                --exec------->  assay-worker  [filter stage 2, RLIMIT_NPROC]
//
// Where user namespaces are not available StartJailed refuses; ProbeJail says what to enable. A
// policy with Weakening::kNoJail starts the program directly: rlimits before, the filter from
// within (SealWorker) still apply, but the host's files and network are not hidden, so the caller
// must carry that into the verdict.
//
// Killing the process that StartJailed returns ends everything inside: the jail's pid namespace
// dies with its first process. Thread-safe: functions without state.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "sandbox/policy.h"
#include "sandbox/process.h"

namespace assay::sandbox {

/// A program to run under a policy, with paths as seen by the host; arguments are passed as they
/// are.
struct JailedCommand {
  Path program;  ///< On the host; must be within one of the policy's binds.
  std::vector<std::string> arguments;
  std::vector<FdMapping> fds;
};

/// Starts `command` under `policy`. `bubblewrap` is the path of bwrap, unused without a jail.
Result<Process> StartJailed(const Policy& policy, const JailedCommand& command,
                            const Path& bubblewrap);

/// The argument vector of bubblewrap for a policy, for StartJailed and for tests: it is the whole
/// isolation in one list.
std::vector<std::string> BubblewrapArguments(const Policy& policy, int seccomp_fd);

/// How a jailed process ended: bubblewrap reports its child's signal as exit code 128 + signal.
Exit DecodeJailedExit(const Policy& policy, Exit exit);

/// What is wrong with this machine as a jail, and the cure.
struct JailProblem {
  std::string what;
  std::string cure;
};

struct JailReport {
  bool works = false;   ///< A process was started in all namespaces and with a filter.
  Path bubblewrap;      ///< Empty when not installed.
  std::string version;  ///< "bubblewrap 0.8.0"
  std::vector<JailProblem> problems;

  /// The report as an error (kEnvironment) that names the problems and their cures; only if it does
  /// not work.
  Error AsError() const;
};

/// The parts of the machine that the probe looks at, so that tests can describe another one.
struct JailProbe {
  std::string search_path = "/usr/local/bin:/usr/bin:/bin";
  Path bubblewrap{};  ///< Empty: `bwrap` in one of these.
  Path proc = "/proc";
};

/// Tries a jail and explains. An error only if even that could not be tried (no processes, no
/// descriptors).
Result<JailReport> ProbeJail(const JailProbe& probe = {});

/// The problems that files under `proc` explain, most likely first; empty if none of the known ones
/// applies.
std::vector<JailProblem> ExplainNoUserNamespaces(const Path& proc,
                                                 const std::string& bubblewrap_output);

/// Called by a worker once it has opened what it needs and before it reads a request: applies the
/// limits and the filter that can only be applied from within.
Status SealWorker(const Policy& policy);

}  // namespace assay::sandbox
