// What a worker may do, as one value that can be read in a review.
//
//   Policy policy("compile");
//   policy.SystemLibraries()
//       .ReadOnly(worker, "/worker/assay-worker")
//       .Tmpfs("/tmp", 64 << 20)
//       .Allow(SyscallSet::kRuntime)
//       .Limit(Resource::kFileBytes, 64 << 20)
//       .ResidentBytes(2ull << 30);
//
// A policy starts from nothing: new user, pid, network, mount, ipc, uts and cgroup namespaces, an
// empty read-only root, no environment, no system calls, no capabilities; there is no way to say
// "share the network" or "bind this writable". Each setter adds one thing. What weakens the jail as
// a whole needs a named token (`Allow(Weakening::kNoJail)`) and is carried into the verdict.
//
// A plain value: copyable, comparable by Describe(), no system call is made here. jail.h turns it
// into a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace assay::sandbox {

/// Named groups of system calls; the rows are in seccomp.cc.
enum class SyscallSet : std::uint8_t {
  kRuntime,     ///< What libc needs: memory, reading files, signals, time, the worker's socket.
  kThreads,     ///< Threads of the same process. New processes are never allowed.
  kTempFiles,   ///< Creating and removing files (which only a tmpfs lets happen).
  kDevice,      ///< What a GPU's driver does: ioctl, opening device files, memory files, events.
  kSanitizers,  ///< What the runtimes of ASan, UBSan and TSan need on top.
};
std::string_view Name(SyscallSet set);

/// Limits that the kernel enforces per process (setrlimit), except kProcesses, which counts the
/// threads of the whole jail.
enum class Resource : std::uint8_t {
  kAddressSpace,
  kCpuSeconds,
  kOpenFiles,
  kProcesses,
  kFileBytes,
  kStackBytes
};
std::string_view Name(Resource resource);

/// The tokens that a weaker jail costs.
enum class Weakening : std::uint8_t {
  kNoJail,  ///< No namespaces: files and network of the host are within reach. Bars emission.
  kSanitizerRuntime,  ///< The program is built with a sanitizer: /proc, more system calls, no
                      ///< address-space limit.
  kVendorTool,        ///< A tool of the GPU's vendor stands between us and the worker: it starts
                      ///< processes and speaks over sockets inside the jail, so that no filter of
                      ///< system calls is set. The namespaces are as everywhere.
};
std::string_view Name(Weakening weakening);

struct Bind {
  Path source;
  Path target;
};
struct DeviceFiles {
  Path folder;
  std::string prefix;
};
struct TmpfsMount {
  Path target;
  std::uint64_t bytes = 0;
};

class Policy {
 public:
  explicit Policy(std::string name) : name_(std::move(name)) {}

  /// Binds the loader and the system's shared libraries (/usr/lib*, /lib*), read-only.
  Policy& SystemLibraries();
  /// Binds a file or folder of the host read-only at `target`.
  Policy& ReadOnly(Path source, Path target);
  /// Binds the host's device files in `folder` whose names begin with `prefix`, as devices.
  Policy& Devices(Path folder, std::string prefix);
  /// An empty writable file system of at most `bytes`.
  Policy& Tmpfs(Path target, std::uint64_t bytes);
  /// A /proc that shows the jail's own processes.
  Policy& Proc();
  Policy& Environment(std::string name, std::string value);
  Policy& Limit(Resource resource, std::uint64_t value);
  /// Memory above which the supervisor kills the worker: resident, swapped out, page tables, and
  /// what it has filled of the memory files that it was given, mapped or not. It can make no memory
  /// that is not seen so (seccomp.cc).
  Policy& ResidentBytes(std::uint64_t bytes);
  Policy& Allow(SyscallSet set);
  Policy& Allow(Weakening weakening);

  const std::string& name() const { return name_; }
  bool system_libraries() const { return system_libraries_; }
  const std::vector<Bind>& read_only() const { return read_only_; }
  const std::vector<DeviceFiles>& devices() const { return devices_; }
  const std::vector<TmpfsMount>& tmpfs() const { return tmpfs_; }
  bool proc() const { return proc_; }
  const std::vector<std::pair<std::string, std::string>>& environment() const {
    return environment_;
  }
  const std::vector<std::pair<Resource, std::uint64_t>>& limits() const { return limits_; }
  std::optional<std::uint64_t> LimitOf(Resource resource) const;
  std::uint64_t resident_bytes() const { return resident_bytes_; }
  const std::vector<SyscallSet>& syscalls() const { return syscalls_; }
  const std::vector<Weakening>& weakenings() const { return weakenings_; }
  bool Allows(Weakening weakening) const;

  /// Where `host` is seen inside: the deepest bind that contains it, or `host` itself without a
  /// jail.
  Path Inside(const Path& host) const;

  /// The whole policy as text, one line an item, in a fixed order.
  std::string Describe() const;

 private:
  std::string name_;
  bool system_libraries_ = false;
  bool proc_ = false;
  std::vector<Bind> read_only_;
  std::vector<DeviceFiles> devices_;
  std::vector<TmpfsMount> tmpfs_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::pair<Resource, std::uint64_t>> limits_;
  std::uint64_t resident_bytes_ = 0;
  std::vector<SyscallSet> syscalls_;
  std::vector<Weakening> weakenings_;
};

}  // namespace assay::sandbox
