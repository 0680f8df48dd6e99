#include "api/outward.h"

#include "base/json.h"
#include "validator/findings/render.h"
#include "validator/verdict/render.h"

namespace assay::api {
namespace {

template <class To, class From>
constexpr bool SamePlace(To to, From from) {
  return static_cast<int>(to) == static_cast<int>(from);
}
static_assert(SamePlace(ErrorKind::kUsage, assay::ErrorKind::kUsage) &&
              SamePlace(ErrorKind::kEnvironment, assay::ErrorKind::kEnvironment) &&
              SamePlace(ErrorKind::kMalformedInput, assay::ErrorKind::kMalformedInput) &&
              SamePlace(ErrorKind::kUnsupported, assay::ErrorKind::kUnsupported) &&
              SamePlace(ErrorKind::kNetwork, assay::ErrorKind::kNetwork) &&
              SamePlace(ErrorKind::kLimit, assay::ErrorKind::kLimit) &&
              SamePlace(ErrorKind::kInternal, assay::ErrorKind::kInternal));
static_assert(SamePlace(Outcome::kAccepted, verdict::Outcome::kAccepted) &&
              SamePlace(Outcome::kRefuted, verdict::Outcome::kRefuted) &&
              SamePlace(Outcome::kInconclusive, verdict::Outcome::kInconclusive) &&
              SamePlace(Outcome::kInternalError, verdict::Outcome::kInternalError));

Finding Outward(const assay::Finding& finding, const SourceText& source) {
  Finding shown{.kind = std::string(assay::Name(finding.kind)),
                .family = std::string(FamilyOf(finding.kind)),
                .message = finding.message,
                .missing = finding.missing,
                .cause = finding.cause,
                .sites = {},
                .text = RenderText(finding, source)};
  for (const Access& access : finding.accesses) {
    const SourceSite& site = access.site;
    shown.sites.push_back({site.file, site.line, site.column, access.what, site.excerpt});
  }
  return shown;
}

}  // namespace

std::string ToString(const Error& error) {
  return assay::ToString(
      {static_cast<assay::ErrorKind>(error.kind), error.message, error.place, error.cure});
}

std::string_view Name(Outcome outcome) {
  return verdict::Name(static_cast<verdict::Outcome>(outcome));
}

Error Outward(const assay::Error& error) {
  return {static_cast<ErrorKind>(error.kind), error.message, error.place, error.cure};
}

Outcome Outward(verdict::Outcome outcome) { return static_cast<Outcome>(outcome); }

Counterexample Outward(const verdict::Counterexample& counterexample) {
  Counterexample shown{.gate = counterexample.gate,
                       .description = counterexample.description,
                       .findings = {},
                       .json = PrettyJson(ToJson(counterexample))};
  SourceText source;
  source.Add("kernel.cu", counterexample.kernel);
  for (const assay::Finding& finding : counterexample.findings)
    shown.findings.push_back(Outward(finding, source));
  return shown;
}

Verdict Outward(const verdict::Verdict& verdict) {
  Verdict shown{.outcome = Outward(verdict.outcome),
                .reason = verdict.reason,
                .gates = {},
                .counterexamples = {},
                .text = RenderVerdict(verdict),
                .json = PrettyJson(ToJson(verdict))};
  for (const verdict::GateResult& gate : verdict.gates)
    shown.gates.push_back({gate.gate, std::string(Name(gate.status)), gate.reason, gate.cases});
  for (const verdict::Counterexample* const counterexample : verdict.Counterexamples())
    shown.counterexamples.push_back(Outward(*counterexample));
  return shown;
}

}  // namespace assay::api
