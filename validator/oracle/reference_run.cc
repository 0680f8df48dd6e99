#include "validator/oracle/reference_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "ops/load_sources.h"
#include "ops/prelude.h"
#include "validator/cases/case.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"
#include "validator/oracle/number_kind.h"
#include "validator/oracle/oracle.h"
#include "validator/oracle/reference_part.h"

namespace assay::oracle {
namespace {

// What the parts of a huge reference may take: warps, of which some have one lane that works, or single threads; and so many of
// these for each output.
constexpr std::uint64_t kWindowWarpSteps = 20'000'000, kWindowSteps = 64 * kWindowWarpSteps;
constexpr std::uint64_t kThreadSteps = 150'000'000;
constexpr std::uint64_t kWarpsOfAnOutput = 256, kThreadsOfAnOutput = 6;
// What a slice of a reference may take: whole warps do 32 times as much in hardly more time.
constexpr std::uint64_t kSliceSteps = 6'000'000'000;
// However little it takes: no more warps for each output, nor more elements.
constexpr std::size_t kMostElements = 1 << 19;
constexpr std::size_t kMostWarps = 48;

// Of one buffer: as many as lie in its range of addresses (emu/address_space.h), with room to spare.
constexpr std::int64_t kMostWords = std::int64_t{15} << 33;

std::string_view FormatName(DType type) {
  switch (type) {
    case DType::kBF16:
      return "Bf16Format";
    case DType::kF16:
      return "F16Format";
    default:
      return "F32Format";
  }
}

std::vector<std::string> NumberDefines(const ops::Instance& instance, const NumberType& type) {
  const ops::Contract& contract = instance.op.contract;
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  if (type.kind == NumberType::Kind::kRounded) {
    constexpr std::array kRoundings = {"kNearest", "kTowardZero", "kStochastic"};
    return {fmt::format("ASSAY_ROUNDED_FORMAT={}", FormatName(type.format)),
            fmt::format("ASSAY_ROUNDING={}", kRoundings[static_cast<std::size_t>(type.rounding)]),
            fmt::format("ASSAY_SEED={}ull", type.seed),
            fmt::format("ASSAY_FUSED={}", flag(type.fused))};
  }
  return {fmt::format("ASSAY_CONTRACT_FORMAT={}", FormatName(contract.accumulate)),
          fmt::format("ASSAY_APPROXIMATE={}", flag(contract.approximate_functions)),
          fmt::format("ASSAY_TENSOR_CORES={}", flag(TensorCoresApply(instance))),
          fmt::format("ASSAY_HALF_INPUTS={}",
                      flag(std::ranges::any_of(instance.op.inputs,
                                               [&](const ops::TensorSpec& input) {
                                                 return instance.TypeOf(input) == DType::kF16;
                                               }))),
          fmt::format("ASSAY_COARSE_TANH={}", flag(contract.coarse_tanh))};
}

std::string Place(const ops::Instance& instance, const Path& source) {
  return fmt::format("reference of {} ({})", instance.op.name, source.string());
}
std::string Place(const ops::Instance& instance) {
  return Place(instance, instance.op.reference.source);
}

Result<ops::LaunchPlan> ReadPlan(const ops::OpSpec& op, const Path& launch) {
  const std::string file = launch.string();
  ASSAY_TRY(const Json document, ReadJsonFile(file));
  return ops::ParseLaunchPlan(document, file, op);
}

/// The op as its reference sees it (ops::ReferenceOf): outputs are cells of doubles, workspace of
/// dtype "Real" is words of doubles.
ops::Instance Widened(const ops::Instance& instance, const NumberType& type) {
  ops::Instance wide = instance;
  wide.op = ops::ReferenceOf(instance.op);
  for (ops::TensorSpec& output : wide.op.outputs) {
    output.dtype_name = "f64";
    output.shape.push_back(ops::Expression::Constant(type.CellWords()));
  }
  wide.op.dtypes["Real"] = {DType::kF64};
  wide.binding["Real"] = DType::kF64;
  return wide;
}

std::string Describe(const engine::CompileOutcome& outcome) {
  std::vector<std::string> lines;
  for (const engine::Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.severity != engine::Diagnostic::Severity::kError) continue;
    lines.push_back(fmt::format("{}:{}: {}", diagnostic.file, diagnostic.line, diagnostic.message));
    if (lines.size() == 3) break;
  }
  if (lines.empty()) return outcome.detail.empty() ? "the compiler gave no reason" : outcome.detail;
  return fmt::format("{}", fmt::join(lines, "; "));
}

Error DefectOf(const Report& report, const ops::Instance& instance) {
  return Error{ErrorKind::kMalformedInput,
               "has a defect of its own: " + report.findings.front().message, Place(instance),
               "correct the reference"};
}

}  // namespace

