#include "ops/load_contract.h"

#include <fmt/format.h>

#include <set>

#include "ops/names.h"
#include "ops/properties.h"

namespace assay::ops {
namespace {

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

std::vector<std::string> NamesOf(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  return names;
}

}  // namespace

Result<Contract> ReadContract(ObjectReader& reader, const OpSpec& op) {
  Contract result;
  ASSAY_TRY(const Json object, reader.Optional<Json>("precision", Json::object()));
  ASSAY_TRY(ObjectReader contract, ObjectReader::Of(object, reader.PlaceOf("precision")));
  ASSAY_TRY(const std::string accumulate, contract.Optional<std::string>("accumulate", "f32"));
  const auto type = ParseDType(accumulate);
  if (!type || !IsFloat(*type)) {
    return Bad(fmt::format("'{}' is no type to accumulate in", accumulate),
               contract.PlaceOf("accumulate"), "choose f32, f16 or bf16");
  }
  if (*type != DType::kF32 && *type != DType::kF16 && *type != DType::kBF16) {
    return Bad(fmt::format("no allowance can be derived for sums in {}: truths are computed in f64",
                           accumulate),
               contract.PlaceOf("accumulate"), "choose f32, f16 or bf16");
  }
  result.accumulate = *type;
  ASSAY_TRY(result.approximate_functions, contract.Optional<bool>("approximate_functions", true));
  ASSAY_TRY(result.reassociation, contract.Optional<bool>("reassociation", true));
  ASSAY_TRY(result.tensor_cores, contract.Optional<bool>("tensor_cores", false));
  ASSAY_TRY(result.coarse_tanh, contract.Optional<bool>("coarse_tanh", false));
  ASSAY_TRY(result.nan_policy, contract.Optional<std::string>("nan_policy", "propagate"));
  if (result.nan_policy != "propagate" && result.nan_policy != "any") {
    return Bad(fmt::format("unknown policy '{}'", result.nan_policy),
               contract.PlaceOf("nan_policy"),
               "policies are propagate (NaN exactly where the reference has it) and any");
  }
  ASSAY_TRY(result.why, contract.Optional<std::string>("why", ""));
  using Names = std::vector<std::string>;
  ASSAY_TRY(const Names exact, contract.Optional<Names>("exact_outputs", {}));
  for (const std::string& name : exact) {
    if (op.FindOutput(name) == nullptr) {
      return UnknownName("output", name, NamesOf(op.outputs), contract.PlaceOf("exact_outputs"));
    }
    result.exact_outputs[name] = true;
  }
  ASSAY_TRY_VOID(contract.Finish());
  return result;
}

Result<std::vector<Property>> ReadProperties(ObjectReader& reader, const OpSpec& op) {
  std::vector<Property> properties;
  ASSAY_TRY(const Json list, reader.Optional<Json>("properties", Json::array()));
  const std::string place = reader.PlaceOf("properties");
  if (!list.is_array()) return Bad("must be an array", place);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}/{}", place, i);
    Property property;
    if (list[i].is_string()) {
      property.name = list[i].get<std::string>();
    } else if (list[i].is_object() && list[i].size() == 1) {
      property.name = list[i].items().begin().key();
      ASSAY_TRY(property.arguments, json_detail::Convert<std::vector<std::string>>(
                                        list[i].at(property.name), here + "/" + property.name));
    } else {
      return Bad("must be a name, or an object with one name and its arguments", here,
                 R"(for example {"independent_rows": ["x", "rows"]})");
    }
    ASSAY_TRY_VOID(CheckProperty(op, property, here));
    if (!seen.insert(PropertyText(property)).second) {
      return Bad(fmt::format("'{}' is declared twice", PropertyText(property)), here, "remove one");
    }
    properties.push_back(std::move(property));
  }
  return properties;
}

}  // namespace assay::ops
