#include "ops/tensor_map_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/names.h"

namespace assay::ops {
namespace {

constexpr std::size_t kMaxMaps = 32;
constexpr std::size_t kMaxRank = 5;
constexpr std::array<std::string_view, 4> kSwizzles = {"none", "32B", "64B", "128B"};
constexpr std::array<std::string_view, 2> kFills = {"zero", "nan"};

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

template <std::size_t kCount>
Result<std::size_t> Choice(ObjectReader& reader, std::string_view key,
                           const std::array<std::string_view, kCount>& words) {
  ASSAY_TRY(const std::string word, reader.Optional<std::string>(key, std::string(words[0])));
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) {
    return Bad(fmt::format("unknown value '{}'", word), reader.PlaceOf(key),
               fmt::format("use one of {}", fmt::join(words, ", ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

Result<TensorMapPlan> ReadOne(const Json& document, const std::string& place,
                              const std::vector<std::string>& axes,
                              const std::vector<std::string>& tensors,
                              const std::vector<std::string>& arguments) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, place));
  TensorMapPlan map;
  ASSAY_TRY(map.name, reader.Required<std::string>("name"));
  if (!IsIdentifier(map.name) || std::ranges::find(arguments, map.name) != arguments.end()) {
    return Bad(fmt::format("'{}' is no name, or taken", map.name), reader.PlaceOf("name"),
               "choose letters, digits and underscores that nothing else is called");
  }
  ASSAY_TRY(map.tensor, reader.Required<std::string>("tensor"));
  if (std::ranges::find(tensors, map.tensor) == tensors.end())
    return UnknownName("tensor", map.tensor, tensors, reader.PlaceOf("tensor"));
  const auto list = [&](std::string_view key, const Json& value) {
    return ReadExpressions(value, reader.PlaceOf(key), axes, kMaxRank);
  };
  ASSAY_TRY(const Json shape, reader.Required<Json>("shape"));
  ASSAY_TRY(map.shape, list("shape", shape));
  ASSAY_TRY(const Json strides, reader.Optional<Json>("strides", Json::array()));
  ASSAY_TRY(map.strides, list("strides", strides));
  ASSAY_TRY(const Json box, reader.Required<Json>("box"));
  ASSAY_TRY(map.box, list("box", box));
  if (map.shape.empty() || map.box.size() != map.shape.size()) {
    return Bad("a box has as many dimensions as its tensor, 1 to 5", reader.PlaceOf("box"),
               "give one extent a dimension, the innermost first");
  }
  if (!map.strides.empty() && map.strides.size() + 1 != map.shape.size()) {
    return Bad("strides begin with dimension 1", reader.PlaceOf("strides"),
               "give one stride less than there are dimensions, in bytes");
  }
  ASSAY_TRY(const std::size_t swizzle, Choice(reader, "swizzle", kSwizzles));
  ASSAY_TRY(const std::size_t fill, Choice(reader, "fill", kFills));
  map.swizzle = static_cast<std::uint8_t>(swizzle);
  map.fill_nan = fill == 1;
  ASSAY_TRY_VOID(reader.Finish());
  return map;
}

template <class T>
Status Evaluate(const std::vector<Expression>& expressions, const AxisValues& axes,
                std::int64_t low, std::int64_t high, std::vector<T>& out) {
  for (const Expression& expression : expressions) {
    ASSAY_TRY(const std::int64_t value, expression.Evaluate(axes));
    if (value < low || value > high) {
      return Bad(fmt::format("comes to {}, outside of [{}, {}]", value, low, high),
                 expression.place());
    }
    out.push_back(static_cast<T>(value));
  }
  return {};
}

}  // namespace

Result<std::vector<TensorMapPlan>> ReadTensorMaps(ObjectReader& reader,
                                                  const std::vector<std::string>& axes,
                                                  const std::vector<std::string>& tensors,
                                                  std::vector<std::string>& arguments) {
  ASSAY_TRY(const Json list, reader.Optional<Json>("tensor_maps", Json::array()));
  const std::string place = reader.PlaceOf("tensor_maps");
  if (!list.is_array() || list.size() > kMaxMaps)
    return Bad(fmt::format("must be an array of at most {} maps", kMaxMaps), place);
  std::vector<TensorMapPlan> maps;
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY(TensorMapPlan map,
              ReadOne(list[i], fmt::format("{}/{}", place, i), axes, tensors, arguments));
    arguments.push_back(map.name);
    maps.push_back(std::move(map));
  }
  return maps;
}

Result<ResolvedTensorMap> ResolveTensorMap(const TensorMapPlan& plan, const AxisValues& axes) {
  ResolvedTensorMap map{.name = plan.name,
                        .tensor = plan.tensor,
                        .shape = {},
                        .strides = {},
                        .box = {},
                        .swizzle = plan.swizzle,
                        .fill_nan = plan.fill_nan};
  // An empty tensor has no map: launches that would use it have an empty grid.
  ASSAY_TRY_VOID(Evaluate(plan.shape, axes, 0, std::int64_t{1} << 32, map.shape));
  ASSAY_TRY_VOID(Evaluate(plan.strides, axes, 0, (std::int64_t{1} << 40) - 1, map.strides));
  ASSAY_TRY_VOID(Evaluate(plan.box, axes, 1, 256, map.box));
  return map;
}

}  // namespace assay::ops
