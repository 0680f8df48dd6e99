#include "validator/verdict/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/findings/render.h"

namespace assay::verdict {
namespace {

SourceText SourceOf(const Counterexample& counterexample) {
  SourceText source;
  source.Add("kernel.cu", counterexample.kernel);
  return source;
}

std::string Surroundings(const Counterexample& counterexample) {
  const cases::Probe probe = counterexample.probe.value_or(cases::Probe{});
  std::string text;
  constexpr std::string_view kPolicies[] = {"sequential", "permuted", "reversed", "priorities"};
  if (probe.schedule != Schedule{}) {
    text += fmt::format(
        "  schedule: {}, seed {}{}{}\n",
        kPolicies[static_cast<std::size_t>(probe.schedule.policy) % std::size(kPolicies)],
        probe.schedule.seed,
        probe.schedule.stale == 0 ? std::string()
                                  : fmt::format(", {} % of the loads that may return old values do",
                                                probe.schedule.stale),
        probe.schedule.hold ? ", one pair of accesses the other way round" : "");
  }
  if (!probe.prelude.empty()) {
    text += fmt::format("  after {} other call{} in the same context{}\n", probe.prelude.size(),
                        probe.prelude.size() == 1 ? "" : "s",
                        probe.reuse_addresses ? ", its buffers at the same addresses" : "");
  }
  if (probe.misalign != 0) {
    text += fmt::format("  buffers {} bytes past a 256-byte boundary\n", probe.misalign);
  }
  if (probe.poison != 0xff) {
    text += fmt::format("  outputs and workspace filled with 0x{:02x} before\n", probe.poison);
  }
  if (probe.perturbation_seed != 0) {
    text += "  approximate instructions perturbed within their documented error\n";
  }
  if (probe.places_only) {
    text += "  only where the kernel writes was looked at, not what\n";
  } else if (probe.ends_only) {
    text += "  only some blocks of each large grid were run\n";
  }
  if (!counterexample.property.empty())
    text += fmt::format("  property: {}\n", counterexample.property);
  return text;
}

std::string Seconds(double seconds) {
  return seconds < 0.005 ? "" : fmt::format("{:.2f} s", seconds);
}

}  // namespace

std::string RenderCounterexample(const Counterexample& counterexample) {
  std::string text;
  if (!counterexample.description.empty())
    text += fmt::format("  case: {}\n", counterexample.description);
  text += Surroundings(counterexample);
  const SourceText source = SourceOf(counterexample);
  for (std::size_t i = 0; i < counterexample.findings.size(); ++i) {
    text += RenderText(counterexample.findings[i], source);
    if (i > 0) continue;
    if (const std::string worst = DescribeWorst(counterexample); !worst.empty())
      text += fmt::format("  worst seen: {}\n", worst);
    if (counterexample.worst && !counterexample.worst->cause.empty())
      text += fmt::format("  likely cause, by larger cases: {}\n", counterexample.worst->cause);
  }
  return text;
}

std::string RenderLedger(const Ledger& ledger) {
  if (ledger.rows().empty()) return {};
  std::string waves;
  for (const LedgerRow& row : ledger.rows()) {
    if (row.planned == 0) continue;
    const std::string count = row.examined == row.planned
                                  ? fmt::format("{}", row.examined)
                                  : fmt::format("{} of {}", row.examined, row.planned);
    waves += fmt::format("{}{} {}", waves.empty() ? "" : ", ", count, row.wave);
  }
  std::string text = fmt::format("tried: {} of {} planned cases: {}\n", ledger.examined(),
                                 ledger.planned(), waves);
  std::string axes;
  for (const AxisReach& reach : ledger.axes()) {
    axes += fmt::format("{}{} {}", axes.empty() ? "" : ", ", reach.axis, reach.whole);
    if (reach.in_slices > reach.whole) axes += fmt::format(" (in slices {})", reach.in_slices);
    if (reach.at_ends > reach.whole) axes += fmt::format(" (at its ends {})", reach.at_ends);
    if (reach.in_places > std::max({reach.whole, reach.in_slices, reach.at_ends}))
      axes += fmt::format(" (where it writes {})", reach.in_places);
    axes += fmt::format(" of {}", reach.domain);
  }
  if (!axes.empty()) text += "longest: " + axes + "\n";
  std::string blocks;
  for (const LaunchReach& reach : ledger.launches()) {
    blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", reach.entry, reach.whole);
    if (reach.all > 0) blocks += fmt::format(" ({} of {} in a slice)", reach.run, reach.all);
  }
  if (!blocks.empty()) text += "blocks of the largest launches: " + blocks + "\n";
  for (const LedgerRow& row : ledger.rows()) {
    for (const LeftOut& out : row.left_out) {
      text += fmt::format("left out: {} {}: {}{}\n", out.count, row.wave, out.reason,
                          out.example.empty() ? "" : " [" + out.example + "]");
    }
  }
  for (const Unreached& unreached : ledger.unreached()) {
    text += "no case reached: " + unreached.what +
            (unreached.copies > 1 ? fmt::format(" ({} copies)\n", unreached.copies) : "\n");
  }
  return text;
}

std::string RenderVerdict(const Verdict& verdict) {
  std::string text = fmt::format("{}: {} ({}, {})\n", Name(verdict.outcome), verdict.reason,
                                 verdict.instance, verdict.engine);
  if (verdict.unsafe_no_jail)
    text += "warning: judged without a jail (--unsafe-no-jail); not fit for emission\n";
  std::size_t widest = 0;
  for (const GateResult& gate : verdict.gates) widest = std::max(widest, gate.gate.size());
  for (const GateResult& gate : verdict.gates) {
    text += fmt::format("  {:<{}}  {:<12}  {:>8}  {}\n", gate.gate, widest, Name(gate.status),
                        Seconds(gate.seconds), gate.reason);
  }
  text += RenderLedger(verdict.ledger);
  std::size_t number = 0;
  for (const Counterexample* counterexample : verdict.Counterexamples()) {
    text += fmt::format("\ncounterexample {} ({} gate)\n", ++number, counterexample->gate);
    text += RenderCounterexample(*counterexample);
  }
  return text;
}

std::string RenderForPrompt(const Verdict& verdict) {
  std::string text = fmt::format("Verdict: {}\n", Name(verdict.outcome));
  for (const GateResult& gate : verdict.gates) {
    if (gate.status == GateStatus::kInconclusive) {
      text += fmt::format("Gate {}: inconclusive: {}\n", gate.gate, gate.reason);
    }
    if (gate.status != GateStatus::kRefuted) continue;
    if (gate.gate == "holdout") {
      text +=
          "Gate holdout: refuted on held-out inputs, which are not shown. Solve the op for its "
          "whole domain.\n";
      continue;
    }
    text += fmt::format("Gate {}: refuted\n", gate.gate);
    for (const Counterexample& counterexample : gate.counterexamples)
      text += RenderCounterexample(counterexample);
  }
  return text;
}

}  // namespace assay::verdict
