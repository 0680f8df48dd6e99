// assay doctor: what works on this machine, what does not, and the fix for each.
#include <fmt/format.h>

#include <cstdlib>

#include "agent/prompts/prompt.h"
#include "cli/command.h"
#include "cli/surroundings.h"
#include "cli/workbench.h"
#include "ops/op.h"
#include "sandbox/health.h"
#include "sandbox/jail.h"
#include "sandbox/worker_pool.h"

namespace assay::cli {
namespace {

enum class State { kWorks, kMissing, kOptional };

struct Finding {
  std::string what;
  State state = State::kWorks;
  std::string detail;
  std::string fix;
};

Finding FromError(std::string what, const Error& error) {
  return {std::move(what), State::kMissing,
          (error.place.empty() ? "" : error.place + ": ") + error.message, error.cure};
}

Finding CheckOwnLimits() {
  if (const Status enough = CheckLimits(); !enough) return FromError("limits", enough.error());
  return {"limits", State::kWorks, "open files, address space and file sizes suffice", ""};
}

Finding CheckJail() {
  const auto report = sandbox::ProbeJail();
  if (!report) return FromError("jail", report.error());
  if (!report->works) return FromError("jail", report->AsError());
  return {"jail", State::kWorks, report->version + ", user namespaces, seccomp", ""};
}

Finding CheckCompiler(sandbox::Workers& workers) {
  const auto health = sandbox::ProbeCompiler(workers);
  if (!health) return FromError("NVRTC", health.error());
  return {"NVRTC", State::kWorks, health->nvrtc + ", in a jailed worker (" + health->library + ")",
          ""};
}

Finding CheckOps() {
  const auto entries = ops::Library::Default().List();
  std::string names;
  for (const auto& entry : entries) {
    if (entry.error) return FromError("ops", *entry.error);
    names += (names.empty() ? "" : ", ") + entry.name;
  }
  if (entries.empty()) {
    return {"ops", State::kMissing, "no ops were found",
            "set ASSAY_OPS, or run assay from its source tree"};
  }
  return {"ops", State::kWorks, names, ""};
}

Finding CheckPrompts() {
  const auto prompts = prompts::PromptLibrary::Load(prompts::PromptLibrary::DefaultFolder());
  if (!prompts) return FromError("prompts", prompts.error());
  return {"prompts", State::kWorks, prompts::PromptLibrary::DefaultFolder().string(), ""};
}

Finding CheckKeys() {
  std::string set;
  for (const char* name : {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      set += (set.empty() ? "" : ", ") + std::string(name);
  }
  if (!set.empty()) return {"API keys", State::kWorks, set + " set", ""};
  return {"API keys", State::kOptional, "none in the environment",
          "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or use a local server through --base-url; "
          "replay/ and exec/ need none"};
}

/// A GPU is asked a question with a known answer, in its jailed worker; then what it can be measured by.
std::vector<Finding> CheckGpu(sandbox::Workers& workers) {
  engine::GpuEngine gpu(workers);
  const auto device = gpu.Describe();
  if (!device) {
    return {
        {"GPU", State::kOptional,
         "none that works, so kernels are judged on the emulator alone: " + device.error().message,
         ""}};
  }
  const auto count = gpu.Count();
  std::vector<Finding> findings = {
      {"GPU", State::kOptional,
       fmt::format(
           "{}{}; --engine gpu,emulator takes it as a second witness, gpu:N,emulator another "
           "one, gpu:*,emulator all",
           *device, count && *count > 1 ? fmt::format(", one of {}", *count) : ""),
       ""}};
  const auto sanitizer = sandbox::FindSanitizer(sandbox::Completed({}).toolkit);
  findings.push_back({"sanitizer", State::kOptional,
                      sanitizer ? "compute-sanitizer (" + sanitizer->string() +
                                      "): the device gate runs some cases under its tools"
                                : "no compute-sanitizer: no case runs under its tools",
                      sanitizer ? "" : "install the CUDA toolkit's compute-sanitizer"});
  const auto rates = gpu.Measure();
  if (!rates) {
    findings.push_back({"GPU speed", State::kOptional,
                        "cannot be measured: " + rates.error().message, rates.error().cure});
    return findings;
  }
  findings.push_back({"GPU speed", State::kOptional,
                      fmt::format("copies {:.0f} GB/s, a launch takes {:.1f} us, L2 has {} MiB; "
                                  "--speed judges by them",
                                  rates->copy_bytes_per_second * 1e-9, rates->launch_seconds * 1e6,
                                  rates->l2_bytes >> 20),
                      ""});
  std::string products;
  for (const MatrixRate& rate : rates->matrix) {
    products += fmt::format("{}{} {:.0f} TFLOP/s", products.empty() ? "" : ", ", rate.dtype,
                            rate.operations_per_second * 1e-12);
  }
  if (products.empty()) {
    findings.push_back({"cuBLASLt", State::kOptional,
                        rates->no_matrix + ": matrix products have no limit and no baseline",
                        "install CUDA's cuBLAS where the loader finds it (ldconfig)"});
  } else {
    findings.push_back({"cuBLASLt", State::kOptional, products, ""});
  }
  findings.push_back(
      {"cuDNN", State::kOptional,
       rates->tensors.empty()
           ? rates->no_tensors + ": softmax and sums of rows have no baseline"
           : rates->tensors + ", what softmax and sums of rows are measured against",
       rates->tensors.empty() ? "install cuDNN 9 where the loader finds it, or as a wheel" : ""});
  const Conditions& now = rates->now;
  findings.push_back({"GPU clocks", State::kOptional,
                      now.unknown.empty()
                          ? fmt::format("{} MHz, memory {} MHz, {:.0f} W, {} C", now.sm_mhz,
                                        now.memory_mhz, now.watts, now.celsius)
                          : "are not recorded beside times: " + now.unknown,
                      ""});
  return findings;
}

Result<int> Doctor(const WorkbenchOptions& options, bool json) {
  std::vector<Finding> findings = {CheckOwnLimits(), CheckJail()};
  auto pool = sandbox::WorkerPool::Create({.unsafe_no_jail = options.unsafe_no_jail});
  if (pool)
    findings.push_back(CheckCompiler(**pool));
  else
    findings.push_back(FromError("NVRTC", pool.error()));
  for (auto* check : {&CheckOps, &CheckPrompts, &CheckKeys}) findings.push_back((*check)());
  if (pool) {
    for (Finding& finding : CheckGpu(**pool)) findings.push_back(std::move(finding));
  }

  bool works = true;
  Json array = Json::array();
  std::string text;
  for (const Finding& finding : findings) {
    works = works && finding.state != State::kMissing;
    constexpr const char* kMarks[] = {"ok  ", "FAIL", "-   "};
    constexpr const char* kWords[] = {"works", "missing", "optional"};
    const auto state = static_cast<std::size_t>(finding.state);
    text += fmt::format("{} {:10} {}\n", kMarks[state], finding.what, finding.detail);
    if (!finding.fix.empty()) text += fmt::format("{:15} fix: {}\n", "", finding.fix);
    array.push_back({{"what", finding.what},
                     {"state", kWords[state]},
                     {"detail", finding.detail},
                     {"fix", finding.fix}});
  }
  if (json) ASSAY_TRY_VOID(PrintJson({{"works", works}, {"checks", array}}));
  Say(text);
  return works ? kExitDone : kExitEnvironment;
}

}  // namespace

void AddDoctor(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "doctor", "What works on this machine, what does not, and the fix for each.");
  auto options = std::make_shared<WorkbenchOptions>();
  AddWorkbenchOptions(*command, *options);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Example:\n"
      "  assay doctor --json\n"
      "Exit codes: 0 all that is needed works, 3 something is missing.");
  command->callback([&session, options] {
    session.run = [&session, options] { return Doctor(*options, session.json); };
  });
}

}  // namespace assay::cli
