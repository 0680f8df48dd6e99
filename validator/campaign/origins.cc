#include "validator/campaign/origins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validator/findings/render.h"
#include "validator/oracle/causes.h"

namespace assay::campaign {
namespace {

/// Of the error, that rounding must explain for lines to be named.
constexpr double kExplains = 0.5;
/// Of the error, that must remain in exact arithmetic for the formula to be blamed.
constexpr double kRemains = 0.8;

std::string Percent(double share) {
  const double percent = 100 * share;
  return percent >= 99.95  ? "all"
         : percent >= 99.0 ? fmt::format("{:.1f} %", percent)
         : percent >= 1    ? fmt::format("{:.0f} %", percent)
                           : fmt::format("{:.1g} %", percent);
}

std::string LineOf(const SourceSite& site) {
  if (site.line != 0) return DescribeLine(site);
  return site.ptx_line != 0 ? fmt::format("PTX line {}", site.ptx_line) : "other lines";
}

/// ", in `ex2.approx.ftz.f32 %f5, %f4;`"
std::string InstructionOf(const SourceSite& site) {
  return site.instruction.empty() ? std::string() : fmt::format(", in `{}`", site.instruction);
}

/// The part of the output that a finding is about.
OutputFocus FocusOf(const Finding& finding, const Shape& shape) {
  if (!finding.element) return {};
  std::int64_t flat = 0, total = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    flat = flat * shape[axis] + finding.element->index[axis];
    total *= shape[axis];
  }
  OutputFocus focus{.output = finding.element->output, .first = flat, .elements = 1};
  if (finding.kind == FindingKind::kPrecisionRow && !shape.empty()) {
    focus.first -= finding.element->index.back();
    focus.elements = shape.back();
  }
  if (finding.kind == FindingKind::kPrecisionBias) {
    focus.first = 0;
    focus.elements = total;
    focus.common_sign = true;
  }
  focus.elements = std::min(focus.elements, kMostFocusElements);
  return focus;
}

const OutputState* OutputOf(const CaseRun& run, const Finding& finding) {
  if (!finding.element) return nullptr;
  for (const OutputState& output : run.outputs) {
    if (output.name == finding.element->output &&
        output.shape.size() == finding.element->index.size())
      return &output;
  }
  return nullptr;
}

bool DeservesTrace(const Finding& finding) {
  return FamilyOf(finding.kind) == "precision" || finding.kind == FindingKind::kWrongValue;
}

/// The first infinity or NaN on the way to an element that is one.
void ExplainNotFinite(const ErrorTrace& trace, Finding& finding) {
  const ErrorShare& top = trace.origin.shares.front();
  finding.origins = trace.origin.shares;
  finding.origin = fmt::format("the first infinity or NaN that reaches it arises at {}{}",
                               LineOf(top.site), InstructionOf(top.site));
  if (trace.elements != 1) return;
  finding.origin +=
      std::isfinite(trace.exact)
          ? fmt::format("; the same operations in FP64 give {:.9g}", trace.exact)
          : "; the same operations in FP64 give no finite number either: it is no matter of range";
}

/// Of one element: are all its roundings together within what it is allowed, so that they are none to
/// blame, however much of the error they make? What is over the allowance then comes of the formula.
bool RoundsHonestly(const ErrorTrace& trace) {
  return trace.elements == 1 && trace.origin.lost == 0 && trace.origin.flipped == 0 &&
         trace.rounding <= trace.allowed && trace.error > trace.allowed && trace.formula > 0;
}

void Explain(const ErrorTrace& trace, Finding& finding) {
  const ErrorOrigin& origin = trace.origin;
  const bool honest = RoundsHonestly(trace);
  const bool rounding =
      !honest && trace.rounding >= kExplains * trace.error && !origin.shares.empty();
  if (trace.not_finite) {
    if (!origin.shares.empty()) ExplainNotFinite(trace, finding);
    return;
  }
  // What shadow values contradict is not said beside them.
  const oracle::Blame blame = oracle::BlameOf(finding.cause);
  if ((rounding && blame == oracle::Blame::kFormula) ||
      ((honest || trace.rounding < kExplains * trace.error) && origin.lost == 0 &&
       blame == oracle::Blame::kRounding))
    finding.cause.clear();
  if (rounding) {
    finding.origins = origin.shares;
    const ErrorShare& top = origin.shares.front();
    finding.origin =
        fmt::format("{} of the error enters at {}", Percent(top.share), LineOf(top.site));
    if (trace.elements == 1) {
      finding.origin += fmt::format("; the same operations in FP64 give {:.9g}", trace.exact);
    }
    if (origin.flipped > 0) {
      finding.origin += fmt::format(
          "; {} comparison{} would come out otherwise in FP64, so that shares are rough",
          origin.flipped, origin.flipped == 1 ? "" : "s");
    }
    return;
  }
  if (honest && finding.kind != FindingKind::kWrongValue) {
    finding.origin = fmt::format(
        "not a matter of rounding: the same operations in FP64 give {:.9g}, and what is rounded on "
        "the way ({:.3g}) is within what is allowed; what is computed differs from the op",
        trace.exact, trace.rounding);
    return;
  }
  // A wrong value says already that it is no rounding.
  if (finding.kind == FindingKind::kWrongValue || origin.lost > 0 || origin.flipped > 0) return;
  if (trace.formula < kRemains * trace.error || !(trace.formula > trace.allowed)) return;
  finding.origin = trace.elements == 1
                       ? fmt::format(
                             "not a matter of rounding: the same operations in FP64 give "
                             "{:.9g}; what is computed differs from the op",
                             trace.exact)
                       : fmt::format(
                             "not a matter of rounding: in FP64 {} of the error remains; "
                             "what is computed differs from the op",
                             Percent(std::min(1.0, trace.formula / trace.error)));
}

}  // namespace

void AddOrigins(const Runner& runner, const CaseRun& run, const verdict::Candidate& candidate,
                std::vector<Finding>& findings) {
  if (run.report.stop != Stop::kCompleted || run.report.counters.steps > kMostTracedSteps ||
      run.probe.ends_only)
    return;
  std::size_t traced = 0;
  for (Finding& finding : findings) {
    const OutputState* const output = OutputOf(run, finding);
    if (output == nullptr || !DeservesTrace(finding)) continue;
    if (++traced > kMostTraced) break;
    const auto trace = runner.Trace(run.probe, FocusOf(finding, output->shape));
    // Whatever goes wrong here takes nothing from the finding.
    if (!trace || !*trace) continue;
    const std::string said = finding.cause;
    Explain(**trace, finding);
    if (said.empty() || !finding.cause.empty()) continue;
    // Findings about one output come of one error.
    for (Finding& other : findings) {
      if (other.cause == said && other.element && other.element->output == finding.element->output)
        other.cause.clear();
    }
  }
  SourceText source;
  source.Add("kernel.cu", candidate.kernel);
  FillExcerpts(findings, source);
}

}  // namespace assay::campaign
