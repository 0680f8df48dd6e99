#include "validator/engine/emulator_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "validator/engine/abandoned.h"
#include "validator/engine/worker_run.h"

namespace assay::engine {

EmulatorEngine::EmulatorEngine(sandbox::Workers& workers) : EmulatorEngine(workers, Options{}) {}
EmulatorEngine::EmulatorEngine(sandbox::Workers& workers, Options options)
    : workers_(workers), options_(options) {}

// By the text itself, which is compared in less time than a digest takes to compute.
std::string EmulatorEngine::DigestOf(const std::string& ptx) {
  constexpr std::size_t kMost = 8;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(digests_, ptx, &Digest::ptx);
  if (found != digests_.end()) {
    std::rotate(digests_.begin(), found, found + 1);
  } else {
    digests_.insert(digests_.begin(), {.ptx = ptx, .hex = Sha256Hex(ptx)});
    if (digests_.size() > kMost) digests_.pop_back();
  }
  return digests_.front().hex;
}

Result<Report> EmulatorEngine::Run(const Execution& execution,
                                   std::span<SharedMemory* const> buffers, Trust trust) {
  if (IsAbandoned())
    return Fail(ErrorKind::kInternal, "nobody waits for this run any more", std::string(name()));
  const auto millions = static_cast<std::int64_t>(
      std::min<std::uint64_t>(execution.limits.max_steps / 1'000'000, 1'000'000));
  const auto deadline =
      std::min(options_.longest, options_.base_deadline + options_.per_million_steps * millions);
  const WorkerRun run{
      .kind = sandbox::WorkerKind::kEmulate,
      .name = name(),
      .payload = execution.ptx,
      .digest = DigestOf(execution.ptx),
      .deadline = deadline,
      .hung = fmt::format("the emulator hung: it neither ended nor used up its {} steps within "
                          "{} s of the wall clock, which says nothing of the kernel",
                          execution.limits.max_steps,
                          std::chrono::duration_cast<std::chrono::seconds>(deadline).count())};
  return RunInWorker(workers_, run, execution, buffers, trust);
}

}  // namespace assay::engine
