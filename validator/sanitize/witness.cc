// The second witness: a GPU runs the launches of a sanitizer's job as well.
#include "validator/sanitize/parts.h"

namespace assay::sanitize {

Result<Testimony> Ask(engine::Engine& witness, const Job& job, Execution execution,
                      const std::vector<SharedMemory>* emulated) {
  // It is asked for what it can see; what it does not watch, the emulator has watched.
  execution.checks = {.bounds = false, .initialisation = false, .race = false, .barrier = false};
  execution.limits.max_steps = job.max_steps;
  execution.target_sm = job.arch;
  // What it leaves in a buffer comes back from outputs alone.
  for (BufferSpec& buffer : execution.buffers) {
    if (buffer.role == BufferRole::kWorkspace) buffer.role = BufferRole::kOutput;
  }
  Testimony testimony;
  std::optional<Run> first;
  while (testimony.runs < kWitnessRuns && testimony.findings.empty()) {
    ASSAY_TRY(Run run, RunOnce(job.plan, execution, witness));
    ++testimony.runs;
    testimony.stop = run.report.stop;
    testimony.reason = run.report.reason;
    testimony.findings = std::move(run.report.findings);
    if (run.report.stop != Stop::kCompleted) break;
    if (!first) {
      first = std::move(run);
      if (emulated == nullptr || !testimony.findings.empty()) continue;
      testimony.findings =
          DifferentBits(job.plan, {"on the emulator", emulated}, {"on the GPU", &first->buffers},
                        FindingKind::kDeviceDisagreement);
    } else if (testimony.findings.empty()) {
      testimony.findings = DifferentBits(job.plan, {"on the GPU", &first->buffers},
                                         {"when the GPU ran it again", &run.buffers},
                                         FindingKind::kNondeterministic);
    }
  }
  SortAndMerge(testimony.findings);
  return testimony;
}

}  // namespace assay::sanitize
