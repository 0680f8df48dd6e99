// Meter: what the outputs of a workload's timed calls are held to (hold.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <iterator>
#include <optional>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/speed/ring.h"

namespace assay::speed {
namespace {

/// Of a call's outputs, whether the op leaves elements open: kernels need not write those.
bool LeavesOpen(const ops::OpSpec& op) {
  return std::ranges::any_of(
      op.outputs, [](const ops::TensorSpec& output) { return !output.relation.where.empty(); });
}

bool SaysWrong(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kDeviceDisagreement;
  });
}

/// What is known of a workload besides its times.
std::string NameOf(const Subject& subject, const Measurement& result) {
  std::string name = subject.instance.Id();
  for (const auto& [axis, extent] : result.axes) name += fmt::format(" {}={}", axis, extent);
  return name;
}

}  // namespace

bool Meter::HasParts(const Subject& subject, const Measurement& result) const {
  return !without_parts_.contains(NameOf(subject, result));
}

// Of one set of inputs, which is the counterexample's case. What is wrong says more than that it was not
// always the same.
void Meter::Blame(const Ring& ring, std::size_t slot, std::vector<Finding> findings,
                  Measurement& result) {
  if (findings.empty()) return;
  const bool same = !result.guilty || *result.guilty == ring.cases[slot];
  const bool says_more = SaysWrong(findings) && !SaysWrong(result.findings);
  if (!same && !says_more) return;
  if (!same) result.findings.clear();
  result.guilty = ring.cases[slot];
  result.findings.insert(says_more ? result.findings.begin() : result.findings.end(),
                         findings.begin(), findings.end());
}

Result<TensorMap> Meter::RunAlone(const Subject& subject, const Ring& ring, std::size_t slot,
                                  std::vector<Finding>& findings) {
  const cases::Materialised& inputs = ring.inputs[slot];
  const std::array calls = {
      engine::Call{.plan = &ring.plan, .axes = &inputs.axes, .inputs = &inputs.inputs}};
  // Other poison than beneath timed calls: what neither writes differs.
  constexpr std::uint8_t kPoison = 0xa5;
  engine::BindOptions options;
  if (!LeavesOpen(subject.instance.op)) options.poison = kPoison;
  ASSAY_TRY(engine::Binding alone,
            engine::Bind(subject.instance, subject.compiled, calls, options));
  ASSAY_TRY(const Report report,
            instruments_.engine.Run(alone.execution, alone.buffers, engine::Trust::kCandidate));
  findings = report.findings;
  if (findings.empty() && report.stop != Stop::kCompleted)
    return Fail(ErrorKind::kLimit, "untimed: " + report.reason, "gpu");
  return std::move(alone.calls.front().outputs);
}

Status Meter::HoldToTruths(const Subject& subject, const Settings& settings, Ring& ring,
                           Measurement& result) {
  const ops::Instance& instance = subject.instance;
  const std::size_t slots = ring.cases.size();
  const std::size_t chosen = DeriveSeed(settings.seed, "held") % slots;
  const std::uint64_t seed = DeriveSeed(settings.seed, "places");
  std::vector<std::vector<Finding>> wrong(slots);
  std::size_t others = 0;
  const auto take = [&](std::size_t slot, Holding holding) {
    result.checked += holding.elements;
    if (slot != chosen && holding.elements > 0) ++others;
    wrong[slot] = InTimedCall(std::move(holding.findings), result.workload);
  };
  const auto parts_of = [&](std::size_t slot) {
    return HoldParts(instruments_, instance, ring.At(slot),
                     slot == chosen ? Depth::kMany : Depth::kFew, seed);
  };
  ASSAY_TRY(const bool whole, WholeTruthIsCheap(instance, ring.inputs[chosen].axes));
  if (whole) {
    ASSAY_TRY(Holding holding, HoldWhole(instruments_, instance, ring.At(chosen)));
    take(chosen, std::move(holding));
  }
  std::vector<std::size_t> rest;
  for (std::size_t i = whole ? 1 : 0; i < slots; ++i) rest.push_back((chosen + i) % slots);
  // The first says whether there are any, and at what price.
  if (HasParts(subject, result) && !rest.empty()) {
    ASSAY_TRY(std::optional<Holding> first, parts_of(rest.front()));
    // Where the few places that can be computed are all 0, they say nothing.
    if (first && (whole || first->elements > 0)) {
      take(rest.front(), std::move(*first));
    } else {
      without_parts_.insert(NameOf(subject, result));
    }
  }
  if (!HasParts(subject, result)) {
    if (!whole) {
      ASSAY_TRY(Holding holding, HoldSome(instruments_, instance, ring.At(chosen), seed));
      take(chosen, std::move(holding));
    }
    rest.clear();
  }
  std::vector<std::future<Result<std::optional<Holding>>>> parts;
  for (std::size_t i = 1; i < rest.size(); ++i)
    parts.push_back(std::async(std::launch::async, parts_of, rest[i]));
  for (std::size_t i = 1; i < rest.size(); ++i) {
    ASSAY_TRY(std::optional<Holding> holding, parts[i - 1].get());
    if (holding) take(rest[i], std::move(*holding));
  }
  if (result.checked == 0)
    return Fail(ErrorKind::kLimit, "no output could be told from nothing", instance.op.name);
  for (std::size_t slot = 0; slot < slots; ++slot) Blame(ring, slot, wrong[slot], result);
  result.held = fmt::format("{} of one set of inputs and places of {} of {} others held to truths",
                            whole ? "all outputs" : "places", others, slots - 1);
  return {};
}

Status Meter::HoldToUntimed(const Subject& subject, Ring& ring, Measurement& result) {
  ring.suspects.resize(ring.cases.size());
  for (std::size_t slot = 0; slot < ring.cases.size(); ++slot) {
    std::vector<Finding> findings;
    ASSAY_TRY(const TensorMap alone, RunAlone(subject, ring, slot, findings));
    if (findings.empty()) {
      for (const auto& [name, tensor] : alone)
        result.compared += static_cast<std::uint64_t>(tensor.elements);
      Difference difference =
          CompareToUntimed(subject.instance, ring.binding.calls[slot].outputs, alone);
      std::ranges::move(difference.suspects, std::back_inserter(ring.suspects[slot]));
      findings = InTimedCall(std::move(difference.findings), result.workload);
    }
    Blame(ring, slot, std::move(findings), result);
  }
  result.held += ops::IsDeterministic(subject.instance.op)
                     ? "; all have the bits of an untimed call"
                     : "; so are those that differ most from an untimed call's";
  return {};
}

Status Meter::HoldSuspects(const Subject& subject, Ring& ring, Measurement& result) {
  for (std::size_t slot = 0; slot < ring.suspects.size(); ++slot) {
    ASSAY_TRY(Holding holding, speed::HoldSuspects(instruments_, subject.instance, ring.At(slot),
                                                   ring.suspects[slot], HasParts(subject, result)));
    result.checked += holding.elements;
    Blame(ring, slot, InTimedCall(std::move(holding.findings), result.workload), result);
  }
  return {};
}

}  // namespace assay::speed
