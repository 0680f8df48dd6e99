#include "batch/recheck.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "batch/plan.h"
#include "batch/summarise.h"

namespace assay::batch {
namespace {

std::string PartOf(const runs::InstanceKey& key, const std::string& part) {
  const auto found = key.parts.find(part);
  return found == key.parts.end() ? std::string() : found->second;
}

// Names alone: a store may come from anybody, and Library::Find takes paths as well.
Result<ops::OpSpec> OpNamed(const ops::Library& library, const std::string& name) {
  for (const ops::Library::Entry& entry : library.List()) {
    if (entry.name == name) return ops::LoadOp(entry.folder);
  }
  return Fail(ErrorKind::kUsage, "there is no such op in the library any more", name);
}

// The key that the record would have today. What the model was told is no part of a verdict.
runs::InstanceKey KeyToday(const runs::InstanceRecord& record, const ops::Instance& instance,
                           const runs::JudgeFacts& facts) {
  runs::InstanceKey key = runs::KeyOf(
      {.instance = instance, .judge = facts, .prompts_digest = {}, .model = {}, .options = {}});
  for (const char* const part : {"prompts", "model", "options"})
    key.parts[part] = PartOf(record.key, part);
  return key;
}

Status Judge(const runs::InstanceRecord& record, const RecheckRequest& request,
             const RecheckEnvironment& environment, DriftRow& row) {
  runs::JudgeFacts facts{.versions = request.judge,
                         .engine = PartOf(record.key, "engine"),
                         .effort = PartOf(record.key, "effort"),
                         .unsafe_no_jail = false};
  facts.seed = std::strtoull(PartOf(record.key, "seed").c_str(), nullptr, 10);
  ASSAY_TRY(ops::OpSpec op, OpNamed(environment.library, record.op));
  ASSAY_TRY(const ops::Instance instance,
            ops::MakeInstance(std::move(op), record.binding, record.arch));
  for (const runs::Change& change :
       runs::JudgementChanges(record.key, KeyToday(record, instance, facts))) {
    row.changed.push_back(
        {std::string(runs::CauseOf(change.part)), change.part, change.before, change.after});
  }
  if (row.changed.empty()) {
    row.after = row.before;
    row.reason = "vetted by this very judge";
    return {};
  }
  const runs::Store store(request.store);
  verdict::Candidate candidate;
  ASSAY_TRY(candidate.kernel, store.Get(record.files.at("kernel.cu")));
  ASSAY_TRY(candidate.launch, store.Get(record.files.at("launch.json")));
  const runs::JudgementFolder judgements(request.store);
  const std::string key = runs::JudgementKey(facts, instance, candidate);
  std::optional<verdict::Verdict> verdict = judgements.Find(key);
  if (!verdict) {
    verdict = environment.judge(instance, candidate, facts);
    ASSAY_TRY_VOID(judgements.Keep({.key = key,
                                    .op = instance.op.name,
                                    .op_digest = instance.op.digest,
                                    .binding = record.binding,
                                    .arch = record.arch,
                                    .judge = request.judge,
                                    .candidate = candidate,
                                    .reply = {},
                                    .model = record.author,
                                    .verdict = *verdict}));
  }
  row.after = verdict::Name(verdict->outcome);
  row.reason = verdict->reason;
  row.drifted = row.after != row.before;
  const auto counterexamples = verdict->Counterexamples();
  if (counterexamples.empty()) return {};
  row.gate = counterexamples.front()->gate;
  if (!counterexamples.front()->findings.empty())
    row.finding = Name(counterexamples.front()->findings.front().kind);
  return {};
}

}  // namespace

DriftRow Recheck(const runs::InstanceRecord& record, const RecheckRequest& request,
                 const RecheckEnvironment& environment) {
  DriftRow row{.instance = record.instance,
               .before = std::string(verdict::Name(verdict::Outcome::kAccepted))};
  const auto kernel = record.files.find("kernel.cu");
  if (kernel == record.files.end() || !record.files.contains("launch.json")) {
    row.reason = "the record names no kernel";
    row.drifted = true;
    return row;
  }
  row.kernel = kernel->second;
  // What cannot be judged any more is no longer known to be right.
  if (const Status judged = Judge(record, request, environment, row); !judged) {
    row.after.clear();
    row.reason = ToString(judged.error());
    row.drifted = true;
  }
  return row;
}

Result<RecheckOutcome> RunRecheck(const RecheckRequest& request,
                                  const RecheckEnvironment& environment) {
  std::vector<runs::InstanceRecord> records = runs::AllRecords(runs::Store(request.store));
  std::erase_if(records, [&](const runs::InstanceRecord& record) {
    return !request.ops.empty() && !request.ops.contains(record.op);
  });
  if (records.empty()) {
    return Fail(ErrorKind::kUsage, "the store holds no vetted kernel to be judged again",
                request.store.string(), "run a batch first, or name its store with --store");
  }
  std::unique_ptr<BatchFolder> folder;
  if (request.resume) {
    ASSAY_TRY(folder, BatchFolder::Open(request.folder, environment.clock));
  } else {
    ASSAY_TRY(folder, BatchFolder::Create(request.folder, environment.clock));
  }
  Json batch = {
      {"schema", "assay.batch/1"}, {"id", request.folder.filename().string()}, {"kind", "recheck"}};
  batch.update(PlanToJson({}, {}, {}, {}));
  batch["executor"] = "local";
  batch["jobs"] = request.jobs;
  std::set<std::pair<std::string, std::string>> known;
  for (const DriftRow& row : folder->state().drift) known.emplace(row.instance, row.kernel);
  if (request.resume) {
    ASSAY_TRY_VOID(folder->Record(BatchResumed{batch}));
  } else {
    ASSAY_TRY_VOID(folder->Record(BatchStarted{batch}));
  }

  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  Status failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < records.size(); i = next++) {
      if (environment.interrupted && environment.interrupted()) stopped = true;
      if (stopped) return;
      const auto kernel = records[i].files.find("kernel.cu");
      if (kernel != records[i].files.end() && known.contains({records[i].instance, kernel->second}))
        continue;
      const DriftRow row = Recheck(records[i], request, environment);
      const std::lock_guard lock(mutex);
      if (Status status = folder->Record(InstanceRechecked{row}); !status) {
        if (failed) failed = std::move(status);
        stopped = true;
      }
      if (environment.observe) environment.observe(row);
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 0; i < std::max(1u, request.jobs); ++i) pool.emplace_back(work);
  }
  ASSAY_TRY_VOID(std::move(failed));
  ASSAY_TRY_VOID(folder->Record(BatchStopped{stopped ? "interrupted" : "", stopped}));
  RecheckOutcome outcome{.folder = request.folder};
  ASSAY_TRY(outcome.summary, WriteSummary(folder->state(), request.folder));
  return outcome;
}

int ExitCodeOfRecheck(const Summary& summary) {
  return std::ranges::any_of(summary.drift, &DriftRow::drifted) ? 1 : 0;
}

}  // namespace assay::batch
