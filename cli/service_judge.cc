#include "cli/service_judge.h"

#include <random>

#include "agent/loop/resume.h"
#include "cli/command.h"
#include "cli/instance.h"
#include "rewards/rewarder.h"
#include "runs/emit.h"
#include "runs/folder.h"
#include "serve/requests.h"
#include "serve/stoppable.h"

namespace assay::cli {
namespace {

Result<ops::OpSpec> Find(const std::string& name) { return ops::Library::Default().Find(name); }

std::uint64_t Draw() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

// The workbench's compiler and engine, until nobody waits any more.
class Stoppable {
 public:
  Stoppable(Workbench& bench, const std::stop_token& stop)
      : compiler_(bench.compiler(), stop),
        engine_(bench.engine(), stop),
        tools_(bench.MakeTools()) {}

  gates::Tools Tools(std::function<void(const gates::Progress&)> progress = {}) {
    return {.compiler = compiler_,
            .engine = engine_,
            .oracle = tools_.oracle,
            .clock = tools_.clock,
            .progress = std::move(progress),
            .gpu = tools_.gpu};
  }

 private:
  serve::StoppableCompiler compiler_;
  serve::StoppableEngine engine_;
  gates::Tools tools_;
};

// The loop's judge of one job.
class LoopJudge final : public loop::Judge {
 public:
  LoopJudge(Workbench& bench, std::stop_token stop, gates::Options options)
      : stop_(std::move(stop)), parts_(bench, stop_), judge_(parts_.Tools(), std::move(options)) {}
  gates::Judgement Assess(const ops::Instance& instance, const verdict::Candidate& candidate,
                          const loop::JudgeContext& context) override {
    return judge_.Assess(instance, candidate, context);
  }
  bool BrokenOff() const override { return stop_.stop_requested(); }

 private:
  const std::stop_token stop_;
  Stoppable parts_;
  loop::GatekeeperJudge judge_;
};

// What a client is told of a run, as it happens. Prompts, replies and where things are stay here.
class Teller {
 public:
  Teller(const serve::Call& call, Clock& clock) : call_(call), clock_(clock) {}

  void On(const loop::Notice& notice) {
    if (const auto* began = std::get_if<loop::AttemptBegan>(&notice)) {
      call_.tell("attempt", {{"attempt", began->attempt}, {"of", began->of}, {"why", began->why}});
    } else if (const auto* judging = std::get_if<loop::Judging>(&notice)) {
      call_.tell("progress", {{"attempt", judging->attempt},
                              {"gate", judging->progress.gate},
                              {"detail", judging->progress.detail},
                              {"fraction", judging->progress.fraction}});
    } else if (const auto* judged = std::get_if<loop::Judged>(&notice)) {
      call_.tell("judged", {{"attempt", judged->attempt},
                            {"outcome", verdict::Name(judged->verdict->outcome)},
                            {"reason", serve::ReasonForAuthor(*judged->verdict)}});
    } else if (const auto* retrying = std::get_if<loop::Retrying>(&notice)) {
      call_.tell("retrying", {{"attempt", retrying->attempt}, {"reason", retrying->error.message}});
    } else if (const auto* streaming = std::get_if<loop::Streaming>(&notice)) {
      // Told several times a second; once in a while is enough to see that it goes on.
      if (clock_.Now() - last_ < std::chrono::seconds(2)) return;
      last_ = clock_.Now();
      call_.tell("progress", {{"attempt", streaming->attempt}, {"tokens", streaming->tokens}});
    }
  }

