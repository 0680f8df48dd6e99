#include "validator/findings/error_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

std::size_t BinOf(double allowances) {
  if (!(allowances > 0)) return 0;
  if (!std::isfinite(allowances)) return ErrorProfile::kBins - 1;
  // An error of just the allowance, which ties of a rounding have, is within it.
  const int log = std::ilogb(allowances);
  const bool power = std::ldexp(1.0, log) == allowances;
  const int octave = log - (power ? 1 : 0) - ErrorProfile::kFirstOctave + 1;
  return static_cast<std::size_t>(std::clamp(octave, 0, static_cast<int>(ErrorProfile::kBins) - 1));
}

// Three digits: what is drawn needs no more.
double Short(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 2 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

Result<double> Finite(const Json& json, const std::string& place) {
  if (json.is_number()) {
    if (const double value = json.get<double>(); std::isfinite(value) && value >= 0) return value;
  }
  return Fail(ErrorKind::kMalformedInput, "must be a finite number, 0 or more", place);
}

Result<GrowthPoint> PointFromJson(const Json& json, const std::string& place) {
  if (!json.is_array() || json.size() != 4)
    return Fail(ErrorKind::kMalformedInput, "must be [terms, error, typical, elements]", place);
  GrowthPoint point;
  ASSAY_TRY(point.terms, Finite(json[0], place));
  ASSAY_TRY(point.error, Finite(json[1], place));
  ASSAY_TRY(point.typical, Finite(json[2], place));
  ASSAY_TRY(point.elements, Finite(json[3], place));
  return point;
}

}  // namespace

ErrorProfile ErrorProfile::Of(std::string output, std::int64_t rows, std::int64_t columns) {
  ErrorProfile profile;
  profile.output = std::move(output);
  profile.rows = std::max<std::int64_t>(rows, 0);
  profile.columns = std::max<std::int64_t>(columns, 0);
  profile.map_rows = std::min(profile.rows, kMostRows);
  profile.map_columns = std::min(profile.columns, kMostColumns);
  profile.map.assign(static_cast<std::size_t>(profile.map_rows * profile.map_columns), 0.0);
  return profile;
}

void ErrorProfile::Add(std::int64_t element, double allowances) {
  if (std::isnan(allowances)) allowances = kBeyond;
  ++histogram[BinOf(allowances)];
  if (map.empty()) return;
  const std::int64_t row = element / columns * map_rows / rows;
  const std::int64_t column = element % columns * map_columns / columns;
  double& cell = map[static_cast<std::size_t>(row * map_columns + column)];
  cell = std::max(cell, std::min(allowances, kBeyond));
}

void ErrorProfile::Merge(const ErrorProfile& other) {
  for (std::size_t i = 0; i < kBins; ++i) histogram[i] += other.histogram[i];
  // Of two that are equally bad the larger one shows more.
  const bool worse = other.Worst() > Worst() ||
                     (other.Worst() == Worst() && other.rows * other.columns > rows * columns);
  if (!worse && !map.empty()) return;
  where = other.where;
  rows = other.rows;
  columns = other.columns;
  map_rows = other.map_rows;
  map_columns = other.map_columns;
  map = other.map;
}

std::uint64_t ErrorProfile::elements() const {
  return std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
}

double ErrorProfile::Worst() const { return map.empty() ? 0 : *std::ranges::max_element(map); }

Json ToJson(const ErrorProfile& profile) {
  Json map = Json::array();
  for (const double cell : profile.map) map.push_back(Short(cell));
  Json growth = Json::array();
  for (const GrowthPoint& point : profile.growth) {
    growth.push_back(Json::array(
        {Short(point.terms), Short(point.error), Short(point.typical), point.elements}));
  }
  return {{"output", profile.output},
          {"histogram", profile.histogram},
          {"where", profile.where},
          {"rows", profile.rows},
          {"columns", profile.columns},
          {"map_rows", profile.map_rows},
          {"map_columns", profile.map_columns},
          {"map", std::move(map)},
          {"growth", std::move(growth)}};
}

Result<ErrorProfile> ErrorProfileFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  ErrorProfile profile;
  ASSAY_TRY(profile.output, reader.Required<std::string>("output"));
  ASSAY_TRY(const Json histogram, reader.Required<Json>("histogram"));
  if (!histogram.is_array() || histogram.size() != ErrorProfile::kBins) {
    return Fail(ErrorKind::kMalformedInput,
                "must be an array of " + std::to_string(ErrorProfile::kBins) + " counts",
                reader.PlaceOf("histogram"));
  }
  for (std::size_t i = 0; i < ErrorProfile::kBins; ++i) {
    ASSAY_TRY(profile.histogram[i],
              json_detail::Convert<std::uint64_t>(histogram[i], reader.PlaceOf("histogram")));
  }
  ASSAY_TRY(profile.where, reader.Optional<std::string>("where", ""));
  ASSAY_TRY(profile.rows, reader.Required<std::int64_t>("rows"));
  ASSAY_TRY(profile.columns, reader.Required<std::int64_t>("columns"));
  ASSAY_TRY(profile.map_rows, reader.Required<std::int64_t>("map_rows"));
  ASSAY_TRY(profile.map_columns, reader.Required<std::int64_t>("map_columns"));
  ASSAY_TRY(const Json map, reader.Required<Json>("map"));
  const auto within = [](std::int64_t value, std::int64_t most) {
    return value >= 0 && value <= most;
  };
  if (!within(profile.map_rows, ErrorProfile::kMostRows) ||
      !within(profile.map_columns, ErrorProfile::kMostColumns) || profile.rows < profile.map_rows ||
      profile.columns < profile.map_columns || !map.is_array() ||
      map.size() != static_cast<std::size_t>(profile.map_rows * profile.map_columns)) {
    return Fail(ErrorKind::kMalformedInput, "must have map_rows times map_columns numbers",
                reader.PlaceOf("map"));
  }
  for (const Json& cell : map) {
    ASSAY_TRY(profile.map.emplace_back(), Finite(cell, reader.PlaceOf("map")));
  }
  ASSAY_TRY(const Json growth, reader.Optional<Json>("growth", Json::array()));
  if (!growth.is_array() || growth.size() > 64)
    return Fail(ErrorKind::kMalformedInput, "must be an array of at most 64 points",
                reader.PlaceOf("growth"));
  for (const Json& point : growth) {
    ASSAY_TRY(profile.growth.emplace_back(), PointFromJson(point, reader.PlaceOf("growth")));
  }
  ASSAY_TRY_VOID(reader.Finish());
  return profile;
}

}  // namespace assay