bool TensorCoresApply(const ops::Instance& instance) {
  for (const ops::TensorSpec& input : instance.op.inputs) {
    const DType type = instance.TypeOf(input);
    if (!input.is_scalar && IsFloat(type) && Precision(type) > 11) return false;
  }
  return instance.op.contract.tensor_cores;
}

// A plan, with all that is compiled of the source that it launches.
struct ReferenceRunner::Program {
  ops::LaunchPlan plan;
  Path source;
  std::vector<std::string> entries;
  std::string digest;  ///< Of the plans behind these.
};

Result<std::shared_ptr<const ReferenceRunner::Program>> ReferenceRunner::ProgramOf(
    const ops::OpSpec& op, Extent extent) {
  const bool part = extent == Extent::kPart && op.parts;
  const std::pair key(op.digest, part);
  if (!op.digest.empty()) {
    const std::lock_guard lock(mutex_);
    if (const auto known = programs_.find(key); known != programs_.end()) return known->second;
  }
  ASSAY_TRY(Program read, ReadProgram(op, part));
  auto program = std::make_shared<const Program>(std::move(read));
  const std::lock_guard lock(mutex_);
  programs_.insert_or_assign(key, program);
  return program;
}

// By one source for both plans, or by two.
Result<ReferenceRunner::Program> ReferenceRunner::ReadProgram(const ops::OpSpec& op, bool part) {
  Program program;
  const bool by_parts = part && op.parts;
  ASSAY_TRY(program.plan, ReadPlan(op, by_parts ? op.parts->launch : op.reference.launch));
  program.source = by_parts ? op.parts->source : op.reference.source;
  const auto add = [&](const ops::LaunchPlan& plan) {
    program.digest += plan.digest;
    for (const ops::KernelPlan& kernel : plan.kernels) {
      if (std::ranges::find(program.entries, kernel.entry) == program.entries.end())
        program.entries.push_back(kernel.entry);
    }
  };
  if (!op.parts || op.parts->source != op.reference.source) {
    add(program.plan);
    return program;
  }
  for (const Path& launch : {op.reference.launch, op.parts->launch}) {
    ASSAY_TRY(const ops::LaunchPlan plan, ReadPlan(op, launch));
    add(plan);
  }
  return program;
}

ReferenceRunner::CompiledOrNot ReferenceRunner::CompileAnew(const ops::Instance& instance,
                                                            const NumberType& type,
                                                            const Program& program,
                                                            std::vector<std::string> defines) {
  engine::CompileRequest request;
  request.trust = engine::Trust::kReference;
  ASSAY_TRY(request.source, ReadFile(program.source, 4u << 20));
  request.file_name = program.source.filename().string();
  request.headers = ops::PreludeHeaders();
  request.defines = std::move(defines);
  request.arch = instance.arch;
  request.entries = program.entries;
  request.want_cubin = false;
  ASSAY_TRY(engine::CompileOutcome outcome, compiler_.Compile(request));
  if (outcome.kind == engine::CompileOutcome::Kind::kTimedOut) {
    return Fail(ErrorKind::kLimit, "takes too long to compile: " + outcome.detail,
                Place(instance, program.source),
                "try again when the machine is less busy; one that always takes this long has to "
                "be simpler");
  }
  if (outcome.kind != engine::CompileOutcome::Kind::kCompiled) {
    return Fail(ErrorKind::kMalformedInput, "does not compile: " + Describe(outcome),
                Place(instance, program.source),
                "correct the reference; docs/ops.md describes its language");
  }
  if (type.kind == NumberType::Kind::kBounded) {
    // One compilation serves all kinds of bounded numbers: the compiler keeps what it made.
    ASSAY_TRY(outcome.kernel.ptx, WithRunFlags(outcome.kernel.ptx, RunFlags(type)));
    outcome.kernel.digest = Sha256Hex(outcome.kernel.ptx);
  }
  return std::make_shared<const engine::CompiledKernel>(std::move(outcome.kernel));
}

