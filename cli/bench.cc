// assay bench: how fast kernels are at an op's workloads, as a share of what the card allows.
#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "validator/gates/gate.h"

namespace assay::cli {
namespace {

struct Request {
  std::string folder;
  InstanceOptions instance;
  WorkbenchOptions tools{.engine = "gpu,emulator", .speed = true};
  speed::Settings settings;
  std::vector<std::size_t> workloads;
  bool against_naive = false;
  bool unchecked = false;
  std::string rates;  ///< A file.
};

/// A candidate as far as the compiler brings it: what is timed need not have been judged.
struct Compiled {
  ops::LaunchPlan plan;
  engine::CompiledKernel kernel;
};

Result<Compiled> CompileFolder(const Path& folder, const ops::Instance& instance,
                               Workbench& bench) {
  Compiled compiled;
  const std::string file = (folder / "launch.json").string();
  ASSAY_TRY(const Json document, ReadJsonFile(file));
  ASSAY_TRY(compiled.plan, ops::ParseLaunchPlan(document, file, instance.op));
  verdict::Candidate candidate;
  ASSAY_TRY(candidate.kernel, ReadFile(folder / "kernel.cu", 16u << 20));
  ASSAY_TRY(engine::CompileOutcome outcome,
            bench.compiler().Compile(gates::RequestFor(instance, candidate, compiled.plan)));
  if (outcome.kind != engine::CompileOutcome::Kind::kCompiled) {
    const std::string why =
        outcome.diagnostics.empty() ? outcome.detail : outcome.diagnostics.front().message;
    return Fail(ErrorKind::kMalformedInput, "does not compile: " + why, folder.string(),
                "assay check says more");
  }
  compiled.kernel = std::move(outcome.kernel);
  return compiled;
}

/// The workloads asked for by number, or all; an op without any is an error.
Result<std::vector<ops::Workload>> Chosen(const Request& request, const ops::OpSpec& op) {
  if (op.workloads.empty())
    return Fail(ErrorKind::kUsage, "the op names no workloads", op.name,
                "write them into its workloads.jsonl");
  std::vector<ops::Workload> chosen;
  for (const std::size_t number : request.workloads) {
    if (number >= op.workloads.size())
      return Fail(
          ErrorKind::kUsage,
          fmt::format("there is no workload {}: the op has {}", number, op.workloads.size()),
          "--workload", "they are numbered from 0");
    chosen.push_back(op.workloads[number]);
  }
  return chosen.empty() ? op.workloads : chosen;
}

Result<int> Bench(const Request& request, bool json) {
  ASSAY_TRY(const ops::Instance instance, MakeInstance(request.instance, request.tools.arch));
  ASSAY_TRY(const std::vector<ops::Workload> workloads, Chosen(request, instance.op));
  WorkbenchOptions tools = request.tools;
  if (!request.rates.empty()) {
    ASSAY_TRY(const Json document, ReadJsonFile(request.rates));
    ASSAY_TRY(tools.rates, ReadJson<Rates>(document, request.rates));
  }
  ASSAY_TRY(auto bench, Workbench::Make(tools));
  speed::Settings settings = request.settings;
  settings.check = !request.unchecked;
  ASSAY_TRY(const Compiled compiled, CompileFolder(request.folder, instance, *bench));
  const auto measure = [&](const Compiled& what, const speed::Settings& how) {
    std::vector<speed::Measurement> all;
    for (const ops::Workload& workload : workloads) {
      all.push_back(bench->meter()->Measure({instance, what.plan, what.kernel}, workload, how));
      Say(speed::TextOf(std::span(&all.back(), 1)));
    }
    return all;
  };
  const std::vector<speed::Measurement> measured = measure(compiled, settings);
  Json document = speed::ReportOf(instance, bench->meter()->rates(), measured);
  if (request.against_naive && instance.op.naive) {
    ASSAY_TRY(const Compiled naive, CompileFolder(*instance.op.naive, instance, *bench));
    Say("the naive kernel:");
    // At the same shapes; its results are judged elsewhere.
    speed::Settings unchecked = settings;
    unchecked.check = false;
    std::vector<speed::Measurement> baseline;
    for (const speed::Measurement& at : measured) {
      ops::Workload same{.axes = at.axes, .note = at.note};
      if (same.axes.empty()) continue;
      baseline.push_back(
          bench->meter()->Measure({instance, naive.plan, naive.kernel}, same, unchecked));
      Say(speed::TextOf(std::span(&baseline.back(), 1)));
    }
    document["naive"] =
        speed::ReportOf(instance, bench->meter()->rates(), baseline).at("workloads");
  }
  if (json) ASSAY_TRY_VOID(PrintJson(document));
  bool right = true, complete = true;
  for (const speed::Measurement& at : measured) {
    right = right && at.findings.empty();
    complete = complete && at.left_out.empty();
  }
  Say(fmt::format("{}: {:.1f} % of what the card allows ({})", instance.Id(),
                  100 * document.at("share").get<double>(), bench->meter()->rates().device));
  return !right ? kExitRefuted : complete ? kExitDone : kExitInconclusive;
}

}  // namespace

void AddBench(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "bench", "Time a kernel at an op's workloads on a GPU, as a share of what the card allows.");
  auto request = std::make_shared<Request>();
  command->add_option("candidate", request->folder, "Folder that holds kernel.cu and launch.json.")
      ->required();
  AddInstanceOptions(*command, request->instance, OpArgument::kOption);
  command->add_option("--workload", request->workloads,
                      "Only these of the op's workloads, by number from 0.");
  command->add_option("--seed", request->settings.seed, "Seed of the inputs.")
      ->check(WholeNumber());
  command
      ->add_option("--rounds", request->settings.rounds, "Times that each set of inputs is timed.")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--seconds", request->settings.most_seconds,
                   "Of timed calls of a workload, about.")
      ->check(NumberFrom(0, 600));
  command
      ->add_option("--outputs", request->settings.most_outputs,
                   "Elements of outputs; larger workloads are halved until they fit.")
      ->check(CLI::Range(1, 1 << 30));
  command->add_flag("--against-naive", request->against_naive,
                    "Time the op's naive kernel at the same shapes.");
  command->add_flag("--unchecked", request->unchecked,
                    "Do not hold outputs to their truths: nothing is known of what was timed.");
  command->add_option("--rates", request->rates,
                      "File with the \"rates\" that an earlier run on this card printed; they are "
                      "not measured again.");
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Example:\n"
      "  assay bench ops/softmax/naive --op softmax --dtype T=bf16 --json\n"
      "Exit codes: 0 timed, 1 an output was wrong, 2 a workload could not be timed, 3 usage or "
      "environment, 4 internal error.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Bench(*request, session.json); };
  });
}

}  // namespace assay::cli
