// assay sanitize: the emulator as a stand-alone sanitizer for any kernel, no op needed.
#include "validator/sanitize/sanitize.h"

#include <fmt/ranges.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/workbench.h"
#include "ops/sanitize_plan.h"
#include "report/diagnostics.h"
#include "validator/findings/render.h"

namespace assay::cli {
namespace {

struct Request {
  std::string kernel;
  std::string launch;
  std::string checks = "memory,init,race,barrier";
  std::uint64_t seed = 0;
  int schedules = 0;
  std::string sarif;
  std::string format = "text";
  std::uint64_t max_steps = Limits{}.max_steps;
  WorkbenchOptions tools;
};

Result<Checks> ParseChecks(const std::string& list) {
  Checks checks{.initialisation = false, .race = false, .barrier = false};
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string word = list.substr(start, comma - start);
    if (word == "init")
      checks.initialisation = true;
    else if (word == "race")
      checks.race = true;
    else if (word == "barrier")
      checks.barrier = true;
    else if (word != "memory") {
      return Fail(
          ErrorKind::kUsage, "unknown check '" + word + "'", "--checks",
          "use a comma-separated list of memory, init, race, barrier (memory is always on)");
    }
    start = comma + 1;
  }
  return checks;
}

Status Save(const ops::SanitizePlan& plan, const std::vector<SharedMemory>& memories) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto& save = plan.buffers[i].save;
    if (!save) continue;
    const auto bytes = memories[i].bytes();
    ASSAY_TRY_VOID(
        WriteFileAtomically(*save, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return {};
}

Json ToJson(const std::optional<sanitize::SmallLaunch>& small, const ops::SanitizePlan& plan) {
  if (!small) return nullptr;
  Json kernels = Json::array();
  for (std::size_t i = 0; i < small->kernels.size(); ++i) {
    kernels.push_back({{"entry", plan.kernels[i].entry},
                       {"grid", small->kernels[i].grid},
                       {"block", small->kernels[i].block}});
  }
  return kernels;
}

std::string Describe(const sanitize::SmallLaunch& small, const ops::SanitizePlan& plan) {
  std::string text = "  smallest launch that shows it:";
  for (std::size_t i = 0; i < small.kernels.size(); ++i) {
    text +=
        fmt::format("{} {}<<<({}), ({})>>>", i == 0 ? "" : ",", plan.kernels[i].entry,
                    fmt::join(small.kernels[i].grid, ","), fmt::join(small.kernels[i].block, ","));
  }
  return text + "\n";
}

Json ToJson(const std::optional<sanitize::Testimony>& witness) {
  if (!witness) return nullptr;
  return {{"stop", Name(witness->stop)},
          {"reason", witness->reason},
          {"runs", witness->runs},
          {"findings", assay::ToJson(witness->findings)}};
}

void SayOf(const sanitize::Testimony& witness, const SourceText& source) {
  Say(fmt::format("on the GPU: {} run{}, {} finding{}{}", witness.runs,
                  witness.runs == 1 ? "" : "s", witness.findings.size(),
                  witness.findings.size() == 1 ? "" : "s",
                  witness.reason.empty() ? "" : ", " + witness.reason));
  for (const Finding& finding : witness.findings) Say(RenderText(finding, source));
}

/// Of both engines: what either of them found, or that one could not run it.
int ExitOf(const sanitize::Outcome& outcome) {
  const bool seen = outcome.witness && !outcome.witness->findings.empty();
  if (!outcome.findings.empty() || seen) return kExitRefuted;
  const bool heard = !outcome.witness || outcome.witness->stop == Stop::kCompleted;
  return outcome.complete() && heard ? kExitDone : kExitInconclusive;
}

Result<int> Sanitize(const Request& request, bool json) {
  sanitize::Job job;
  ASSAY_TRY(job.checks, ParseChecks(request.checks));
  ASSAY_TRY(job.text, ReadFile(request.kernel));
  ASSAY_TRY(const Json document, ReadJsonFile(request.launch));
  ASSAY_TRY(job.plan,
            ops::ParseSanitizePlan(document, request.launch, Path(request.launch).parent_path()));
  job.file = request.kernel;
  job.schedules = request.schedules;
  job.seed = request.seed;
  job.max_steps = request.max_steps;
  job.arch = request.tools.arch;
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  std::optional<Elapsed> elapsed(std::in_place, "running");
  ASSAY_TRY(sanitize::Outcome outcome,
            sanitize::Sanitize(job, bench->compiler(), bench->engine(), bench->gpu()));
  elapsed.reset();
  ASSAY_TRY_VOID(Save(job.plan, outcome.buffers));

  SourceText source;
  source.Add(Path(request.kernel).filename().string(), job.text);
  FillExcerpts(outcome.findings, source);
  const int exit = ExitOf(outcome);
  std::vector<report::Diagnostic> diagnostics;
  for (const Finding& finding : outcome.findings) {
    diagnostics.push_back(
        report::DiagnosticOf(finding, {.kernel = request.kernel, .launch = request.launch}));
  }
  if (!request.sarif.empty()) {
    ASSAY_TRY_VOID(WriteFileAtomically(
        request.sarif,
        PrettyJson(report::SarifLog(
            ASSAY_VERSION, diagnostics,
            {.conclusive = outcome.complete() || !outcome.findings.empty(),
             .reason = fmt::format("{}: {}", Name(outcome.stop), outcome.reason)}))));
  }
  if (json) {
    Json smallest = Json::array();
    for (const auto& small : outcome.smallest) smallest.push_back(ToJson(small, job.plan));
    Json texts = Json::array();
    for (const Finding& finding : outcome.findings) texts.push_back(RenderText(finding, source));
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.sanitize/1"},
                              {"stop", Name(outcome.stop)},
                              {"reason", outcome.reason},
                              {"findings", assay::ToJson(outcome.findings)},
                              {"smallest_launches", std::move(smallest)},
                              {"steps", outcome.counters.steps},
                              {"schedules", outcome.schedules},
                              {"orders", outcome.orders},
                              {"orders_tried", outcome.orders_tried},
                              {"witness", ToJson(outcome.witness)},
                              {"texts", std::move(texts)}}));
    return exit;
  }
  if (request.format == "compiler" && !diagnostics.empty()) Say(report::CompilerText(diagnostics));
  for (std::size_t i = 0; request.format == "text" && i < outcome.findings.size(); ++i) {
    std::string text = RenderText(outcome.findings[i], source);
    const auto& small = outcome.smallest[i];
    if (small) text += Describe(*small, job.plan);
    Say(text);
  }
  if (!outcome.complete())
    Say(fmt::format("inconclusive: {}: {}", Name(outcome.stop), outcome.reason));
  if (outcome.witness) SayOf(*outcome.witness, source);
  const std::string orders = outcome.orders == 0
                                 ? std::string()
                                 : fmt::format(", {} of {} order{} tried", outcome.orders_tried,
                                               outcome.orders, outcome.orders == 1 ? "" : "s");
  Say(fmt::format("{} finding{}, {} instructions, {} schedule{}{}", outcome.findings.size(),
                  outcome.findings.size() == 1 ? "" : "s", outcome.counters.steps,
                  outcome.schedules, outcome.schedules == 1 ? "" : "s", orders));
  return exit;
}

}  // namespace