// Whoever comes while another one compiles the same waits for that.
ReferenceRunner::CompiledOrNot ReferenceRunner::Compile(const ops::Instance& instance,
                                                        const NumberType& type,
                                                        const Program& program) {
  std::vector<std::string> defines = ops::ReferenceDefines(instance);
  for (std::string& define : NumberDefines(instance, type)) defines.push_back(std::move(define));
  const bool bounded = type.kind == NumberType::Kind::kBounded;
  const std::string key = fmt::format("{} {} {} {} {} {} {}", instance.op.digest, instance.arch,
                                      fmt::join(defines, " "), ops::PreludeDigest(), program.digest,
                                      program.source.string(), bounded ? RunFlags(type) : 0);
  std::promise<CompiledOrNot> promise;
  {
    std::unique_lock lock(mutex_);
    const auto [found, is_new] = compiled_.try_emplace(key, promise.get_future().share());
    if (!is_new) {
      const std::shared_future<CompiledOrNot> compiling = found->second;
      lock.unlock();
      return compiling.get();
    }
  }
  try {
    CompiledOrNot compiled = CompileAnew(instance, type, program, std::move(defines));
    promise.set_value(compiled);
    if (compiled) return compiled;
    // Another time it may go better.
    const std::lock_guard lock(mutex_);
    compiled_.erase(key);
    return compiled;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    compiled_.erase(key);
    throw;
  }
}

std::future<Status> ReferenceRunner::CompileBeside(const ops::Instance& instance, Extent extent) {
  return std::async(std::launch::async, [this, instance, extent]() -> Status {
    ASSAY_TRY(const auto program, ProgramOf(Widened(instance, {}).op, extent));
    const auto compiled = Compile(instance, {}, *program);
    if (!compiled) return std::unexpected(compiled.error());
    return {};
  });
}

Status ReferenceRunner::Check(const ops::Instance& instance) {
  std::future<Status> part = CompileBeside(instance, Extent::kPart);
  ASSAY_TRY_VOID(CompileBeside(instance, Extent::kWhole).get());
  return part.get();
}

Status ReferenceRunner::Prepare(const ops::Instance& instance) {
  std::future<Status> part = CompileBeside(instance, Extent::kPart);
  Status whole = CompileBeside(instance, Extent::kWhole).get();
  const std::lock_guard lock(mutex_);
  behind_.push_back(std::move(part));
  return whole;
}

struct ReferenceRunner::Bound {
  ops::Instance wide;
  std::shared_ptr<const engine::CompiledKernel> compiled;
  ops::ResolvedPlan plan;
  engine::Binding binding;
};

Result<std::unique_ptr<ReferenceRunner::Bound>> ReferenceRunner::Bind(const ops::Instance& instance,
                                                                      const NumberType& type,
                                                                      const ops::AxisValues& axes,
                                                                      const TensorMap& inputs,
                                                                      Extent extent) {
  auto bound = std::make_unique<Bound>();
  bound->wide = Widened(instance, type);
  ASSAY_TRY(const auto program, ProgramOf(bound->wide.op, extent));
  const ops::LaunchPlan& plan = program->plan;
  ASSAY_TRY(bound->compiled, Compile(instance, type, *program));
  ASSAY_TRY(bound->plan, ops::Resolve(plan, bound->wide, axes));
  // Only now: a workspace that an implementation may have is not too large for its bounds.
  for (const ops::WorkspacePlan& workspace : plan.workspace) {
    if (workspace.dtype_name != "Real") continue;
    const auto found =
        std::ranges::find(bound->plan.workspace, workspace.name, &ops::ResolvedWorkspace::name);
    if (found == bound->plan.workspace.end()) continue;
    if (found->elements > kMostWords / type.RealWords()) {
      return Fail(ErrorKind::kLimit, "the reference's workspace is too large for the emulator",
                  Place(instance) + ": workspace " + workspace.name);
    }
    found->elements *= type.RealWords();
  }
  const std::array calls = {engine::Call{.plan = &bound->plan, .axes = &axes, .inputs = &inputs}};
  ASSAY_TRY(bound->binding, engine::Bind(bound->wide, *bound->compiled, calls, {.poison = 0xff}));
  if (extent == Extent::kWhole) return bound;
  // Of parts, what was not computed reads as zero, as fresh memory does; and what was computed stays.
  for (BufferSpec& buffer : bound->binding.execution.buffers) {
    if (buffer.fill == BufferFill::kUninitialised) buffer.fill = BufferFill::kProvided;
  }
  return bound;
}

