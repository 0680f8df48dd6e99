#include "ops/load_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/load_relation.h"
#include "ops/names.h"

namespace assay::ops {
namespace {

constexpr std::size_t kMaxRank = 8;

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

// All dtypes a tensor may have, over the bindings.
std::vector<DType> TypesOf(const OpSpec& op, const TensorSpec& tensor) {
  if (const auto bound = op.dtypes.find(tensor.dtype_name); bound != op.dtypes.end())
    return bound->second;
  return {*ParseDType(tensor.dtype_name)};
}

/// Does `type` hold a value of the range?
bool HoldsSome(DType type, double low, double high) {
  if (IsFloat(type)) return low <= MaxFinite(type) && high >= -MaxFinite(type);
  std::array<std::byte, 8> bytes{};
  StoreFromDouble(type, std::ceil(low), bytes.data());  // saturates
  const double nearest = LoadAsDouble(type, bytes.data());
  return nearest >= low && nearest <= high;
}

Result<Domain> ReadDomain(ObjectReader& reader, const TensorSpec& tensor, const OpSpec& op) {
  Domain domain;
  ASSAY_TRY(const std::string kind, reader.Optional<std::string>("kind", "any"));
  if (kind == "range") {
    domain.kind = Domain::Kind::kRange;
    ASSAY_TRY(domain.low, reader.Required<double>("low"));
    ASSAY_TRY(domain.high, reader.Required<double>("high"));
    if (!(domain.low <= domain.high)) {
      return Bad("the range is empty", reader.PlaceOf("low"), "give low <= high");
    }
    for (const DType type : TypesOf(op, tensor)) {
      if (HoldsSome(type, domain.low, domain.high)) continue;
      return Bad(fmt::format("no {} lies in the range", Name(type)), reader.PlaceOf("low"),
                 "give ends that the dtype reaches");
    }
  } else if (kind == "index") {
    domain.kind = Domain::Kind::kIndex;
    ASSAY_TRY(domain.of, reader.Required<std::string>("of"));
    if (op.FindAxis(domain.of) == nullptr) {
      return UnknownName("axis", domain.of, AxisNames(op), reader.PlaceOf("of"));
    }
    if (std::ranges::any_of(TypesOf(op, tensor), IsFloat)) {
      return Bad("an index has an integer dtype", reader.PlaceOf("kind"),
                 "make its dtype i32 or i64");
    }
  } else if (kind == "choice") {
    domain.kind = Domain::Kind::kChoice;
    ASSAY_TRY(const Json values, reader.Required<Json>("values"));
    if (!values.is_array() || values.empty()) {
      return Bad("must be an array of at least one number", reader.PlaceOf("values"),
                 "list the values that the input may have");
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSAY_TRY(const double value,
                json_detail::Convert<double>(values[i],
                                             fmt::format("{}/{}", reader.PlaceOf("values"), i)));
      for (const DType type : TypesOf(op, tensor)) {
        if (IsFloat(type) || (HoldsSome(type, value, value) && std::floor(value) == value))
          continue;
        return Bad(fmt::format("{} is no {}", value, Name(type)),
                   fmt::format("{}/{}", reader.PlaceOf("values"), i), "list values of the dtype");
      }
      domain.values.push_back(value);
    }
  } else if (kind == "generated") {
    domain.kind = Domain::Kind::kGenerated;
    if (tensor.is_scalar) {
      return Bad("a scalar cannot be generated", reader.PlaceOf("kind"),
                 "give it the shape [1], so that it is a tensor");
    }
  } else if (kind != "any") {
    return Bad(fmt::format("unknown kind of domain '{}'", kind), reader.PlaceOf("kind"),
               "kinds are any, range, index, choice and generated");
  }
  ASSAY_TRY(domain.allow_nan, reader.Optional<bool>("allow_nan", false));
  ASSAY_TRY(domain.allow_infinity, reader.Optional<bool>("allow_infinity", false));
  ASSAY_TRY(domain.typical_scale, reader.Optional<double>("typical_scale", 1.0));
  ASSAY_TRY(domain.typical_mean, reader.Optional<double>("typical_mean", 0.0));
  if (!std::isfinite(domain.typical_scale) || domain.typical_scale < 0) {
    return Bad("must be at least 0", reader.PlaceOf("typical_scale"),
               "give the standard deviation of what models feed");
  }
  return domain;
}

// What an output says of its relation to truth and inputs.
Status ReadOutput(ObjectReader& reader, const OpSpec& op, TensorSpec& tensor) {
  if (reader.Has("relation")) {
    ASSAY_TRY(const Json relation, reader.Required<Json>("relation"));
    ASSAY_TRY(tensor.relation, ReadRelation(relation, reader.PlaceOf("relation")));
  }
  ASSAY_TRY(tensor.updates, reader.Optional<std::string>("updates", ""));
  if (tensor.updates.empty()) return {};
  const TensorSpec* input = op.FindInput(tensor.updates);
  if (input == nullptr) {
    std::vector<std::string> names;
    for (const TensorSpec& known : op.inputs) names.push_back(known.name);
    return UnknownName("input", tensor.updates, std::move(names), reader.PlaceOf("updates"));
  }
  if (input->is_scalar) {
    return Bad("a scalar is passed by value: nobody sees it overwritten", reader.PlaceOf("updates"),
               "give the input the shape [1]");
  }
  tensor.shape = input->shape;
  tensor.dtype_name = input->dtype_name;
  return {};
}

}  // namespace

Result<TensorSpec> ReadTensor(ObjectReader& reader, const std::string& name, TensorRole role,
                              const OpSpec& op) {
  TensorSpec tensor;
  tensor.name = name;
  if (role == TensorRole::kOutput) ASSAY_TRY_VOID(ReadOutput(reader, op, tensor));
  const bool given = !tensor.updates.empty() && !reader.Has("shape") && !reader.Has("dtype");
  ASSAY_TRY(tensor.description, reader.Optional<std::string>("description", ""));
  if (given) return tensor;
  ASSAY_TRY(const Json shape, reader.Required<Json>("shape"));
  tensor.is_scalar = shape.is_null();
  if (tensor.is_scalar && role != TensorRole::kInput) {
    return Bad("an output has a shape", reader.PlaceOf("shape"), "write [1] for a single number");
  }
  if (!tensor.is_scalar) {
    ASSAY_TRY(tensor.shape,
              ReadExpressions(shape, reader.PlaceOf("shape"), AxisNames(op), kMaxRank));
  }
  if (role == TensorRole::kHidden) {
    tensor.dtype_name = Name(DType::kF64);
    return tensor;
  }
  ASSAY_TRY(tensor.dtype_name, reader.Required<std::string>("dtype"));
  ASSAY_TRY_VOID(CheckDType(op, tensor.dtype_name, reader.PlaceOf("dtype")));
  if (role == TensorRole::kInput && reader.Has("domain")) {
    ASSAY_TRY(const Json domain, reader.Required<Json>("domain"));
    ASSAY_TRY(ObjectReader domain_reader, ObjectReader::Of(domain, reader.PlaceOf("domain")));
    ASSAY_TRY(tensor.domain, ReadDomain(domain_reader, tensor, op));
    ASSAY_TRY_VOID(domain_reader.Finish());
  }
  return tensor;
}

}  // namespace assay::ops
