// A plan without what only clears: launches in front that set workspace to zeros, as counters are before blocks draw from
// them.
//
// What is left of such a plan is often a single launch over memory that starts as zeros, of which far more can be told than
// of several (queue.h, together.cc). That the launch clears all of it is seen by running it, at each shape anew: one that
// clears too little where a case is large stays in the plan.
#include <algorithm>
#include <array>
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

}  // namespace

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
