#include "sandbox/seccomp.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace assay::sandbox {
namespace {

struct SyscallRow {
  SyscallSet set;
  std::string_view names;  ///< Separated by spaces. Names that this architecture lacks are skipped.
};

constexpr SyscallRow kAllowed[] = {
    {SyscallSet::kRuntime, "munmap mprotect mremap brk madvise mincore membarrier"},
    {SyscallSet::kRuntime, "read readv pread64 preadv write writev close close_range lseek"},
    {SyscallSet::kRuntime, "stat lstat fstat newfstatat statx access faccessat faccessat2"},
    {SyscallSet::kRuntime, "readlink readlinkat getcwd getdents64 fadvise64 statfs fstatfs"},
    {SyscallSet::kRuntime, "dup dup2 dup3 fcntl poll ppoll recvmsg sendmsg"},
    {SyscallSet::kRuntime, "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall"},
    {SyscallSet::kRuntime,
     "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time"},
    {SyscallSet::kRuntime, "getpid gettid getppid getuid geteuid getgid getegid uname sysinfo"},
    {SyscallSet::kRuntime, "getrusage times getrlimit getrandom arch_prctl set_tid_address"},
    {SyscallSet::kRuntime, "set_robust_list rseq futex sched_yield sched_getaffinity"},
    {SyscallSet::kRuntime, "sched_get_priority_max sched_get_priority_min getcpu exit exit_group"},
    {SyscallSet::kTempFiles, "open openat"},
    {SyscallSet::kTempFiles, "unlink unlinkat mkdir mkdirat rmdir rename renameat renameat2"},
    {SyscallSet::kTempFiles, "ftruncate fallocate pwrite64 pwritev fsync fdatasync"},
    {SyscallSet::kDevice,
     "ioctl open openat pipe pipe2 eventfd2 epoll_create1 epoll_ctl epoll_wait"},
    {SyscallSet::kDevice,
     "epoll_pwait mlock munlock mlock2 mbind get_mempolicy set_mempolicy mmap"},
    {SyscallSet::kDevice, "sched_setaffinity sched_getscheduler sched_getparam getpriority msync"},
    {SyscallSet::kDevice, "bind listen getsockname getsockopt setsockopt symlink symlinkat"},
    {SyscallSet::kDevice, "memfd_create ftruncate fallocate"},
    {SyscallSet::kSanitizers, "mmap pipe pipe2 personality msync"},
};

/// Needed to get from bubblewrap to the worker's main, and never again.
constexpr std::string_view kLaunchOnly = "execve prctl seccomp wait4 setrlimit";

/// No library probes for these: a worker that makes one of these calls is being driven by somebody.
constexpr std::string_view kDeadly =
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp "
    "mount umount2 pivot_root chroot setns unshare move_mount open_tree fsopen fsconfig fsmount "
    "fspick mount_setattr "
    "bpf perf_event_open keyctl add_key request_key userfaultfd "
    "io_uring_setup io_uring_enter io_uring_register "
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff "
    "open_by_handle_at name_to_handle_at acct quotactl iopl ioperm settimeofday clock_settime "
    "sethostname setdomainname "
    "setuid setgid setreuid setregid setresuid setresgid setgroups capset";

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

std::unexpected<Error> FilterError(std::string_view what, int code) {
  return Fail(ErrorKind::kEnvironment, fmt::format("{}: {}", what, std::strerror(std::abs(code))),
              "seccomp", "the kernel needs CONFIG_SECCOMP_FILTER");
}

bool Contains(std::span<const SyscallSet> sets, SyscallSet set) {
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

template <class Function>
Status ForEachName(std::string_view names, Function function) {
  while (!names.empty()) {
    const std::size_t space = std::min(names.find(' '), names.size());
    const std::string name(names.substr(0, space));
    names.remove_prefix(std::min(space + 1, names.size()));
    if (name.empty()) continue;
    const int number = seccomp_syscall_resolve_name(name.c_str());
    // Negative: unknown to this libseccomp, or not a call of this architecture. An unknown call is
    // denied anyway.
    if (number < 0) continue;
    if (const int code = function(number); code != 0 && code != -EEXIST) {
      return FilterError(fmt::format("cannot add a rule for {}", name), code);
    }
  }
  return {};
}

Status AddAllowed(scmp_filter_ctx filter, std::string_view names) {
  return ForEachName(names, [filter](int number) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 0, nullptr);
  });
}

int AllowIf(scmp_filter_ctx filter, int number, scmp_arg_cmp condition) {
  return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &condition);
}