void AddSanitize(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "sanitize", "Run any kernel on the emulator and report what it does wrong.");
  auto request = std::make_shared<Request>();
  command->add_option("kernel", request->kernel, "A .cu or .ptx file.")->required();
  command->add_option("--launch", request->launch, "Launch file: grid, block, buffers, scalars.")
      ->required();
  command->add_option("--checks", request->checks,
                      "Comma-separated: memory, init, race, barrier (memory is always on).");
  command
      ->add_option("--schedules", request->schedules,
                   "Run under this many schedules (0: one, or 8 where atomics or polling make the "
                   "order matter).")
      ->check(CLI::Range(0, 10000));
  command->add_option("--seed", request->seed, "Seed of the schedules.")->check(WholeNumber());
  command
      ->add_option("--max-steps", request->max_steps, "Thread-level instructions before giving up.")
      ->check(WholeNumber());
  command->add_option("--sarif", request->sarif,
                      "File to write the findings to as SARIF 2.1.0, for code hosts.");
  command
      ->add_option("--format", request->format,
                   "text, or compiler: a line a finding, as editors read it.")
      ->check(CLI::IsMember({"text", "compiler"}));
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Example:\n"
      "  assay sanitize kernel.cu --launch launch.json --schedules 20\n"
      "  assay sanitize kernel.cu --launch launch.json --engine gpu,emulator\n"
      "  where launch.json holds\n"
      "    {\"schema\": \"assay.launch/1\",\n"
      "     \"kernels\": [{\"entry\": \"k\", \"grid\": [4], \"block\": [256], \"shared_bytes\": 0, "
      "\"args\": [\"x\", \"n\"]}],\n"
      "     \"buffers\": {\"x\": {\"dtype\": \"f32\", \"elements\": 1024, \"init\": {\"kind\": "
      "\"iota\"}}},\n"
      "     \"scalars\": {\"n\": {\"dtype\": \"i32\", \"value\": 1024}}}\n"
      "Exit codes: 0 clean, 1 findings, 2 inconclusive, 3 bad input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Sanitize(*request, session.json); };
  });
}

}  // namespace assay::cli
