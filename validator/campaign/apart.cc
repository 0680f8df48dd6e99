// Running launches apart that have nothing to do with each other (launches.h), where all of them together
// take too long: a row's gradient and a column's are two launches, and one of them sums up a hundred times
// what the other does.
//
// What any of them does wrong refutes. A case of which some launch could not be examined counts as left
// out all the same, and says which.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "validator/campaign/launches.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {
namespace {

bool ShowsADefect(const CaseRun& run) {
  return !run.plan_findings.empty() || !run.report.findings.empty() ||
         (run.comparison &&
          !(run.comparison->numeric.empty() && run.comparison->precision.empty()));
}

}  // namespace

Status Runner::RunPart(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const auto run_part = IsSlice(probe) ? &Runner::RunSlice : &Runner::RunEnds;
  ASSAY_TRY_VOID((this->*run_part)(probe, wants, nullptr, run));
  if (!run.too_long) return {};
  const auto axes = ops::ResolveAxes(subject_.instance->op, probe.case_.axes);
  if (!axes) return {};
  const auto plan = ops::Resolve(*subject_.plan, *subject_.instance, *axes);
  if (!plan) return {};
  const LaunchGroups groups = GroupsOf(subject_.instance->op, *plan);
  if (groups.size() < 2) return {};
  CaseRun all;
  all.probe = probe;
  all.steps = run.steps;
  for (const std::vector<std::size_t>& group : groups) {
    CaseRun one;
    one.probe = probe;
    ASSAY_TRY_VOID((this->*run_part)(probe, wants, &group, one));
    all.steps += one.steps;
    const bool told = ShowsADefect(one) || one.report.stop != Stop::kCompleted;
    if (!one.left_out.empty() && all.left_out.empty()) {
      all.left_out = fmt::format("{}, in '{}' alone as well", one.left_out,
                                 plan->kernels[group.front()].entry);
    }
    if (told) {
      one.steps = all.steps;
      run = std::move(one);
      return {};
    }
    std::ranges::move(all.report.coverage, std::back_inserter(one.report.coverage));
    all.report = std::move(one.report);
    all.comparison = std::move(one.comparison);
    for (LaunchPart& part : one.parts) all.parts.push_back(std::move(part));
  }
  run = std::move(all);
  return {};
}

}  // namespace assay::campaign