/// Opening files for reading only. A set that may create files allows the calls without this
/// condition.
Status AddReadOnlyOpen(scmp_filter_ctx filter) {
  constexpr scmp_datum_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC;
  ASSAY_TRY_VOID(ForEachName("open", [filter](int number) {
    return AllowIf(filter, number, SCMP_A1(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
  }));
  return ForEachName("openat", [filter](int number) {
    return AllowIf(filter, number, SCMP_A2(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
  });
}

/// Memory of a worker's own is private: what is shared and anonymous outlives the unmapping of all
/// but one of its pages, and no count of a process shows it then.
Status AddPrivateMemory(scmp_filter_ctx filter) {
  constexpr scmp_datum_t kBoth = MAP_SHARED | MAP_ANONYMOUS;
  for (const scmp_datum_t allowed :
       {scmp_datum_t{0}, scmp_datum_t{MAP_SHARED}, scmp_datum_t{MAP_ANONYMOUS}}) {
    ASSAY_TRY_VOID(ForEachName("mmap", [filter, allowed](int number) {
      return AllowIf(filter, number, SCMP_A3(SCMP_CMP_MASKED_EQ, kBoth, allowed));
    }));
  }
  return {};
}

Status AddProcessRules(scmp_filter_ctx filter, std::span<const SyscallSet> sets,
                       FilterStage stage) {
  const bool threads = Contains(sets, SyscallSet::kThreads);
  const bool sanitizers = Contains(sets, SyscallSet::kSanitizers);
  int code = 0;
  if (threads || sanitizers) {
    // clone3 hides its flags in memory, where no filter can look. ENOSYS makes libc use clone.
    code = AllowIf(filter, SCMP_SYS(clone),
                   SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM));
    if (code != 0) return FilterError("cannot add a rule for clone", code);
  }
  const scmp_arg_cmp no_thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
  code = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &no_thread);
  if (code != 0) return FilterError("cannot add a rule for clone", code);
  ASSAY_TRY_VOID(ForEachName("fork vfork", [filter](int number) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 0, nullptr);
  }));
  ASSAY_TRY_VOID(ForEachName("ioctl", [filter](int number) {
    return AllowIf(filter, number,
                   SCMP_A1(SCMP_CMP_EQ, TCGETS));  // isatty() of the standard streams
  }));
  if (Contains(sets, SyscallSet::kTempFiles)) {
    // What fcntl(F_SETFD) may do as well: Python marks its files so, and takes no other way.
    ASSAY_TRY_VOID(ForEachName("ioctl", [filter](int number) {
      return AllowIf(filter, number, SCMP_A1(SCMP_CMP_EQ, FIOCLEX));
    }));
  }
  if (stage == FilterStage::kLaunch) {
    ASSAY_TRY_VOID(AddAllowed(filter, kLaunchOnly));
    return AddAllowed(filter, "kill tgkill prlimit64");
  }
  // From here on signals reach this process alone, which is what abort() and raise() need.
  const auto self = static_cast<scmp_datum_t>(::getpid());
  ASSAY_TRY_VOID(ForEachName("kill tgkill", [filter, self](int number) {
    return AllowIf(filter, number, SCMP_A0(SCMP_CMP_EQ, self));
  }));
  ASSAY_TRY_VOID(ForEachName("prlimit64", [filter](int number) {
    const scmp_arg_cmp reading[] = {SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)};
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 2, reading);
  }));
  // Thread names and the sanitizers' own settings; the argument is a small number, so nothing hides
  // in it.
  return ForEachName("prctl", [filter, sanitizers](int number) {
    return sanitizers ? seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 0, nullptr)
                      : AllowIf(filter, number, SCMP_A0(SCMP_CMP_EQ, 15 /* PR_SET_NAME */));
  });
}

Result<Filter> BuildFilter(std::span<const SyscallSet> sets, FilterStage stage) {
  Filter filter(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), &seccomp_release);
  if (filter == nullptr) return FilterError("cannot make a filter", ENOMEM);
  for (const SyscallRow& row : kAllowed) {
    if (Contains(sets, row.set)) ASSAY_TRY_VOID(AddAllowed(filter.get(), row.names));
  }
  if (Contains(sets, SyscallSet::kDevice)) {
    // Local sockets, which the driver makes at its start. There is nobody to connect to, and no call
    // to do so.
    ASSAY_TRY_VOID(ForEachName("socket", [&filter](int number) {
      return AllowIf(filter.get(), number, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    }));
  }
  if (Contains(sets, SyscallSet::kRuntime) && !Contains(sets, SyscallSet::kTempFiles)) {
    ASSAY_TRY_VOID(AddReadOnlyOpen(filter.get()));
  }
  if (Contains(sets, SyscallSet::kRuntime) && !Contains(sets, SyscallSet::kSanitizers)) {
    ASSAY_TRY_VOID(AddPrivateMemory(filter.get()));
  }
  ASSAY_TRY_VOID(AddProcessRules(filter.get(), sets, stage));
  ASSAY_TRY_VOID(ForEachName(kDeadly, [&filter](int number) {
    return seccomp_rule_add_array(filter.get(), SCMP_ACT_KILL_PROCESS, number, 0, nullptr);
  }));
  return filter;
}

}  // namespace

Result<UniqueFd> ExportFilter(std::span<const SyscallSet> sets, FilterStage stage) {
  ASSAY_TRY(Filter filter, BuildFilter(sets, stage));
  UniqueFd file(::memfd_create("assay-seccomp", MFD_CLOEXEC));
  if (!file) return FilterError("cannot make a memory file", errno);
  if (const int code = seccomp_export_bpf(filter.get(), file.get()); code != 0) {
    return FilterError("cannot export the filter", code);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Status SealWithFilter(std::span<const SyscallSet> sets) {
  ASSAY_TRY(Filter filter, BuildFilter(sets, FilterStage::kServing));
  // One filter for all threads: a sanitizer's background thread must not keep what the others gave
  // up.
  if (const int code = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1); code != 0) {
    return FilterError("cannot ask for a filter on all threads", code);
  }
  if (const int code = seccomp_load(filter.get()); code != 0) {
    return FilterError("cannot load the filter", code);
  }
  return {};
}

}  // namespace assay::sandbox
