#include "agent/loop/generate.h"

#include "api/bench.h"
#include "api/outward.h"
#include "assay/generate.h"

namespace assay::api {
namespace {

loop::GenerateRequest Inward(const GenerateRequest& request, ops::Instance instance) {
  loop::GenerateRequest inward{
      .instance = std::move(instance), .model = {}, .strategy = {}, .budget = {}};
  inward.model.spec = request.model.name;
  inward.model.base_url = request.model.base_url;
  inward.model.key_file = request.model.key_file;
  inward.model.temperature = request.model.temperature;
  inward.strategy.attempts = request.attempts;
  inward.budget = {.usd = request.budget_usd,
                   .tokens = request.budget_tokens,
                   .seconds = request.budget_seconds,
                   .prices = {}};
  inward.effort = EffortOf(request.question.effort);
  inward.seed = request.question.seed;
  inward.unsafe_no_jail = request.judge.unsafe_no_jail;
  inward.out = request.out;
  return inward;
}

}  // namespace

Result<Generated> Generate(const Environment& environment, const GenerateRequest& request,
                           const Watching& watching) {
  return AtBorder([&]() -> assay::Result<Generated> {
    ASSAY_TRY(ops::Instance instance, InstanceOf(environment, request.question));
    ASSAY_TRY(const auto bench, Bench::Make(environment, request.judge));
    ASSAY_TRY_VOID(bench->oracle().Check(instance));
    const loop::GenerateRequest inward = Inward(request, std::move(instance));
    loop::Environment surroundings{
        .clock = bench->clock(),
        .make_judges = [&](const loop::JudgeSettings& settings)
            -> assay::Result<std::vector<std::unique_ptr<loop::Judge>>> {
          std::vector<std::unique_ptr<loop::Judge>> judges;
          judges.push_back(std::make_unique<loop::GatekeeperJudge>(
              bench->MakeTools({}), gates::Options{.effort = settings.effort,
                                                   .seed = settings.seed,
                                                   .holdout_seed = {},
                                                   .unsafe_no_jail = settings.unsafe_no_jail,
                                                   .below_bar = settings.optimize,
                                                   .regressions = {}}));
          return judges;
        },
        .observe =
            [&watching](const loop::Notice& notice) {
              const auto* const judging = std::get_if<loop::Judging>(&notice);
              if (judging == nullptr || !watching.progress) return;
              watching.progress(
                  {judging->progress.gate, judging->progress.detail, judging->progress.fraction});
            },
        .interrupted = watching.interrupted,
        .variable = [&request](const std::string& name) -> std::optional<std::string> {
          const auto found = request.model.variables.find(name);
          if (found == request.model.variables.end()) return std::nullopt;
          return found->second;
        },
        .prompts = environment.prompts,
        .versions = {{"assay", ASSAY_VERSION}, {"jail", bench->isolation()}}};
    ASSAY_TRY(const loop::RunOutcome outcome, loop::Generate(inward, surroundings));
    return Generated{.outcome = Outward(outcome.outcome),
                     .reason = outcome.reason,
                     .run = outcome.folder,
                     .vetted = outcome.vetted,
                     .attempts = outcome.attempts,
                     .resumable = outcome.resumable};
  });
}

}  // namespace assay::api
