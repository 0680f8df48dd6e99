// A plan without what only clears: launches in front that set workspace to zeros, as counters are before blocks draw from
// them.
//
// What is left of such a plan is often a single launch over memory that starts as zeros, of which far more can be told than
// of several (queue.h, together.cc). That the launch clears all of it is seen by running it, at each shape anew: one that
// clears too little where a case is large stays in the plan.
#include "validator/campaign/clears.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"

namespace assay::campaign {
namespace {

constexpr std::uint64_t kMostSteps = 16'000'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::uint8_t kGarbageBefore = 0xa7;

/// Does nothing outlive a launch but what it does to its arguments?
bool WritesArgumentsAlone(const facts::Facts* program) {
  return program != nullptr &&
         std::ranges::all_of(program->variables, [](const facts::Variable& variable) {
           return variable.written == facts::Answer::kNo;
         });
}

/// The workspace that a kernel takes; nothing where it takes other tensors, or too much.
std::vector<std::string> WorkspaceOf(const ops::ResolvedPlan& plan, const ops::Instance& instance,
                                     const ops::ResolvedKernel& kernel) {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
  for (const std::string& argument : kernel.args) {
    const auto workspace =
        std::ranges::find(plan.workspace, argument, &ops::ResolvedWorkspace::name);
    if (workspace != plan.workspace.end()) {
      names.push_back(argument);
      bytes += static_cast<std::uint64_t>(workspace->elements) * SizeOf(workspace->dtype);
    } else if (instance.op.FindOutput(argument) != nullptr ||
               std::ranges::any_of(instance.op.inputs, [&](const ops::TensorSpec& input) {
                 return input.name == argument && !input.is_scalar;
               })) {
      return {};
    }
  }
  if (bytes > kMostBytes) names.clear();
  return names;
}

enum class Does : std::uint8_t { kNothing, kStores, kCounts, kMore };

/// What a launch does to a buffer.
Does DoneTo(std::uint32_t buffer, const Launch& launch, const facts::Facts& program) {
  bool takes = false, stores = false, counts = false;
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    if (launch.args[i].kind == Argument::Kind::kScalar || launch.args[i].buffer != buffer) continue;
    takes = true;
    const std::string origin = fmt::format("{}#{}", launch.entry, i);
    for (const facts::MemoryUse& use : program.memory) {
      const auto is_of = [&](std::string_view one) {
        return std::ranges::find(use.origins, one) != use.origins.end();
      };
      if (is_of("unknown")) return Does::kMore;
      if (!is_of(origin)) continue;
      if (use.opcode == "st")
        stores = true;
      else if (use.opcode == "atom" || use.opcode == "red")
        counts = true;
      else
        return Does::kMore;
    }
  }
  if (stores && counts) return Does::kMore;
  return !takes ? Does::kNothing : counts ? Does::kCounts : stores ? Does::kStores : Does::kNothing;
}

/// Is it workspace that holds nothing at first, in which the first launch that takes it stores, and all others count? (What the
/// op overwrites holds something.)
bool CountsInWhatOthersStore(const std::string& name, const Execution& execution,
                             const ops::ResolvedPlan& plan, const facts::Facts& program) {
  const auto workspace = std::ranges::find(plan.workspace, name, &ops::ResolvedWorkspace::name);
  const auto spec = std::ranges::find(execution.buffers, name, &BufferSpec::name);
  if (workspace == plan.workspace.end() || workspace->zero || spec == execution.buffers.end())
    return false;
  const auto buffer = static_cast<std::uint32_t>(spec - execution.buffers.begin());
  bool is_set_up = false;
  for (const Launch& launch : execution.launches) {
    const Does does = DoneTo(buffer, launch, program);
    if (does == Does::kNothing) continue;
    if (does != (is_set_up ? Does::kCounts : Does::kStores)) return false;
    is_set_up = true;
  }
  return is_set_up;
}

}  // namespace

std::vector<Finding> LeftUncleared(const Report& report, const Execution& execution,
                                   const ops::ResolvedPlan& plan, const facts::Facts* program) {
  if (program == nullptr || program->memory_left_out != 0 || !report.watched.initialisation ||
      report.findings.size() >= execution.limits.max_findings)
    return {};
  // What a launch has stored that decides by what is not there nobody knows.
  const bool all = std::ranges::all_of(report.findings, [&](const Finding& finding) {
    return finding.kind == FindingKind::kUninitialisedUse && finding.memory &&
           CountsInWhatOthersStore(finding.memory->buffer, execution, plan, *program);
  });
  return all ? report.findings : std::vector<Finding>();
}

// Called for each part of a case; runs nothing where no launch in front takes workspace alone.
Result<ops::ResolvedPlan> Runner::PlanOfPart(const cases::Materialised& filled) const {
  const ops::Instance& instance = *subject_.instance;
  ASSAY_TRY(ops::ResolvedPlan plan, ops::Resolve(*subject_.plan, instance, filled.axes));
  while (plan.kernels.size() > 1 && WritesArgumentsAlone(subject_.compiled->facts.get())) {
    const std::vector<std::string> cleared = WorkspaceOf(plan, instance, plan.kernels.front());
    if (cleared.empty()) break;
    ops::ResolvedPlan first = plan;
    first.kernels.resize(1);
    const std::array calls = {
        engine::Call{.plan = &first, .axes = &filled.axes, .inputs = &filled.inputs}};
    auto bound = engine::Bind(instance, *subject_.compiled, calls,
                              {.poison = kGarbageBefore, .updates_nothing = true});
    if (!bound) break;
    bound->execution.limits.max_steps = kMostSteps;
    ASSAY_TRY(const Report report,
              engine_.Run(bound->execution, bound->buffers, engine::Trust::kCandidate));
    const auto is_clear = [&](std::size_t buffer) {
      const BufferSpec& spec = bound->execution.buffers[buffer];
      return spec.role != BufferRole::kWorkspace ||
             std::ranges::find(cleared, spec.name) == cleared.end() ||
             std::ranges::all_of(bound->buffers[buffer]->bytes(),
                                 [](std::byte byte) { return byte == std::byte{0}; });
    };
    bool clears = report.stop == Stop::kCompleted && report.findings.empty();
    for (std::size_t buffer = 0; clears && buffer < bound->buffers.size(); ++buffer)
      clears = is_clear(buffer);
    if (!clears) break;
    plan.kernels.erase(plan.kernels.begin());
    for (ops::ResolvedWorkspace& workspace : plan.workspace)
      workspace.zero =
          workspace.zero || std::ranges::find(cleared, workspace.name) != cleared.end();
  }
  return plan;
}

}  // namespace assay::campaign
