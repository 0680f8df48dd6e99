// What keeps a jail from working on this machine. Declared in jail.h.
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "sandbox/jail.h"
#include "sandbox/wire.h"

namespace assay::sandbox {
namespace {

constexpr std::chrono::seconds kProbeTime{20};

/// One kernel setting that can forbid user namespaces.
struct SettingRow {
  const char* file;        ///< Under /proc/sys.
  const char* forbidding;  ///< The value that forbids.
  const char* what;
  const char* cure;
};
constexpr SettingRow kSettings[] = {
    {"kernel/apparmor_restrict_unprivileged_userns", "1",
     "AppArmor keeps unprivileged programs from using user namespaces (the default since Ubuntu "
     "23.10)",
     "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, and to keep it: echo "
     "kernel.apparmor_restrict_unprivileged_userns=0 | sudo tee /etc/sysctl.d/60-assay.conf; or "
     "give bwrap a "
     "profile: sudo apt-get install apparmor-profiles && sudo ln -s "
     "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo systemctl "
     "reload apparmor"},
    {"kernel/unprivileged_userns_clone", "0",
     "kernel.unprivileged_userns_clone is 0: unprivileged user namespaces are off",
     "sudo sysctl -w kernel.unprivileged_userns_clone=1, and to keep it: echo "
     "kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/60-assay.conf"},
    {"user/max_user_namespaces", "0", "user.max_user_namespaces is 0: user namespaces are off",
     "sudo sysctl -w user.max_user_namespaces=15000, and to keep it: echo "
     "user.max_user_namespaces=15000 | sudo "
     "tee /etc/sysctl.d/60-assay.conf"},
};

/// First word of a small file, or nothing. Not ReadFile: files under /proc have no size.
std::string FirstWord(const Path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

/// Whether "/" is a mount point of this process, as it is but for a chroot. Unknown is yes.
bool RootIsMounted(const Path& proc) {
  std::ifstream mounts(proc / "self/mountinfo");
  std::string line;
  bool any = false;
  while (std::getline(mounts, line)) {
    any = true;
    // "36 35 98:0 /in/the/file/system /mount/point options - ..."
    std::istringstream words(line);
    std::string id, parent, device, inner, point;
    words >> id >> parent >> device >> inner >> point;
    if (point == "/") return true;
  }
  return !any;
}

Result<std::string> VersionOf(const Path& bubblewrap) {
  Command command;
  command.argv = {bubblewrap.string(), "--version"};
  ASSAY_TRY(Process process, Process::Start(command));
  ASSAY_TRY(const Exit exit, process.Wait(std::chrono::steady_clock::now() + kProbeTime));
  process.DrainOutput();
  if (exit.signalled || exit.code != 0) {
    return Fail(
        ErrorKind::kEnvironment,
        "bwrap --version failed: " + exit.Describe() + "; it said: " + Quoted(process.OutputTail()),
        bubblewrap.string(),
        "reinstall the package bubblewrap, or raise the limits of this shell (ulimit -a)");
  }
  return process.OutputTail();
}

}  // namespace

std::vector<JailProblem> ExplainNoUserNamespaces(const Path& proc,
                                                 const std::string& bubblewrap_output) {
  std::vector<JailProblem> problems;
  for (const SettingRow& row : kSettings) {
    if (FirstWord(proc / "sys" / row.file) == row.forbidding)
      problems.push_back({row.what, row.cure});
  }
  std::error_code error;
  if (!std::filesystem::exists(proc / "self", error)) {
    problems.push_back({"there is no /proc, which the jail is made through",
                        "mount it: mount -t proc proc /proc"});
  }
  if (!RootIsMounted(proc)) {
    problems.push_back({"this is a chroot, in which Linux makes no user namespaces",
                        "make the folder the root by other means: systemd-nspawn, a container, or "
                        "bwrap --bind FOLDER /"});
  }
  if (bubblewrap_output.find("Resource temporarily unavailable") != std::string::npos) {
    problems.push_back({"bubblewrap could not start a process: " + bubblewrap_output,
                        CureOf(EAGAIN, {}, "end other programs")});
  }
  if (problems.empty()) {
    problems.push_back(
        {fmt::format("bubblewrap could not make a jail: {}",
                     bubblewrap_output.empty() ? "it gave no reason" : bubblewrap_output),
         "in a container, start it so that it may make user namespaces (docker run --security-opt "
         "seccomp=unconfined --security-opt apparmor=unconfined --security-opt "
         "systempaths=unconfined); elsewhere, "
         "run `bwrap --unshare-all --ro-bind / / true` and follow its message"});
  }
  return problems;
}

Error JailReport::AsError() const {
  Error error{
      ErrorKind::kEnvironment, "untrusted code cannot be jailed on this machine", "jail", {}};
  for (const JailProblem& problem : problems) {
    error.message += (&problem == problems.data() ? ": " : "; ") + problem.what;
    error.cure += (error.cure.empty() ? "" : "; ") + problem.cure;
  }
  return error;
}

Result<JailReport> ProbeJail(const JailProbe& probe) {
  JailReport report;
  report.bubblewrap =
      probe.bubblewrap.empty() ? FindProgram("bwrap", probe.search_path) : probe.bubblewrap;
  if (report.bubblewrap.empty()) {
    report.problems.push_back(
        {"bubblewrap (bwrap) is not installed",
         "sudo apt-get install bubblewrap (dnf, pacman, zypper: the same name)"});
    return report;
  }
  Result<std::string> version = VersionOf(report.bubblewrap);
  if (!version) {
    report.problems.push_back({version.error().message, version.error().cure});
    return report;
  }
  report.version = *std::move(version);
  // The program that is run matters little: what can fail lies before its exec.
  Policy policy("probe");
  policy.SystemLibraries()
      .ReadOnly("/usr/bin", "/usr/bin")
      .Tmpfs("/tmp", 1u << 20)
      .Allow(SyscallSet::kRuntime);
  ASSAY_TRY(Process process, StartJailed(policy, {"/usr/bin/true", {}, {}}, report.bubblewrap));
  ASSAY_TRY(const Exit exit, process.Wait(std::chrono::steady_clock::now() + kProbeTime));
  process.DrainOutput();
  report.works = !exit.signalled && exit.code == 0;
  if (!report.works) {
    const std::string output = process.OutputTail();
    report.problems =
        ExplainNoUserNamespaces(probe.proc, output.empty() ? exit.Describe() : output);
  }
  return report;
}

}  // namespace assay::sandbox
