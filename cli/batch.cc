// assay batch: a whole library of instances to vetted kernels, overnight.
#include "batch/batch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <set>

#include "agent/loop/request_json.h"
#include "base/rng.h"
#include "batch/cluster_task.h"
#include "batch/local_executor.h"
#include "batch/recheck.h"
#include "batch/slurm_executor.h"
#include "cli/batch_display.h"
#include "cli/batch_options.h"
#include "cli/command.h"
#include "cli/instance.h"

namespace assay::cli {
namespace {

using Request = BatchRequest;

volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) {
  constexpr std::string_view kNote =
      "\ninterrupted: finishing what is under way (Ctrl-C again leaves at once; nothing is lost)\n";
  interrupted = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kNote.data(), kNote.size());
  std::signal(SIGINT, SIG_DFL);
}
// A cluster says with SIGTERM that the time is up.
void OnTerminate(int) { interrupted = 1; }

bool Interrupted() { return interrupted != 0; }

Result<batch::Settings> SettingsOf(const Request& request) {
  batch::Settings settings;
  settings.model = ModelOf(request.model);
  settings.archs = request.archs;
  settings.strategy = StrategyOf(request.strategy);
  const auto feedback = prompts::ParseFeedbackMode(request.feedback);
  ASSAY_CHECK(feedback, "the parser lets only known words through");
  settings.feedback = *feedback;
  settings.effort = ParseEffort(request.effort);
  settings.engine = request.tools.engine;
  settings.seed = request.seed;
  settings.budget = request.each;
  settings.unsafe_no_jail = request.tools.unsafe_no_jail;
  if (request.all_dtypes) settings.dtypes = batch::DtypeChoice::kAll;
  for (const std::string& text : request.dtypes) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return Fail(ErrorKind::kUsage, "'" + text + "' is no binding", "--dtype",
                  "write it like T=bf16; each one given is an instance of its own");
    }
    settings.dtypes = batch::DtypeChoice::kListed;
    settings.bindings.push_back({{text.substr(0, equals), text.substr(equals + 1)}});
  }
  return settings;
}

Result<batch::Plan> PlanOf(const Request& request, const ops::Library& library) {
  batch::Plan plan;
  plan.budget = request.budget;
  plan.budget.prices = request.prices;
  plan.limits = request.limits;
  plan.resources = request.resources;
  plan.share = !request.alone;
  ASSAY_TRY(const batch::Settings settings, SettingsOf(request));
  if (!request.plan.empty()) {
    if (!request.ops.empty() || request.all) {
      return Fail(ErrorKind::kUsage, "a plan names its ops itself", "--plan",
                  "leave out the ops and --all, or the plan");
    }
    ASSAY_TRY(const Json json, ReadJsonFile(request.plan));
    return batch::ReadPlan(json, request.plan, library, settings, std::move(plan));
  }
  std::vector<std::string> ops = request.ops;
  if (request.all) {
    for (const ops::Library::Entry& entry : library.List()) ops.push_back(entry.name);
  }
  for (const std::string& op : ops) ASSAY_TRY_VOID(batch::AddOp(plan, library, op, settings));
  return plan;
}

// What is said again of a batch that is resumed: the models of the plan file, or of the options.
Result<batch::Said> SaidOf(const Request& request, const ops::Library& library) {
  batch::Said said{.ops = request.ops,
                   .models = {},
                   .prices = request.prices,
                   .unsafe_no_jail = request.tools.unsafe_no_jail};
  if (request.model.spec.spec.empty() && request.plan.empty()) return said;
  if (!request.model.spec.spec.empty()) said.models.push_back(ModelOf(request.model));
  if (request.plan.empty()) return said;
  Request again = request;
  again.ops.clear();
  ASSAY_TRY(const batch::Plan plan, PlanOf(again, library));
  for (const batch::Task& task : plan.tasks) said.models.push_back(task.request.model);
  if (said.prices.empty()) said.prices = plan.budget.prices;
  return said;
}

