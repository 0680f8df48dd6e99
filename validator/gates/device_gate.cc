// The device gate: cases on a GPU, as a second witness. The machine code that would be emitted runs
// on the hardware; its results are compared with the truth, and with what the emulator computed.
//
// A GPU watches little (validator/gpu/device.h), so this gate can refute and cannot replace the
// others. What it adds: hardware's own order of threads, its memory, its arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/minimise.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/gates/device_tools.h"
#include "validator/gates/gate.h"
#include "validator/speed/stress.h"

namespace assay::gates {
namespace {

/// Where no case runs whole in the emulator: so many are run whole on the GPU and compared in part, the smallest,
constexpr std::size_t kSlices = 6;
/// with no more elements than that.
constexpr std::int64_t kMostOfASlice = std::int64_t{1} << 28;
/// Times that the largest case of a deterministic op runs, its bits compared.
constexpr int kRepetitions = 50;

std::vector<campaign::Task> CasesFor(GateContext& context) {
  std::vector<campaign::Task> tasks;
  for (const verdict::Counterexample& known : context.options.regressions) {
    if (!known.probe || known.probe->ends_only) continue;
    tasks.push_back({*known.probe, {}, "regression"});
  }
  const auto size = [&](const ops::AxisValues& axes) {
    return cases::TotalElements(context.instance, axes);
  };
  std::size_t wanted =
      context.options.device_cases > 0 ? context.options.device_cases : context.effort.device_cases;
  // The emulator's slices leave most of the outputs unwritten: there is nothing to compare bit by bit.
  std::vector<ops::AxisValues> shapes = context.Cases().shapes();
  std::erase_if(shapes,
                [&](const ops::AxisValues& axes) { return !context.Cases().FitsWhole(axes); });
  if (shapes.empty()) {
    shapes = context.Cases().shapes();
    std::erase_if(shapes, [&](const ops::AxisValues& axes) { return size(axes) > kMostOfASlice; });
    std::ranges::stable_sort(shapes, {}, size);
    shapes.resize(std::min(shapes.size(), kSlices));
    wanted = std::min(wanted, kSlices);
  }
  Rng rng(DeriveSeed(context.options.seed, "device"));
  while (!shapes.empty() && tasks.size() < wanted) {
    const ops::AxisValues& axes = shapes[rng.Below(shapes.size())];
    const std::uint64_t seed = rng.Next() >> 16;
    cases::Case value =
        tasks.size() % 3 == 2
            ? cases::MakeMixedCase(context.instance, axes, seed, "device")
            : cases::MakeCase(context.instance,
                              cases::AllRecipes()[rng.Below(cases::AllRecipes().size())], axes,
                              seed, "device");
    tasks.push_back(context.Cases().TaskFor(std::move(value), "device"));
  }
  for (campaign::Task& task : tasks) {
    task.probe.schedule = {};
    task.probe.perturbation_seed = 0;
    task.wants.coverage = false;
    task.wants.determinism = false;
    task.wants.orders = false;
    task.wants.keep_outputs = true;
  }
  return tasks;
}

campaign::Runner RunnerOn(GateContext& context, engine::Engine& engine) {
  constexpr unsigned kAhead = 4;  // One runs on a device, others are being prepared or compared.
  return {{&context.instance, &context.Plan(), &context.Compile()->kernel},
          engine,
          context.tools.oracle,
          kAhead * std::max(engine.devices(), 1u)};
}

campaign::Wants OnDevice(campaign::Wants wants) {
  wants.watch = false;
  wants.compare = true;
  wants.keep_outputs = true;
  return wants;
}

/// What is wrong with a case on the GPU. `emulated`: what the emulator computed of it.
std::vector<Finding> Disagreements(const campaign::CaseRun& run, const TensorMap& emulated) {
  std::vector<Finding> findings = run.report.findings;
  if (!run.comparison) return findings;
  for (const auto* found : {&run.comparison->numeric, &run.comparison->precision}) {
    for (const Finding& wrong : *found) {
      Finding finding = wrong;
      finding.kind = FindingKind::kDeviceDisagreement;
      finding.message = "on the GPU: " + wrong.message;
      if (wrong.element) {
        const auto output = emulated.find(wrong.element->output);
        std::int64_t place = 0;
        if (output != emulated.end() &&
            wrong.element->index.size() == output->second.shape.size()) {
          for (std::size_t d = 0; d < wrong.element->index.size(); ++d)
            place = place * output->second.shape[d] + wrong.element->index[d];
          if (place >= 0 && place < output->second.elements)
            finding.message += fmt::format("; the emulator's is {:.9g}", output->second.At(place));
        }
      }
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

Finding OtherBits(const TensorMap& first, const TensorMap& other) {
  Finding finding;
  for (const auto& [name, tensor] : first) {
    const auto found = other.find(name);
    if (found == other.end()) continue;
    const auto at = FirstDifference(tensor, found->second);
    if (!at) continue;
    finding.kind = FindingKind::kNondeterministic;
    finding.message =
        fmt::format("output '{}' had other bits when the same case ran again on the GPU", name);
    finding.element = ElementPlace{.output = name,
                                   .index = IndexOf(*at, tensor.shape),
                                   .expected = tensor.At(*at),
                                   .got = found->second.At(*at),
                                   .allowance = 0};
    break;
  }
  return finding;
}

bool SameBits(const TensorMap& a, const TensorMap& b) {
  return std::ranges::all_of(a, [&](const auto& item) {
    const auto found = b.find(item.first);
    return found != b.end() && !FirstDifference(item.second, found->second);
  });
}

/// What the vendor's tools are to watch: the smallest case, and the largest that they can run in
/// seconds. They see one call, and no calls before it.
std::vector<std::size_t> ForTools(GateContext& context, std::span<const campaign::Task> tasks) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 20;
  std::optional<std::size_t> smallest, largest;
  const auto size = [&](std::size_t i) {
    return cases::TotalElements(context.instance, tasks[i].probe.case_.axes);
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].probe.prelude.empty() || size(i) > kMostElements) continue;
    if (!smallest || size(i) < size(*smallest)) smallest = i;
    if (!largest || size(i) > size(*largest)) largest = i;
  }
  std::vector<std::size_t> chosen;
  if (smallest) chosen.push_back(*smallest);
  if (largest && largest != smallest) chosen.push_back(*largest);
  return chosen;
}

void Refute(GateContext& context, const cases::Probe& probe, std::vector<Finding> findings,
            verdict::GateResult& result) {
  result.status = verdict::GateStatus::kRefuted;
  result.reason = std::to_string(findings.size()) + " findings on the GPU";
  verdict::Counterexample counterexample =
      verdict::MakeCounterexample(context.instance, context.candidate, context.tools.gpu->name(),
                                  result.gate, std::move(findings));
  counterexample.probe = probe;
  counterexample.description = cases::Describe(probe.case_, context.instance);
  result.counterexamples.push_back(std::move(counterexample));
}

/// The case again and again, its bits compared with the first time's.
Result<std::vector<Finding>> Repeat(const campaign::Runner& gpu, const campaign::Task& task,
                                    const TensorMap& first) {
  for (int i = 1; i < kRepetitions; ++i) {
    campaign::Wants wants = OnDevice(task.wants);
    wants.compare = false;
    const campaign::CaseRun again = gpu.Run(task.probe, wants);
    if (again.error) return std::unexpected(*again.error);
    if (!again.report.findings.empty()) return again.report.findings;
    if (again.report.stop != Stop::kCompleted)
      return Fail(ErrorKind::kLimit, again.Inconclusive(), "gpu");
    if (!SameBits(first, again.kept)) return std::vector{OtherBits(first, again.kept)};
  }
  return std::vector<Finding>{};
}

struct Repeated {
  std::vector<Finding> findings;
  std::string text;
};

/// Under all conditions that change who comes first, where the GPU has them; else one by one.
Result<Repeated> RepeatAll(GateContext& context, const campaign::Runner& gpu,
                           const campaign::Task& task, const TensorMap& first) {
  // Calls before the judged one are no part of a repetition.
  auto* const stopwatch = context.tools.gpu->stopwatch();
  if (stopwatch == nullptr || !task.probe.prelude.empty()) {
    ASSAY_TRY(std::vector<Finding> findings, Repeat(gpu, task, first));
    return Repeated{std::move(findings), fmt::format("{} times", kRepetitions)};
  }
  ASSAY_TRY(const cases::Materialised inputs,
            context.tools.oracle.Materialise(context.instance, task.probe.case_));
  ASSAY_TRY(
      speed::Stressed stressed,
      speed::RunStressed(*stopwatch, {context.instance, context.Plan(), context.Compile()->kernel},
                         inputs, kRepetitions));
  return Repeated{
      std::move(stressed.findings),
      fmt::format("{} times, under {} conditions", stressed.repetitions, stressed.conditions)};
}

}  // namespace

Result<std::vector<Finding>> FindingsOnDevice(GateContext& context, const cases::Probe& probe) {
  ASSAY_CHECK(context.tools.gpu != nullptr);
  const campaign::Wants wants = campaign::ReplayWants(context.instance, context.Plan(), probe);
  const campaign::Runner gpu = RunnerOn(context, *context.tools.gpu);
  const campaign::Task task{probe, wants, "replay"};
  const campaign::CaseRun run = gpu.Run(probe, OnDevice(wants));
  if (run.error) return std::unexpected(*run.error);
  campaign::Wants emulated = wants;
  emulated.compare = emulated.determinism = false;
  emulated.keep_outputs = true;
  std::vector<Finding> findings =
      Disagreements(run, context.CaseRunner().Run(probe, emulated).kept);
  if (findings.empty() && ops::IsDeterministic(context.instance.op)) {
    ASSAY_TRY(Repeated again, RepeatAll(context, gpu, task, run.kept));
    findings = std::move(again.findings);
  }
  if (auto* const inspector = context.tools.gpu->inspector();
      findings.empty() && inspector != nullptr && probe.prelude.empty()) {
    findings = Inspect(context, *inspector, std::span(&probe.case_, 1)).findings;
  }
  if (findings.empty() && run.report.stop != Stop::kCompleted)
    return Fail(ErrorKind::kLimit, run.Inconclusive(), "gpu");
  return findings;
}

void RunDeviceGate(GateContext& context, verdict::GateResult& result) {
  if (context.tools.gpu == nullptr) {
    result.status = verdict::GateStatus::kSkipped;
    result.reason = "no GPU was asked for (--engine gpu,emulator)";
    return;
  }
  const std::vector<campaign::Task> tasks = CasesFor(context);
  const campaign::Runner gpu = RunnerOn(context, *context.tools.gpu);
  std::vector<campaign::Task> on_device = tasks, on_emulator;
  std::vector<std::size_t> place;  // Of each of the latter among all.
  for (campaign::Task& task : on_device) task.wants = OnDevice(task.wants);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (campaign::IsSlice(tasks[i].probe)) continue;
    on_emulator.push_back(tasks[i]);
    on_emulator.back().wants.compare = false;
    place.push_back(i);
  }
  const auto report = [&](std::string_view where) {
    return [&context, where, all = tasks.size()](std::size_t done) {
      context.Report("device", fmt::format("case {} of {} on the {}", done, all, where),
                     static_cast<double>(done) / static_cast<double>(all));
    };
  };
  const std::vector<campaign::CaseRun> runs = gpu.RunAll(on_device, report("GPU"));
  std::vector<campaign::CaseRun> emulated(tasks.size());
  std::vector<campaign::CaseRun> some =
      context.CaseRunner().RunAll(on_emulator, report("emulator"));
  for (std::size_t i = 0; i < some.size(); ++i) emulated[place[i]] = std::move(some[i]);
  result.cases = runs.size();
  std::size_t equal = 0, compared = 0, judged = 0, largest = runs.size();
  const campaign::CaseRun* guilty = nullptr;
  std::vector<Finding> findings;
  std::string inconclusive;
  const auto size = [&](const campaign::CaseRun& run) {
    return cases::TotalElements(context.instance, run.probe.case_.axes);
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Finding> found = Disagreements(runs[i], emulated[i].kept);
    if (found.empty() && inconclusive.empty()) {
      inconclusive = runs[i].Inconclusive();
      if (runs[i].comparison) ++judged;
      if (inconclusive.empty() && !runs[i].comparison && runs[i].left_out.empty())
        inconclusive = "a case ran on the GPU, but its results were compared with nothing";
    }
    if (!found.empty() && (guilty == nullptr || size(runs[i]) < size(*guilty))) {
      guilty = &runs[i];
      findings = std::move(found);
    }
    if (runs[i].kept.empty()) continue;
    if (!emulated[i].kept.empty()) {
      ++compared;
      if (SameBits(runs[i].kept, emulated[i].kept)) ++equal;
    }
    if (largest == runs.size() || size(runs[i]) > size(runs[largest])) largest = i;
  }
  result.statistics.push_back({"same_bits_as_the_emulator", static_cast<double>(equal),
                               static_cast<double>(compared), "cases, of those compared"});
  if (guilty != nullptr) return Refute(context, guilty->probe, std::move(findings), result);
  if (runs.empty()) inconclusive = "no case could be made for the GPU";
  if (inconclusive.empty() && judged == 0)
    inconclusive = "no case could be compared: " + runs.front().left_out;
  if (!inconclusive.empty()) return SetInconclusive(result, inconclusive);
  std::string repeated;
  const bool repeats = ops::IsDeterministic(context.instance.op) && largest < runs.size();
  if (repeats) {
    auto again = RepeatAll(context, gpu, tasks[largest], runs[largest].kept);
    if (!again) return SetInconclusive(result, ToString(again.error()));
    if (!again->findings.empty())
      return Refute(context, runs[largest].probe, std::move(again->findings), result);
    repeated = "; the largest " + again->text;
  }
  if (auto* const inspector = context.tools.gpu->inspector()) {
    const std::vector<std::size_t> chosen = ForTools(context, tasks);
    std::vector<cases::Case> cases;
    for (const std::size_t i : chosen) cases.push_back(tasks[i].probe.case_);
    if (cases.empty()) {
      repeated += "; none is small enough for compute-sanitizer";
    } else {
      context.Report("device", "under compute-sanitizer");
      Inspection inspection = Inspect(context, *inspector, cases);
      if (inspection.guilty) {
        return Refute(context, tasks[chosen[*inspection.guilty]].probe,
                      std::move(inspection.findings), result);
      }
      repeated += "; " + inspection.text;
    }
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason = compared == 0
                      ? fmt::format("{} cases on a GPU, compared in part{}", judged, repeated)
                      : fmt::format("{} cases on a GPU, {} with the emulator's very bits{}",
                                    runs.size(), equal, repeated);
}

}  // namespace assay::gates
