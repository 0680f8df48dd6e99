#include "validator/verdict/counterexample.h"

#include <fmt/format.h>

#include "validator/findings/render.h"
#include "validator/verdict/read_json.h"

namespace assay::verdict {
namespace {

constexpr std::string_view kCounterexampleSchema = "assay.counterexample/1";

template <class T>
Result<T> NarrowFromJson(ObjectReader& reader, std::string_view key, T limit) {
  ASSAY_TRY(const std::uint64_t value, reader.Required<std::uint64_t>(key));
  if (value > limit) return Fail(ErrorKind::kMalformedInput, "is too large", reader.PlaceOf(key));
  return static_cast<T>(value);
}

Result<WorstSeen> WorstFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  WorstSeen worst;
  ASSAY_TRY(worst.ratio, reader.Required<double>("ratio"));
  ASSAY_TRY(worst.description, reader.Optional<std::string>("description", ""));
  ASSAY_TRY(worst.cause, reader.Optional<std::string>("cause", ""));
  ASSAY_TRY_VOID(reader.Finish());
  return worst;
}

}  // namespace

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

Json ToJson(const Counterexample& counterexample) {
  Json binding = Json::object();
  for (const auto& [variable, dtype] : counterexample.binding) binding[variable] = dtype;
  // Without a case the keys stand there all the same, with what a probe has by itself.
  const cases::Probe probe = counterexample.probe.value_or(cases::Probe{});
  Json prelude = Json::array();
  for (const cases::Case& before : probe.prelude) prelude.push_back(ToJson(before));
  Json json = {{"schema", kCounterexampleSchema},
               {"gate", counterexample.gate},
               {"op", counterexample.op},
               {"op_digest", counterexample.op_digest},
               {"binding", std::move(binding)},
               {"arch", counterexample.arch},
               {"engine", counterexample.engine},
               {"case", counterexample.probe ? ToJson(probe.case_) : Json(nullptr)},
               {"description", counterexample.description},
               {"prelude", std::move(prelude)},
               {"reuse_addresses", probe.reuse_addresses},
               {"schedule", ToJson(probe.schedule)},
               {"perturbation_seed", probe.perturbation_seed},
               {"poison", probe.poison},
               {"misalign", probe.misalign},
               {"ends_only", probe.ends_only},
               {"property", counterexample.property},
               {"findings", ToJson(counterexample.findings)},
               {"kernel", counterexample.kernel},
               {"launch", counterexample.launch}};
  if (counterexample.worst) {
    json["worst"] = {{"ratio", counterexample.worst->ratio},
                     {"description", counterexample.worst->description},
                     {"cause", counterexample.worst->cause}};
  }
  return json;
}

std::string DescribeWorst(const Counterexample& counterexample) {
  if (!counterexample.worst || !(counterexample.worst->ratio > 0)) return {};
  return fmt::format("{:.3g} times what is allowed [{}]", counterexample.worst->ratio,
                     counterexample.worst->description);
}

Result<Counterexample> CounterexampleFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ASSAY_TRY_VOID(CheckSchema(reader, kCounterexampleSchema));
  reader.Ignore("texts");  // `assay replay --json` says the findings in words as well
  Counterexample counterexample;
  ASSAY_TRY(counterexample.gate, reader.Required<std::string>("gate"));
  ASSAY_TRY(counterexample.op, reader.Required<std::string>("op"));
  ASSAY_TRY(counterexample.op_digest, reader.Required<std::string>("op_digest"));
  ASSAY_TRY(const Json binding, reader.Required<Json>("binding"));
  if (!binding.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"));
  }
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(counterexample.binding[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding") + "/" + variable));
  }
  ASSAY_TRY(counterexample.arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(counterexample.engine, reader.Required<std::string>("engine"));
  cases::Probe probe;
  ASSAY_TRY(const Json value, reader.Required<Json>("case"));
  if (!value.is_null()) {
    ASSAY_TRY(probe.case_, cases::CaseFromJson(value, reader.PlaceOf("case")));
  }
  ASSAY_TRY(counterexample.description, reader.Optional<std::string>("description", ""));
  ASSAY_TRY(probe.prelude, ListFromJson<cases::Case>(reader, "prelude", cases::CaseFromJson));
  ASSAY_TRY(probe.reuse_addresses, reader.Optional<bool>("reuse_addresses", false));
  ASSAY_TRY(const Json schedule, reader.Required<Json>("schedule"));
  ASSAY_TRY(probe.schedule, ScheduleFromJson(schedule, reader.PlaceOf("schedule")));
  ASSAY_TRY(probe.perturbation_seed, reader.Optional<std::uint64_t>("perturbation_seed", 0));
  ASSAY_TRY(probe.poison, NarrowFromJson<std::uint8_t>(reader, "poison", 0xff));
  ASSAY_TRY(probe.misalign, NarrowFromJson<std::uint32_t>(reader, "misalign", 255));
  ASSAY_TRY(probe.ends_only, reader.Optional<bool>("ends_only", false));
  ASSAY_TRY(counterexample.property, reader.Optional<std::string>("property", ""));
  ASSAY_TRY(const Json findings, reader.Required<Json>("findings"));
  ASSAY_TRY(counterexample.findings, FindingsFromJson(findings, reader.PlaceOf("findings")));
  if (reader.Has("worst")) {
    ASSAY_TRY(const Json worst, reader.Required<Json>("worst"));
    ASSAY_TRY(counterexample.worst, WorstFromJson(worst, reader.PlaceOf("worst")));
  }
  ASSAY_TRY(counterexample.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(counterexample.launch, reader.Required<std::string>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  if (!value.is_null()) counterexample.probe = std::move(probe);
  return counterexample;
}

}  // namespace assay::verdict