Result<batch::Plan> ResumedPlan(const Request& request, const ops::Library& library) {
  ASSAY_TRY(const batch::BatchState state, batch::BatchFolder::Look(request.resume));
  const std::string place = (Path(request.resume) / "events.jsonl").string();
  ASSAY_TRY(batch::Said said, SaidOf(request, library));
  ASSAY_TRY(batch::Plan plan, batch::PlanFromJson(state.batch, place, library, said.ops));
  ASSAY_TRY_VOID(batch::TrustPlan(plan, said));
  // Limits may be given anew.
  if (request.budget.usd > 0) plan.budget.usd = request.budget.usd;
  if (request.budget.tokens > 0) plan.budget.tokens = request.budget.tokens;
  if (request.budget.seconds > 0) plan.budget.seconds = request.budget.seconds;
  return plan;
}

struct Desk {
  std::unique_ptr<Workbench> bench;
  std::unique_ptr<batch::Limiters> limiters;
  std::unique_ptr<batch::Purse> purse;
};

Result<Desk> MakeDesk(const Request& request, const batch::Plan& plan,
                      const models::RequestLimits& limits, std::chrono::milliseconds earlier) {
  Desk desk;
  WorkbenchOptions options = request.tools;
  if (!plan.tasks.empty()) options.unsafe_no_jail = plan.tasks.front().request.unsafe_no_jail;
  ASSAY_TRY(desk.bench, Workbench::Make(options));
  desk.limiters = std::make_unique<batch::Limiters>(limits, desk.bench->clock());
  ASSAY_TRY(loop::PriceTable prices, loop::LoadPrices(plan.budget.prices));
  desk.purse =
      std::make_unique<batch::Purse>(plan.budget, std::move(prices), earlier, desk.bench->clock());
  return desk;
}

