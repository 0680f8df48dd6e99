#include "validator/oracle/reference_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "ops/prelude.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"

namespace assay::oracle {
namespace {

// What the parts of a huge reference may take: a few seconds.
constexpr std::uint64_t kWindowSteps = 120'000'000;

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
          fmt::format("ASSAY_INDEPENDENT={}", flag(type.independent)),
          fmt::format("ASSAY_TRENDING={}", flag(type.trending)),
          fmt::format("ASSAY_IN_ORDER={}", flag(type.in_order)),
          fmt::format("ASSAY_APPROXIMATE={}", flag(contract.approximate_functions)),
          fmt::format("ASSAY_TENSOR_CORES={}", flag(TensorCoresApply(instance))),
          fmt::format("ASSAY_COARSE_TANH={}", flag(contract.coarse_tanh))};
}

std::string Place(const ops::Instance& instance) {
  return fmt::format("reference of {} ({})", instance.op.name,
                     instance.op.reference.source.string());
}

Result<ops::LaunchPlan> ReadPlan(const ops::OpSpec& op) {
  const std::string file = op.reference.launch.string();
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

/// The thread of a one-dimensional launch that writes element `index`: there is a thread for each
/// element of the leading axes (all of them, or all but the row's). Nothing where the grid fits no
/// such reading.
std::optional<std::uint64_t> ThreadWriting(const Launch& launch, const Shape& shape,
                                           std::int64_t index) {
  if (launch.grid[1] * launch.grid[2] * launch.block[1] * launch.block[2] != 1) return std::nullopt;
  const std::int64_t threads = launch.block[0];
  std::int64_t inner = 1;
  for (std::size_t d = shape.size() + 1; d-- > 0;) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < d; ++i) rows *= shape[i];
    if ((rows + threads - 1) / threads == launch.grid[0])
      return static_cast<std::uint64_t>(index / inner);
    if (d > 0) inner *= shape[d - 1];
  }
  return std::nullopt;
}

/// The same threads in the smallest blocks that a grid has room for, so that little runs beside what
/// is wanted. References know thread_index() alone.
void MakeBlocksSmall(Launch& launch) {
  constexpr std::uint64_t kMostBlocks = 0x7fffffff;
  const std::uint64_t all = std::uint64_t{launch.grid[0]} * launch.block[0];
  std::uint64_t threads = 1;
  while ((all + threads - 1) / threads > kMostBlocks) threads *= 2;
  launch.block[0] = static_cast<std::uint32_t>(threads);
  launch.grid[0] = static_cast<std::uint32_t>((all + threads - 1) / threads);
}

/// Cuts every grid beyond kWholeGrid down to the threads that write what is wanted.
bool CutToWanted(engine::Binding& binding, const facts::Facts* program, const Wanted& wanted) {
  Execution& execution = binding.execution;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    Launch& launch = execution.launches[i];
    if (std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] <= engine::kWholeGrid)
      continue;
    if (engine::MayCut(execution, program, i) != engine::Cut::kIndependent) return false;
    const Launch whole = launch;
    MakeBlocksSmall(launch);
    std::set<std::uint64_t> blocks;
    for (const auto& [name, elements] : wanted) {
      const std::size_t buffer = binding.calls.front().buffer_of.find(name)->second;
      const bool written = std::ranges::any_of(launch.args, [&](const Argument& argument) {
        return argument.kind == Argument::Kind::kBuffer && argument.buffer == buffer;
      });
      Shape shape = binding.calls.front().outputs.find(name)->second.shape;
      shape.pop_back();  // the words of a cell
      std::set<std::uint64_t> mine;
      for (const std::int64_t index : elements) {
        if (!written || mine.size() >= ReferenceRunner::kBlocksOfAnOutput) break;
        const auto thread = ThreadWriting(whole, shape, index);
        if (!thread) return false;
        mine.insert(*thread / launch.block[0]);
      }
      blocks.insert(mine.begin(), mine.end());
    }
    if (blocks.empty()) blocks.insert(0);
    for (const std::uint64_t block : blocks) launch.only.push_back({block, 1});
  }
  return true;
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

}  // namespace

bool TensorCoresApply(const ops::Instance& instance) {
  for (const ops::TensorSpec& input : instance.op.inputs) {
    const DType type = instance.TypeOf(input);
    if (!input.is_scalar && IsFloat(type) && Precision(type) > 11) return false;
  }
  return instance.op.contract.tensor_cores;
}

