#include "assay/runs.h"

#include "api/outward.h"
#include "runs/extract.h"
#include "runs/folder.h"
#include "runs/inventory.h"

namespace assay::api {

Result<std::vector<RunSummary>> ListRuns(const std::filesystem::path& folder) {
  return AtBorder([&]() -> assay::Result<std::vector<RunSummary>> {
    ASSAY_TRY(const std::vector<runs::RunEntry> entries, runs::ListRuns(folder));
    std::vector<RunSummary> runs;
    for (const runs::RunEntry& run : entries) {
      runs.push_back({.folder = run.folder,
                      .instance = run.instance,
                      .model = run.model,
                      .state = run.state,
                      .began = run.began,
                      .attempts = run.attempts,
                      .judged = run.judged,
                      .vetted = run.vetted,
                      .unreadable = run.unreadable});
    }
    return runs;
  });
}

Result<RunRecord> ReadRun(const std::filesystem::path& folder) {
  return AtBorder([&]() -> assay::Result<RunRecord> {
    ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(folder));
    runs::RunState state;
    for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
    RunRecord record;
    for (const runs::Attempt& attempt : state.attempts) {
      RunAttempt& shown = record.attempts.emplace_back();
      shown.number = attempt.number;
      shown.parent = attempt.parent;
      if (!attempt.replies.empty()) {
        const runs::ModelReply reply = attempt.JoinedReply();
        shown.reply = reply.text;
        if (auto candidate = runs::ExtractCandidate(reply))
          shown.candidate = Candidate{candidate->kernel, candidate->launch};
      }
      if (attempt.verdict) shown.verdict = Outward(*attempt.verdict);
      if (!attempt.vetted.empty()) shown.vetted = folder / attempt.vetted;
    }
    if (state.stopped) {
      record.outcome = Outward(state.stopped->outcome);
      record.reason = state.stopped->reason;
    }
    return record;
  });
}

}  // namespace assay::api