batch::RunTools ToolsOf(Desk& desk, const std::map<std::string, std::string>& versions,
                        std::shared_ptr<const runs::SigningKey> signer) {
  return {.clock = desk.bench->clock(),
          .limiters = *desk.limiters,
          .purse = *desk.purse,
          .make_judges = [&desk](const loop::JudgeSettings& settings)
              -> Result<std::vector<std::unique_ptr<loop::Judge>>> {
            std::vector<std::unique_ptr<loop::Judge>> judges;
            judges.push_back(std::make_unique<loop::GatekeeperJudge>(
                desk.bench->MakeTools(), gates::Options{.effort = settings.effort,
                                                        .seed = settings.seed,
                                                        .holdout_seed = {},
                                                        .unsafe_no_jail = settings.unsafe_no_jail,
                                                        .below_bar = settings.optimize,
                                                        .regressions = {}}));
            return judges;
          },
          .interrupted = &Interrupted,
          .versions = versions,
          .signer = std::move(signer)};
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One instance, on a node of a cluster. What it came to stands in its result: the exit code says only
// whether there is one.
Result<int> RunTask(const Request& request) {
  const Path folder = request.resume;
  ASSAY_TRY(const std::vector<std::size_t> array,
            batch::ReadArray(folder / "tasks" / Path(request.array).filename()));
  const std::size_t number = std::strtoull(request.task.c_str(), nullptr, 10);
  if (number >= array.size())
    return Fail(ErrorKind::kUsage, "the array has no such task", request.task);
  const ops::Library library = ops::Library::Default();
  ASSAY_TRY(const batch::Plan plan,
            batch::PlanOfTask(folder, request.digest, library, request.ops));
  ASSAY_TRY(Desk desk, MakeDesk(request, plan, batch::ShareOf(plan.limits, request.jobs), {}));
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  ASSAY_TRY(const auto versions, desk.bench->JudgeVersions());
  const std::string job = Variable("SLURM_ARRAY_JOB_ID");
  std::unique_ptr<batch::Cluster> cluster = batch::MakeFilesCluster();
  if (!job.empty()) {
    ASSAY_TRY(cluster, batch::MakeSlurmCluster());
  }
  std::signal(SIGTERM, &OnTerminate);
  std::signal(SIGINT, &OnTerminate);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string node = Variable("SLURMD_NODENAME");
  if (node.empty()) node = host.data();
  ASSAY_TRY(const batch::TaskEnd end,
            batch::RunClusterTask({.batch = folder,
                                   .digest = request.digest,
                                   .index = array[number],
                                   .job = job,
                                   .number = number,
                                   .node = node},
                                  plan, ToolsOf(desk, versions, std::move(signer)), *cluster));
  constexpr const char* kWords[] = {"ran", "had been done before", "is another task's",
                                    "was interrupted"};
  Say(fmt::format("{} {} (node {})", plan.tasks[array[number]].id(),
                  kWords[static_cast<std::size_t>(end)], node));
  return kExitDone;
}

Result<int> Recheck(const Request& request, bool json) {
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  batch::RecheckRequest recheck{.store = request.store, .jobs = std::max(1u, request.jobs)};
  recheck.ops.insert(request.ops.begin(), request.ops.end());
  ASSAY_TRY(recheck.judge, bench->JudgeVersions());
  recheck.resume = !request.resume.empty();
  recheck.folder = recheck.resume ? request.resume : request.out;
  if (recheck.folder.empty()) {
    ASSAY_TRY(recheck.folder, batch::FreshBatch(bench->clock()));
  }
  std::signal(SIGINT, &OnInterrupt);
  const ops::Library library = ops::Library::Default();
  const auto judge = [&](const ops::Instance& instance, const verdict::Candidate& candidate,
                         const runs::JudgeFacts& facts) {
    gates::Gatekeeper gatekeeper(
        bench->MakeTools(),
        {.effort = loop::ParseEffort(facts.effort).value_or(campaign::Effort::kStandard),
         .seed = facts.seed,
         .holdout_seed = [draw = Rng(facts.seed)]() mutable { return draw.Next(); },
         .unsafe_no_jail = request.tools.unsafe_no_jail,
         .regressions = {}});
    return gatekeeper.Judge(instance, candidate).verdict;
  };
  ASSAY_TRY(const batch::RecheckOutcome outcome,
            batch::RunRecheck(recheck, {.clock = bench->clock(),
                                        .library = library,
                                        .judge = judge,
                                        .observe =
                                            [](const batch::DriftRow& row) {
                                              Say(fmt::format(
                                                  "{}: {}{}", row.instance,
                                                  row.after.empty() ? "not judged" : row.after,
                                                  row.drifted ? "  DRIFTED" : ""));
                                            },
                                        .interrupted = &Interrupted}));
  Say(batch::RenderTable(outcome.summary));
  Say((outcome.folder / "summary.json").string());
  if (json) ASSAY_TRY_VOID(PrintJson(batch::ToJson(outcome.summary)));
  return batch::ExitCodeOfRecheck(outcome.summary);
}

Result<std::vector<std::string>> TaskCommand(const Request& request) {
  std::vector<std::string> command = {(ProgramFolder() / "assay").string(), "batch"};
  // Ops that are not the library's are named again, to each task as well.
  for (const std::string& op : request.ops) {
    if (op.find('/') == std::string::npos) continue;
    std::error_code error;
    command.push_back(std::filesystem::absolute(op, error).string());
  }
  const auto add = [&command](const std::string& option, const std::string& value) {
    command.push_back(option);
    command.push_back(value);
  };
  add("--engine", request.tools.engine);
  add("--workers", std::to_string(request.tools.jobs));
  add("--jobs", std::to_string(request.jobs));
  if (request.tools.unsafe_no_jail) command.push_back("--unsafe-no-jail");
  if (!request.sign_key.empty()) {
    std::error_code error;
    add("--sign-key", std::filesystem::absolute(request.sign_key, error).string());
  }
  return command;
}

Result<int> Run(const Request& request, bool json) {
  if (!request.task.empty()) return RunTask(request);
  if (request.recheck) return Recheck(request, json);
  const ops::Library library = ops::Library::Default();
  const bool resume = !request.resume.empty();
  ASSAY_TRY(batch::Plan plan, resume ? ResumedPlan(request, library) : PlanOf(request, library));
  ASSAY_TRY_VOID(batch::CheckPlan(plan));
  ASSAY_TRY(auto signer, SignerOf(request.sign_key));
  std::chrono::milliseconds earlier{0};
  if (resume) {
    ASSAY_TRY(const batch::BatchState state, batch::BatchFolder::Look(request.resume));
    earlier = std::chrono::milliseconds(state.earlier_milliseconds + state.session_milliseconds);
  }
  ASSAY_TRY(Desk desk, MakeDesk(request, plan, plan.limits, earlier));
  std::set<std::string> archs;
  for (const batch::Task& task : plan.tasks) {
    if (archs.insert(task.request.instance.arch).second)
      ASSAY_TRY_VOID(desk.bench->CheckTarget(task.request.instance.arch));
  }
  ASSAY_TRY(const auto judge, desk.bench->JudgeVersions());
  batch::LocalExecutor local(ToolsOf(desk, judge, std::move(signer)), request.jobs);
  std::unique_ptr<batch::Cluster> cluster;
  std::unique_ptr<batch::SlurmExecutor> slurm;
  if (request.executor != "local") {
    cluster = batch::MakeFilesCluster();
    if (request.executor == "slurm") {
      ASSAY_TRY(cluster, batch::MakeSlurmCluster());
    }
    ASSAY_TRY(std::vector<std::string> command, TaskCommand(request));
    slurm = std::make_unique<batch::SlurmExecutor>(
        *cluster, batch::SlurmOptions{.clock = desk.bench->clock(),
                                      .command = std::move(command),
                                      .at_once = request.jobs,
                                      .interrupted = &Interrupted,
                                      .wait = request.executor == "slurm"});
  }
  batch::BatchRequest asked{.plan = std::move(plan),
                            .folder = resume ? request.resume : request.out,
                            .resume = resume,
                            .store = request.store,
                            .jobs = request.jobs};
  if (asked.folder.empty()) {
    ASSAY_TRY(asked.folder, batch::FreshBatch(desk.bench->clock()));
  }
  std::signal(SIGINT, &OnInterrupt);
  std::signal(SIGTERM, &OnTerminate);
  batch::BatchOutcome outcome;
  {
    BatchDisplay display(*desk.purse);
    batch::BatchEnvironment environment{
        .clock = desk.bench->clock(),
        .executor = slurm ? static_cast<batch::Executor&>(*slurm) : local,
        .observer = display,
        .purse = *desk.purse,
        .judge = judge,
        .versions = judge,
        .interrupted = &Interrupted};
    ASSAY_TRY(outcome, batch::RunBatch(asked, environment));
  }
  Say(batch::RenderTable(outcome.summary));
  if (outcome.nothing_to_do) {
    Say("nothing to do: every instance is up to date or at its end");
  } else {
    Say((outcome.folder / "summary.json").string());
    if (!outcome.summary.measured.stopped.empty())
      Say("go on with: assay batch --resume " + outcome.folder.string() +
          " (with --plan or --model as before)");
  }
  if (json) ASSAY_TRY_VOID(PrintJson(batch::ToJson(outcome.summary)));
  return batch::ExitCode(outcome.summary);
}

}  // namespace

