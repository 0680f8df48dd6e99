#include "ops/load_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

Result<TensorSpec> ReadTensor(ObjectReader& reader, const std::string& name, bool is_input,
                              const OpSpec& op) {
  TensorSpec tensor;
  tensor.name = name;
  ASSAY_TRY(const Json shape, reader.Required<Json>("shape"));
  tensor.is_scalar = shape.is_null();
  if (tensor.is_scalar && !is_input) {
    return Bad("an output has a shape", reader.PlaceOf("shape"), "write [1] for a single number");
  }
  if (!tensor.is_scalar) {
    ASSAY_TRY(tensor.shape,
              ReadExpressions(shape, reader.PlaceOf("shape"), AxisNames(op), kMaxRank));
  }
  ASSAY_TRY(tensor.dtype_name, reader.Required<std::string>("dtype"));
  ASSAY_TRY_VOID(CheckDType(op, tensor.dtype_name, reader.PlaceOf("dtype")));
  ASSAY_TRY(tensor.description, reader.Optional<std::string>("description", ""));
  if (is_input && reader.Has("domain")) {
    ASSAY_TRY(const Json domain, reader.Required<Json>("domain"));
    ASSAY_TRY(ObjectReader domain_reader, ObjectReader::Of(domain, reader.PlaceOf("domain")));
    ASSAY_TRY(tensor.domain, ReadDomain(domain_reader, tensor, op));
    ASSAY_TRY_VOID(domain_reader.Finish());
  }
  return tensor;
}

}  // namespace assay::ops
