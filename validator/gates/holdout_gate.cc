// The holdout gate: fresh seeds and neighbouring shapes that no feedback has ever mentioned.
//
// Runs only when everything else has passed. Its seed comes from the system at gate time and is
// recorded. What it finds stands in the verdict, but the gate's name tells whoever writes feedback
// not to reveal the case.
#include <fmt/format.h>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/minimise.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

// Of the campaign's steps, what a held-out case may cost: one that takes a share of what all others do together is
// no likelier to show what they do not. And how many such shapes are enough.
constexpr double kCostlyShare = 40;
constexpr std::size_t kFewestCheap = 8;

std::vector<ops::AxisValues> HeldOutShapes(const GateContext& context,
                                           const campaign::Campaign& campaign) {
  std::vector<ops::AxisValues> shapes, costly;
  const double most = static_cast<double>(context.effort.campaign_steps) / kCostlyShare;
  for (const ops::AxisValues& used : campaign.shapes()) {
    for (const cases::ShapeChoice& near :
         cases::Neighbours(context.instance, used, context.effort.max_elements))
      (campaign.StepsFor(near.axes) <= most ? shapes : costly).push_back(near.axes);
  }
  if (shapes.size() < kFewestCheap) shapes.insert(shapes.end(), costly.begin(), costly.end());
  return shapes;
}

}  // namespace

void RunHoldoutGate(GateContext& context, verdict::GateResult& result) {
  const std::uint64_t seed =
      context.options.holdout_seed ? context.options.holdout_seed() : context.options.seed + 1;
  result.seeds = {seed};
  campaign::Campaign& campaign = context.Cases();
  Rng rng(DeriveSeed(seed, "holdout"));
  const std::vector<ops::AxisValues> shapes = HeldOutShapes(context, campaign);
  if (shapes.empty()) return SetInconclusive(result, "no neighbouring shape fits the budget");
  std::vector<campaign::Task> tasks;
  for (std::size_t i = 0; i < context.effort.holdout_cases; ++i) {
    const ops::AxisValues& axes = shapes[rng.Below(shapes.size())];
    const std::uint64_t case_seed = rng.Next() >> 16;
    cases::Case value =
        i % 3 == 2
            ? cases::MakeMixedCase(context.instance, axes, case_seed, "holdout")
            : cases::MakeCase(
                  context.instance,
                  cases::AllRecipes()[i % 3 == 0 ? 0
                                                 : 1 + rng.Below(cases::AllRecipes().size() - 1)],
                  axes, case_seed, "holdout");
    tasks.push_back(campaign.TaskFor(std::move(value), "holdout"));
  }
  campaign.PlanBlocks(tasks, /*several=*/false);
  campaign::Harvest harvest;
  campaign.Execute(tasks, "holdout", harvest);
  context.ledger.Add(harvest.ledger);
  result.cases = harvest.cases;
  result.steps = harvest.steps;
  if (!harvest.hits.empty()) {
    campaign::Minimised minimised = campaign::Minimise(context.Trial(), harvest.hits, 1);
    if (minimised.counterexamples.empty())
      return SetInconclusive(result, "a finding did not come again when its case was replayed");
    result.status = verdict::GateStatus::kRefuted;
    result.reason =
        fmt::format("{} of the other gates' findings on held-out cases", harvest.hits.size());
    for (verdict::Counterexample& counterexample : minimised.counterexamples) {
      counterexample.gate = "holdout";
      result.counterexamples.push_back(std::move(counterexample));
    }
    return;
  }
  if (!harvest.inconclusive.empty()) return SetInconclusive(result, harvest.inconclusive);
  if (harvest.examined == 0)
    return SetInconclusive(result, "no held-out case could be judged: " + harvest.left_out);
  result.status = verdict::GateStatus::kPassed;
  result.reason = "fresh seeds, neighbouring shapes";
}

}  // namespace assay::gates