 private:
  const serve::Call& call_;
  Clock& clock_;
  std::chrono::steady_clock::time_point last_{};
};

// What came of a run, for the client that asked for it (assay.generated/1).
Result<Json> DocumentOf(const loop::RunOutcome& outcome, const std::string& model) {
  ASSAY_TRY(const auto events, runs::RunFolder::ReadEvents(outcome.folder));
  runs::RunState state;
  for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
  Json attempts = Json::array();
  for (const runs::Attempt& attempt : state.attempts) {
    if (!attempt.verdict) continue;
    attempts.push_back({{"attempt", attempt.number},
                        {"outcome", verdict::Name(attempt.verdict->outcome)},
                        {"reason", serve::ReasonForAuthor(*attempt.verdict)}});
  }
  Json document = {{"schema", "assay.generated/1"},   {"outcome", verdict::Name(outcome.outcome)},
                   {"reason", outcome.reason},        {"model", model},
                   {"attempts", std::move(attempts)}, {"tokens", ToJson(outcome.usage)}};
  if (outcome.usd) document["usd"] = *outcome.usd;
  if (const runs::Attempt* const accepted = state.Accepted(); accepted && accepted->verdict)
    document["verdict"] = serve::ForAuthor(*accepted->verdict);
  return document;
}

}  // namespace

ServiceJudge::ServiceJudge(Workbench& bench, ServiceSettings settings)
    : bench_(bench), settings_(std::move(settings)) {
  facts_.engine = settings_.tools.engine;
  facts_.seed = settings_.seed;
  facts_.effort = settings_.reward_effort;
  facts_.unsafe_no_jail = settings_.tools.unsafe_no_jail;
  facts_.versions = settings_.versions;
}

Status ServiceJudge::IsFit(const std::string& client, const std::string& kind,
                           const std::string& text) const {
  ASSAY_TRY(const Json json, ParseJson(text, kind));
  if (kind == "check") {
    ASSAY_TRY(const serve::CheckRequest check,
              serve::ParseCheck(json, "body", &Find, settings_.tools.arch));
    return {};
  }
  if (kind == "generate") {
    ASSAY_TRY(const serve::GenerateRequest asked,
              serve::ParseGenerate(json, "body", &Find, settings_.tools.arch));
    const ServiceModel* const model = settings_.models.Find(asked.model, client);
    if (model == nullptr) {
      return Fail(ErrorKind::kUsage, "this service offers you no model of that name",
                  "body: /model", "GET /v1/models shows what it offers");
    }
    if (asked.attempts.value_or(1) > model->attempts) {
      return Fail(ErrorKind::kUsage,
                  "this model may try " + std::to_string(model->attempts) + " times at most",
                  "body: /attempts");
    }
    return {};
  }
  if (!json.is_object()) return Fail(ErrorKind::kMalformedInput, "must be an object", kind);
  return {};
}

serve::Answer ServiceJudge::operator()(const serve::Call& call) {
  const auto answer = [&]() -> Result<serve::Answer> {
    if (call.job.kind == "check") return Check(call);
    if (call.job.kind == "reward") return Reward(call);
    return Generate(call);
  }();
  if (answer) return *answer;
  Error error = answer.error();
  if (call.job.kind == "generate") {
    // Where it happened and what to do about it are the operator's: keys, files, servers.
    Say("job " + std::to_string(call.job.number) + ": " + ToString(error));
    error.place.clear();
    error.cure.clear();
  }
  return {.outcome = "inconclusive",
          .reason = ToString(error),
          .document = ErrorJson(error),
          .certificate = {}};
}

Result<serve::Answer> ServiceJudge::Check(const serve::Call& call) {
  ASSAY_TRY(const Json json, ParseJson(call.job.request, "check"));
  ASSAY_TRY(const serve::CheckRequest check,
            serve::ParseCheck(json, "check", &Find, settings_.tools.arch));
  ASSAY_TRY_VOID(bench_.CheckTarget(check.instance.arch));
  ASSAY_TRY_VOID(bench_.CheckReference(check.instance));
  Stoppable parts(bench_, call.stop);
  gates::Gatekeeper gatekeeper(parts.Tools(call.progress),
                               {.effort = ParseEffort(check.effort),
                                .seed = settings_.seed,
                                .holdout_seed = &Draw,
                                .unsafe_no_jail = settings_.tools.unsafe_no_jail,
                                .regressions = {}});
  const gates::Judgement judgement = gatekeeper.Judge(check.instance, check.candidate);
  serve::Answer answer{.outcome = std::string(Name(judgement.verdict.outcome)),
                       .reason = serve::ReasonForAuthor(judgement.verdict),
                       .document = serve::ForAuthor(judgement.verdict),
                       .certificate = {}};
  if (judgement.vetted && !call.stop.stop_requested()) {
    ASSAY_TRY(answer.certificate, runs::Emit(*judgement.vetted,
                                             {.author = "submitted by " + call.job.client,
                                              .attempt = 1,
                                              .prompts_digest = "",
                                              .versions = settings_.versions,
                                              .signer = settings_.signer},
                                             bench_.clock(), call.vetted));
  }
  return answer;
}

Result<serve::Answer> ServiceJudge::Reward(const serve::Call& call) {
  rewards::Rewarder rewarder(
      [&](const ops::Instance& instance, const verdict::Candidate& candidate,
          std::uint64_t holdout_seed) {
        std::uint64_t drawn = 0;
        Stoppable parts(bench_, call.stop);
        gates::Gatekeeper gatekeeper(
            parts.Tools(call.progress),
            {.effort = ParseEffort(facts_.effort),
             .seed = facts_.seed,
             .holdout_seed = [&drawn, holdout_seed] { return holdout_seed + drawn++; },
             .unsafe_no_jail = settings_.tools.unsafe_no_jail,
             .regressions = {}});
        return gatekeeper.Judge(instance, candidate).verdict;
      },
      &Find, facts_, settings_.tools.arch, settings_.state / "judgements");
  const std::uint64_t index = call.job.group == 0 ? 0 : call.job.number - call.job.group;
  ASSAY_TRY(const rewards::RewardLine reward, rewarder.Reward(call.job.request, index));
  return serve::Answer{.outcome = reward.outcome,
                       .reason = reward.reason,
                       .document = rewards::ToJson(reward),
                       .certificate = {}};
}

Result<loop::GenerateRequest> ServiceJudge::RequestOf(const serve::Call& call) const {
  ASSAY_TRY(const Json json, ParseJson(call.job.request, "generate"));
  ASSAY_TRY(serve::GenerateRequest asked,
            serve::ParseGenerate(json, "generate", &Find, settings_.tools.arch));
  const ServiceModel* const model = settings_.models.Find(asked.model, call.job.client);
  if (model == nullptr) {
    return Fail(ErrorKind::kUsage,
                "this service does not offer the model '" + asked.model + "' any more");
  }
  const auto events = runs::RunFolder::ReadEvents(call.run);
  if (events) {
    const models::ModelSpec& spec = model->spec;
    return loop::RequestOfRun(call.run, ops::Library::Default(),
                              {.op = "",
                               .model = spec.spec,
                               .base_url = spec.base_url,
                               .key_file = spec.key_file,
                               .exec_variables = spec.exec_variables,
                               .prices = model->budget.prices,
                               .unsafe_no_jail = settings_.tools.unsafe_no_jail});
  }
  // One that is not there, or was killed before its first event.
  if (events.error().kind != ErrorKind::kUsage) return std::unexpected(events.error());
  std::error_code error;
  std::filesystem::remove_all(call.run, error);
  loop::GenerateRequest request{.instance = std::move(asked.instance),
                                .model = model->spec,
                                .strategy = {.attempts = asked.attempts.value_or(model->attempts)},
                                .budget = model->budget};
  request.effort = ParseEffort(asked.effort);
  request.engine = settings_.tools.engine;
  request.seed = settings_.seed;
  request.unsafe_no_jail = settings_.tools.unsafe_no_jail;
  request.out = call.run;
  return request;
}

Result<serve::Answer> ServiceJudge::Generate(const serve::Call& call) {
  ASSAY_TRY(const loop::GenerateRequest request, RequestOf(call));
  ASSAY_TRY_VOID(bench_.CheckTarget(request.instance.arch));
  ASSAY_TRY_VOID(bench_.CheckReference(request.instance));
  Teller teller(call, bench_.clock());
  loop::Environment environment{
      .clock = bench_.clock(),
      .make_judges = [&](const loop::JudgeSettings& judge)
          -> Result<std::vector<std::unique_ptr<loop::Judge>>> {
        std::vector<std::unique_ptr<loop::Judge>> judges;
        judges.push_back(
            std::make_unique<LoopJudge>(bench_, call.stop,
                                        gates::Options{.effort = judge.effort,
                                                       .seed = judge.seed,
                                                       .holdout_seed = {},
                                                       .unsafe_no_jail = judge.unsafe_no_jail,
                                                       .below_bar = judge.optimize,
                                                       .regressions = {}}));
        return judges;
      },
      .observe = [&teller](const loop::Notice& notice) { teller.On(notice); },
      .interrupted = [&call] { return call.stop.stop_requested(); },
      .versions = settings_.versions,
      .signer = settings_.signer};
  ASSAY_TRY(const loop::RunOutcome outcome, loop::Generate(request, environment));
  const Json asked = *ParseJson(call.job.request, "generate");
  serve::Answer answer{.outcome = std::string(verdict::Name(outcome.outcome)),
                       .reason = outcome.reason,
                       .document = {},
                       .certificate = {}};
  ASSAY_TRY(answer.document, DocumentOf(outcome, asked.at("model").get<std::string>()));
  if (outcome.vetted && !call.stop.stop_requested()) {
    ASSAY_TRY(answer.certificate, runs::EmitCopy(*outcome.vetted, call.vetted));
  }
  return answer;
}

}  // namespace assay::cli
