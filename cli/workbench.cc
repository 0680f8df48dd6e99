#include "cli/workbench.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "sandbox/health.h"

namespace assay::cli {

void AddWorkbenchOptions(CLI::App& command, WorkbenchOptions& options) {
  command.add_option("--engine", options.engine, "Where kernels run.")
      ->check(CLI::IsMember({"emulator"}));
  command.add_option("--arch", options.arch, "Target architecture, e.g. sm_80, sm_90, sm_90a.");
  command.add_option("--jobs", options.jobs, "Worker processes of a kind (0: one a core).")
      ->check(CLI::Range(0, 1024));
  command.add_flag(
      "--unsafe-no-jail", options.unsafe_no_jail,
      "Run untrusted code without namespaces. Stands in the verdict and bars emission.");
}

Result<std::unique_ptr<Workbench>> Workbench::Make(const WorkbenchOptions& options) {
  engine::Toolbox::Options toolbox_options;
  toolbox_options.jail = !options.unsafe_no_jail;
  toolbox_options.pool.workers_per_kind = options.jobs;
  ASSAY_TRY(auto toolbox, engine::Toolbox::Create(std::move(toolbox_options)));
  return std::unique_ptr<Workbench>(new Workbench(std::move(toolbox)));
}

gates::Tools Workbench::MakeTools() {
  return {.compiler = compiler(),
          .engine = engine(),
          .oracle = oracle_,
          .clock = clock_,
          .progress = {}};
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
  return versions;
}

Result<std::map<std::string, std::string>> Workbench::JudgeVersions() {
  std::map<std::string, std::string> versions = Versions();
  for (const char* const name : {"assay", "assay-worker"}) {
    ASSAY_TRY(const std::string program, ReadFile(ProgramFolder() / name, 4ull << 30));
    versions[std::string(name) + " sha256"] = Sha256Hex(program);
  }
  return versions;
}

}  // namespace assay::cli