Result<Report> ReferenceRunner::RunPart(const ops::Instance& instance, engine::Binding& binding,
                                        std::uint64_t max_steps) {
  // Terabytes of cells cannot be tracked byte by byte; the full runs of small cases are.
  binding.execution.checks = Checks{.initialisation = false, .race = false, .barrier = true};
  binding.execution.limits.max_steps = max_steps;
  ASSAY_TRY(Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kReference));
  if (report.stop != Stop::kCompleted) {
    return Fail(ErrorKind::kLimit,
                fmt::format("cannot be run to its end even in part ({}): {}", Name(report.stop),
                            report.reason),
                Place(instance));
  }
  if (!report.findings.empty()) return std::unexpected(DefectOf(report, instance));
  return report;
}

Result<Cells> ReferenceRunner::RunAt(const ops::Instance& instance, const NumberType& type,
                                     const ops::AxisValues& axes, const TensorMap& inputs,
                                     const Wanted& wanted) {
  // A first warp of each output tells how many there is time for: each thread may loop over a long axis. Where one takes too
  // long, single threads of it may not.
  std::uint64_t steps = 0;
  const auto run = [&](std::size_t most, Unit unit) -> Result<Cells> {
    ASSAY_TRY(const auto bound, Bind(instance, type, axes, inputs, Extent::kPart));
    engine::Binding& binding = bound->binding;
    if (!CutToWanted(binding, bound->compiled->facts.get(), wanted, most, unit))
      return Fail(ErrorKind::kUnsupported, "cannot be run in part", Place(instance));
    ASSAY_TRY(const Report report,
              RunPart(instance, binding, unit == Unit::kWarp ? kWindowSteps : kThreadSteps));
    steps = std::max<std::uint64_t>(report.counters.warp_steps, 1);
    return std::move(binding.calls.front().outputs);
  };
  Unit unit = Unit::kWarp;
  Result<Cells> one = run(1, unit);
  if (!one && one.error().kind == ErrorKind::kLimit) {
    unit = Unit::kThread;
    one = run(1, unit);
  }
  if (!one) return one;
  const std::uint64_t affordable = unit == Unit::kWarp
                                       ? std::min(kWarpsOfAnOutput, kWindowWarpSteps / steps)
                                       : std::min(kThreadsOfAnOutput, kThreadSteps / 2 / steps);
  if (affordable <= 1) return one;
  Result<Cells> several = run(affordable, unit);
  // The first one may have had less to do than others.
  const bool too_long = !several && several.error().kind == ErrorKind::kLimit;
  return too_long ? std::move(one) : std::move(several);
}

Result<Cells> ReferenceRunner::RunSlice(const ops::Instance& instance, const NumberType& type,
                                        const ops::AxisValues& axes, const TensorMap& inputs,
                                        std::uint64_t seed, const PartEffort& effort,
                                        Wanted& wanted) {
  // What computes each element by itself is mostly the dearer, where all of them are few.
  constexpr std::int64_t kSmall = 1 << 20;
  const bool small = cases::TotalElements(instance, axes) <= kSmall;
  if (small && instance.op.parts) {
    Wanted same = wanted;
    auto cells = RunWarps(instance, type, axes, inputs, seed, effort, Extent::kPart,
                          /*all_or_nothing=*/true, same);
    if (cells) {
      wanted = std::move(same);
      return cells;
    }
    const ErrorKind kind = cells.error().kind;
    if (kind != ErrorKind::kLimit && kind != ErrorKind::kUnsupported) return cells;
  }
  return RunWarps(instance, type, axes, inputs, seed, effort,
                  small ? Extent::kSmallPart : Extent::kPart, /*all_or_nothing=*/false, wanted);
}

