#include "validator/engine/worker_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"

namespace assay::engine {
namespace {

/// Bytes of a worker's own words.
constexpr std::size_t kMostReason = 1000;

/// It was asked by digest, and has no such program.
bool IsWithoutProgram(const sandbox::Reply& reply) {
  const Json& header = reply.message.header;
  return reply.outcome == sandbox::CallOutcome::kReplied && header.is_object() &&
         header.contains("unknown_program");
}

}  // namespace

Report EngineFailure(std::string reason) {
  Report report;
  report.stop = Stop::kEngineFailure;
  report.reason = std::move(reason);
  return report;
}

Result<WorkerAnswer> AskWorker(sandbox::Workers& workers, const WorkerRun& run,
                               const Execution& execution, std::span<SharedMemory* const> buffers,
                               Trust trust) {
  const auto failed = [](std::string reason) {
    return WorkerAnswer{.report = EngineFailure(std::move(reason))};
  };
  ASSAY_CHECK(buffers.size() == execution.buffers.size());
  if (buffers.size() > sandbox::kMaxFrameFds) {
    return Fail(ErrorKind::kLimit, "more buffers than one request to a worker can carry",
                std::string(run.name), "use fewer tensors or workspace buffers");
  }
  sandbox::Request request;
  request.role = RoleOf(trust);
  request.lane = run.lane;
  request.header = run.header;
  request.header["action"] = run.action;
  request.header["execution"] = ToJson(execution);
  if (run.digest.empty()) {
    request.payload = run.payload;
  } else {
    request.header["program"] = run.digest;
  }
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
  ASSAY_TRY(sandbox::Reply reply, workers.Call(run.kind, request, run.deadline));
  if (!run.digest.empty() && IsWithoutProgram(reply)) {
    request.payload = run.payload;
    ASSAY_TRY(reply, workers.Call(run.kind, request, run.deadline));
  }
  if (reply.outcome == sandbox::CallOutcome::kTimedOut) {
    Report report = EngineFailure(run.hung + (reply.detail.empty() ? "" : ": ") + reply.detail);
    report.stop = Stop::kResourceLimit;
    return WorkerAnswer{.report = std::move(report)};
  }
  if (reply.outcome == sandbox::CallOutcome::kOverLimit) {
    Report report = EngineFailure(fmt::format(
        "the case takes more memory than the {} may hold ({})", run.name, reply.detail));
    report.stop = Stop::kResourceLimit;
    return WorkerAnswer{.report = std::move(report)};
  }
  if (reply.outcome != sandbox::CallOutcome::kReplied)
    return failed(fmt::format("the {}'s worker ended: {}", run.name, reply.detail));
  const auto found = reply.message.header.find("report");
  if (!reply.message.header.is_object() || found == reply.message.header.end())
    return failed(fmt::format("the {}'s reply holds no report", run.name));
  auto report = ReportFromJson(*found);
  if (!report) {
    return failed(
        fmt::format("the {}'s report cannot be read: {}", run.name, ToString(report.error())));
  }
  report->reason = OneLine(report->reason, kMostReason);
  const std::size_t expected = buffers.size();
  if (report->stop == Stop::kCompleted &&
      (report->unwritten_bytes.size() != expected || report->first_unwritten.size() != expected))
    return failed(fmt::format("the {}'s report does not speak of every buffer", run.name));
  return WorkerAnswer{.report = std::move(*report),
                      .header = std::move(reply.message.header),
                      .words = std::move(reply.detail)};
}

Result<Report> RunInWorker(sandbox::Workers& workers, const WorkerRun& run,
                           const Execution& execution, std::span<SharedMemory* const> buffers,
                           Trust trust) {
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers, run, execution, buffers, trust));
  return std::move(answer.report);
}

}  // namespace assay::engine
