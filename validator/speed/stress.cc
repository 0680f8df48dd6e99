#include "validator/speed/stress.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "validator/engine/bind.h"

namespace assay::speed {
namespace {

struct Condition {
  StressPlan::Beside beside;
  bool graph;
  std::uint32_t misalign;  ///< Bytes by which addresses miss a 256-byte boundary.
  std::string_view text;
};
using Beside = StressPlan::Beside;
// 16 bytes: what vector accesses may rely on is what every allocation gives them.
constexpr Condition kConditions[] = {
    {Beside::kNothing, false, 0, "again"},
    {Beside::kNothing, true, 0, "from a graph"},
    {Beside::kNothing, false, 16, "at other addresses"},
    {Beside::kItself, false, 0, "beside a copy of itself"},
    {Beside::kBandwidth, false, 0, "beside something that takes the memory's bandwidth"},
    {Beside::kFewProcessors, false, 0, "with half of the processors taken away"},
};

}  // namespace

Result<Stressed> RunStressed(engine::Stopwatch& stopwatch, const Subject& subject,
                             const cases::Materialised& inputs, std::uint32_t repetitions) {
  Stressed result;
  ASSAY_TRY(const ops::ResolvedPlan plan,
            ops::Resolve(subject.plan, subject.instance, inputs.axes));
  for (const Condition& condition : kConditions) {
    const std::size_t copies = condition.beside == Beside::kItself ? 2 : 1;
    const std::vector<engine::Call> calls(
        copies, {.plan = &plan, .axes = &inputs.axes, .inputs = &inputs.inputs});
    ASSAY_TRY(engine::Binding binding, engine::Bind(subject.instance, subject.compiled, calls,
                                                    {.misalign = condition.misalign}));
    ASSAY_TRY(
        const engine::Stopwatch::Stressed stressed,
        stopwatch.Repeat(
            binding.execution,
            {.repetitions = repetitions, .beside = condition.beside, .graph = condition.graph},
            binding.buffers));
    ++result.conditions;
    result.repetitions += stressed.stress.made;
    result.findings = stressed.report.findings;
    if (stressed.stress.changed >= 0) {
      Finding finding;
      finding.kind = FindingKind::kNondeterministic;
      finding.message =
          fmt::format("outputs had other bits when the same case ran {} on the GPU, the {}th time",
                      condition.text, stressed.stress.changed + 1);
      result.findings.push_back(std::move(finding));
    }
    if (!result.findings.empty()) return result;
    if (stressed.report.stop != Stop::kCompleted) {
      return Fail(ErrorKind::kLimit, fmt::format("{}: {}", condition.text, stressed.report.reason),
                  "gpu");
    }
  }
  return result;
}

}  // namespace assay::speed
