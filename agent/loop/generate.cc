#include "agent/loop/generate.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdlib>
#include <set>

#include "agent/loop/budget.h"
#include "agent/loop/loop.h"
#include "agent/loop/request_json.h"
#include "agent/loop/resume.h"
#include "agent/models/providers.h"
#include "agent/prompts/prompt.h"
#include "runs/folder.h"

namespace assay::loop {
namespace {

std::uint64_t SystemEntropy() {
  std::uint64_t value = 0;
  ASSAY_CHECK(::getrandom(&value, sizeof value, 0) == sizeof value, "getrandom");
  return value;
}

std::optional<std::string> ProcessVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// runs/2026-01-31T120000-<instance>, with a number where that is taken.
Result<Path> FreshFolder(const GenerateRequest& request, Clock& clock) {
  if (!request.out.empty()) return request.out;
  std::string stamp = clock.Timestamp().substr(0, 19);
  std::erase(stamp, ':');
  const std::string id = stamp + "-" + request.instance.Id();
  std::error_code error;
  for (int number = 1; number < 1000; ++number) {
    const Path folder = Path("runs") / (number == 1 ? id : fmt::format("{}-{}", id, number));
    if (!std::filesystem::exists(folder, error)) return folder;
  }
  return Fail(ErrorKind::kEnvironment, "no free name for the run", "runs/" + id,
              "name a folder with --out");
}

Status CheckRequest(const GenerateRequest& request) {
  const StrategyOptions& strategy = request.strategy;
  constexpr int kMostAttempts = 100'000;
  if (strategy.attempts < 1 || strategy.attempts > kMostAttempts) {
    return Fail(ErrorKind::kUsage, "must be between 1 and 100000", "--attempts");
  }
  if (strategy.samples < 1 || strategy.samples > strategy.attempts) {
    return Fail(ErrorKind::kUsage, "must be between 1 and the number of attempts", "--samples",
                "raise --attempts or lower --samples");
  }
  if (strategy.width < 1) return Fail(ErrorKind::kUsage, "must be at least 1", "--width");
  if (!(request.budget.usd >= 0))
    return Fail(ErrorKind::kUsage, "must be at least 0", "--budget-usd");
  return {};
}

// Fills in what the caller left to us.
Environment WithDefaults(const Environment& given) {
  Environment environment = given;
  if (!environment.entropy) environment.entropy = &SystemEntropy;
  if (!environment.variable) environment.variable = &ProcessVariable;
  if (environment.prompts.empty()) environment.prompts = prompts::PromptLibrary::DefaultFolder();
  return environment;
}

// Whose replies a model gives, for the certificate. Of a transcript that is all that is taken beside its replies: its holdout
// seeds say what its author was judged by, and choose nothing here.
Result<std::string> AuthorOf(const models::ModelSpec& spec) {
  if (!spec.spec.starts_with("replay/")) return spec.spec;
  ASSAY_TRY(const models::ParsedSpec parsed, models::ParseModelSpec(spec.spec));
  ASSAY_TRY(const runs::Transcript transcript, runs::ReadTranscript(parsed.name));
  if (transcript.header.by_hand) return "written by hand";
  return transcript.header.model.empty() ? spec.spec : transcript.header.model;
}

std::vector<std::string> AnsweredRequests(const runs::RunState& state) {
  std::vector<std::string> names;
  for (const runs::Attempt& attempt : state.attempts) {
    for (std::size_t part = 1; part <= attempt.replies.size(); ++part)
      names.push_back(runs::RequestName(attempt.number, part));
  }
  return names;
}

}  // namespace

Result<RunOutcome> Generate(const GenerateRequest& request, Environment& given) {
  Environment environment = WithDefaults(given);
  ASSAY_TRY_VOID(CheckRequest(request));
  ASSAY_TRY(const prompts::PromptLibrary prompts,
            prompts::PromptLibrary::Load(environment.prompts));
  ASSAY_TRY(std::string continuation, prompts.Render("continue.md", {}));
  ASSAY_TRY(const Meter meter, Meter::Make(request.budget, request.model.spec));
  ASSAY_TRY(std::string author, AuthorOf(request.model));

  // Everything that can be wrong with the request is found before a folder is made.
  std::unique_ptr<models::Model> own_model;
  if (environment.model == nullptr) {
    ASSAY_TRY(own_model, models::MakeModel(request.model, {.clock = environment.clock,
                                                           .variable = environment.variable,
                                                           .rng = Rng(environment.entropy())}));
  }
  models::Model& model = environment.model != nullptr ? *environment.model : *own_model;
  ASSAY_TRY(auto judges,
            environment.make_judges({request.effort, request.engine, request.seed,
                                     request.unsafe_no_jail, request.strategy.optimize}));

  const Json recorded = RequestToJson(request, environment.versions, prompts.digest());
  ASSAY_TRY(const Path folder, FreshFolder(request, environment.clock));
  ASSAY_TRY(runs::RunFolder run,
            request.resume ? runs::RunFolder::Open(folder, environment.clock, continuation)
                           : runs::RunFolder::Create(folder, environment.clock, continuation));
  if (request.resume) {
    ASSAY_TRY_VOID(CheckVetted(run, request.instance));
    ASSAY_TRY_VOID(run.Record(runs::RunResumed{recorded}));
    model.PassOver(AnsweredRequests(run.state()));
  } else {
    ASSAY_TRY_VOID(run.Record(runs::RunStarted{recorded, prompts.digest()}));
  }
  if (environment.observe) {
    environment.observe(RunBegan{run.path(), request.instance.Id(), request.model.spec,
                                 model.Notice(), request.resume});
  }

  std::set<int> judged_before;
  for (const runs::Attempt& attempt : run.state().attempts) {
    if (attempt.verdict) judged_before.insert(attempt.number);
  }

  // After the model: a judge's thread wakes it, and must be gone before it is.
  JudgeDesk desk(request.instance, std::move(judges), environment.entropy,
                 [&model] { model.Wake(); });
  LoopParts parts{.request = request,
                  .environment = environment,
                  .prompts = prompts,
                  .meter = meter,
                  .model = model,
                  .desk = desk,
                  .author = std::move(author)};
  Result<runs::RunStopped> ended = RunLoop(run, parts);
  if (!ended) {
    std::string& cure = ended.error().cure;
    cure += (cure.empty() ? "" : "; ") + ("go on with: " + ResumeCommand(request, run.path()));
    return std::unexpected(std::move(ended.error()));
  }
  const runs::RunStopped stopped = *std::move(ended);
  RunOutcome outcome;
  const runs::Attempt* const best = run.state().Accepted();
  outcome.of_record = best != nullptr && judged_before.contains(best->number);
  if (environment.observe) {
    constexpr std::string_view kOfRecord =
        ", says the run's record; nothing was judged now (assay check judges anew)";
    environment.observe(RunEnded{stopped.outcome,
                                 stopped.reason + std::string(outcome.of_record ? kOfRecord : "")});
  }

  outcome.outcome = stopped.outcome;
  outcome.reason = stopped.reason;
  outcome.resumable = stopped.resumable;
  outcome.folder = run.path();
  outcome.attempts = run.state().JudgedCount();
  outcome.usage = run.state().answered;
  outcome.usage += run.state().lost;
  outcome.usd = meter.Spent(run.state());
  if (const runs::Attempt* const accepted = run.state().Accepted();
      accepted != nullptr && !accepted->vetted.empty()) {
    outcome.vetted = run.path() / accepted->vetted;
  }
  return outcome;
}

Json ToJson(const RunOutcome& outcome) {
  Json json = {{"schema", "assay.outcome/1"},   {"outcome", verdict::Name(outcome.outcome)},
               {"reason", outcome.reason},      {"run", outcome.folder.string()},
               {"attempts", outcome.attempts},  {"tokens", ToJson(outcome.usage)},
               {"resumable", outcome.resumable}};
  if (outcome.of_record) json["of_record"] = true;
  if (outcome.vetted) json["vetted"] = outcome.vetted->string();
  if (outcome.usd) json["usd"] = *outcome.usd;
  return json;
}

int ExitCodeOf(const Error& error) { return error.kind == ErrorKind::kInternal ? 4 : 3; }

}  // namespace assay::loop
