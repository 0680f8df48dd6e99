#include "cli/workbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <ranges>

#include "base/digest.h"
#include "base/environment.h"
#include "cli/surroundings.h"
#include "importers/python_truth.h"
#include "sandbox/health.h"
#include "validator/cost/sample.h"

namespace assay::cli {

void AddWorkbenchOptions(CLI::App& command, WorkbenchOptions& options) {
  command
      .add_option(
          "--engine", options.engine,
          "Where kernels run: emulator, or gpu[:N],emulator, where cases run on a GPU as well; "
          "gpu:0,gpu:1,emulator shares them out, gpu:*,emulator among all there are.")
      ->check([](const std::string& text) {
        const auto engines = ParseEngines(text);
        return engines ? std::string() : ToString(engines.error());
      });
  command.add_flag("--speed", options.speed,
                   "Time the op's workloads on the GPU as well, and hold them to the op's bar.");
  command.add_option("--arch", options.arch, "Target architecture, e.g. sm_80, sm_90, sm_90a.");
  command.add_option("--jobs", options.jobs, "Worker processes of a kind (0: one a core).")
      ->check(CLI::Range(0, 1024));
  command.add_flag(
      "--unsafe-no-jail", options.unsafe_no_jail,
      "Run untrusted code without namespaces. Stands in the verdict and bars emission.");
  command.add_flag("--no-cache", options.no_cache,
                   "Compile references anew, and keep none beyond this run ($ASSAY_CACHE, else the "
                   "user's cache folder).");
}

Result<Engines> ParseEngines(std::string_view text) {
  Engines engines;
  bool emulator = false;
  for (const auto part : text | std::views::split(',')) {
    const std::string_view word(part);
    if (word == "emulator") {
      emulator = true;
      continue;
    }
    if (word == "speed") {
      engines.speed = true;
      continue;
    }
    if (word == "gpu:*" && !engines.gpu()) {
      engines.all = true;
      continue;
    }
    int number = 0;
    const std::string_view digits = word.starts_with("gpu:") ? word.substr(4) : "0";
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool whole = fault == std::errc{} && end == digits.data() + digits.size() && number >= 0;
    if ((word != "gpu" && !word.starts_with("gpu:")) || !whole || engines.all ||
        std::ranges::find(engines.gpus, number) != engines.gpus.end()) {
      return Fail(ErrorKind::kUsage, fmt::format("'{}' is no choice of engines", text), "--engine",
                  "emulator, gpu,emulator, gpu:N,emulator, gpu:0,gpu:1,emulator or gpu:*,emulator");
    }
    engines.gpus.push_back(number);
  }
  if (!emulator) {
    return Fail(ErrorKind::kUsage,
                "a GPU alone sees no races and no undefined values: nothing could be accepted",
                "--engine", "gpu,emulator");
  }
  if (engines.speed && !engines.gpu()) {
    return Fail(ErrorKind::kUsage, "speed is measured on a GPU, and none was asked for", "--speed",
                "--engine gpu,emulator --speed");
  }
  return engines;
}

Result<std::unique_ptr<Workbench>> Workbench::Make(const WorkbenchOptions& options) {
  ASSAY_TRY_VOID(CheckLimits());
  ASSAY_TRY(const Engines engines, ParseEngines(options.Engine()));
  engine::Toolbox::Options toolbox_options;
  toolbox_options.jail = !options.unsafe_no_jail;
  toolbox_options.pool.workers_per_kind = options.jobs;
  toolbox_options.pool.gpus = engines.gpus.empty() ? std::vector{0} : engines.gpus;
  toolbox_options.turns = OwnEnvironment().cache;
  if (!options.no_cache) toolbox_options.compilations = OwnEnvironment().cache;
  if (engines.all) {
    ASSAY_TRY(auto one, engine::Toolbox::Create(toolbox_options));
    ASSAY_TRY(const unsigned count, one->gpu().Count());
    toolbox_options.pool.gpus.resize(std::max(count, 1u));
    std::iota(toolbox_options.pool.gpus.begin(), toolbox_options.pool.gpus.end(), 0);
  }
  ASSAY_TRY(auto toolbox, engine::Toolbox::Create(std::move(toolbox_options)));
  for (unsigned i = 0; engines.gpu() && i < toolbox->gpu().devices(); ++i)
    ASSAY_TRY_VOID(toolbox->gpu().Describe(i));
  std::unique_ptr<Workbench> bench(new Workbench(std::move(toolbox), engines.gpu()));
  if (engines.speed) {
    engine::GpuEngine& gpu = bench->toolbox_->gpu();
    Rates rates;
    if (options.rates) {
      rates = *options.rates;
    } else {
      ASSAY_TRY(rates, gpu.Measure());
    }
    bench->gpu_truths_ = std::make_unique<oracle::Oracle>(bench->compiler(), gpu);
    bench->meter_.emplace(speed::Instruments{gpu, gpu, *bench->gpu_truths_, bench->oracle_},
                          std::move(rates));
  }
  // Started at the first truth of an op whose reference is Python, and not before.
  bench->oracle_.Serve(std::make_unique<importers::PythonTruth>(
      [] {
        return importers::FindPython("", [](const char* name) {
          const char* const value = std::getenv(name);
          return std::string(value == nullptr ? "" : value);
        });
      },
      importers::RunOptions{.unsafe_no_jail = options.unsafe_no_jail}));
  return bench;
}

gates::Tools Workbench::MakeTools() {
  return {.compiler = compiler(),
          .engine = engine(),
          .oracle = oracle_,
          .clock = clock_,
          .progress = {},
          .gpu = gpu(),
          .meter = meter()};
}

void Workbench::AddModel(gates::Tools& tools) {
  if (meter() != nullptr) return;
  tools.model =
      [&workers = workers()](
          const ops::Instance& instance, const ops::LaunchPlan& plan,
          const engine::CompiledKernel& compiled) -> Result<std::vector<speed::WorkloadSpeed>> {
    const cost::Chip* const chip = cost::ChipOf(instance.arch);
    if (chip == nullptr)
      return Fail(ErrorKind::kUnsupported, "no chip of the table is of " + instance.arch, "--arch");
    const cost::Sampler sampler(workers, {});
    ASSAY_TRY(const auto modelled,
              sampler.Workloads({.instance = instance, .plan = plan, .compiled = compiled}, *chip));
    std::vector<speed::WorkloadSpeed> estimates;
    for (const cost::SpeedEstimate& each : modelled) {
      std::string workload;
      for (const ops::Axis& axis : instance.op.axes) {
        if (const auto found = each.axes.find(axis.name); found != each.axes.end())
          workload += fmt::format("{}{}={}", workload.empty() ? "" : " ", axis.name, found->second);
      }
      const bool known = each.left_out.empty();
      estimates.push_back({.workload = std::move(workload),
                           .seconds = std::nullopt,
                           .share = known ? each.ShareOfLimit() : 0,
                           .limiter = known ? each.Words() : each.left_out});
    }
    return estimates;
  };
}

Status Workbench::CheckTarget(const std::string& arch) {
  using Kind = engine::CompileOutcome::Kind;
  const auto compiled = compiler().Compile({.source = "", .arch = arch, .entries = {}});
  if (compiled && compiled->kind == Kind::kCompiled) return {};
  if (!compiled && compiled.error().kind != ErrorKind::kUsage)
    return std::unexpected(compiled.error());
  if (compiled && compiled->kind != Kind::kRefused) {
    return Fail(ErrorKind::kEnvironment,
                "the compiler cannot even compile nothing: " + compiled->detail, "NVRTC",
                "assay doctor says what is missing");
  }
  ASSAY_TRY(const sandbox::CompilerHealth health, sandbox::ProbeCompiler(workers()));
  std::string known;
  for (const std::int64_t target : health.architectures)
    known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", target);
  return Fail(ErrorKind::kUsage, fmt::format("NVRTC {} cannot compile for {}", health.nvrtc, arch),
              "--arch", "it knows " + known);
}

std::map<std::string, std::string> Workbench::Versions() {
  std::map<std::string, std::string> versions = {{"assay", ASSAY_VERSION},
                                                 {"jail", toolbox_->isolation().description}};
  if (const auto health = sandbox::ProbeCompiler(workers())) versions["nvrtc"] = health->nvrtc;
  if (with_gpu_) {
    std::string names;
    for (unsigned i = 0; i < toolbox_->gpu().devices(); ++i) {
      if (const auto device = toolbox_->gpu().Describe(i))
        names += (names.empty() ? "" : "; ") + *device;
    }
    if (!names.empty()) versions["gpu"] = std::move(names);
  }
  return versions;
}

Result<std::map<std::string, std::string>> Workbench::JudgeVersions() {
  std::map<std::string, std::string> versions = Versions();
  for (const Path& file : {ProgramFolder() / "assay", OwnEnvironment().worker}) {
    ASSAY_TRY(const std::string program, ReadFile(file, 4ull << 30));
    versions[file.filename().string() + " sha256"] = Sha256Hex(program);
  }
  return versions;
}

}  // namespace assay::cli
