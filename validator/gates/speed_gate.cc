// The speed gate: the op's workloads at full size on a GPU, timed and held to their truths
// (validator/speed/meter.h). It refutes a kernel whose timed calls are wrong, whatever it did when nobody
// measured, and one that stays below the op's bar, unless it is to be the floor of a search for
// faster ones (Options::below_bar): then the gate is skipped, and says what is missing.
#include <fmt/format.h>

#include <algorithm>

#include "ops/properties.h"
#include "validator/gates/gate.h"
#include "validator/speed/meter.h"

namespace assay::gates {
namespace {

speed::Measurement MeasureOf(GateContext& context, const ops::Workload& workload) {
  return context.tools.meter->Measure({context.instance, context.Plan(), context.Compile()->kernel},
                                      workload, {.seed = context.options.seed});
}

/// Repetitions of the largest workload under each condition, at most.
constexpr std::uint32_t kRepetitions = 50;

void Refute(GateContext& context, std::vector<Finding> findings,
            const std::optional<cases::Case>& guilty, verdict::GateResult& result) {
  result.status = verdict::GateStatus::kRefuted;
  result.reason = fmt::format("{} findings in timed calls", findings.size());
  verdict::Counterexample counterexample =
      verdict::MakeCounterexample(context.instance, context.candidate, context.tools.gpu->name(),
                                  result.gate, std::move(findings));
  if (guilty) {
    counterexample.description = cases::Describe(*guilty, context.instance);
    counterexample.probe.emplace();
    counterexample.probe->case_ = *guilty;
  }
  result.counterexamples.push_back(std::move(counterexample));
}

/// `seconds` of a call.
Result<speed::Stressed> StressOf(GateContext& context, const ops::Workload& workload,
                                 double seconds) {
  return context.tools.meter->Stress({context.instance, context.Plan(), context.Compile()->kernel},
                                     workload, {.seed = context.options.seed}, kRepetitions,
                                     seconds);
}

/// What kernels are compared by comes first, and less of it is better.
Statistic TimesTheLimit(std::span<const speed::WorkloadSpeed> estimates, double bar) {
  const double share = speed::GeometricMean(estimates);
  return {"times_the_limit", share > 0 ? 1 / share : 0, bar > 0 ? 1 / bar : 0,
          "geometric mean over the workloads"};
}

/// Nothing is refuted by a model: the gate stays skipped, and its statistics compare kernels.
void Model(GateContext& context, verdict::GateResult& result) {
  context.Report("speed", "modelling the workloads");
  const auto contract = ops::SpeedOf(context.instance.op);
  if (!contract) return SetInconclusive(result, ToString(contract.error()));
  const auto estimates =
      context.tools.model(context.instance, context.Plan(), context.Compile()->kernel);
  if (!estimates || estimates->empty() ||
      !std::ranges::all_of(*estimates, [](const auto& at) { return at.share > 0; })) {
    result.reason = "neither measured nor modelled" +
                    (estimates ? std::string() : ": " + ToString(estimates.error()));
    return;
  }
  result.statistics.push_back(TimesTheLimit(*estimates, contract->bar));
  for (const speed::WorkloadSpeed& at : *estimates)
    result.statistics.push_back({at.workload, at.share, 0, "of the limit at best; " + at.limiter});
  const double share = speed::GeometricMean(*estimates);
  result.reason = fmt::format(
      "not measured; by the model at best {:.1f} % of what the chip allows{}", 100 * share,
      share < contract->bar
          ? fmt::format(", below the {:.0f} % that are asked for", 100 * contract->bar)
          : "");
}

}  // namespace

Result<std::vector<Finding>> FindingsOnClock(GateContext& context, const cases::Probe& probe) {
  ASSAY_CHECK(context.tools.meter != nullptr);
  speed::Measurement again = MeasureOf(context, {.axes = probe.case_.axes, .note = ""});
  if (!again.left_out.empty()) return Fail(ErrorKind::kLimit, again.left_out, "gpu");
  if (!again.findings.empty() || !ops::IsDeterministic(context.instance.op))
    return std::move(again.findings);
  ASSAY_TRY(speed::Stressed stressed,
            StressOf(context, {.axes = probe.case_.axes, .note = ""}, again.Median()));
  return std::move(stressed.findings);
}

void RunSpeedGate(GateContext& context, verdict::GateResult& result) {
  if (context.tools.meter == nullptr && context.tools.model) return Model(context, result);
  if (context.tools.meter == nullptr) {
    result.reason = "speed was not asked for (--engine gpu,emulator --speed)";
    return;
  }
  const std::vector<ops::Workload>& workloads = context.instance.op.workloads;
  if (workloads.empty()) {
    result.reason = "the op names no workloads";
    return;
  }
  const auto contract = ops::SpeedOf(context.instance.op);
  if (!contract) return SetInconclusive(result, ToString(contract.error()));
  std::vector<speed::WorkloadSpeed> estimates;
  std::vector<Statistic> statistics;
  std::string library, left_out;
  std::size_t scaled = 0;
  const ops::Workload* largest = nullptr;
  double most_bytes = 0, seconds_of_largest = 0;
  for (const ops::Workload& workload : workloads) {
    context.Report("speed", fmt::format("workload {} of {}", result.cases + 1, workloads.size()),
                   static_cast<double>(result.cases) / static_cast<double>(workloads.size()));
    speed::Measurement at = MeasureOf(context, workload);
    ++result.cases;
    if (!at.findings.empty()) return Refute(context, std::move(at.findings), at.guilty, result);
    if (!at.left_out.empty()) {
      left_out = at.workload + ": " + at.left_out;
      continue;
    }
    estimates.push_back(at.Summary());
    if (!at.scaled.empty()) ++scaled;
    if (largest == nullptr || at.limit.bytes > most_bytes) {
      largest = &workload;
      most_bytes = at.limit.bytes;
      seconds_of_largest = at.Median();
    }
    if (at.UseLibrary()) library += (library.empty() ? "" : "; ") + at.workload;
    statistics.push_back(
        {at.workload, at.share, contract->bar,
         fmt::format(
             "of the limit ({}), {:.3g} us, spread {:.1f} %{}{}{}", at.limit.by, 1e6 * at.Median(),
             100 * at.Spread(),
             at.library ? fmt::format(", {} {:.3g} us", at.library_name, 1e6 * *at.library) : "",
             at.scaled.empty() ? "" : ", scaled " + at.scaled,
             at.held.empty() ? "" : "; " + at.held)});
  }
  // A workload that could not be timed says nothing, and would let the bar be met by the others.
  if (!left_out.empty()) return SetInconclusive(result, left_out);
  std::string repeated;
  if (largest != nullptr && ops::IsDeterministic(context.instance.op)) {
    auto stressed = StressOf(context, *largest, seconds_of_largest);
    if (!stressed) return SetInconclusive(result, ToString(stressed.error()));
    if (!stressed->findings.empty())
      return Refute(context, std::move(stressed->findings), stressed->case_, result);
    repeated = fmt::format("; the largest {} times under {} conditions with the same bits",
                           stressed->repetitions, stressed->conditions);
  }
  const double share = speed::GeometricMean(estimates);
  result.statistics.push_back(TimesTheLimit(estimates, contract->bar));
  result.statistics.insert(result.statistics.end(), statistics.begin(), statistics.end());
  const std::string instead = library.empty() ? "" : "; use the library at " + library;
  if (share < contract->bar) {
    const bool kept = context.options.below_bar;
    result.status = kept ? verdict::GateStatus::kSkipped : verdict::GateStatus::kRefuted;
    const auto worst = std::ranges::min_element(estimates, {}, &speed::WorkloadSpeed::share);
    result.reason = fmt::format(
        "{:.1f} % of what the card allows, {:.0f} % is asked for{}; worst at {} ({}){}{}",
        100 * share, 100 * contract->bar,
        kept ? ": below the bar, and kept only because faster kernels are looked for" : "",
        worst->workload, worst->limiter, kept ? repeated : "", instead);
    return;
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason = fmt::format(
      "{:.1f} % of what the card allows, over {} workloads{}{}{}", 100 * share, estimates.size(),
      scaled > 0 ? fmt::format(" ({} scaled)", scaled) : "", repeated, instead);
}

}  // namespace assay::gates
