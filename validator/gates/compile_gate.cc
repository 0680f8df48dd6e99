// The compile gate: NVRTC's errors and warnings, the assembler's, register spills and resources
// beyond the target's limits.
//
// Warnings refute, because a wrong kernel often shows there first (a comparison that is always
// true, a shift that overflows); those that say nothing about correctness are listed in kBenign.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "validator/cases/shapes.h"
#include "validator/gates/gate.h"
#include "validator/policy/targets.h"

namespace assay::gates {
namespace {

using engine::CompileOutcome;
using engine::Diagnostic;

/// Spilling a few registers is a matter of taste; beyond this it is a mistake of a kind that people
/// want to know of.
constexpr std::uint64_t kMaxSpillBytes = 1024;

/// Warnings about style: right kernels have them too (`const int all_lanes = 0xffffffff`).
constexpr std::array<std::string_view, 10> kBenign = {
    "integer conversion resulted in a change of sign",
    "pointless comparison of unsigned integer with zero",
    "deprecated",
    "was declared but never referenced",
    "was set but never used",
    "never referenced",
    "is unreachable",
    "redefinition of macro",  // kernels that bring their own INFINITY
    "unrecognized GCC pragma",
    "missing return statement at end of non-void function \"main\""};

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

Finding FromDiagnostic(const Diagnostic& diagnostic) {
  Finding finding;
  finding.kind = diagnostic.severity == Diagnostic::Severity::kError ? FindingKind::kCompileError
                                                                     : FindingKind::kCompileWarning;
  finding.message = diagnostic.message;
  if (!diagnostic.context.empty())
    finding.message += fmt::format(" ({})", FirstLine(diagnostic.context));
  if (diagnostic.line > 0) {
    Access access;
    access.what = "refused here";
    access.threads = 0;
    access.site.column = diagnostic.column;
    access.site.file = diagnostic.file;
    access.site.line = diagnostic.line;
    finding.accesses.push_back(std::move(access));
  }
  return finding;
}

std::vector<Finding> Diagnostics(const CompileOutcome& outcome, Diagnostic::Severity severity) {
  std::vector<Finding> findings;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.severity != severity) continue;
    const bool benign = severity == Diagnostic::Severity::kWarning &&
                        std::ranges::any_of(kBenign, [&](std::string_view text) {
                          return diagnostic.message.find(text) != std::string::npos;
                        });
    if (!benign) findings.push_back(FromDiagnostic(diagnostic));
  }
  return findings;
}

Finding Beyond(std::string message, std::string cure) {
  Finding finding;
  finding.kind = FindingKind::kResourceLimit;
  finding.message = std::move(message);
  finding.cause = std::move(cure);
  return finding;
}

// One kernel at one shape. The first limit that it exceeds, if any.
std::optional<Finding> CheckLaunch(const ops::ResolvedKernel& launch,
                                   const engine::Resources& resources,
                                   const policy::Target& target) {
  const std::uint64_t shared = launch.shared_bytes + resources.static_shared_bytes;
  if (shared > target.shared_bytes_per_block) {
    return Beyond(
        fmt::format("kernel '{}' asks for {} bytes of shared memory, {} has {} for a block",
                    launch.entry, shared, target.arch, target.shared_bytes_per_block),
        "use smaller tiles, or tiles whose size does not grow with the shape");
  }
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  // Registers are allocated for whole warps.
  const std::uint64_t registers = (threads + 31) / 32 * 32 * resources.registers;
  if (registers > target.registers_per_block) {
    return Beyond(
        fmt::format("kernel '{}' needs {} registers for a block of {} threads, {} has {}",
                    launch.entry, registers, threads, target.arch, target.registers_per_block),
        "use smaller blocks or state __launch_bounds__");
  }
  return std::nullopt;
}

