#include "serve/requests.h"

#include <algorithm>

#include "ops/names.h"

namespace assay::serve {
namespace {

constexpr std::size_t kMostText = 4u << 20;
constexpr std::string_view kHoldout = "holdout";

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
  ASSAY_TRY(const std::string op, reader.Required<std::string>("op"));
  ASSAY_TRY(const Json binding, reader.Optional<Json>("binding", Json::object()));
  ASSAY_TRY(const std::string target, reader.Optional<std::string>("arch", arch));
  CheckRequest request;
  ASSAY_TRY(request.effort, reader.Optional<std::string>("effort", "standard"));
  ASSAY_TRY(request.candidate.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(const Json launch, reader.Required<Json>("launch"));
  ASSAY_TRY_VOID(reader.Finish());
  constexpr std::string_view kEfforts[] = {"quick", "standard", "thorough"};
  if (std::ranges::find(kEfforts, request.effort) == std::end(kEfforts)) {
    return Fail(ErrorKind::kUsage, "no effort is called '" + request.effort + "'",
                reader.PlaceOf("effort"), "quick, standard or thorough");
  }
  request.candidate.launch = launch.is_string() ? launch.get<std::string>() : PrettyJson(launch);
  if (request.candidate.kernel.size() > kMostText || request.candidate.launch.size() > kMostText)
    return Fail(ErrorKind::kUsage, "a kernel or its launch plan is larger than 4 MiB", place);
  std::map<std::string, std::string> choices;
  if (!binding.is_object()) {
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("binding"),
                "e.g. {\"T\": \"f16\"}");
  }
  for (const auto& [variable, dtype] : binding.items()) {
    ASSAY_TRY(choices[variable],
              json_detail::Convert<std::string>(dtype, reader.PlaceOf("binding") + "/" + variable));
  }
  ASSAY_TRY(ops::OpSpec spec, FindByName(find, op, reader.PlaceOf("op")));
  ASSAY_TRY(request.instance, ops::MakeInstance(std::move(spec), choices, target));
  return request;
}

Json ForAuthor(const verdict::Verdict& verdict) {
  Json json = verdict::ToJson(verdict);
  for (Json& gate : json.at("gates")) {
    if (gate.at("gate") != kHoldout) continue;
    gate["counterexamples"] = Json::array();
    gate["seeds"] = Json::array();
    gate["statistics"] = Json::array();
    if (gate.contains("errors")) gate["errors"] = Json::array();
    if (gate.at("status") == "refuted")
      gate["reason"] = "refuted on held-out inputs, which are not shown";
  }
  return json;
}

}  // namespace assay::serve
