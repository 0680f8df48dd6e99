// The system-call filter of a policy, made with libseccomp.
//
// An allow-list by named sets. Everything else fails with ENOSYS, so that a C library falls back as
// it would on an older kernel; a short list of calls that no honest worker ever makes (ptrace,
// mount, bpf, keyctl, ...) ends the process instead, which makes an attempt visible in the verdict
// as SIGSYS. New processes cannot be made: clone works for threads only.
//
// The filter is applied in two stages, because bubblewrap installs its filter before it executes
// the worker: kLaunch still allows execve, and kServing, which the worker applies to itself before
// it reads the first request, does not, and pins signals and resource limits to the worker's own
// process.
//
// Pure but for the calls that load or write a filter. Thread-safe; SealWithFilter covers all
// threads of the process.
#pragma once

#include <span>

#include "base/error.h"
#include "base/file.h"
#include "sandbox/policy.h"

namespace assay::sandbox {

enum class FilterStage { kLaunch, kServing };

/// The filter as a BPF program in a memory file, positioned at its start, as `bwrap --seccomp FD`
/// wants it.
Result<UniqueFd> ExportFilter(std::span<const SyscallSet> sets, FilterStage stage);

/// Applies the kServing filter to all threads of this process. There is no way back.
Status SealWithFilter(std::span<const SyscallSet> sets);

}  // namespace assay::sandbox
