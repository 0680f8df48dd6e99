#include "batch/testing/fakes.h"

namespace assay::testing {

batch::Plan PlanOf(const std::vector<std::string>& ops, batch::DtypeChoice dtypes) {
  batch::Plan plan;
  batch::Settings settings;
  settings.model.spec = "exec/scripted";
  settings.dtypes = dtypes;
  settings.strategy.attempts = 4;
  const ops::Library library({Path(ASSAY_SOURCE_DIR) / "ops"});
  for (const std::string& op : ops) {
    const Status added = batch::AddOp(plan, library, op, settings);
    ASSAY_CHECK(added.has_value(), added ? "" : ToString(added.error()));
  }
  return plan;
}

Result<runs::ModelReply> Reply(const std::string& words) {
  runs::ModelReply reply;
  reply.text = ReplyWith(words);
  reply.usage.output_tokens = 10;
  return reply;
}

Result<batch::BatchOutcome> BatchBench::Run(const batch::Plan& plan, const Path& folder,
                                            unsigned jobs, bool resume) {
  batch::Limiters limiters(plan.limits, clock);
  ASSAY_TRY(const loop::PriceTable prices, loop::LoadPrices({}));
  batch::Purse purse(plan.budget, prices, std::chrono::milliseconds(0), clock);
  batch::LocalExecutor executor(
      {.clock = clock,
       .limiters = limiters,
       .purse = purse,
       .make_judges = ScriptedJudges(on_assess),
       .make_model =
           [this](const loop::GenerateRequest& request) -> Result<std::unique_ptr<models::Model>> {
         return std::make_unique<ScriptedModel>(
             [this, instance = request.instance.Id()](const models::ModelRequest& asked) {
               return says_(instance, asked);
             });
       },
       .interrupted = interrupted,
       .entropy = [] { return std::uint64_t{5}; },
       .prompts = PromptsFolder()},
      jobs);
  batch::Observer nobody;
  batch::BatchEnvironment environment{.clock = clock,
                                      .executor = executor,
                                      .observer = observer == nullptr ? nobody : *observer,
                                      .purse = purse,
                                      .judge = judge,
                                      .versions = {{"assay", "test"}},
                                      .prompts = PromptsFolder(),
                                      .interrupted = interrupted};
  return batch::RunBatch(
      {.plan = plan, .folder = folder, .resume = resume, .store = store, .jobs = jobs},
      environment);
}

}  // namespace assay::testing