void AddBatch(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "batch", "Ask a model for kernels of many ops, dtypes and targets; keep what is up to date.");
  auto request = std::make_shared<Request>();
  AddBatchOptions(*command, *request);
  command->add_flag("--json", session.json, "Print the summary as one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay batch --all --all-dtypes --model openai/MODEL --jobs 8 --budget-usd 50\n"
      "  assay batch softmax gemm --dtype T=bf16 --dtype T=f16 --model anthropic/MODEL\n"
      "  assay batch --plan plan.json --jobs 8\n"
      "  assay batch --resume batches/ID --plan plan.json\n"
      "  assay batch --plan plan.json --executor slurm --partition gpu --minutes 240 --jobs 100\n"
      "  assay batch --recheck\n"
      "What an earlier batch has vetted for the same op, prompts, judge, toolkit, target, model "
      "and "
      "options is up to date\n"
      "and left alone. A batch's folder may come from anybody: what it would run, send or read is "
      "said again to --resume it.\n"
      "Exit codes: 0 every instance has its kernel, 1 some were refuted, 2 some are undecided or "
      "waiting, 3 some failed\n"
      "(a server, the machine) or bad input. --recheck: 1 when a verdict changed.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Run(*request, session.json); };
  });
}

}  // namespace assay::cli
