#include "sandbox/worker_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <future>
#include <limits>
#include <system_error>
#include <thread>

namespace assay::sandbox {

/// The thread that starts processes. Linux kills a child that asked to die with its parent when the
/// thread that started it ends, so workers must not be started by whoever happens to call.
class WorkerPool::Starter {
 public:
  using Started = Result<std::unique_ptr<Worker>>;

  Starter() : thread_([this](std::stop_token stop) { Run(stop); }) {}

  Started Start(const WorkerLaunch& launch, const Path& bubblewrap) {
    std::packaged_task<Started()> task([&] { return Worker::Start(launch, bubblewrap); });
    std::future<Started> started = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    return started.get();
  }

 private:
  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
      std::packaged_task<Started()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<Started()>> tasks_;
  std::jthread thread_;
};

namespace {

/// The number that a line of a file under /proc or /sys begins with behind `key`; the largest there
/// is where there is none ("max").
std::uint64_t NumberIn(const Path& file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_of("0123456789", key.size());
    std::uint64_t value = 0;
    if (digits != std::string::npos &&
        std::from_chars(line.data() + digits, line.data() + line.size(), value).ec == std::errc()) {
      return value;
    }
  }
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::uint64_t MachineMemory(const Path& root) {
  constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t kibibytes = NumberIn(root / "proc/meminfo", "MemTotal:");
  std::uint64_t memory = kibibytes > kUnknown / 1024 ? kUnknown : kibibytes * 1024;
  // "0::/group" of version 2; a limit of a parent holds for the group as well.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    const Path mount = root / "sys/fs/cgroup";
    for (Path group = mount / line.substr(4); group.native().size() >= mount.native().size();
         group = group.parent_path()) {
      memory = std::min(memory, NumberIn(group / "memory.max", ""));
    }
  }
  return std::min(memory, NumberIn(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", ""));
}

PoolOptions PoolIn(const Environment& environment) {
  const auto no_variable = [](const char*) { return std::string(); };
  return {.worker_program = environment.worker,
          .toolkit = ToolkitSearch::Default(no_variable, environment.toolkit),
          .jail = {.bubblewrap = environment.bubblewrap}};
}

std::span<const std::string_view> VendorTools() {
  static constexpr std::array<std::string_view, 4> kTools = {"memcheck", "initcheck", "racecheck",
                                                             "synccheck"};
  return kTools;
}

namespace {

/// The GPU's worker: driver, libraries, number.
Status AddGpu(const PoolOptions& options, unsigned lane, WorkerLaunch& launch) {
  BindDriver(launch.policy);
  ASSAY_CHECK(lane < options.gpus.size(), "a GPU that was not asked for");
  launch.arguments.insert(launch.arguments.end(), {"--gpu", std::to_string(options.gpus[lane])});
  for (const auto& [option, library] :
       {std::pair("--matrix-library", FindMatrixLibrary(options.toolkit)),
        std::pair("--tensor-library", FindTensorLibrary(options.toolkit))}) {
    if (!library) continue;
    // Beside it lie the parts that it opens by name.
    const Path folder = library->parent_path();
    if (launch.policy.Inside(*library) == *library && !folder.string().starts_with("/usr/lib"))
      launch.policy.ReadOnly(folder, Path("/cuda") / (option + 2));
    launch.arguments.insert(launch.arguments.end(),
                            {option, launch.policy.Inside(*library).string()});
  }
  return {};
}

/// compute-sanitizer in front of the worker, which it starts. It is told to be brief: what is read is
/// the end of what it says.
Status PutBehindTool(const PoolOptions& options, std::string_view tool, WorkerLaunch& launch) {
  const std::optional<Path> sanitizer = FindSanitizer(options.toolkit);
  if (!sanitizer) {
    return Fail(ErrorKind::kEnvironment, "compute-sanitizer is not installed", "gpu",
                "install the CUDA toolkit's compute-sanitizer");
  }
  const std::string worker = launch.policy.Inside(launch.program).string();
  std::vector<std::string> arguments = {
      "--tool", std::string(tool), "--print-limit", "6", "--show-backtrace", "no", worker};
  arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
  launch.policy.ReadOnly(sanitizer->parent_path(), "/cuda/compute-sanitizer");
  launch.program = *sanitizer;
  launch.arguments = std::move(arguments);
  return {};
}

}  // namespace

Result<WorkerLaunch> StandardLaunch(const PoolOptions& options, WorkerKind kind, unsigned lane) {
  WorkerLaunch launch{PolicyFor(kind), options.worker_program, {std::string(Name(kind))}};
  if (launch.program.empty()) launch.program = OwnEnvironment().worker;
  if (std::error_code error; !std::filesystem::is_regular_file(launch.program, error)) {
    return Fail(ErrorKind::kEnvironment, "the worker's program is missing", launch.program.string(),
                "build the target assay-worker: it lies beside assay, or in libexec/assay of an "
                "installation");
  }
  if (options.unsafe_no_jail) {
    launch.policy.Allow(Weakening::kNoJail);
    launch.arguments.emplace_back("--no-jail");
  }
  BindWorker(launch.policy, launch.program);
  if (kind == WorkerKind::kGpu) ASSAY_TRY_VOID(AddGpu(options, lane, launch));
  if (kind == WorkerKind::kGpuTool) {
    ASSAY_CHECK(lane < VendorTools().size());
    ASSAY_TRY_VOID(AddGpu(options, 0, launch));
    ASSAY_TRY_VOID(PutBehindTool(options, VendorTools()[lane], launch));
  }
  if (kind == WorkerKind::kCompile) {
    ASSAY_TRY(const Toolkit toolkit, FindToolkit(options.toolkit));
    const std::vector<std::string> arguments = BindToolkit(launch.policy, toolkit);
    launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
  }
  return launch;
}

PoolOptions Completed(PoolOptions options) {
  if (options.toolkit.explicit_root.empty() && options.toolkit.roots.empty()) {
    options.toolkit = ToolkitSearch::Default([](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    });
  }
  return options;
}

Result<std::unique_ptr<WorkerPool>> WorkerPool::Create(PoolOptions given) {
  PoolOptions options = Completed(std::move(given));
  if (options.workers_per_kind == 0) {
    options.workers_per_kind = std::max(1u, std::thread::hardware_concurrency());
  }
  if (options.total_bytes == 0) options.total_bytes = MachineMemory() / 4 * 3;
  if (!options.launch) {
    options.launch = [standard = options](WorkerKind kind, unsigned lane) {
      return StandardLaunch(standard, kind, lane);
    };
  }
  if (options.unsafe_no_jail) {
    return std::unique_ptr<WorkerPool>(new WorkerPool(
        std::move(options), {}, {false, "none (--unsafe-no-jail); seccomp, rlimits"}));
  }
  ASSAY_TRY(const JailReport report, ProbeJail(options.jail));
  if (!report.works) {
    Error error = report.AsError();
    error.cure +=
        "; or pass --unsafe-no-jail, which runs hostile code without a jail and bars emission";
    return std::unexpected(std::move(error));
  }
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(options), report.bubblewrap,
                                                    {true, report.version + ", seccomp, rlimits"}));
}

WorkerPool::WorkerPool(PoolOptions options, Path bubblewrap, Isolation isolation)
    : options_(std::move(options)),
      bubblewrap_(std::move(bubblewrap)),
      isolation_(std::move(isolation)),
      starter_(std::make_unique<Starter>()) {}

WorkerPool::~WorkerPool() = default;

std::size_t WorkerPool::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

Result<std::unique_ptr<Worker>> WorkerPool::Start(const Key& key) {
  ASSAY_TRY(WorkerLaunch launch, options_.launch(key.kind, key.lane));
  if (options_.unsafe_no_jail) launch.policy.Allow(Weakening::kNoJail);
  ASSAY_TRY(std::unique_ptr<Worker> worker, starter_->Start(launch, bubblewrap_));
  ASSAY_TRY_VOID(worker->Greet(std::chrono::steady_clock::now() + options_.start_deadline));
  const std::lock_guard lock(mutex_);
  ++started_;
  return worker;
}

Result<std::unique_ptr<Worker>> WorkerPool::Take(const Key& key) {
  {
    std::unique_lock lock(mutex_);
    Group& group = groups_[key];
    changed_.wait(lock,
                  [&] { return !group.idle.empty() || group.running < options_.workers_per_kind; });
    while (!group.idle.empty()) {
      std::unique_ptr<Worker> worker = std::move(group.idle.back());
      group.idle.pop_back();
      if (worker->Reusable()) return worker;
      held_.erase(worker.get());
      --group.running;  // Killed and reaped as it goes out of scope.
    }
    ++group.running;
  }
  Result<std::unique_ptr<Worker>> worker = Start(key);
  if (!worker) GiveBack(key, nullptr);
  return worker;
}

void WorkerPool::GiveBack(const Key& key, std::unique_ptr<Worker> worker) {
  // One that holds too much beside the others is not kept warm.
  const bool keep =
      worker != nullptr && worker->Reusable() && Watch(worker.get(), worker->HeldBytes()).empty();
  {
    const std::lock_guard lock(mutex_);
    Group& group = groups_[key];
    if (keep) {
      group.idle.push_back(std::move(worker));
    } else {
      held_.erase(worker.get());
      --group.running;
    }
  }
  changed_.notify_all();
}

std::uint64_t WorkerPool::Total() const {
  std::uint64_t total = 0;
  for (const auto& [worker, bytes] : held_) total += bytes;
  return total;
}

std::string WorkerPool::Watch(const Worker* worker, std::uint64_t bytes) {
  std::vector<std::unique_ptr<Worker>> ended;  // Killed and reaped without the lock.
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    held_[worker] = bytes;
    if (Total() <= options_.total_bytes) return {};
    for (auto& [key, group] : groups_) {
      for (std::unique_ptr<Worker>& idle : group.idle) {
        held_.erase(idle.get());
        ended.push_back(std::move(idle));
        --group.running;
      }
      group.idle.clear();
    }
    const auto most =
        std::ranges::max_element(held_, {}, [](const auto& entry) { return entry.second; });
    if (Total() > options_.total_bytes && most->first == worker) {
      reason = fmt::format(
          "killed because all workers together hold {} MiB, and {} MiB are allowed on this "
          "machine; this one held "
          "most, {} MiB",
          Total() >> 20, options_.total_bytes >> 20, bytes >> 20);
    }
  }
  if (!ended.empty()) changed_.notify_all();
  return reason;
}

Result<Reply> WorkerPool::Call(WorkerKind kind, const Request& request,
                               std::chrono::milliseconds deadline) {
  if (request.fds.size() > kMaxFrameFds) {
    return Fail(ErrorKind::kUsage,
                fmt::format("a request carries {} descriptors; at most {} fit", request.fds.size(),
                            kMaxFrameFds),
                "worker request", "put several tensors into one memory file");
  }
  const Key key{kind, request.role, request.lane};
  ASSAY_TRY(std::unique_ptr<Worker> worker, Take(key));
  const Worker* const busy = worker.get();
  Result<Reply> reply = worker->Serve(
      request, deadline, [this, busy](std::uint64_t bytes) { return Watch(busy, bytes); });
  GiveBack(key, std::move(worker));
  return reply;
}

}  // namespace assay::sandbox
