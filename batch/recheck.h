// Judging again, under today's judge, what was vetted under an earlier one: which verdicts are other
// ones now, and which change of judge, toolkit or op came between.
//
// What is judged is the store's instance records (runs/instance_key.h). A record names every part
// that its verdict depended on; the parts that are others today are the reason why it is judged at
// all. Where none is, the verdict stands: same key, same verdict. Judgements are kept by their key,
// so that a recheck that was killed, or that is made twice, judges nothing twice.
#pragma once

#include <functional>
#include <set>

#include "batch/events.h"
#include "batch/folder.h"
#include "runs/instance_key.h"
#include "runs/judgement.h"

namespace assay::batch {

/// What judges; called from several threads.
using JudgeFunction = std::function<verdict::Verdict(
    const ops::Instance&, const verdict::Candidate&, const runs::JudgeFacts&)>;

struct RecheckRequest {
  Path store;
  std::set<std::string> ops;  ///< Names; empty: all.
  Path folder;                ///< Of the batch that records it.
  bool resume = false;
  unsigned jobs = 1;
  std::map<std::string, std::string> judge;  ///< Versions and digests of what judges today.
};

struct RecheckEnvironment {
  Clock& clock;
  const ops::Library& library;
  JudgeFunction judge;
  std::function<void(const DriftRow&)> observe{};  ///< One call at a time.
  std::function<bool()> interrupted{};
};

/// The kernel of `record` under today's judge.
DriftRow Recheck(const runs::InstanceRecord& record, const RecheckRequest& request,
                 const RecheckEnvironment& environment);

struct RecheckOutcome {
  Summary summary;
  Path folder;
};
Result<RecheckOutcome> RunRecheck(const RecheckRequest& request,
                                  const RecheckEnvironment& environment);

/// 0: no verdict changed; 1: one did.
int ExitCodeOfRecheck(const Summary& summary);

}  // namespace assay::batch
