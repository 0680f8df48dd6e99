#include "serve/requests.h"

#include <algorithm>

#include "ops/names.h"

namespace assay::serve {
namespace {

constexpr std::size_t kMostText = 4u << 20;
constexpr int kMostAttempts = 10'000;
constexpr std::string_view kHoldout = "holdout";
std::string HeldOut(bool refuted) {
  return std::string(refuted ? "refuted" : "undecided") +
         " on held-out inputs, which are not shown";
}

// What every request says of what is to be judged.
struct Target {
  std::string op;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::string effort;
};

Result<Target> TargetOf(ObjectReader& reader, const std::string& arch) {
  Target target;
  ASSAY_TRY(target.op, reader.Required<std::string>("op"));
  ASSAY_TRY(const Json binding, reader.Optional<Json>("binding", Json::object()));
  ASSAY_TRY(target.arch, reader.Optional<std::string>("arch", arch));
  ASSAY_TRY(target.effort, reader.Optional<std::string>("effort", "standard"));
  constexpr std::string_view kEfforts[] = {"quick", "standard", "thorough"};
  if (std::ranges::find(kEfforts, target.effort) == std::end(kEfforts)) {
    return Fail(ErrorKind::kUsage, "no effort is called '" + target.effort + "'",
                reader.PlaceOf("effort"), "quick, standard or thorough");
  }
  if (!binding.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"),
                "e.g. {\"T\": \"f16\"}");
  }
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(target.binding[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding") + "/" + variable));
  }
  return target;
}

Result<ops::Instance> InstanceOf(const Target& target, const ObjectReader& reader,
                                 const FindOp& find) {
  ASSAY_TRY(ops::OpSpec spec, FindByName(find, target.op, reader.PlaceOf("op")));
  return ops::MakeInstance(std::move(spec), target.binding, target.arch);
}

}  // namespace

Result<ops::OpSpec> FindByName(const FindOp& find, const std::string& name,
                               const std::string& place) {
  if (!ops::IsIdentifier(name)) {
    return Fail(ErrorKind::kUsage, "an op is asked for by its name in the library", place,
                "assay ops list shows them");
  }
  return find(name);
}

Result<CheckRequest> ParseCheck(const Json& json, const std::string& place, const FindOp& find,
                                const std::string& arch) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const Target target, TargetOf(reader, arch));
  CheckRequest request{.instance = {}, .candidate = {}, .effort = target.effort};
  ASSAY_TRY(request.candidate.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(const Json launch, reader.Required<Json>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  request.candidate.launch = launch.is_string() ? launch.get<std::string>() : PrettyJson(launch);
  if (request.candidate.kernel.size() > kMostText || request.candidate.launch.size() > kMostText)
    return Fail(ErrorKind::kUsage, "a kernel or its launch plan is larger than 4 MiB", place);
  ASSAY_TRY(request.instance, InstanceOf(target, reader, find));
  return request;
}

Result<GenerateRequest> ParseGenerate(const Json& json, const std::string& place,
                                      const FindOp& find, const std::string& arch) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const Target target, TargetOf(reader, arch));
  GenerateRequest request{.instance = {}, .model = {}, .effort = target.effort, .attempts = {}};
  ASSAY_TRY(request.model, reader.Required<std::string>("model"));
  if (reader.Has("attempts")) {
    ASSAY_TRY(const std::int64_t attempts, reader.Required<std::int64_t>("attempts"));
    if (attempts < 1 || attempts > kMostAttempts)
      return Fail(ErrorKind::kUsage, "must be between 1 and 10000", reader.PlaceOf("attempts"));
    request.attempts = static_cast<int>(attempts);
  }
  ASSAY_TRY_VOID(reader.Finish());
  ASSAY_TRY(request.instance, InstanceOf(target, reader, find));
  return request;
}

std::string ReasonForAuthor(const verdict::Verdict& verdict) {
  // The verdict's reason is the first words of the gate that decided.
  const std::string decided = std::string(kHoldout) + ": ";
  if (!verdict.reason.starts_with(decided)) return verdict.reason;
  return decided + HeldOut(verdict.outcome == verdict::Outcome::kRefuted);
}

Json ForAuthor(const verdict::Verdict& verdict) {
  Json json = verdict::ToJson(verdict);
  json["reason"] = ReasonForAuthor(verdict);
  for (Json& gate : json.at("gates")) {
    if (gate.at("gate") != kHoldout) continue;
    gate["counterexamples"] = Json::array();
    gate["seeds"] = Json::array();
    gate["statistics"] = Json::array();
    if (gate.contains("errors")) gate["errors"] = Json::array();
    if (gate.at("status") == "refuted" || gate.at("status") == "inconclusive")
      gate["reason"] = HeldOut(gate.at("status") == "refuted");
  }
  return json;
}

}  // namespace assay::serve
