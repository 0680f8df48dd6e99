// assay generate: from an op to a vetted kernel.
#include "agent/loop/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>

#include "agent/loop/resume.h"
#include "cli/command.h"
#include "cli/generate_options.h"
#include "cli/instance.h"
#include "cli/progress.h"
#include "cli/workbench.h"

namespace assay::cli {
namespace {

struct Request {
  InstanceOptions instance;
  WorkbenchOptions tools;
  ModelOptions model;
  StrategyWords strategy;
  std::string feedback = "full";
  std::string resume;
  std::string out;
  std::string prices;
  std::string sign_key;
  std::string effort = "standard";
  std::uint64_t seed = 1;
  double budget_usd = 0;
  std::uint64_t budget_tokens = 0;
  std::uint64_t budget_seconds = 0;
  std::set<std::string> given;  ///< Names of the options on the command line.
};

volatile std::sig_atomic_t interrupted = 0;

// A judgement under way is finished, which may take a while; who does not want to wait presses again.
void OnInterrupt(int) {
  constexpr std::string_view kNote =
      "\ninterrupted: finishing what is under way (Ctrl-C again leaves at once; nothing is lost)\n";
  interrupted = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kNote.data(), kNote.size());
  std::signal(SIGINT, SIG_DFL);
}

/// A run goes on as it began, but for its limits and the way to its server. What its folder asks for
/// beyond itself is repeated here or refused (agent/loop/resume.h).
Result<loop::GenerateRequest> Resumed(const Request& request) {
  constexpr std::string_view kMayChange[] = {
      "--resume",          "--attempts",       "--budget-usd",
      "--budget-tokens",   "--budget-seconds", "op",
      "--model",           "--exec-env",       "--base-url",
      "--key-file",        "--prices",         "--unsafe-no-jail",
      "--connect-seconds", "--idle-seconds",   "--tries",
      "--total-seconds",   "--jobs",           "--json",
      "--sign-key"};
  for (const std::string& name : request.given) {
    if (std::ranges::find(kMayChange, name) != std::end(kMayChange)) continue;
    return Fail(ErrorKind::kUsage, "cannot be changed: a resumed run goes on as it began", name,
                "leave it out, or begin a new run");
  }
  ASSAY_TRY(loop::GenerateRequest resumed,
            loop::RequestOfRun(request.resume, ops::Library::Default(),
                               {.op = request.instance.op,
                                .model = request.model.spec.spec,
                                .base_url = request.model.spec.base_url,
                                .key_file = request.model.key_file,
                                .exec_variables = request.model.spec.exec_variables,
                                .prices = request.prices,
                                .unsafe_no_jail = request.tools.unsafe_no_jail}));
  const auto take = [&request](const char* name, auto& into, const auto& value) {
    if (request.given.contains(name)) into = value;
  };
  take("--connect-seconds", resumed.model.connect_seconds, request.model.spec.connect_seconds);
  take("--idle-seconds", resumed.model.idle_seconds, request.model.spec.idle_seconds);
  take("--total-seconds", resumed.model.total_seconds, request.model.spec.total_seconds);
  take("--tries", resumed.model.tries, request.model.spec.tries);
  take("--attempts", resumed.strategy.attempts,
       std::max(resumed.strategy.attempts, request.strategy.options.attempts));
  if (request.budget_usd > 0) resumed.budget.usd = request.budget_usd;
  if (request.budget_tokens > 0) resumed.budget.tokens = request.budget_tokens;
  if (request.budget_seconds > 0) resumed.budget.seconds = request.budget_seconds;
  return resumed;
}

/// The model asked for; without one, the op's own transcript.
Result<std::string> ChooseModel(const Request& request, const ops::OpSpec& op) {
  if (!request.model.spec.spec.empty()) return request.model.spec.spec;
  if (op.transcript) {
    Say("no --model was given: replaying the transcript that ships with the op, " +
        op.transcript->string());
    return "replay/" + op.transcript->string();
  }
  return Fail(
      ErrorKind::kUsage, "no --model was given, and the op '" + op.name + "' ships no transcript",
      "--model",
      "choose openai/MODEL (any OpenAI-compatible server, with --base-url), anthropic/MODEL, "
      "exec/COMMAND or replay/FILE");
}

Result<loop::GenerateRequest> Build(const Request& request) {
  if (request.given.contains("--resume")) return Resumed(request);
  if (request.instance.op.empty()) {
    return Fail(ErrorKind::kUsage, "no op was named", "assay generate",
                "assay ops list shows them; or give --resume RUN");
  }
  ASSAY_TRY(ops::Instance instance, MakeInstance(request.instance, request.tools.arch));
  loop::GenerateRequest built{
      .instance = std::move(instance), .model = {}, .strategy = {}, .budget = {}};
  built.model = ModelOf(request.model);
  ASSAY_TRY(built.model.spec, ChooseModel(request, built.instance.op));
  const auto feedback = prompts::ParseFeedbackMode(request.feedback);
  ASSAY_CHECK(feedback, "the parser lets only known words through");
  built.strategy = StrategyOf(request.strategy);
  built.feedback = *feedback;
  built.budget = {.usd = request.budget_usd,
                  .tokens = request.budget_tokens,
                  .seconds = request.budget_seconds,
                  .prices = request.prices};
  built.effort = ParseEffort(request.effort);
  built.engine = request.tools.Engine();
  built.seed = request.seed;
  built.unsafe_no_jail = request.tools.unsafe_no_jail;
  built.out = request.out;
  return built;
}

Result<int> Generate(const Request& request, bool json) {
  ASSAY_TRY(const loop::GenerateRequest built, Build(request));
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  WorkbenchOptions tool_options = request.tools;
  tool_options.engine = built.engine;
  tool_options.speed = false;  // The engines say so.
  tool_options.arch = built.instance.arch;
  tool_options.unsafe_no_jail = built.unsafe_no_jail;
  ASSAY_TRY(auto bench, Workbench::Make(tool_options));

  ASSAY_TRY_VOID(bench->CheckTarget(built.instance.arch));
  ASSAY_TRY_VOID(bench->CheckReference(built.instance));

  ASSAY_TRY(auto versions, bench->JudgeVersions());
  std::signal(SIGINT, &OnInterrupt);
  ProgressPrinter progress;
  loop::Environment environment{
      .clock = bench->clock(),
      .make_judges = [&bench, &built](const loop::JudgeSettings& settings)
          -> Result<std::vector<std::unique_ptr<loop::Judge>>> {
        std::vector<std::unique_ptr<loop::Judge>> judges;
        gates::Tools tools = bench->MakeTools();
        if (built.strategy.optimize) bench->AddModel(tools);
        judges.push_back(std::make_unique<loop::GatekeeperJudge>(
            std::move(tools), gates::Options{.effort = settings.effort,
                                             .seed = settings.seed,
                                             .holdout_seed = {},
                                             .unsafe_no_jail = settings.unsafe_no_jail,
                                             .below_bar = settings.optimize,
                                             .regressions = {}}));
        return judges;
      },
      .observe = [&progress](const loop::Notice& notice) { progress.On(notice); },
      .interrupted = [] { return interrupted != 0; },
      .versions = std::move(versions),
      .signer = std::move(signer)};
  ASSAY_TRY(const loop::RunOutcome outcome, loop::Generate(built, environment));
  progress.Finish();
  if (outcome.resumable) {
    const bool exhausted = outcome.attempts >= built.strategy.attempts;
    Say("go on with: " + loop::ResumeCommand(built, outcome.folder) +
        (exhausted ? fmt::format(" --attempts {}", 2 * outcome.attempts) : ""));
  }
  if (json) ASSAY_TRY_VOID(PrintJson(loop::ToJson(outcome)));
  return outcome.ExitCode();
}

void AddBudgetOptions(CLI::App& command, Request& request) {
  const auto add = [&command](const char* name, auto& value, const char* what,
                              const CLI::Validator& check) {
    command.add_option(name, value, what)->group("Budget")->check(check);
  };
  add("--budget-usd", request.budget_usd, "Money for the model, in US dollars (0: no limit).",
      NumberFrom(0, 1e9));
  add("--budget-tokens", request.budget_tokens, "Tokens of the model (0: no limit).",
      WholeNumber());
  add("--budget-seconds", request.budget_seconds, "Time for the run (0: no limit).", WholeNumber());
  command
      .add_option("--prices", request.prices,
                  "Price table (assay.prices/1) instead of the built-in one.")
      ->group("Budget");
}

}  // namespace

