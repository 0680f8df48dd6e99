// assay sanitize: the emulator as a stand-alone sanitizer for any kernel, no op needed.
#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/workbench.h"
#include "ops/sanitize_plan.h"
#include "validator/engine/bind.h"
#include "validator/findings/render.h"

namespace assay::cli {
namespace {

struct Request {
  std::string kernel;
  std::string launch;
  std::string checks = "memory,init,race,barrier";
  std::uint64_t seed = 0;
  int schedules = 1;
  std::uint64_t max_steps = Limits{}.max_steps;
  WorkbenchOptions tools;
};

Result<Checks> ParseChecks(const std::string& list) {
  Checks checks{.initialisation = false, .race = false, .barrier = false};
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string word = list.substr(start, comma - start);
    if (word == "init") checks.initialisation = true;
    else if (word == "race") checks.race = true;
    else if (word == "barrier") checks.barrier = true;
    else if (word != "memory") {
      return Fail(ErrorKind::kUsage, "unknown check '" + word + "'", "--checks",
                  "use a comma-separated list of memory, init, race, barrier (memory is always on)");
    }
    start = comma + 1;
  }
  return checks;
}

struct Program {
  std::string ptx;
  std::map<std::string, std::string> lowered;
};

/// PTX as it is; CUDA C++ through the compile worker.
Result<Program> Load(const Request& request, const ops::SanitizePlan& plan, const std::string& text,
                     Workbench& bench) {
  if (Path(request.kernel).extension() == ".ptx") return Program{.ptx = text, .lowered = {}};
  engine::CompileRequest compile{.source = text,
                                 .file_name = Path(request.kernel).filename().string(),
                                 .headers = {},
                                 .defines = {},
                                 .user_options = plan.options,
                                 .arch = request.tools.arch,
                                 .entries = {},
                                 .want_cubin = false};
  for (const auto& kernel : plan.kernels) compile.entries.push_back(kernel.entry);
  ASSAY_TRY(auto outcome, bench.compiler().Compile(compile));
  if (outcome.kind == engine::CompileOutcome::Kind::kCompiled) {
    return Program{.ptx = std::move(outcome.kernel.ptx), .lowered = std::move(outcome.kernel.lowered)};
  }
  std::string log;
  for (const auto& diagnostic : outcome.diagnostics) {
    log += fmt::format("\n  {}:{}: {}", diagnostic.file, diagnostic.line, diagnostic.message);
  }
  return Fail(ErrorKind::kMalformedInput, "the kernel does not compile" + log + outcome.detail,
              request.kernel, "make it compile with NVRTC (device code only, no host headers)");
}

Result<Execution> Bind(const ops::SanitizePlan& plan, const Program& program) {
  Execution execution;
  execution.ptx = program.ptx;
  for (const auto& buffer : plan.buffers) {
    const bool undefined = buffer.init.kind == ops::BufferInit::Kind::kUninitialised;
    execution.buffers.push_back({.name = buffer.name,
                                 .dtype = buffer.dtype,
                                 .elements = buffer.elements,
                                 .role = BufferRole::kWorkspace,
                                 .fill = undefined ? BufferFill::kUninitialised : BufferFill::kProvided});
  }
  for (const auto& kernel : plan.kernels) {
    const auto lowered = program.lowered.find(kernel.entry);
    Launch launch{.entry = lowered == program.lowered.end() ? kernel.entry : lowered->second,
                  .grid = kernel.grid,
                  .block = kernel.block,
                  .cluster = kernel.cluster,
                  .shared_bytes = kernel.shared_bytes,
                  .cooperative = kernel.cooperative,
                  .args = {}};
    for (const std::string& name : kernel.args) {
      Argument argument{.kind = Argument::Kind::kScalar, .name = name, .buffer = 0, .bytes = {}};
      for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
        if (plan.buffers[i].name != name) continue;
        argument.kind = Argument::Kind::kBuffer;
        argument.buffer = i;
      }
      for (const auto& map : plan.tensor_maps) {
        if (map.name != name) continue;
        argument.kind = Argument::Kind::kTensorMap;
        while (plan.buffers[argument.buffer].name != map.tensor) ++argument.buffer;
        argument.map = engine::MapOver(map, plan.buffers[argument.buffer].dtype);
      }
      for (const auto& scalar : plan.scalars) {
        if (scalar.name != name) continue;
        argument.bytes = scalar.Bytes();
        argument.dtype = scalar.dtype;
      }
      launch.args.push_back(std::move(argument));
    }
    execution.launches.push_back(std::move(launch));
  }
  return execution;
}

/// Fresh buffers, filled as the plan says: every schedule starts from the same memory.
Result<std::vector<SharedMemory>> MakeBuffers(const ops::SanitizePlan& plan) {
  std::vector<SharedMemory> memories;
  for (const auto& buffer : plan.buffers) {
    const std::size_t bytes = static_cast<std::size_t>(buffer.elements) * SizeOf(buffer.dtype);
    ASSAY_TRY(SharedMemory memory, SharedMemory::Create(bytes, "assay-sanitize"));
    ASSAY_TRY_VOID(ops::FillBuffer(buffer, memory.bytes()));
    memories.push_back(std::move(memory));
  }
  return memories;
}

