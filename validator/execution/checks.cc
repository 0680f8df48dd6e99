// The monitors: one row each.
#include "base/json.h"
#include "validator/execution/execution.h"

namespace assay {
namespace {

struct CheckRow {
  std::string_view name;
  bool Checks::* on;
};
constexpr CheckRow kChecks[] = {
    {"bounds", &Checks::bounds},
    {"initialisation", &Checks::initialisation},
    {"race", &Checks::race},
    {"barrier", &Checks::barrier},
    {"coverage", &Checks::coverage},
    {"order", &Checks::order},
    {"shadow_values", &Checks::shadow_values},
};

}  // namespace

std::string NotWatched(const Checks& asked, const Checks& watched) {
  std::string missing;
  for (const CheckRow& row : kChecks) {
    if (!(asked.*row.on) || watched.*row.on) continue;
    if (!missing.empty()) missing += ", ";
    missing += row.name;
  }
  return missing;
}

Json ToJson(const Checks& checks) {
  Json json = Json::object();
  for (const CheckRow& row : kChecks) json[std::string(row.name)] = checks.*row.on;
  return json;
}

Result<Checks> ChecksFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Checks checks;
  for (const CheckRow& row : kChecks) {
    ASSAY_TRY(checks.*row.on, reader.Required<bool>(std::string(row.name)));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return checks;
}

}  // namespace assay
