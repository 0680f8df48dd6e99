// assay cost: what holds a kernel back at the op's workloads, without a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "cli/command.h"
#include "cli/cost_export.h"
#include "cli/instance.h"
#include "cli/workbench.h"
#include "validator/cost/sample.h"
#include "validator/gates/gate.h"

namespace assay::cli {
namespace {

struct Request {
  std::string folder;
  InstanceOptions instance;
  WorkbenchOptions tools;
  std::string chip;
  std::string export_to;
  std::uint64_t steps = cost::Sampler::Options{}.steps;
};

std::string AxesText(const ops::AxisValues& axes, const ops::OpSpec& op) {
  std::string text;
  for (const ops::Axis& axis : op.axes) {
    if (const auto found = axes.find(axis.name); found != axes.end())
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, found->second);
  }
  return text;
}

// Farthest from its own limit first; what is not known, last.
std::vector<std::size_t> WorstFirst(const std::vector<cost::SpeedEstimate>& estimates) {
  std::vector<std::size_t> order(estimates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return estimates[i].left_out.empty() ? estimates[i].ShareOfLimit() : 2.0;
  });
  return order;
}

void Tell(const Request& request, const ops::Instance& instance, const cost::Chip& chip,
          const std::vector<cost::SpeedEstimate>& estimates) {
  Say(
      fmt::format("{} for {}, modelled from samples of its blocks on {} (docs/cost.md); no GPU was "
                  "asked, and these are bounds, not times",
                  request.folder, instance.Id(), chip.title));
  for (const std::size_t i : WorstFirst(estimates)) {
    const cost::SpeedEstimate& estimate = estimates[i];
    Say(fmt::format("\n{}  ({})", AxesText(estimate.axes, instance.op), estimate.note));
    if (!estimate.left_out.empty()) {
      Say("  not estimated: " + estimate.left_out);
      continue;
    }
    Say(fmt::format("  its tensors alone take {:.0f} % of the bound; {}",
                    100 * estimate.ShareOfLimit(), estimate.Words()));
    for (const cost::LaunchEstimate& launch : estimate.launches) {
      Say(fmt::format(
          "  {:24} {:3.0f} % of it: {} blocks of {} threads ({:.2f} waves), {} registers, {} bytes "
          "shared, {} blocks at once ({}), {:.1f} sectors a request, {:.2f} times the passes",
          launch.entry, 100 * launch.bound / std::max(estimate.bound, 1e-30), launch.blocks,
          launch.needs.threads, launch.waves, launch.needs.registers, launch.needs.shared_bytes,
          launch.occupancy.blocks, Name(launch.occupancy.limit), launch.sectors_a_request,
          std::max(1.0, launch.conflicts)));
      for (const std::string& name : launch.not_counted)
        Say("    not counted: the memory of " + name);
    }
  }
}

Result<int> Cost(const Request& request, bool json) {
  ASSAY_TRY(const ops::Instance instance, MakeInstance(request.instance, request.tools.arch));
  const cost::Chip* const chip =
      request.chip.empty() ? cost::ChipOf(instance.arch) : cost::FindChip(request.chip);
  if (chip == nullptr) {
    std::string known;
    for (const cost::Chip& each : cost::Chips())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    return Fail(ErrorKind::kUsage,
                request.chip.empty() ? "no chip of the table is of " + instance.arch
                                     : "there is no chip '" + request.chip + "' in the table",
                "--chip", "it has " + known);
  }
  const Path folder = request.folder;
  ASSAY_TRY(std::string kernel, ReadFile(folder / "kernel.cu", 16u << 20));
  ASSAY_TRY(std::string launch, ReadFile(folder / "launch.json", 16u << 20));
  ASSAY_TRY(const Json document, ParseJson(launch, "launch.json"));
  ASSAY_TRY(const ops::LaunchPlan plan, ops::ParseLaunchPlan(document, "launch.json", instance.op));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY_VOID(bench->CheckTarget(request.tools.arch));
  const verdict::Candidate candidate{.kernel = std::move(kernel), .launch = std::move(launch)};
  ASSAY_TRY(const engine::CompileOutcome compiled,
            bench->compiler().Compile(gates::RequestFor(instance, candidate, plan)));
  if (compiled.kind != engine::CompileOutcome::Kind::kCompiled) {
    return Fail(ErrorKind::kMalformedInput, "the kernel does not compile",
                (folder / "kernel.cu").string(), "assay check says why");
  }
  const cost::Subject subject{.instance = instance, .plan = plan, .compiled = compiled.kernel};
  if (!request.export_to.empty()) {
    ASSAY_TRY_VOID(ExportLaunches(subject, request.export_to));
    Say("launches: " + request.export_to);
    return kExitDone;
  }
  const cost::Sampler sampler(bench->workers(), {.steps = request.steps});
  ASSAY_TRY(const std::vector<cost::SpeedEstimate> estimates, sampler.Workloads(subject, *chip));
  Tell(request, instance, *chip, estimates);
  if (json) {
    Json rows = Json::array();
    for (const cost::SpeedEstimate& estimate : estimates) rows.push_back(ToJson(estimate));
    ASSAY_TRY_VOID(PrintJson({{"schema", "assay.cost/1"},
                              {"kernel", request.folder},
                              {"instance", instance.Id()},
                              {"chip", chip->name},
                              {"workloads", std::move(rows)}}));
  }
  return kExitDone;
}

}  // namespace

void AddCost(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "cost", "What holds a kernel back at the op's workloads, modelled without a GPU.");
  auto request = std::make_shared<Request>();
  command->add_option("candidate", request->folder, "Folder that holds kernel.cu and launch.json.")
      ->required();
  AddInstanceOptions(*command, request->instance, OpArgument::kOption);
  command->add_option("--chip", request->chip,
                      "Chip of the model's table: h100, h200, a100, ... (the target's first one).");
  command
      ->add_option("--steps", request->steps, "Instructions of threads that a sample runs, about.")
      ->check(WholeNumber());
  command->add_option("--export", request->export_to,
                      "Write machine code and launches as numbers to this folder instead, for "
                      "bench/cost/measure.py on a machine with a GPU.");
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print the estimates as one JSON document on stdout.");
  command->footer(
      "Example:\n"
      "  assay cost ops/softmax/naive --op softmax\n"
      "  assay cost mine/ --op gemm --dtype T=f16 --chip a100 --arch sm_80 --json\n"
      "The kernel is not judged: assay check does that.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Cost(*request, session.json); };
  });
}

}  // namespace assay::cli