namespace {

/// Of a run, what the launches took of which only some warps ran.
std::uint64_t WarpStepsOfCut(const Execution& execution, const Report& report) {
  double cut = 0, all = 0;
  for (std::size_t i = 0; i < std::min(execution.launches.size(), report.launch_steps.size());
       ++i) {
    const auto steps = static_cast<double>(report.launch_steps[i]);
    all += steps;
    if (!execution.launches[i].only.empty()) cut += steps;
  }
  const auto warp_steps = static_cast<double>(report.counters.warp_steps);
  return static_cast<std::uint64_t>(all > 0 ? warp_steps * cut / all : warp_steps);
}

/// After a run: what all launches wrote stays, and those that ran whole do so no more.
void KeepWhatRanWhole(Execution& execution) {
  std::erase_if(execution.launches, [](const Launch& launch) { return launch.only.empty(); });
  for (BufferSpec& buffer : execution.buffers) buffer.fill = BufferFill::kProvided;
}

}  // namespace

Result<Cells> ReferenceRunner::RunWarps(const ops::Instance& instance, const NumberType& type,
                                        const ops::AxisValues& axes, const TensorMap& inputs,
                                        std::uint64_t seed, const PartEffort& effort, Extent extent,
                                        bool all_or_nothing, Wanted& wanted) {
  // A warp that is worth it where another plan computes all at once, of which each lane may work.
  constexpr std::uint64_t kWarp = 32;
  constexpr std::uint64_t kWorthIt = kWarp * 2'000'000;
  ASSAY_TRY(const auto bound, Bind(instance, type, axes, inputs, extent));
  engine::Binding& binding = bound->binding;
  const auto warps = WarpsOf(binding, bound->compiled->facts.get(), wanted, seed);
  if (!warps) return Fail(ErrorKind::kUnsupported, "cannot be run in part", Place(instance));
  const std::size_t elements =
      std::max<std::size_t>(KeepWritten(*warps, 1, wanted, /*count_only=*/true), 1);
  std::size_t most = 0;
  for (const OutputWarps& one : *warps) most = std::max(most, one.warps.size());
  // A warp whose lanes share an element counts by that.
  most = std::min(most, kMostWarps * std::max<std::size_t>(kWarp / elements, 1));
  CutToWarps(binding, *warps, 0, 1);
  ASSAY_TRY(const Report first,
            RunPart(instance, binding, all_or_nothing ? kWorthIt : kSliceSteps));
  const std::uint64_t steps = std::max<std::uint64_t>(WarpStepsOfCut(binding.execution, first), 1);
  const std::uint64_t affordable =
      std::max(effort.warp_steps / steps,
               std::min<std::uint64_t>(effort.few_warps, effort.few_warp_steps / steps));
  if (all_or_nothing && affordable < most)
    return Fail(ErrorKind::kLimit, "each element by itself takes too long", Place(instance));
  const std::size_t count =
      std::max<std::size_t>(1, std::min<std::size_t>({most, affordable, kMostElements / elements}));
  if (count > 1) {
    CutToWarps(binding, *warps, 1, count);
    KeepWhatRanWhole(binding.execution);
    // The first warp may have had less to do than others.
    const std::uint64_t limit = all_or_nothing ? 2 * kWarp * effort.warp_steps : kSliceSteps;
    ASSAY_TRY_VOID(RunPart(instance, binding, limit));
  }
  KeepWritten(*warps, count, wanted, /*count_only=*/false);
  return std::move(binding.calls.front().outputs);
}

