#include "batch/instance_run.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "agent/loop/request_json.h"
#include "base/digest.h"
#include "batch/sisters.h"
#include "runs/folder.h"

namespace assay::batch {
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

End EndOf(verdict::Outcome outcome) {
  switch (outcome) {
    case verdict::Outcome::kAccepted:
      return End::kAccepted;
    case verdict::Outcome::kRefuted:
      return End::kRefuted;
    case verdict::Outcome::kInconclusive:
      return End::kInconclusive;
    case verdict::Outcome::kInternalError:
      return End::kFailed;
  }
  return End::kFailed;
}

// What an earlier process left: nothing where it had not come to its first event.
struct Earlier {
  std::optional<prompts::Sister> sister;
  runs::Usage spent;
};

Result<std::optional<Earlier>> EarlierOf(const Path& folder, const loop::GenerateRequest& asked) {
  std::error_code error;
  const Path log = folder / "events.jsonl";
  if (!std::filesystem::exists(log, error)) return std::nullopt;
  ASSAY_TRY(const std::string text, ReadFile(log, 4ull << 30));
  if (text.find('\n') == std::string::npos) {
    // Its first event was being written. Nothing had been asked yet.
    std::filesystem::resize_file(log, 0, error);
    return std::nullopt;
  }
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(folder));
  runs::RunState state;
  for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
  // The run goes on as it began: the sister that its prompts show stays, and nothing else of the
  // record is believed.
  Json recorded = state.request;
  const Json sister =
      recorded.is_object() && recorded.contains("sister") ? recorded["sister"] : Json(nullptr);
  const auto text_at = [](const Json& json, const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                       : std::string();
  };
  if (text_at(recorded, "instance") != asked.instance.Id() ||
      text_at(recorded, "model") != asked.model.spec || !recorded.contains("op") ||
      text_at(recorded["op"], "sha256") != asked.instance.op.digest) {
    return Fail(ErrorKind::kUsage,
                "the run in the folder is another one: op, instance or model differ",
                folder.string(), "begin a new batch, or remove the folder");
  }
  Earlier earlier;
  if (sister.is_object()) {
    earlier.sister = prompts::Sister{text_at(sister, "instance"),
                                     {text_at(sister, "kernel"), text_at(sister, "launch")}};
  }
  earlier.spent = state.answered;
  earlier.spent += state.lost;
  return earlier;
}

}  // namespace

models::RequestLimiter& Limiters::For(const models::ModelSpec& model) {
  const std::string service = model.spec.substr(0, model.spec.find('/')) + " " + model.base_url;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<models::RequestLimiter>& limiter = limiters_[service];
  if (limiter == nullptr) limiter = std::make_unique<models::RequestLimiter>(limits_, clock_);
  return *limiter;
}

std::string WhereWeAre() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + ":" + std::to_string(::getpid());
}

InstanceEnded RunInstance(const RunInputs& inputs, const RunTools& tools) {
  const Task& task = inputs.task;
  const std::string id = task.id();
  const auto began = tools.clock.Now();
  InstanceEnded ended{.instance = id};
  ended.where = WhereWeAre();

  const auto run = [&]() -> Result<loop::RunOutcome> {
    loop::GenerateRequest request = task.request;
    request.out = inputs.batch / "runs" / id;
    request.sister = TakesSister(request) ? inputs.sister : std::nullopt;
    runs::Usage spent;
    ASSAY_TRY(std::optional<Earlier> earlier, EarlierOf(request.out, request));
    if (earlier) {
      request.resume = true;
      request.sister = std::move(earlier->sister);
      spent = earlier->spent;
      tools.purse.Spent(id, request.model.spec, spent);
    }
    const auto variable = tools.variable ? tools.variable : &ProcessVariable;
    const auto entropy = tools.entropy ? tools.entropy : &SystemEntropy;
    std::unique_ptr<models::Model> model;
    if (tools.make_model) {
      ASSAY_TRY(model, tools.make_model(request));
    } else {
      ASSAY_TRY(model, models::MakeModel(
                           request.model,
                           {.clock = tools.clock, .variable = variable, .rng = Rng(entropy())}));
    }
    models::LimitedModel limited(*model, tools.limiters.For(request.model));
    loop::Environment environment{
        .clock = tools.clock,
        .make_judges = [&](const loop::JudgeSettings& settings)
            -> Result<std::vector<std::unique_ptr<loop::Judge>>> {
          ASSAY_TRY(auto judges, tools.make_judges(settings));
          return WithRegressions(std::move(judges), inputs.regressions);
        },
        .observe =
            [&](const loop::Notice& notice) {
              if (const auto* replied = std::get_if<loop::Replied>(&notice);
                  replied != nullptr && replied->reply != nullptr) {
                spent += replied->reply->usage;
                tools.purse.Spent(id, request.model.spec, spent);
              }
              if (tools.observe) tools.observe(notice);
            },
        .interrupted =
            [&] { return (tools.interrupted && tools.interrupted()) || tools.purse.Exceeded(); },
        .entropy = entropy,
        .variable = variable,
        .prompts = tools.prompts,
        .versions = tools.versions,
        .signer = tools.signer,
        .model = &limited};
    return loop::Generate(request, environment);
  };

  Result<loop::RunOutcome> outcome = run();
  const auto took = tools.clock.Now() - began;
  ended.seconds = std::chrono::duration<double>(took).count();
  if (!outcome) {
    ended.end = End::kFailed;
    ended.resumable = true;
    // Without the cure: it names the run's folder, and what to do about one run of many.
    const Error& error = outcome.error();
    ended.reason = (error.place.empty() ? "" : error.place + ": ") + error.message;
    return ended;
  }
  ended.end = EndOf(outcome->outcome);
  ended.reason = outcome->reason;
  // A run whose attempts are used up, or whose model has nothing more to say, is at its end.
  ended.resumable = outcome->resumable && ended.end == End::kInconclusive &&
                    outcome->attempts < task.request.strategy.attempts;
  ended.attempts = outcome->attempts;
  const Path folder = inputs.batch / "runs" / id;
  if (const auto events = runs::RunFolder::ReadEvents(folder)) {
    runs::RunState state;
    for (const runs::StampedEvent& event : *events) (void)runs::Apply(event, state);
    ended.tokens = state.answered;
    ended.lost = state.lost;
    runs::Usage all = state.answered;
    all += state.lost;
    tools.purse.Spent(id, task.request.model.spec, all);
    ended.usd = tools.purse.CostOf(task.request.model.spec, state.answered);
    // A run that stopped because the batch had to says "interrupted".
    if (ended.resumable && ended.reason == "interrupted") {
      if (const auto exceeded = tools.purse.Exceeded()) ended.reason = *exceeded;
    }
    const runs::Attempt* const accepted = state.Accepted();
    if (accepted != nullptr && !accepted->vetted.empty()) {
      ended.vetted = "runs/" + id + "/" + accepted->vetted;
      if (const auto kernel = ReadFile(folder / accepted->vetted / "kernel.cu"))
        ended.kernel = Sha256Hex(*kernel);
    }
  }
  return ended;
}

}  // namespace assay::batch
