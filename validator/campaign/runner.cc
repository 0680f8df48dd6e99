#include "validator/campaign/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <stop_token>
#include <utility>

#include "validator/campaign/in_order.h"
#include "validator/campaign/parts.h"
#include "validator/engine/abandoned.h"
#include "validator/engine/bind.h"

namespace assay::campaign {
namespace {

struct RepeatedCall {
  const cases::Case* value = nullptr;
  std::size_t times = 1;
};

// The calls of a probe in order. Where addresses come back, the same call again is made on the same
// memory: hundreds of them take no more memory than one.
std::vector<RepeatedCall> CallsOf(const cases::Probe& probe) {
  std::vector<RepeatedCall> calls;
  const auto add = [&](const cases::Case& value) {
    const bool again =
        probe.reuse_addresses && !calls.empty() && calls.back().value->axes == value.axes &&
        calls.back().value->seed == value.seed && calls.back().value->profiles == value.profiles;
    if (again) {
      ++calls.back().times;
    } else {
      calls.push_back({&value, 1});
    }
  };
  for (const cases::Case& before : probe.prelude) add(before);
  add(probe.case_);
  return calls;
}

}  // namespace

void NameTheKernelFile(Report& report) {
  const auto strip = [](SourceSite& site) {
    if (site.file.ends_with("/kernel.cu")) site.file = "kernel.cu";
  };
  for (auto* const findings :
       {&report.findings, &report.stale_reads, &report.order.sums, &report.order.contests}) {
    for (Finding& finding : *findings) {
      for (Access& access : finding.accesses) strip(access.site);
    }
  }
  if (!report.origin) return;
  for (ErrorShare& share : report.origin->shares) strip(share.site);
}

std::string CaseRun::Inconclusive() const {
  if (error) return ToString(*error);
  if (!left_out.empty()) return {};
  if (!plan_findings.empty() || !report.findings.empty() || !nondeterminism.empty()) return {};
  switch (report.stop) {
    case Stop::kCompleted:
      break;
    case Stop::kFault:
      return "the engine reports a fault without a finding: " + report.reason;
    case Stop::kStepLimit:
      return fmt::format(
          "{}{}; on this case threads have to do less (split the longest loop), or a loop has no "
          "end",
          Name(report.stop), report.reason.empty() ? "" : ": " + report.reason);
    case Stop::kUnsupported:
    case Stop::kResourceLimit:
    case Stop::kEngineFailure:
      return std::string(Name(report.stop)) + (report.reason.empty() ? "" : ": " + report.reason);
  }
  return {};
}

bool IsSlice(const cases::Probe& probe) {
  return probe.ends_only && std::ranges::none_of(probe.case_.profiles, [](const auto& profile) {
           return profile.second.kind == "ends" || profile.second.kind == "front";
         });
}

Runner::Runner(Subject subject, engine::Engine& engine, oracle::Oracle& oracle, unsigned jobs)
    : subject_(subject), engine_(engine), oracle_(oracle), jobs_(std::max(1u, jobs)) {}

// Everything that a binding borrows from, for all calls of a probe.
struct Runner::Prepared {
  std::vector<cases::Materialised> inputs;
  std::vector<ops::ResolvedPlan> plans;
};

void Runner::NoteOutputs(const engine::BoundCall& judged, CaseRun& run) {
  run.outputs.clear();
  for (const auto& [name, tensor] : judged.outputs) {
    const std::size_t buffer = judged.buffer_of.find(name)->second;
    OutputState state{
        .name = name, .shape = tensor.shape, .unwritten_bytes = 0, .first_unwritten = -1};
    if (buffer < run.report.unwritten_bytes.size())
      state.unwritten_bytes = run.report.unwritten_bytes[buffer];
    if (buffer < run.report.first_unwritten.size())
      state.first_unwritten = run.report.first_unwritten[buffer];
    run.outputs.push_back(std::move(state));
  }
}

Status Runner::RunOnce(const cases::Probe& probe, const Wants& wants, CaseRun& run,
                       Observed& observed, const OutputFocus* focus) const {
  const ops::Instance& instance = *subject_.instance;
  Prepared prepared;
  const std::vector<RepeatedCall> all = CallsOf(probe);
  for (const auto& [value, times] : all) {
    ASSAY_TRY(cases::Materialised filled, oracle_.Materialise(instance, *value));
    const auto plan = ops::Resolve(*subject_.plan, instance, filled.axes);
    if (!plan && plan.error().kind == ErrorKind::kLimit) return std::unexpected(plan.error());
    if (!plan) {
      run.plan_findings.push_back(PlanFinding(plan.error()));
      return {};
    }
    prepared.inputs.push_back(std::move(filled));
    prepared.plans.push_back(*plan);
  }
  std::vector<engine::Call> calls;
  for (std::size_t i = 0; i < all.size(); ++i) {
    calls.push_back(
        {&prepared.plans[i], &prepared.inputs[i].axes, &prepared.inputs[i].inputs, all[i].times});
  }
  auto bound = engine::Bind(instance, *subject_.compiled, calls,
                            {.poison = probe.poison,
                             .misalign = probe.misalign,
                             .reuse_addresses = probe.reuse_addresses});
  if (!bound) {
    if (bound.error().kind == ErrorKind::kLimit) {
      run.left_out = ToString(bound.error());
      return {};
    }
    if (bound.error().kind != ErrorKind::kMalformedInput) return std::unexpected(bound.error());
    run.plan_findings.push_back(PlanFinding(bound.error()));
    return {};
  }
  bound->execution.schedule = probe.schedule;
  bound->execution.perturbation_seed = probe.perturbation_seed;
  if (!wants.watch)
    bound->execution.checks = {
        .bounds = false, .initialisation = false, .race = false, .barrier = false};
  bound->execution.checks.coverage = wants.coverage;
  bound->execution.checks.order = wants.watch && wants.determinism && probe.schedule == Schedule{};
  bound->execution.limits.max_steps = wants.max_steps;
  if (focus != nullptr) {
    const auto buffer = bound->calls.back().buffer_of.find(focus->output);
    if (buffer == bound->calls.back().buffer_of.end())
      return Fail(ErrorKind::kInternal, "no output '" + focus->output + "'", "trace");
    bound->execution.checks = {.bounds = false,
                               .initialisation = false,
                               .race = false,
                               .barrier = false,
                               .coverage = false,
                               .shadow_values = true};
    bound->execution.focus = {.buffer = static_cast<std::uint32_t>(buffer->second),
                              .first = focus->first,
                              .elements = focus->elements,
                              .common_sign = focus->common_sign};
  }
  ASSAY_TRY(run.report, engine_.Run(bound->execution, bound->buffers, engine::Trust::kCandidate));
  NameTheKernelFile(run.report);
  RefuseUnwatched(bound->execution.checks, engine_.name(), run.report);
  run.steps += run.report.counters.steps;
  engine::BoundCall& judged = bound->calls.back();
  NoteOutputs(judged, run);
  observed.outputs = std::move(judged.outputs);
  observed.inputs = std::move(prepared.inputs.back());
  return {};
}

void Runner::Compare(const Wants& wants, const Observed& observed, CaseRun& run) const {
  // What reads or writes where it must not has no business being compared: its values are
  // consequences.
  const bool complete = run.report.stop == Stop::kCompleted && run.report.findings.empty() &&
                        run.plan_findings.empty() &&
                        std::ranges::all_of(run.outputs, [](const OutputState& state) {
                          return state.unwritten_bytes == 0;
                        });
  if (!wants.compare || !complete) return;
  const auto truth =
      oracle_.EvaluateFor(*subject_.instance, run.probe.case_, observed.inputs, observed.outputs);
  if (!truth) {
    run.error = WithPlace(truth.error(), "oracle");
    return;
  }
  run.truth_steps = (*truth)->warp_steps;
  run.comparison = oracle::Compare(*subject_.instance, **truth, run.probe.case_, observed.inputs,
                                   observed.outputs);
}

CaseRun Runner::Run(const cases::Probe& probe, const Wants& wants) const {
  CaseRun run;
  run.probe = probe;
  if (probe.ends_only) {
    const Status status = probe.places_only ? RunPlaces(probe, wants, run)
                          : IsOfSums(probe) ? RunSums(probe, wants, run)
                          : IsSlice(probe)  ? RunSlice(probe, wants, run)
                                            : RunEnds(probe, wants, run);
    if (!status) run.error = status.error();
    return run;
  }
  Observed observed;
  if (const Status status = RunOnce(probe, wants, run, observed); !status) {
    run.error = status.error();
    return run;
  }
  Compare(wants, observed, run);
  const RunAgain again = [&](const Schedule& schedule) -> Result<Rerun> {
    cases::Probe other = probe;
    other.schedule = schedule;
    CaseRun turned;
    Observed seen;
    ASSAY_TRY_VOID(RunOnce(other, wants, turned, seen));
    return Rerun{std::move(turned.report), std::move(seen.outputs), turned.steps};
  };
  TensorMap plain;
  Status status;
  if (wants.determinism && run.report.stop == Stop::kCompleted && run.plan_findings.empty() &&
      !run.error) {
    status = probe.schedule == Schedule{}
                 ? TurnPairs(wants, observed.outputs, nullptr, again, run)
                 : CompareWithPlain(observed.outputs, nullptr, again, run, plain);
  }
  if (status && !run.error) status = BlameOldValues(wants, plain, run);
  if (!status) {
    run.error = status.error();
    return run;
  }
  if (wants.keep_outputs) run.kept = std::move(observed.outputs);
  return run;
}

Result<std::optional<ErrorTrace>> Runner::Trace(const cases::Probe& probe,
                                                const OutputFocus& focus) const {
  constexpr std::uint64_t kSteps = 40'000'000;
  CaseRun run;
  Observed observed;
  ASSAY_TRY_VOID(RunOnce(probe, {.max_steps = kSteps}, run, observed, &focus));
  const auto count = static_cast<std::size_t>(focus.elements);
  if (run.report.stop != Stop::kCompleted || !run.report.origin ||
      run.report.origin->exact.size() != count)
    return std::nullopt;
  ASSAY_TRY(const auto truths, oracle_.EvaluateFor(*subject_.instance, probe.case_, observed.inputs,
                                                   observed.outputs));
  const auto truth = truths->outputs.find(focus.output);
  const auto got = observed.outputs.find(focus.output);
  const auto first = static_cast<std::size_t>(focus.first);
  if (truth == truths->outputs.end() || got == observed.outputs.end() ||
      first + count > truth->second.value.size() ||
      first + count > static_cast<std::size_t>(got->second.elements))
    return std::nullopt;
  ErrorTrace trace;
  trace.origin = std::move(*run.report.origin);
  trace.elements = focus.elements;
  trace.exact = trace.origin.exact.front();
  for (std::size_t i = 0; i < count; ++i) {
    const double value = truth->second.value[first + i];
    const double result = got->second.At(static_cast<std::int64_t>(first + i));
    const double exact = trace.origin.exact[i];
    // What is unknown, or infinite by rights, says nothing.
    if (!std::isfinite(value)) continue;
    trace.not_finite = trace.not_finite || !std::isfinite(result);
    if (!std::isfinite(exact) || !std::isfinite(result)) continue;
    trace.error += std::fabs(result - value);
    trace.rounding += std::fabs(result - exact);
    trace.formula += std::fabs(exact - value);
    trace.allowed += truth->second.allowance[first + i];
  }
  if (trace.not_finite) trace.error = trace.rounding = HUGE_VAL;
  if (!(trace.error > 0)) return std::nullopt;
  return trace;
}

void Runner::RunInOrder(std::span<const Task> tasks,
                        const std::function<bool(std::size_t, CaseRun)>& take,
                        std::span<const std::size_t> order) const {
  std::stop_source enough;
  const auto run_one = [&](std::size_t i) noexcept {
    const engine::Abandoning abandoning(enough.get_token());
    CaseRun run;
    try {
      run = Run(tasks[i].probe, tasks[i].wants);
    } catch (const std::exception& thrown) {
      run = CaseRun{};
      run.probe = tasks[i].probe;
      run.error = Error{ErrorKind::kInternal, thrown.what(), "gates", {}};
    }
    return run;
  };
  const auto take_one = [&](std::size_t i, CaseRun run) {
    const bool goes_on = take(i, std::move(run));
    if (!goes_on) enough.request_stop();
    return goes_on;
  };
  MakeInOrder(tasks.size(), jobs_, kAhead, run_one, take_one, order);
}

std::vector<CaseRun> Runner::RunAll(std::span<const Task> tasks,
                                    const std::function<void(std::size_t)>& done) const {
  std::vector<CaseRun> runs;
  runs.reserve(tasks.size());
  RunInOrder(tasks, [&](std::size_t i, CaseRun run) {
    runs.push_back(std::move(run));
    if (done) done(i + 1);
    return true;
  });
  return runs;
}

}  // namespace assay::campaign
