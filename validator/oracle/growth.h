// How errors grow as the reduction behind an element doubles.
//
// Elements are binned by octaves of the number of terms behind them. In each bin the error's norm,
// less the output's own rounding, is taken in units of one rounding (the typical error over the
// square root of the length). The slope of its logarithm over that of the length is the exponent:
// at most 1/2 for honest arithmetic on terms in no particular order, since its roundings are as
// independent as the terms, 0 for trees and compensated sums; near 1 where roundings conspire
// (truncation, a narrow accumulator that no longer moves). Bins add up over cases.
//
//   Growth growth;
//   for (element) growth.Add({.length = 300, .error = e, .ideal = r, .typical = t});
//   if (auto fit = growth.Fit()) use(fit->exponent, fit->standard_error);
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "validator/findings/error_profile.h"

namespace assay::oracle {

struct GrowthFit {
  double exponent = 0;
  double standard_error = 0;  ///< Of the exponent; the larger of counting and of the bins' scatter.
  int octaves = 0;            ///< Bins that the fit rests on.
  double longest = 0;         ///< Terms behind the longest bin's elements, on average.
  double in_typicals = 0;     ///< Error of the longest bin, in typical errors.
};

class Growth {
 public:
  struct Element {
    double length;   ///< Terms behind it.
    double error;    ///< got - truth
    double ideal;    ///< rounded truth - truth
    double typical;  ///< An honest kernel's, before the output's rounding.
  };
  void Add(const Element& element);
  void Merge(const Growth& other);

  /// Nothing where fewer than three octaves show an error above the output's own rounding.
  std::optional<GrowthFit> Fit() const;
  /// The octaves that show an error above the output's own rounding, for drawing.
  std::vector<GrowthPoint> Points() const;

 private:
  struct Bin {
    double elements = 0, log_length = 0, error2 = 0, ideal2 = 0, typical2 = 0, unit2 = 0;
  };
  std::array<Bin, 48> bins_{};
};

}  // namespace assay::oracle
