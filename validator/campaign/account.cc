// What a campaign notes of each run beside findings, for the verdict to say what it saw: what was left out and why, how
// long axes were, how many blocks ran, whether the ends of outputs were seen written.
#include <algorithm>

#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"

namespace assay::campaign {

void Campaign::NoteEnd(const CaseRun& run, Harvest& harvest) const {
  // Of what is overwritten nobody sees by places alone whether its end is.
  if (run.probe.places_only && Overwrites(trial_.instance.op)) return;
  const cases::Case& value = run.probe.case_;
  const std::int64_t elements = cases::TotalElements(trial_.instance, value.axes);
  const bool counts = IsSlice(run.probe) || Overwrites(trial_.instance.op);
  const bool known = run.left_out.empty() && run.Inconclusive().empty();
  const bool unknown = counts && run.left_out == kUnknownEnd;
  if (!known && !unknown) return;
  Harvest::Ends& ends = harvest.ends[PathAt(trial_.instance.op, trial_.plan, value.axes)];
  if (unknown && elements > ends.unknown) {
    ends.unknown = elements;
    ends.unknown_at = cases::Describe(value, trial_.instance);
  }
  if (counts && known) ends.known = std::max(ends.known, elements);
  ends.any = ends.any || (known && !run.probe.places_only);
  const bool judged =
      known && !run.probe.places_only && (!run.probe.ends_only || IsSlice(run.probe));
  for (const auto& [name, extent] : value.axes) {
    if (judged) {
      std::int64_t& longest = ends.judged_along[name];
      longest = std::max(longest, extent);
    }
    if (known) {
      std::int64_t& longest = ends.known_along[name];
      longest = std::max(longest, extent);
    }
    if (!unknown) continue;
    auto& longest = ends.unknown_along[name];
    if (longest.axes.empty() || extent > longest.axes.at(name))
      longest = {cases::Describe(value, trial_.instance), value.axes};
  }
}

std::vector<std::string> Harvest::Ends::UnknownAxes() const {
  std::vector<std::string> names;
  for (const auto& [name, longest] : unknown_along) {
    const auto longest_known = known_along.find(name);
    if (longest.axes.at(name) > (longest_known == known_along.end() ? 0 : longest_known->second))
      names.push_back(name);
  }
  return names;
}

/// A case whose end nobody is known to write, and no other of the same kernels is as large, or as long along one of its axes,
/// whose end somebody writes. Nothing where there is none.
std::string Campaign::UnknownEnd(const Harvest& harvest) {
  for (const auto& [path, ends] : harvest.ends) {
    if (ends.unknown > ends.known) return ends.unknown_at;
    for (const std::string& name : ends.UnknownAxes()) return ends.unknown_along.at(name).text;
  }
  return {};
}

void Campaign::LeaveOut(const Task& task, std::string_view reason, Harvest& harvest) const {
  for (const auto& [name, extent] : task.probe.case_.axes) {
    if (!task.probe.ends_only || task.probe.places_only) break;
    ops::AxisValues& longest = harvest.left_out_at[name];
    if (longest.empty() || longest.at(name) < extent) longest = task.probe.case_.axes;
  }
  harvest.ledger.LeaveOut(task.purpose, reason, cases::Describe(task.probe.case_, trial_.instance));
}

void Campaign::NoteReach(const CaseRun& run, Harvest& harvest) const {
  const cases::Probe& probe = run.probe;
  const auto extent_of = [&] {
    if (probe.places_only) return verdict::Extent::kPlaces;
    if (!probe.ends_only) return verdict::Extent::kWhole;
    if (!IsSlice(probe)) return verdict::Extent::kEnds;
    const bool all =
        std::ranges::all_of(run.parts, [](const LaunchPart& p) { return p.run == p.all; });
    return all ? verdict::Extent::kWhole : verdict::Extent::kSlice;
  };
  for (const LaunchPart& part : run.parts)
    harvest.ledger.Ran(part.tickets ? part.entry + " by tickets" : part.entry, part.run, part.all);
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    if (probe.ends_only) break;
    const std::uint64_t blocks = BlocksOf(trial_.instance.op, kernel, probe.case_.axes);
    if (blocks > 0) harvest.ledger.Ran(kernel.entry, blocks, blocks);
  }
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    const auto extent = probe.case_.axes.find(axis.name);
    if (axis.kind == ops::Axis::Kind::kVariable && extent != probe.case_.axes.end())
      harvest.ledger.Tried(axis.name, extent->second, extent_of(), axis.max);
  }
}

verdict::Ledger Campaign::LedgerOfAll() const {
  verdict::Ledger ledger = harvest_.ledger;
  ledger.NotReached(coverage_.Unreached());
  return ledger;
}

}  // namespace assay::campaign