namespace {

/// After a run: leaves the launches that choices may reach, and what others made stays.
void KeepWhatHangsOnNoChoice(const ops::Instance& instance, const facts::Facts* program,
                             Execution& execution) {
  std::set<std::uint32_t> choices;
  for (std::uint32_t i = 0; i < execution.buffers.size(); ++i) {
    const ops::TensorSpec* const output = instance.op.FindOutput(execution.buffers[i].name);
    if (output != nullptr && output->relation.kind == ops::Relation::Kind::kChoice)
      choices.insert(i);
  }
  const std::vector<std::size_t> again = engine::LaunchesThatHangOn(execution, program, choices);
  std::vector<Launch> launches;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    Launch& launch = execution.launches[i];
    if (std::ranges::binary_search(again, i)) {
      launches.push_back(std::move(launch));
      continue;
    }
    for (const Argument& argument : launch.args) {
      if (argument.kind == Argument::Kind::kBuffer)
        execution.buffers[argument.buffer].fill = BufferFill::kProvided;
    }
  }
  execution.launches = std::move(launches);
}

}  // namespace

Result<double> ReferenceRunner::RunWhole(const ops::Instance& instance, const ops::AxisValues& axes,
                                         Bound& bound) {
  engine::Binding& binding = bound.binding;
  // What a reference leaves out shows where all is small; elsewhere looking for it would take a third of the time.
  constexpr std::int64_t kWatched = 1 << 15;
  binding.execution.checks =
      Checks{.initialisation = cases::TotalElements(instance, axes) <= kWatched,
             .race = false,
             .barrier = true};
  binding.execution.limits.max_steps = 200'000'000'000;
  ASSAY_TRY(const Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kReference));
  if (!report.findings.empty()) return std::unexpected(DefectOf(report, instance));
  if (report.stop != Stop::kCompleted) {
    const ErrorKind kind = report.stop == Stop::kUnsupported     ? ErrorKind::kUnsupported
                           : report.stop == Stop::kEngineFailure ? ErrorKind::kInternal
                                                                 : ErrorKind::kLimit;
    return Fail(kind, fmt::format("did not complete ({}): {}", Name(report.stop), report.reason),
                Place(instance));
  }
  for (const auto& [name, buffer] : binding.calls.front().buffer_of) {
    if (buffer < report.unwritten_bytes.size() && report.unwritten_bytes[buffer] != 0) {
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("leaves {} bytes of the output '{}' unwritten",
                              report.unwritten_bytes[buffer], name),
                  Place(instance), "write every element");
    }
  }
  return static_cast<double>(report.counters.warp_steps);
}

Result<Cells> ReferenceRunner::Run(const ops::Instance& instance, const NumberType& type,
                                   const ops::AxisValues& axes, const TensorMap& inputs) {
  ASSAY_TRY(const auto bound, Bind(instance, type, axes, inputs, Extent::kWhole));
  ASSAY_TRY(const double warp_steps, RunWhole(instance, axes, *bound));
  Cells cells(std::move(bound->binding.calls.front().outputs));
  cells.warp_steps = warp_steps;
  return cells;
}

Result<Cells> ReferenceRunner::RunOfChoices(const ops::Instance& instance, const NumberType& type,
                                            const ops::AxisValues& axes, const TensorMap& inputs,
                                            KeptRun& kept) {
  const bool again = kept.state != nullptr;
  if (!again) {
    ASSAY_TRY(std::shared_ptr<Bound> first, Bind(instance, type, axes, inputs, Extent::kWhole));
    kept.state = std::move(first);
  }
  Bound& bound = *static_cast<Bound*>(kept.state.get());
  if (again)
    KeepWhatHangsOnNoChoice(instance, bound.compiled->facts.get(), bound.binding.execution);
  ASSAY_TRY(const double warp_steps, RunWhole(instance, axes, bound));
  Cells cells;
  for (const auto& [name, tensor] : bound.binding.calls.front().outputs) {
    ASSAY_TRY(Tensor copy, tensor.Clone());
    cells.emplace(name, std::move(copy));
  }
  cells.warp_steps = kept.warp_steps += warp_steps;
  return cells;
}

}  // namespace assay::oracle
