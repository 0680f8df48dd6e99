// How the errors of an output lie against what honest arithmetic may have: what a report draws.
//
// Statistics name the worst element; a profile shows all of them at once, small enough to stand in every verdict: a histogram of
// errors in allowances over all cases, a map of the worst case (each cell the largest error of a patch of elements), and how errors
// grow with the terms behind them. It decides nothing.
//
//   ErrorProfile profile = ErrorProfile::Of("y", rows, columns);
//   profile.Add(element, error_in_allowances);       // each element of a case, row-major
//   total.Merge(profile);                            // over cases: counts add up, the worse map stays
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

/// Errors of elements with about so many terms behind them, each a root mean square.
struct GrowthPoint {
  double terms = 0;
  double error = 0;    ///< In units of one rounding of a partial sum, the output's own left out.
  double typical = 0;  ///< An honest kernel's, rather above than below; same unit.
  double elements = 0;
  bool operator==(const GrowthPoint&) const = default;
};

struct ErrorProfile {
  /// Errors fall into bins by octaves of allowances: bin 0 holds those up to 2^kFirstOctave, bin i those above
  /// 2^(kFirstOctave + i - 1) up to the next, the last one all above. An allowance ends a bin.
  static constexpr int kFirstOctave = -12;
  static constexpr std::size_t kBins = 26;
  static constexpr std::int64_t kMostRows = 24;
  static constexpr std::int64_t kMostColumns = 48;
  /// Stands for whatever is beyond it, NaN and infinity among them.
  static constexpr double kBeyond = 1e9;

  std::string output;
  std::array<std::uint64_t, kBins> histogram{};  ///< Elements, over all cases.
  std::string where;                             ///< The case of the map, for people.
  std::int64_t rows = 0, columns = 0;            ///< Of the output in that case.
  std::int64_t map_rows = 0, map_columns = 0;
  std::vector<double> map;  ///< Row-major: largest error of a patch, in allowances.
  std::vector<GrowthPoint> growth;

  static ErrorProfile Of(std::string output, std::int64_t rows, std::int64_t columns);
  /// `element` counts row-major; `allowances` may be anything, NaN included.
  void Add(std::int64_t element, double allowances);
  void Merge(const ErrorProfile& other);

  std::uint64_t elements() const;
  double Worst() const;  ///< Of the map.
  bool operator==(const ErrorProfile&) const = default;
};

Json ToJson(const ErrorProfile& profile);
/// Refuses what Add could not have made: other numbers of bins, a map of another size.
Result<ErrorProfile> ErrorProfileFromJson(const Json& json, std::string place);

}  // namespace assay
