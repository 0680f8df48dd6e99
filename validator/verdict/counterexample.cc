#include "validator/verdict/counterexample.h"

#include <fmt/format.h>

#include "validator/execution/json_fields.h"
#include "validator/findings/render.h"

namespace assay::verdict {
namespace {

using CaseForm = JsonThrough<&cases::CaseFromJson>;
using FindingsForm = JsonThrough<&FindingsFromJson>;

/// A probe by its case; null where there is none. What else is in it stands in rows of its own.
struct CaseOfProbe {
  static Json Write(const std::optional<cases::Probe>& probe) {
    return probe ? ToJson(probe->case_) : Json(nullptr);
  }
  static Result<std::optional<cases::Probe>> Read(const Json& json, const std::string& place) {
    if (json.is_null()) return std::nullopt;
    cases::Probe probe;
    ASSAY_TRY(probe.case_, cases::CaseFromJson(json, place));
    return probe;
  }
};

}  // namespace

static constexpr auto JsonFields(const WorstSeen*) {
  using W = WorstSeen;
  return std::tuple(Required<AnyNumber>("ratio", &W::ratio),
                    Optional("description", &W::description), Optional("cause", &W::cause));
}
static constexpr auto JsonFields(const Counterexample*) {
  using C = Counterexample;
  using P = cases::Probe;
  return std::tuple(
      Schema("assay.counterexample/1"), Required("gate", &C::gate), Required("op", &C::op),
      Required("op_digest", &C::op_digest), Required("binding", &C::binding),
      Required("arch", &C::arch), Required("engine", &C::engine),
      Required<CaseOfProbe>("case", &C::probe), Optional("description", &C::description),
      Within(&C::probe, Optional<ListOf<cases::Case, CaseForm>>("prelude", &P::prelude)),
      Within(&C::probe, Optional("reuse_addresses", &P::reuse_addresses)),
      Within(&C::probe, Required("schedule", &P::schedule)),
      Within(&C::probe, Optional("perturbation_seed", &P::perturbation_seed)),
      Within(&C::probe, Required("poison", &P::poison)),
      Within(&C::probe, Required<Between<std::uint32_t, 0, 255>>("misalign", &P::misalign)),
      Within(&C::probe, Optional("ends_only", &P::ends_only)),
      Within(&C::probe, Sparse("slice_blocks", &P::slice_blocks)),
      Within(&C::probe, Sparse("needed_only", &P::needed_only)),
      Within(&C::probe, Sparse("apart", &P::apart)),
      Within(&C::probe, Sparse("places_only", &P::places_only)), Optional("property", &C::property),
      Required<FindingsForm>("findings", &C::findings), Required("kernel", &C::kernel),
      Required("launch", &C::launch), Sparse("worst", &C::worst),
      Ignored("texts"));  // `assay replay --json` says the findings in words as well
}

Counterexample MakeCounterexample(const ops::Instance& instance, const Candidate& candidate,
                                  std::string_view engine, std::string_view gate,
                                  std::vector<Finding> findings) {
  Counterexample counterexample;
  counterexample.gate = std::string(gate);
  counterexample.op = instance.op.name;
  counterexample.op_digest = instance.op.digest;
  for (const auto& [variable, dtype] : instance.binding) {
    counterexample.binding[variable] = std::string(Name(dtype));
  }
  counterexample.arch = instance.arch;
  counterexample.engine = std::string(engine);
  counterexample.kernel = candidate.kernel;
  counterexample.launch = candidate.launch;
  SourceText source;
  source.Add("kernel.cu", candidate.kernel);
  FillExcerpts(findings, source);
  counterexample.findings = std::move(findings);
  return counterexample;
}

std::string DescribeWorst(const Counterexample& counterexample) {
  if (!counterexample.worst || !(counterexample.worst->ratio > 0)) return {};
  return fmt::format("{:.3g} times what is allowed [{}]", counterexample.worst->ratio,
                     counterexample.worst->description);
}

Json ToJson(const Counterexample& counterexample) { return WriteJson(counterexample); }
Result<Counterexample> CounterexampleFromJson(const Json& json, std::string place) {
  return ReadJson<Counterexample>(json, place);
}

}  // namespace assay::verdict
