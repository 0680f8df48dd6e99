// One worker process and its socket: started, greeted, asked one request at a time, watched and
// killed.
//
// Not internally synchronised: WorkerPool hands a worker to one thread at a time. Start must run on
// a thread that outlives the worker (see process.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/jail.h"
#include "sandbox/policy.h"
#include "sandbox/workers.h"

namespace assay::sandbox {

/// What to start for a kind.
struct WorkerLaunch {
  Policy policy;
  Path program;
  std::vector<std::string> arguments;
};

/// Told what a busy worker holds, every few milliseconds; says why it must end, or nothing.
using MemoryWatch = std::function<std::string(std::uint64_t bytes)>;

/// What a process holds at the moment; zeroes when it cannot be read.
struct Usage {
  std::uint64_t private_bytes = 0;  ///< Anonymous, swapped out, and page tables.
  std::uint64_t shared_bytes = 0;   ///< Of memory files, as far as they are mapped.
  std::uint64_t threads = 0;

  /// All of it, where the process has also filled `filled` bytes of memory files, mapped or not.
  std::uint64_t Held(std::uint64_t filled) const {
    return private_bytes + std::max(shared_bytes, filled);
  }
};
Usage UsageOf(pid_t pid);

/// What a process has mapped of memory files, each page once however often it is mapped: patterns repeat over gigabytes. Of
/// pages that others have mapped as well, its part by how often. Nothing where that cannot be read. Takes tens of milliseconds
/// for gigabytes.
std::optional<std::uint64_t> SharedPagesOf(pid_t pid);

class Worker {
 public:
  /// Starts the process. Greet must follow.
  static Result<std::unique_ptr<Worker>> Start(const WorkerLaunch& launch, const Path& bubblewrap);

  /// Waits until the worker has sealed itself and said hello.
  Status Greet(Deadline deadline);

  /// Sends `request` and waits for the reply. After any other outcome than kReplied the process is
  /// dead. What a worker says in declining is quoted, and decides nothing (OfWorker in wire.h).
  Result<Reply> Serve(const Request& request, std::chrono::milliseconds deadline,
                      const MemoryWatch& watch = {});

  /// What it holds while it is idle, as it was when it was last looked at, which is not long ago.
  std::uint64_t HeldBytes();

  /// False once the process has ended, has sent something unasked, or has used so much time that it
  /// should be replaced.
  bool Reusable();

  pid_t pid() const { return pid_; }

 private:
  Worker(Policy policy, Process process, UniqueFd socket);

  Reply Ended(CallOutcome outcome, std::string reason);
  Reply Died();
  /// A worker that ends behind its reply, under a tool: waits until both have, for what the tool says.
  Reply WithLastWords(Reply reply, Deadline deadline);
  Result<Reply> Accept(Message message);
  /// The end of a worker that must be killed for what it holds; nothing if it may go on. `filled`:
  /// bytes of the request's memory files that have come to be since it began.
  std::optional<Reply> EndIfOverLimit(std::uint64_t filled, const MemoryWatch& watch);
  /// What it holds. `most`: beyond that pages that are mapped more than once are told from others.
  std::uint64_t HeldBytes(std::uint64_t filled, std::uint64_t most, Usage usage);

  Policy policy_;
  Process process_;
  UniqueFd socket_;
  pid_t pid_ = 0;  ///< Of the worker itself, as seen here; process_ is bubblewrap.
  std::int64_t next_id_ = 1;
  // Of its memory files, bytes that are mapped again, when so many were mapped. That holds for a while.
  std::uint64_t repeated_ = 0, shared_then_ = 0;
  std::chrono::steady_clock::time_point look_again_;
  std::uint64_t held_idle_ = 0;
  std::chrono::steady_clock::time_point look_at_idle_;
  bool retiring_ = false;  ///< It said that it ends after its reply.
  bool dead_ = false;
};

}  // namespace assay::sandbox
