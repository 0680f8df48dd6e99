#include "sandbox/worker_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <future>
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

Result<WorkerLaunch> StandardLaunch(const PoolOptions& options, WorkerKind kind) {
  WorkerLaunch launch{PolicyFor(kind), options.worker_program, {std::string(Name(kind))}};
  if (launch.program.empty()) launch.program = ProgramFolder() / "assay-worker";
  if (std::error_code error; !std::filesystem::is_regular_file(launch.program, error)) {
    return Fail(ErrorKind::kEnvironment, "the worker's program is missing", launch.program.string(),
                "build the target assay-worker; it must lie beside assay");
  }
  if (options.unsafe_no_jail) {
    launch.policy.Allow(Weakening::kNoJail);
    launch.arguments.emplace_back("--no-jail");
  }
  BindWorker(launch.policy, launch.program);
  if (kind == WorkerKind::kGpu) {
    BindDriver(launch.policy);
    launch.arguments.insert(launch.arguments.end(), {"--gpu", std::to_string(options.gpu)});
  }
  if (kind == WorkerKind::kCompile) {
    ASSAY_TRY(const Toolkit toolkit, FindToolkit(options.toolkit));
    const std::vector<std::string> arguments = BindToolkit(launch.policy, toolkit);
    launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
  }
  return launch;
}

Result<std::unique_ptr<WorkerPool>> WorkerPool::Create(PoolOptions options) {
  if (options.toolkit.explicit_root.empty() && options.toolkit.roots.empty()) {
    options.toolkit = ToolkitSearch::Default([](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    });
  }
  if (options.workers_per_kind == 0) {
    options.workers_per_kind = std::max(1u, std::thread::hardware_concurrency());
  }
  if (!options.launch) {
    options.launch = [standard = options](WorkerKind kind) {
      return StandardLaunch(standard, kind);
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

Result<std::unique_ptr<Worker>> WorkerPool::Start(WorkerKind kind) {
  ASSAY_TRY(WorkerLaunch launch, options_.launch(kind));
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
      --group.running;  // Killed and reaped as it goes out of scope.
    }
    ++group.running;
  }
  Result<std::unique_ptr<Worker>> worker = Start(key.first);
  if (!worker) GiveBack(key, nullptr);
  return worker;
}

void WorkerPool::GiveBack(const Key& key, std::unique_ptr<Worker> worker) {
  {
    const std::lock_guard lock(mutex_);
    Group& group = groups_[key];
    if (worker != nullptr && worker->Reusable()) {
      group.idle.push_back(std::move(worker));
    } else {
      --group.running;
    }
  }
  changed_.notify_all();
}

Result<Reply> WorkerPool::Call(WorkerKind kind, const Request& request,
                               std::chrono::milliseconds deadline) {
  if (request.fds.size() > kMaxFrameFds) {
    return Fail(ErrorKind::kUsage,
                fmt::format("a request carries {} descriptors; at most {} fit", request.fds.size(),
                            kMaxFrameFds),
                "worker request", "put several tensors into one memory file");
  }
  const Key key{kind, request.role};
  ASSAY_TRY(std::unique_ptr<Worker> worker, Take(key));
  Result<Reply> reply = worker->Serve(request, deadline);
  GiveBack(key, std::move(worker));
  return reply;
}

}  // namespace assay::sandbox
