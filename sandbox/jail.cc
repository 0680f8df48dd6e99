#include "sandbox/jail.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sandbox/seccomp.h"

namespace assay::sandbox {
namespace {

/// The number under which bubblewrap finds the filter. Above every descriptor that a command maps,
/// and low: few descriptors may be open at all (ulimit -n).
constexpr int kSeccompFd = 5;

struct ResourceRow {
  Resource resource;
  int rlimit;
};
constexpr ResourceRow kRlimits[] = {
    {Resource::kAddressSpace, RLIMIT_AS},  {Resource::kCpuSeconds, RLIMIT_CPU},
    {Resource::kOpenFiles, RLIMIT_NOFILE}, {Resource::kFileBytes, RLIMIT_FSIZE},
    {Resource::kStackBytes, RLIMIT_STACK},
};

/// The limits that are set before exec. kProcesses is not among them: outside of the jail it would
/// count all processes of the user.
std::vector<ResourceLimit> LimitsOf(const Policy& policy) {
  std::vector<ResourceLimit> limits{{RLIMIT_CORE, 0}};
  for (const ResourceRow& row : kRlimits) {
    if (const auto value = policy.LimitOf(row.resource)) limits.push_back({row.rlimit, *value});
  }
  return limits;
}

/// Distributions differ: /lib is a link into /usr on most, a folder of its own on others.
void AddSystemLibraries(std::vector<std::string>& arguments) {
  for (const char* folder : {"/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64", "/lib32"}) {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(folder, error);
    if (std::filesystem::is_symlink(status)) {
      const Path target = std::filesystem::read_symlink(folder, error);
      if (!error) arguments.insert(arguments.end(), {"--symlink", target.string(), folder});
    } else if (std::filesystem::is_directory(status)) {
      arguments.insert(arguments.end(), {"--ro-bind", folder, folder});
    }
  }
}

/// A minimal /dev, the device files, and what their driver says of itself in /proc and /sys.
void AddDevices(const DeviceFiles& devices, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), {"--dev", devices.folder.string()});
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(devices.folder, error)) {
    if (entry.path().filename().string().starts_with(devices.prefix))
      found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  for (const std::string& file : found)
    arguments.insert(arguments.end(), {"--dev-bind", file, file});
  for (const char* folder :
       {"/proc/driver/nvidia", "/sys/module/nvidia", "/sys/bus/pci", "/sys/devices"})
    arguments.insert(arguments.end(), {"--ro-bind-try", folder, folder});
}

/// Limits are counted per user namespace since Linux 5.14; before, a jail's limit would count all
/// processes of the user.
bool ProcessesAreCountedPerNamespace() {
  utsname kernel{};
  if (::uname(&kernel) != 0) return false;
  int major = 0, minor = 0;
  const char* const end = kernel.release + std::strlen(kernel.release);
  const auto first = std::from_chars(kernel.release, end, major);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return false;
  std::from_chars(first.ptr + 1, end, minor);
  return major > 5 || (major == 5 && minor >= 14);
}

}  // namespace

std::vector<std::string> BubblewrapArguments(const Policy& policy, int seccomp_fd) {
  std::vector<std::string> arguments{"--unshare-user",
                                     "--unshare-ipc",
                                     "--unshare-pid",
                                     "--unshare-net",
                                     "--unshare-uts",
                                     "--unshare-cgroup-try",
                                     "--disable-userns",
                                     "--die-with-parent",
                                     "--new-session",
                                     "--cap-drop",
                                     "ALL",
                                     "--hostname",
                                     "assay",
                                     "--clearenv"};
  if (policy.system_libraries()) AddSystemLibraries(arguments);
  if (policy.proc()) arguments.insert(arguments.end(), {"--proc", "/proc"});
  for (const TmpfsMount& mount : policy.tmpfs()) {
    arguments.insert(arguments.end(), {"--perms", "0700", "--size", std::to_string(mount.bytes),
                                       "--tmpfs", mount.target.string()});
  }
  for (const Bind& bind : policy.read_only()) {
    arguments.insert(arguments.end(), {"--ro-bind", bind.source.string(), bind.target.string()});
  }
  for (const DeviceFiles& devices : policy.devices()) AddDevices(devices, arguments);
  for (const auto& [name, value] : policy.environment()) {
    arguments.insert(arguments.end(), {"--setenv", name, value});
  }
  // Last: the root itself is a writable tmpfs until now, because the mount points had to be made.
  arguments.insert(arguments.end(), {"--remount-ro", "/", "--chdir", "/"});
  if (!policy.Allows(Weakening::kVendorTool))
    arguments.insert(arguments.end(), {"--seccomp", std::to_string(seccomp_fd)});
  arguments.emplace_back("--");
  return arguments;
}

Result<Process> StartJailed(const Policy& policy, const JailedCommand& jailed,
                            const Path& bubblewrap) {
  Command command;
  command.limits = LimitsOf(policy);
  command.fds = jailed.fds;
  if (policy.Allows(Weakening::kNoJail)) {
    command.argv.push_back(jailed.program.string());
    for (const auto& [name, value] : policy.environment()) {
      command.environment.push_back(name + "=" + value);
    }
    command.argv.insert(command.argv.end(), jailed.arguments.begin(), jailed.arguments.end());
    return Process::Start(command);
  }
  if (bubblewrap.empty()) {
    return Fail(ErrorKind::kEnvironment, "bubblewrap is not installed", "jail",
                "install the package bubblewrap");
  }
  ASSAY_TRY(const UniqueFd filter, ExportFilter(policy.syscalls(), FilterStage::kLaunch));
  command.fds.push_back({filter.get(), kSeccompFd});
  command.argv = BubblewrapArguments(policy, kSeccompFd);
  command.argv.insert(command.argv.begin(), bubblewrap.string());
  command.argv.push_back(policy.Inside(jailed.program).string());
  command.argv.insert(command.argv.end(), jailed.arguments.begin(), jailed.arguments.end());
  return Process::Start(command);
}

Exit DecodeJailedExit(const Policy& policy, Exit exit) {
  if (policy.Allows(Weakening::kNoJail) || exit.signalled || exit.code <= 128) return exit;
  if (exit.code - 128 > 64) return exit;
  return {true, exit.code - 128};
}

Status SealWorker(const Policy& policy) {
  const auto processes = policy.LimitOf(Resource::kProcesses);
  if (processes && !policy.Allows(Weakening::kNoJail) && ProcessesAreCountedPerNamespace()) {
    rlimit inherited{};
    ::getrlimit(RLIMIT_NPROC, &inherited);
    const rlim_t value = std::min<rlim_t>(*processes, inherited.rlim_max);  // never raised
    const rlimit limit{value, value};
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) {
      return Fail(ErrorKind::kEnvironment,
                  fmt::format("cannot limit processes: {}", std::strerror(errno)), "worker");
    }
  }
  // What a tool has put into this process speaks to the tool outside.
  if (policy.Allows(Weakening::kVendorTool)) return {};
  return SealWithFilter(policy.syscalls());
}

}  // namespace assay::sandbox
