// Warm workers for many threads: started on demand, kept, replaced when they die.
//
//   PoolOptions options;  // this program's assay-worker, the machine's toolkit
//   ASSAY_TRY(auto pool, WorkerPool::Create(options));  // refused without a jail, with the cure
//   ASSAY_TRY(Reply reply, pool->Call(WorkerKind::kCompile, request, 30s));
//
// One worker serves one request at a time; up to `workers_per_kind` run for each kind, role and
// lane, and further callers wait. The most recently used worker is taken first, so that the others
// stay cold. A first request costs the start (jail some 10 ms, NVRTC some 100 ms); later ones a
// round trip (about 0.1 ms).
//
// All workers together may hold so much memory (`total_bytes`), whatever each may hold alone. Beyond
// it idle workers are ended; where that does not help, the busy one that holds most.
//
// Thread-safe. Destruction kills all workers; no call may be in flight then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "sandbox/toolkit.h"
#include "sandbox/worker.h"
#include "sandbox/workers.h"

namespace assay::sandbox {

struct PoolOptions {
  Path worker_program;    ///< Empty: the one of OwnEnvironment().
  ToolkitSearch toolkit;  ///< Where the compile worker's NVRTC is looked for, at its first start.
  unsigned workers_per_kind = 0;  ///< 0: as many as the machine has threads.
  std::vector<int> gpus = {0};    ///< Numbers of those that are used: a lane of kGpu each.
  std::uint64_t total_bytes = 0;  ///< 0: three quarters of MachineMemory().
  bool unsafe_no_jail = false;  ///< Runs hostile code without namespaces. Reported by isolation().
  JailProbe jail;
  std::chrono::milliseconds start_deadline = std::chrono::seconds(60);
  /// What to start for a kind, before the jail token is added. Empty: StandardLaunch. Tests put
  /// other programs here.
  std::function<Result<WorkerLaunch>(WorkerKind, unsigned lane)> launch;
};

/// Lanes of kGpuTool: the tools of compute-sanitizer, each a process of its own.
std::span<const std::string_view> VendorTools();

/// With the usual order of searching for the toolkit, where none is given.
PoolOptions Completed(PoolOptions options);

/// Workers, toolkit and jail of `environment`, and nothing that a variable of the process says.
PoolOptions PoolIn(const Environment& environment);

/// Memory of this machine, or of the control group that this process runs in, whichever is less.
std::uint64_t MachineMemory(const Path& root = "/");

/// `assay-worker KIND` under PolicyFor(KIND), with the toolkit for the compile worker, and behind the
/// tool for kGpuTool.
Result<WorkerLaunch> StandardLaunch(const PoolOptions& options, WorkerKind kind, unsigned lane = 0);

class WorkerPool final : public Workers {
 public:
  static Result<std::unique_ptr<WorkerPool>> Create(PoolOptions options);
  ~WorkerPool() override;

  Result<Reply> Call(WorkerKind kind, const Request& request,
                     std::chrono::milliseconds deadline) override;
  Isolation isolation() const override { return isolation_; }

  /// Workers started so far, for tests and for `assay doctor`.
  std::size_t started() const;

 private:
  class Starter;
  struct Key {
    WorkerKind kind{};
    std::string role;
    unsigned lane = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Group {
    std::vector<std::unique_ptr<Worker>> idle;
    unsigned running = 0;  ///< Idle and busy.
  };

  WorkerPool(PoolOptions options, Path bubblewrap, Isolation isolation);
  Result<std::unique_ptr<Worker>> Take(const Key& key);
  Result<std::unique_ptr<Worker>> Start(const Key& key);
  void GiveBack(const Key& key, std::unique_ptr<Worker> worker);
  /// Notes what `worker` holds; makes room among the idle ones where all hold too much. Why `worker`
  /// must end, or nothing.
  std::string Watch(const Worker* worker, std::uint64_t bytes);
  std::uint64_t Total() const;  ///< With the mutex held.

  PoolOptions options_;
  Path bubblewrap_;
  Isolation isolation_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Group> groups_;
  std::map<const Worker*, std::uint64_t> held_;  ///< What each was last seen to hold.
  std::size_t started_ = 0;
  std::unique_ptr<Starter> starter_;
};

}  // namespace assay::sandbox