Status Save(const ops::SanitizePlan& plan, const std::vector<SharedMemory>& memories) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (!plan.buffers[i].save) continue;
    const auto bytes = memories[i].bytes();
    ASSAY_TRY_VOID(WriteFileAtomically(
        *plan.buffers[i].save, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return {};
}

/// The first schedule is the plain one; the others take turns among the policies.
Schedule ScheduleNumber(int number, std::uint64_t seed) {
  constexpr Schedule::Policy kTurns[] = {Schedule::Policy::kReversed, Schedule::Policy::kPermuted,
                                         Schedule::Policy::kPriorities};
  if (number == 0) return {.policy = Schedule::Policy::kSequential, .seed = seed};
  return {.policy = kTurns[static_cast<std::size_t>(number - 1) % std::size(kTurns)],
          .seed = seed + static_cast<std::uint64_t>(number)};
}

Result<int> Sanitize(const Request& request, bool json) {
  ASSAY_TRY(const Checks checks, ParseChecks(request.checks));
  ASSAY_TRY(const std::string text, ReadFile(request.kernel));
  ASSAY_TRY(const Json document, ReadJsonFile(request.launch));
  ASSAY_TRY(const ops::SanitizePlan plan,
            ops::ParseSanitizePlan(document, request.launch, Path(request.launch).parent_path()));
  ASSAY_TRY(auto bench, Workbench::Make(request.tools));
  ASSAY_TRY(const Program program, Load(request, plan, text, *bench));
  ASSAY_TRY(Execution execution, Bind(plan, program));
  execution.checks = checks;
  execution.limits.max_steps = request.max_steps;
  execution.target_sm = request.tools.arch;

  std::vector<Finding> findings;
  Report report;
  for (int number = 0; number < request.schedules; ++number) {
    ASSAY_TRY(std::vector<SharedMemory> memories, MakeBuffers(plan));
    std::vector<SharedMemory*> buffers;
    for (SharedMemory& memory : memories) buffers.push_back(&memory);
    execution.schedule = ScheduleNumber(number, request.seed);
    ASSAY_TRY(report, bench->engine().Run(execution, buffers, engine::Trust::kCandidate));
    findings.insert(findings.end(), report.findings.begin(), report.findings.end());
    if (number == 0) ASSAY_TRY_VOID(Save(plan, memories));
    if (report.stop != Stop::kCompleted && report.stop != Stop::kFault) break;
  }
  SortAndMerge(findings);
  const bool complete = report.stop == Stop::kCompleted || report.stop == Stop::kFault;
  const int exit = !findings.empty() ? kExitRefuted : complete ? kExitDone : kExitInconclusive;
  if (json) {
    PrintJson({{"schema", "assay.sanitize/1"},
               {"stop", Name(report.stop)},
               {"reason", report.reason},
               {"findings", ToJson(findings)},
               {"steps", report.counters.steps},
               {"schedules", request.schedules}});
    return exit;
  }
  SourceText source;
  source.Add(Path(request.kernel).filename().string(), text);
  for (const Finding& finding : findings) Say(RenderText(finding, source));
  if (!complete) Say(fmt::format("inconclusive: {}: {}", Name(report.stop), report.reason));
  Say(fmt::format("{} finding{}, {} instructions, {} schedule{}", findings.size(),
                  findings.size() == 1 ? "" : "s", report.counters.steps, request.schedules,
                  request.schedules == 1 ? "" : "s"));
  return exit;
}

}  // namespace

void AddSanitize(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("sanitize", "Run any kernel on the emulator and report what it does wrong.");
  auto request = std::make_shared<Request>();
  command->add_option("kernel", request->kernel, "A .cu or .ptx file.")->required();
  command->add_option("--launch", request->launch, "Launch file: grid, block, buffers, scalars.")->required();
  command->add_option("--checks", request->checks,
                      "Comma-separated: memory, init, race, barrier (memory is always on).");
  command->add_option("--schedules", request->schedules, "Run under this many schedules.")
      ->check(CLI::Range(1, 10000));
  command->add_option("--seed", request->seed, "Seed of the schedules.");
  command->add_option("--max-steps", request->max_steps, "Thread-level instructions before giving up.");
  AddWorkbenchOptions(*command, request->tools);
  command->add_flag("--json", session.json, "Print one JSON document on stdout.");
  command->footer(
      "Example:\n"
      "  assay sanitize kernel.cu --launch launch.json --schedules 20\n"
      "  where launch.json holds\n"
      "    {\"schema\": \"assay.launch/1\",\n"
      "     \"kernels\": [{\"entry\": \"k\", \"grid\": [4], \"block\": [256], \"shared_bytes\": 0, \"args\": [\"x\", \"n\"]}],\n"
      "     \"buffers\": {\"x\": {\"dtype\": \"f32\", \"elements\": 1024, \"init\": {\"kind\": \"iota\"}}},\n"
      "     \"scalars\": {\"n\": {\"dtype\": \"i32\", \"value\": 1024}}}\n"
      "Exit codes: 0 clean, 1 findings, 2 inconclusive, 3 bad input.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Sanitize(*request, session.json); };
  });
}

}  // namespace assay::cli
