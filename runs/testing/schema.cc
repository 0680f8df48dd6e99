#include "runs/testing/schema.h"

#include <algorithm>

#include "base/file.h"

namespace assay::testing {
namespace {

bool Fits(const Json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "integer" ? value.is_number_integer()
         : type == "number"  ? value.is_number()
         : type == "null"    ? value.is_null()
                             : type == "boolean" && value.is_boolean();
}

bool FitsOne(const Json& value, const Json& types) {
  if (types.is_string()) return Fits(value, types.get<std::string>());
  return std::ranges::any_of(
      types, [&](const Json& type) { return Fits(value, type.get<std::string>()); });
}

// References name files beside the schema: they are written out when it is read.
void Resolve(Json& json, const std::string& folder) {
  if (!json.is_structured()) return;
  if (json.is_object() && json.contains("$ref")) {
    json = ReadSchema(folder + "/" + json.at("$ref").get<std::string>());
    return;
  }
  for (auto& item : json) Resolve(item, folder);
}

}  // namespace

Json ReadSchema(const std::string& path) {
  auto json = ReadJsonFile((Path(ASSAY_SOURCE_DIR) / path).string());
  ASSAY_CHECK(json.has_value(), json ? "" : ToString(json.error()));
  Resolve(*json, Path(path).parent_path().string());
  return *json;
}

std::string Violation(const Json& schema, const Json& value, const std::string& place) {
  if (schema.contains("const") && schema.at("const") != value)
    return place + ": not the constant\n";
  if (schema.contains("enum") &&
      std::ranges::find(schema.at("enum"), value) == schema.at("enum").end()) {
    return place + ": not in the enumeration\n";
  }
  if (schema.contains("oneOf")) {
    std::string all;
    for (const Json& choice : schema.at("oneOf")) {
      const std::string violation = Violation(choice, value, place);
      if (violation.empty()) return {};
      all += violation;
    }
    return all;
  }
  if (!schema.contains("type")) return {};
  if (!FitsOne(value, schema.at("type")))
    return place + ": not of type " + schema.at("type").dump() + "\n";
  std::string wrong;
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i)
      wrong += Violation(schema.at("items"), value[i], place + "/" + std::to_string(i));
  }
  if (!value.is_object()) return wrong;
  const Json properties = schema.value("properties", Json::object());
  for (const Json& key : schema.value("required", Json::array())) {
    if (!value.contains(key.get<std::string>()))
      wrong += place + ": lacks " + key.get<std::string>() + "\n";
  }
  const Json others = schema.value("additionalProperties", Json(true));
  for (const auto& [key, item] : value.items()) {
    if (properties.contains(key)) {
      wrong += Violation(properties.at(key), item, place + "/" + key);
    } else if (others.is_object()) {
      wrong += Violation(others, item, place + "/" + key);
    } else if (others == false) {
      wrong += place + ": does not know " + key + "\n";
    }
  }
  return wrong;
}

}  // namespace assay::testing
