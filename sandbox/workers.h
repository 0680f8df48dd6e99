// How the orchestrator asks a worker for something: one request, one reply or the reason why there
// is none.
//
//   Request request{.role = "candidate", .header = {{"action", "compile"}}, .payload = source};
//   ASSAY_TRY(Reply reply, workers.Call(WorkerKind::kCompile, request, 30s));
//   if (reply.outcome != CallOutcome::kReplied) return Inconclusive(reply.detail);
//
// Two channels: an Error means that no worker could be asked (no jail, no program) or that a worker
// declined in good order (bad request, no NVRTC); a Reply says what became of the request,
// including the death of the worker, which costs nothing but this request. A reply's content comes
// from a process that handled hostile input: read it with ObjectReader, believe nothing.
//
// `role` keeps processes apart: two requests of different roles never meet in one worker, so a
// candidate cannot leave anything behind for the oracle's reference run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "sandbox/frame.h"
#include "sandbox/policies.h"

namespace assay::sandbox {

struct Request {
  std::string role = "default";
  /// Which worker of its kind, where they differ: of kGpu the GPU, counted among those asked for, of
  /// kGpuTool the tool (VendorTools).
  unsigned lane = 0;
  Json header = Json::object();
  std::string_view payload;  ///< Borrowed for the call.
  std::vector<int> fds;  ///< Borrowed for the call. Memory files are sealed against shrinking and
                         ///< growing before they are sent.
  FrameLimits reply_limits = {.fds = 0};
};

enum class CallOutcome {
  kReplied,    ///< `message` holds the reply.
  kCrashed,    ///< The worker died, or was killed because all workers together held too much.
  kTimedOut,   ///< The deadline passed and the worker was killed.
  kProtocol,   ///< The worker sent something that is no reply, and was killed.
  kOverLimit,  ///< It was killed at its own memory limit: the request takes more than one may.
};
std::string_view Name(CallOutcome outcome);

struct Reply {
  CallOutcome outcome = CallOutcome::kReplied;
  Message message;
  std::string
      detail;  ///< Why there is no reply: the signal, the limit, the end of the worker's output. With
               ///< a reply: the last words of the tool round a worker that ended behind it.
  std::chrono::microseconds took{};
};

/// How well the workers are isolated, for the verdict and for `assay doctor`.
struct Isolation {
  bool jailed = false;
  std::string description;  ///< "bubblewrap 0.8.0, seccomp" or "none (--unsafe-no-jail)"
};

class Workers {
 public:
  virtual ~Workers() = default;
  /// Thread-safe. `deadline` starts when a worker takes the request, not while the request waits
  /// for a free one.
  virtual Result<Reply> Call(WorkerKind kind, const Request& request,
                             std::chrono::milliseconds deadline) = 0;
  virtual Isolation isolation() const = 0;
};

/// Workers that are a function, for tests.
class FakeWorkers final : public Workers {
 public:
  using Function =
      std::function<Result<Reply>(WorkerKind, const Request&, std::chrono::milliseconds)>;
  explicit FakeWorkers(Function function, Isolation isolation = {true, "fake"})
      : function_(std::move(function)), isolation_(std::move(isolation)) {}

  Result<Reply> Call(WorkerKind kind, const Request& request,
                     std::chrono::milliseconds deadline) override {
    return function_(kind, request, deadline);
  }
  Isolation isolation() const override { return isolation_; }

 private:
  Function function_;
  Isolation isolation_;
};

/// A descriptor of the same memory that cannot be written through: for inputs, and whatever else a
/// worker has no business changing.
Result<UniqueFd> ReadOnlyView(int fd);

}  // namespace assay::sandbox
