// What keeps a jail from working on this machine. Declared in jail.h.
#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "sandbox/jail.h"

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

Result<std::string> VersionOf(const Path& bubblewrap) {
  Command command;
  command.argv = {bubblewrap.string(), "--version"};
  ASSAY_TRY(Process process, Process::Start(command));
  ASSAY_TRY(const Exit exit, process.Wait(std::chrono::steady_clock::now() + kProbeTime));
  process.DrainOutput();
  if (exit.signalled || exit.code != 0) {
    return Fail(ErrorKind::kEnvironment, "bwrap --version failed: " + exit.Describe(),
                bubblewrap.string(), "reinstall the package bubblewrap");
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
  report.bubblewrap = FindProgram("bwrap", probe.search_path);
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