void AddGenerate(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("generate", "Ask a model for a kernel until one passes every gate.");
  auto request = std::make_shared<Request>();
  AddInstanceOptions(*command, request->instance, OpArgument::kPositionalOptional);
  AddModelOptions(*command, request->model);
  AddStrategyOptions(*command, request->strategy);
  command
      ->add_option("--feedback", request->feedback,
                   "full: the model sees the counterexample; aggregate: the gate only.")
      ->check(CLI::IsMember({"full", "aggregate"}));
  AddEffortOption(*command, request->effort);
  command->add_option("--seed", request->seed, "Seed of the cases.")->check(WholeNumber());
  AddBudgetOptions(*command, *request);
  command->add_option("--out", request->out, "Folder of the run. Default: runs/<id>.");
  command->add_option("--resume", request->resume, "Continue the run in this folder.");
  AddSignOption(*command, request->sign_key);
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay generate embedding_rmsnorm_backward                     replays the op's "
      "transcript: no key, no GPU\n"
      "  assay generate rms_norm --dtype T=f16 --model anthropic/MODEL\n"
      "  assay generate rms_norm --model openai/MODEL --base-url http://localhost:8000/v1\n"
      "  assay generate --resume runs/ID --model openai/MODEL --attempts 16\n"
      "Keys: OPENAI_API_KEY and ANTHROPIC_API_KEY go to OpenAI and Anthropic alone; a server named "
      "by --base-url gets\n"
      "ASSAY_API_KEY (or --key-file), if that is set. exec/ programs get no key but what "
      "--exec-env "
      "names.\n"
      "A run's folder may come from anybody: what it would run, send or read is named again to "
      "--resume it.");
  command->callback([&session, request, command] {
    for (const CLI::Option* const option : command->get_options()) {
      if (option->count() > 0) request->given.insert(option->get_name());
    }
    session.run = [&session, request] { return Generate(*request, session.json); };
  });
}

}  // namespace assay::cli
