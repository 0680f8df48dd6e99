#include "validator/engine/emulator_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace assay::engine {
namespace {

/// Bytes of a worker's own words.
constexpr std::size_t kMostReason = 1000;

Report Failure(std::string reason) {
  Report report;
  report.stop = Stop::kEngineFailure;
  report.reason = std::move(reason);
  return report;
}

}  // namespace

EmulatorEngine::EmulatorEngine(sandbox::Workers& workers) : EmulatorEngine(workers, Options{}) {}
EmulatorEngine::EmulatorEngine(sandbox::Workers& workers, Options options)
    : workers_(workers), options_(options) {}

Result<Report> EmulatorEngine::Run(const Execution& execution,
                                   std::span<SharedMemory* const> buffers, Trust trust) {
  ASSAY_CHECK(buffers.size() == execution.buffers.size());
  if (buffers.size() > sandbox::kMaxFrameFds) {
    return Fail(ErrorKind::kLimit, "more buffers than one request to a worker can carry",
                "emulator", "use fewer tensors or workspace buffers");
  }
  sandbox::Request request;
  request.role = RoleOf(trust);
  request.header = {{"action", "run"}, {"execution", ToJson(execution)}};
  request.payload = execution.ptx;
  std::vector<UniqueFd> views;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (execution.buffers[i].role != BufferRole::kInput) {
      request.fds.push_back(buffers[i]->fd());
      continue;
    }
    ASSAY_TRY(UniqueFd view, sandbox::ReadOnlyView(buffers[i]->fd()));
    request.fds.push_back(view.get());
    views.push_back(std::move(view));
  }
  const auto millions = static_cast<std::int64_t>(
      std::min<std::uint64_t>(execution.limits.max_steps / 1'000'000, 1'000'000));
  const auto deadline =
      std::min(options_.longest, options_.base_deadline + options_.per_million_steps * millions);
  ASSAY_TRY(const sandbox::Reply reply,
            workers_.Call(sandbox::WorkerKind::kEmulate, request, deadline));
  if (reply.outcome == sandbox::CallOutcome::kTimedOut) {
    Report report =
        Failure(fmt::format("the emulator hung: it neither ended nor used up its {} steps within "
                            "{} s of the wall clock, "
                            "which says nothing of the kernel{}{}",
                            execution.limits.max_steps,
                            std::chrono::duration_cast<std::chrono::seconds>(deadline).count(),
                            reply.detail.empty() ? "" : ": ", reply.detail));
    report.stop = Stop::kResourceLimit;
    return report;
  }
  if (reply.outcome != sandbox::CallOutcome::kReplied) {
    return Failure("the emulator's worker ended: " + reply.detail);
  }
  const auto found = reply.message.header.find("report");
  if (!reply.message.header.is_object() || found == reply.message.header.end()) {
    return Failure("the emulator's reply holds no report");
  }
  auto report = ReportFromJson(*found);
  if (!report) return Failure("the emulator's report cannot be read: " + ToString(report.error()));
  report->reason = OneLine(report->reason, kMostReason);
  const std::size_t expected = buffers.size();
  if (report->stop == Stop::kCompleted &&
      (report->unwritten_bytes.size() != expected || report->first_unwritten.size() != expected)) {
    return Failure("the emulator's report does not speak of every buffer");
  }
  return report;
}

}  // namespace assay::engine