Result<engine::CompiledKernel> ReferenceRunner::Compile(const ops::Instance& instance,
                                                        const NumberType& type,
                                                        const ops::LaunchPlan& plan) {
  engine::CompileRequest request;
  request.trust = engine::Trust::kReference;
  ASSAY_TRY(request.source, ReadFile(instance.op.reference.source, 4u << 20));
  request.file_name = "reference.cu";
  request.headers = ops::PreludeHeaders();
  request.defines = ops::ReferenceDefines(instance);
  for (std::string& define : NumberDefines(instance, type))
    request.defines.push_back(std::move(define));
  request.arch = instance.arch;
  for (const ops::KernelPlan& kernel : plan.kernels) request.entries.push_back(kernel.entry);
  request.want_cubin = false;

  const std::string key =
      fmt::format("{} {} {} {} {}", instance.op.digest, request.arch,
                  fmt::join(request.defines, " "), ops::PreludeDigest(), plan.digest);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = compiled_.find(key); found != compiled_.end()) return found->second;
  }
  ASSAY_TRY(engine::CompileOutcome outcome, compiler_.Compile(request));
  if (outcome.kind != engine::CompileOutcome::Kind::kCompiled) {
    return Fail(ErrorKind::kMalformedInput, "does not compile: " + Describe(outcome),
                Place(instance), "correct the reference; docs/ops.md describes its language");
  }
  const std::lock_guard lock(mutex_);
  return compiled_.emplace(key, std::move(outcome.kernel)).first->second;
}

Status ReferenceRunner::Check(const ops::Instance& instance) {
  const ops::Instance wide = Widened(instance, {});
  ASSAY_TRY(const ops::LaunchPlan plan, ReadPlan(wide.op));
  if (const auto compiled = Compile(instance, {}, plan); !compiled)
    return std::unexpected(compiled.error());
  return {};
}

Result<Cells> ReferenceRunner::Run(const ops::Instance& instance, const NumberType& type,
                                   const ops::AxisValues& axes, const TensorMap& inputs) {
  return Run(instance, type, axes, inputs, nullptr);
}

Result<Cells> ReferenceRunner::RunAt(const ops::Instance& instance, const NumberType& type,
                                     const ops::AxisValues& axes, const TensorMap& inputs,
                                     const Wanted& wanted) {
  return Run(instance, type, axes, inputs, &wanted);
}

Result<Cells> ReferenceRunner::Run(const ops::Instance& instance, const NumberType& type,
                                   const ops::AxisValues& axes, const TensorMap& inputs,
                                   const Wanted* wanted) {
  const ops::Instance wide = Widened(instance, type);
  ASSAY_TRY(const ops::LaunchPlan plan, ReadPlan(wide.op));
  ASSAY_TRY(const engine::CompiledKernel compiled, Compile(instance, type, plan));
  ASSAY_TRY(ops::ResolvedPlan resolved, ops::Resolve(plan, wide, axes));
  // Only now: a workspace that an implementation may have is not too large for its bounds.
  for (const ops::WorkspacePlan& workspace : plan.workspace) {
    if (workspace.dtype_name != "Real") continue;
    const auto found =
        std::ranges::find(resolved.workspace, workspace.name, &ops::ResolvedWorkspace::name);
    if (found != resolved.workspace.end()) found->elements *= type.RealWords();
  }
  const std::array calls = {engine::Call{.plan = &resolved, .axes = &axes, .inputs = &inputs}};
  ASSAY_TRY(engine::Binding binding,
            engine::Bind(wide, compiled, calls,
                         {.poison = static_cast<std::uint8_t>(wanted != nullptr ? 0 : 0xff)}));
  binding.execution.checks = Checks{.initialisation = true, .race = false, .barrier = true};
  binding.execution.limits.max_steps = 200'000'000'000;
  if (wanted != nullptr) {
    // Terabytes of cells cannot be tracked byte by byte; the full runs of small cases are.
    binding.execution.checks.initialisation = false;
    binding.execution.limits.max_steps = kWindowSteps;
    if (!CutToWanted(binding, compiled.facts.get(), *wanted)) {
      return Fail(ErrorKind::kUnsupported, "cannot be run in part", Place(instance));
    }
  }
  ASSAY_TRY(const Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kReference));
  if (wanted != nullptr && report.stop != Stop::kCompleted) {
    return Fail(ErrorKind::kLimit,
                fmt::format("cannot be run to its end even in part ({}): {}", Name(report.stop),
                            report.reason),
                Place(instance));
  }
  if (!report.findings.empty()) {
    return Fail(ErrorKind::kMalformedInput,
                "has a defect of its own: " + report.findings.front().message, Place(instance),
                "correct the reference");
  }
  if (report.stop != Stop::kCompleted) {
    const ErrorKind kind = report.stop == Stop::kUnsupported     ? ErrorKind::kUnsupported
                           : report.stop == Stop::kEngineFailure ? ErrorKind::kInternal
                                                                 : ErrorKind::kLimit;
    return Fail(kind, fmt::format("did not complete ({}): {}", Name(report.stop), report.reason),
                Place(instance));
  }
  for (const auto& [name, buffer] : binding.calls.front().buffer_of) {
    if (wanted == nullptr && buffer < report.unwritten_bytes.size() &&
        report.unwritten_bytes[buffer] != 0) {
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("leaves {} bytes of the output '{}' unwritten",
                              report.unwritten_bytes[buffer], name),
                  Place(instance), "write every element");
    }
  }
  return std::move(binding.calls.front().outputs);
}

}  // namespace assay::oracle