void CheckResources(const GateContext& context, const engine::CompiledKernel& compiled,
                    verdict::GateResult& result) {
  const policy::Target& target = policy::TargetOf(context.instance.arch);
  std::vector<Finding> findings;
  for (const auto& [entry, mangled] : compiled.lowered) {
    const auto found = compiled.resources.find(mangled);
    if (found == compiled.resources.end()) {
      // Without them nothing is known of spills, registers and shared memory.
      return SetInconclusive(result, "the assembler did not say what kernel '" + entry + "' needs");
    }
    const engine::Resources& resources = found->second;
    result.statistics.push_back({"registers", static_cast<double>(resources.registers),
                                 static_cast<double>(target.registers_per_thread), entry});
    const std::uint64_t spills = resources.spill_store_bytes + resources.spill_load_bytes;
    result.statistics.push_back(
        {"spilled_bytes", static_cast<double>(spills), static_cast<double>(kMaxSpillBytes), entry});
    if (spills > kMaxSpillBytes) {
      findings.push_back(
          Beyond(fmt::format("kernel '{}' spills {} bytes of registers to memory", entry, spills),
                 "keep fewer values alive: smaller tiles, less unrolling"));
    }
  }
  std::vector<ops::AxisValues> shapes;
  for (const ops::Workload& workload : context.instance.op.workloads)
    shapes.push_back(workload.axes);
  for (const cases::ShapeChoice& shape : cases::ExtremeShapes(context.instance))
    shapes.push_back(shape.axes);
  const auto generated =
      cases::GenerateShapes(context.instance, {.max_elements = INT64_MAX,
                                               .count = context.effort.shapes,
                                               .seed = context.options.seed,
                                               .constants = cases::ConstantsOf(context.Plan())});
  if (generated) {
    for (const cases::ShapeChoice& shape : *generated) shapes.push_back(shape.axes);
  }
  for (const ops::AxisValues& variables : shapes) {
    const auto axes = ops::ResolveAxes(context.instance.op, variables);
    if (!axes || !findings.empty()) continue;
    const auto plan = ops::Resolve(context.Plan(), context.instance, *axes);
    if (!plan) continue;  // the format gate's business
    for (const ops::ResolvedKernel& launch : plan->kernels) {
      const auto mangled = compiled.lowered.find(launch.entry);
      if (mangled == compiled.lowered.end()) continue;
      const auto resources = compiled.resources.find(mangled->second);
      const auto finding = CheckLaunch(
          launch, resources == compiled.resources.end() ? engine::Resources{} : resources->second,
          target);
      if (!finding) continue;
      verdict::Counterexample counterexample = TextCounterexample(context, "compile", {*finding});
      counterexample.probe.emplace().case_ = {
          .axes = variables, .seed = 0, .profiles = {}, .origin = "workload"};
      counterexample.description = cases::Describe(counterexample.probe->case_, context.instance);
      result.status = verdict::GateStatus::kRefuted;
      result.reason = "a launch goes beyond the target's limits";
      result.counterexamples.push_back(std::move(counterexample));
      return;
    }
  }
  if (!findings.empty()) RefuteText(context, std::move(findings), result);
}

/// Did it compile, without a word that refutes?
bool IsCompiled(const GateContext& context, const Result<CompileOutcome>& compilation,
                verdict::GateResult& result) {
  if (!compilation) {
    SetInconclusive(result, ToString(compilation.error()));
    return false;
  }
  switch (compilation->kind) {
    case CompileOutcome::Kind::kTimedOut:
      SetInconclusive(result, "the compiler ran out of time: " + compilation->detail +
                                  "; look for endless templates or constant expressions");
      return false;
    case CompileOutcome::Kind::kCrashed:
      SetInconclusive(result, "the compiler died: " + compilation->detail);
      return false;
    case CompileOutcome::Kind::kRefused: {
      std::vector<Finding> findings = Diagnostics(*compilation, Diagnostic::Severity::kError);
      if (findings.empty()) {
        Finding finding;
        finding.kind = FindingKind::kCompileError;
        finding.message = compilation->detail.empty()
                              ? "NVRTC refused the source without saying why"
                              : FirstLine(compilation->detail);
        findings.push_back(std::move(finding));
      }
      RefuteText(context, std::move(findings), result);
      return false;
    }
    case CompileOutcome::Kind::kCompiled:
      break;
  }
  std::vector<Finding> warnings = Diagnostics(*compilation, Diagnostic::Severity::kWarning);
  if (warnings.empty()) return true;
  RefuteText(context, std::move(warnings), result);
  return false;
}

}  // namespace

// Of the PTX; with one job at once of all, else of the rest when the first cases have run (GateContext::Assembled).
void RunCompileGate(GateContext& context, verdict::GateResult& result) {
  const Result<CompileOutcome>& compilation = context.Compile();
  if (!IsCompiled(context, compilation, result)) return;
  for (const ops::KernelPlan& kernel : context.Plan().kernels) {
    if (compilation->kernel.lowered.contains(kernel.entry)) continue;
    return SetInconclusive(result,
                           "the compiler did not say what became of kernel '" + kernel.entry + "'");
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason = compilation->kernel.compiler + " for " + context.instance.arch;
  context.compiled = result;
  if (const verdict::GateResult* const all = context.Assembled(context.options.jobs == 1))
    result = *all;
}

verdict::GateResult JudgeAssembled(const GateContext& context,
                                   const Result<CompileOutcome>& outcome) {
  verdict::GateResult result = context.compiled;
  if (!IsCompiled(context, outcome, result)) return result;
  const auto& of_ptx = context.compilation;
  if (!of_ptx || !*of_ptx || !engine::SameProgram(outcome->kernel, (*of_ptx)->kernel)) {
    SetInconclusive(result, "the compiler made other PTX when it assembled");
    return result;
  }
  CheckResources(context, outcome->kernel, result);
  return result;
}

}  // namespace assay::gates
