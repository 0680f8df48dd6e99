#include "validator/findings/error_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fields.h"

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

/// Three digits: what is drawn needs no more.
struct Drawn {
  static Json Write(double value) {
    if (value == 0 || !std::isfinite(value)) return 0.0;
    const double scale = std::pow(10.0, 2 - std::floor(std::log10(std::fabs(value))));
    return std::isfinite(scale) ? std::round(value * scale) / scale : value;
  }
  static Result<double> Read(const Json& json, const std::string& place) {
    if (json.is_number()) {
      if (const double value = json.get<double>(); std::isfinite(value) && value >= 0) return value;
    }
    return Fail(ErrorKind::kMalformedInput, "must be a finite number, 0 or more", place);
  }
};

/// [terms, error, typical, elements]
struct DrawnPoint {
  static Json Write(const GrowthPoint& point) {
    return Json::array({Drawn::Write(point.terms), Drawn::Write(point.error),
                        Drawn::Write(point.typical), point.elements});
  }
  static Result<GrowthPoint> Read(const Json& json, const std::string& place) {
    if (!json.is_array() || json.size() != 4)
      return Fail(ErrorKind::kMalformedInput, "must be [terms, error, typical, elements]", place);
    GrowthPoint point;
    ASSAY_TRY(point.terms, Drawn::Read(json[0], place));
    ASSAY_TRY(point.error, Drawn::Read(json[1], place));
    ASSAY_TRY(point.typical, Drawn::Read(json[2], place));
    ASSAY_TRY(point.elements, Drawn::Read(json[3], place));
    return point;
  }
};

}  // namespace

static constexpr auto JsonFields(const ErrorProfile*) {
  using E = ErrorProfile;
  return std::tuple(
      Required("output", &E::output), Required("histogram", &E::histogram),
      Optional("where", &E::where), Required("rows", &E::rows), Required("columns", &E::columns),
      Required<Between<std::int64_t, 0, E::kMostRows>>("map_rows", &E::map_rows),
      Required<Between<std::int64_t, 0, E::kMostColumns>>("map_columns", &E::map_columns),
      Required<ListOf<double, Drawn>>("map", &E::map),
      Optional<ListOf<GrowthPoint, DrawnPoint>>("growth", &E::growth));
}
static Status JsonCheck(const ErrorProfile& profile, const ObjectReader& reader) {
  if (profile.rows < profile.map_rows || profile.columns < profile.map_columns ||
      profile.map.size() != static_cast<std::size_t>(profile.map_rows * profile.map_columns))
    return Fail(ErrorKind::kMalformedInput, "must have map_rows times map_columns numbers",
                reader.PlaceOf("map"));
  if (profile.growth.size() > 64)
    return Fail(ErrorKind::kMalformedInput, "must be an array of at most 64 points",
                reader.PlaceOf("growth"));
  return {};
}

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

Json ToJson(const ErrorProfile& profile) { return WriteJson(profile); }
Result<ErrorProfile> ErrorProfileFromJson(const Json& json, std::string place) {
  return ReadJson<ErrorProfile>(json, place);
}

}  // namespace assay
