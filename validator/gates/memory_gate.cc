// The memory gate: out of bounds, misaligned, undefined values that matter, writes to inputs,
// outputs left unwritten.
//
// Being the first gate that runs the candidate, it also reports what no other gate claims: traps,
// and launches or plans that fail for some shape only.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "validator/campaign/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

std::string Place(const campaign::OutputState& output) {
  return fmt::format("{}[{}]", output.name,
                     fmt::join(IndexOf(output.first_unwritten, output.shape), ","));
}

std::uint64_t Elements(const Shape& shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= static_cast<std::uint64_t>(extent);
  return elements;
}

Finding Unwritten(const campaign::OutputState& output) {
  Finding finding;
  finding.kind = FindingKind::kUnwrittenOutput;
  const std::string place = output.first_unwritten >= 0 ? Place(output) : output.name;
  finding.message =
      fmt::format("{} bytes of output '{}' are never written, the first of them in {}",
                  output.unwritten_bytes, output.name, place);
  finding.memory = MemoryPlace{.space = "global",
                               .buffer = output.name,
                               .index = std::max<std::int64_t>(output.first_unwritten, 0),
                               .elements = Elements(output.shape),
                               .address = 0,
                               .bytes = 0};
  finding.missing =
      "a write to every element of the output; outputs hold garbage before the launch";
  return finding;
}

}  // namespace

std::vector<Finding> ExamineMemory(const campaign::CaseRun& run) {
  std::vector<Finding> findings = run.plan_findings;
  bool faulted = !findings.empty() || run.report.stop != Stop::kCompleted;
  for (const Finding& finding : run.report.findings) {
    const std::string_view family = FamilyOf(finding.kind);
    if (family != "race" && family != "numeric" && family != "precision" && family != "property") {
      findings.push_back(finding);
    }
  }
  if (run.error || faulted) return findings;
  for (const campaign::OutputState& output : run.outputs) {
    // What was written from undefined bytes is undefined, and not unwritten.
    const bool reported = std::ranges::any_of(findings, [&](const Finding& finding) {
      return (finding.kind == FindingKind::kUnwrittenOutput ||
              finding.kind == FindingKind::kUninitialisedUse) &&
             finding.memory && finding.memory->buffer == output.name;
    });
    if (output.unwritten_bytes > 0 && !reported) findings.push_back(Unwritten(output));
  }
  return findings;
}

void RunMemoryGate(GateContext& context, verdict::GateResult& result) {
  context.Cases().Fill("memory", result);
}

}  // namespace assay::gates
