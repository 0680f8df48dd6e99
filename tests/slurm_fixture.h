// A Slurm of its own on this machine: munged, slurmctld and two slurmd (n1, n2), started and stopped
// by the test as whoever runs it, with everything below a scratch folder and no port that is not its
// own. For tests of `assay batch --executor slurm`.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/program.h"

namespace assay::tests {

/// The program's path: Debian puts daemons where not everybody's PATH leads.
inline std::string FindProgram(const std::string& name) {
  for (const char* const folder : {"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}) {
    const std::string path = std::string(folder) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

/// Waits until `done` says so; what the machine has to do first takes as long as it takes.
inline bool WaitUntil(const std::function<bool()>& done, std::chrono::seconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

class Slurm {
 public:
  /// What is missing for it; empty where nothing is.
  static std::string Missing() {
    std::string missing;
    for (const char* const name :
         {"munged", "mungekey", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo"})
      if (FindProgram(name).empty()) missing += std::string(missing.empty() ? "" : ", ") + name;
    return missing;
  }

  explicit Slurm(const Path& folder) : folder_(folder) {}
  ~Slurm() {
    for (const pid_t pid : {node_[0], node_[1]}) {
      if (pid > 0) Stop(pid, SIGTERM);
    }
    for (const char* const node : {"n1", "n2"}) KillProcessesOf(node);
    if (controller_ > 0) Stop(controller_, SIGTERM);
    if (munge_ > 0) Stop(munge_, SIGTERM);
  }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  /// Why it does not start, or nothing.
  std::string Start() {
    for (const char* const name : {"munge", "state", "log", "spool.n1", "spool.n2"}) {
      if (!MakeFolders(folder_ / name)) return "cannot make folders";
    }
    // munged wants folders that everybody may enter and nobody else may write to.
    ::chmod(folder_.parent_path().c_str(), 0755);
    ::chmod(folder_.c_str(), 0755);
    ::chmod((folder_ / "munge").c_str(), 0711);
    const std::string key = (folder_ / "munge/key").string();
    if (RunProgram(FindProgram("mungekey"), {"-c", "-k", key, "-b", "1024"}).exit != 0)
      return "mungekey makes no key";
    munge_ = Spawn({FindProgram("munged"), "--foreground", "--key-file=" + key,
                    "--socket=" + Socket(), "--pid-file=" + (folder_ / "munge/pid").string(),
                    "--log-file=" + (folder_ / "log/munge").string(),
                    "--seed-file=" + (folder_ / "munge/seed").string(), "--num-threads=2"},
                   "munged");
    if (!WaitUntil([&] { return std::filesystem::exists(Socket()); }, std::chrono::seconds(20)))
      return "munged does not start: " + Log("munged");
    if (!WriteFileAtomically(folder_ / "slurm.conf", Configuration())) return "no configuration";
    // Newer daemons look for cgroups whatever the plugins. The first version of them is the one that
    // is left alone until somebody asks for it; the second asks systemd, or makes a folder at once.
    if (!WriteFileAtomically(folder_ / "cgroup.conf",
                             "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n"))
      return "no configuration";
    controller_ = Spawn({FindProgram("slurmctld"), "-D", "-f", Conf()}, "slurmctld");
    for (int i = 0; i < 2; ++i) StartNode(i);
    const bool up = WaitUntil(
        [&] {
          return RunProgram(FindProgram("sinfo"), {"-h", "-N", "-t", "idle", "-o", "%N"},
                            Environment())
                     .out == "n1\nn2\n";
        },
        std::chrono::seconds(60));
    return up ? "" : "the nodes do not come up: " + Log("slurmctld") + Log("n1");
  }

  std::vector<std::string> Environment() const { return {"SLURM_CONF=" + Conf()}; }

  /// As if the machine lost its power: the daemon and all that it had started, at once.
  void KillNode(int index) {
    ::kill(node_[index], SIGKILL);
    ::waitpid(node_[index], nullptr, 0);
    node_[index] = 0;
    KillProcessesOf("n" + std::to_string(index + 1));
  }

  /// Jobs and array tasks that the controller knows of, a line each.
  std::string Queue() const {
    return RunProgram(FindProgram("squeue"), {"-h", "-r", "-o", "%F %K %T %N"}, Environment()).out;
  }

  /// Processes that a node of this Slurm has started and that live.
  std::vector<pid_t> ProcessesOf(const std::string& node) const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string environment = ReadProc(entry.path() / "environ");
      const bool ours = environment.find("SLURM_CONF=" + Conf() + '\0') != std::string::npos &&
                        environment.find("SLURMD_NODENAME=" + node + '\0') != std::string::npos;
      if (ours) found.push_back(static_cast<pid_t>(std::stol(name)));
    }
    return found;
  }

 private:
  std::string Conf() const { return (folder_ / "slurm.conf").string(); }
  std::string Socket() const { return (folder_ / "munge/socket").string(); }
  std::string Log(const std::string& name) const {
    return ReadFile(folder_ / "log" / name).value_or("(no log)");
  }

  static std::string ReadProc(const Path& file) {
    std::string text;
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    char buffer[4096];
    for (ssize_t got = 0; fd && (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    return text;
  }

  static pid_t ParentOf(pid_t pid) {
    const std::string status = ReadProc(Path("/proc") / std::to_string(pid) / "status");
    const std::size_t at = status.find("PPid:\t");
    return at == std::string::npos ? 0 : static_cast<pid_t>(std::stol(status.substr(at + 6)));
  }

  // Each task hangs below a slurmstepd, which outlives its daemon.
  void KillProcessesOf(const std::string& node) const {
    const std::vector<pid_t> tasks = ProcessesOf(node);
    for (const pid_t pid : tasks) {
      const pid_t parent = ParentOf(pid);
      if (parent > 1 &&
          ReadProc(Path("/proc") / std::to_string(parent) / "comm").starts_with("slurmstepd"))
        ::kill(parent, SIGKILL);
    }
    for (const pid_t pid : tasks) ::kill(pid, SIGKILL);
  }

  static void Stop(pid_t pid, int signal) {
    ::kill(pid, signal);
    const bool gone =
        WaitUntil([&] { return ::waitpid(pid, nullptr, WNOHANG) != 0; }, std::chrono::seconds(20));
    if (gone) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  static int FreePort() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(fd);
    return ntohs(address.sin_port);
  }

  std::string Configuration() const {
    const passwd* const user = ::getpwuid(::getuid());
    const std::string who = user == nullptr ? "root" : user->pw_name;
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const std::string here = folder_.string();
    std::string text = "ClusterName=assay\nSlurmctldHost=" + std::string(host) + "(127.0.0.1)\n";
    text += "SlurmUser=" + who + "\nSlurmdUser=" + who + "\n";
    text += "SlurmctldPort=" + std::to_string(FreePort()) + "\n";
    text += "SlurmctldPidFile=" + here + "/ctld.pid\nSlurmdPidFile=" + here + "/slurmd.%n.pid\n";
    text += "SlurmdSpoolDir=" + here + "/spool.%n\nStateSaveLocation=" + here + "/state\n";
    text += "AuthType=auth/munge\nAuthInfo=socket=" + Socket() +
            ",cred_expire=5\nCredType=cred/munge\n";
    // No cgroups, no accounting: a container has neither.
    text +=
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
        "MpiDefault=none\nJobAcctGatherType=jobacct_gather/none\n"
        "AccountingStorageType=accounting_storage/none\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_CPU\nSchedulerType=sched/builtin\n"
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000\nReturnToService=2\n"
        "SlurmdTimeout=5\nKillWait=3\nMessageTimeout=10\nJobRequeue=1\nMailProg=/bin/true\n"
        "SlurmdParameters=config_overrides\n";
    for (int i = 0; i < 2; ++i) {
      text += "NodeName=n" + std::to_string(i + 1) + " NodeHostname=" + host +
              " NodeAddr=127.0.0.1 Port=" + std::to_string(FreePort()) + " CPUs=2 State=UNKNOWN\n";
    }
    return text + "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  }

  void StartNode(int index) {
    const std::string name = "n" + std::to_string(index + 1);
    node_[index] = Spawn({FindProgram("slurmd"), "-D", "-N", name, "-f", Conf()}, name);
  }

  pid_t Spawn(const std::vector<std::string>& words, const std::string& log) const {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string file = (folder_ / "log" / log).string();
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file.c_str(), O_WRONLY | O_CREAT,
                                     0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    if (::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0) child = 0;
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  const Path folder_;
  pid_t munge_ = 0;
  pid_t controller_ = 0;
  pid_t node_[2] = {0, 0};
};

}  // namespace assay::tests
