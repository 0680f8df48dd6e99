// Errors by row and by column of an output, and over all of it: what a limit for each element
// cannot see.
//
// For a group of elements with ideal rounding errors r (truth rounded to the dtype, minus truth)
// and typical errors t, of which s are independent of each other, an honest kernel's error has the
// norm |r| + 4 |t - s| + 7 |s| at most: it differs from the ideal result only where its own small
// error tips a rounding. A common sign shows
// in the mean of got - ideal, in ulps, against what typical errors and chance allow.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// Sums over a group; limits follow from them.
struct GroupSums {
  double error2 = 0;  ///< (got - truth)^2
  double truth2 = 0;
  double ideal2 = 0;        ///< (rounded truth - truth)^2
  double typical2 = 0;      ///< Of what may be common to elements.
  double independent2 = 0;  ///< Of what is independent.
  double elements = 0;
  double contributions = 0;  ///< Largest.

  /// Relative to the truth's norm (absolute where that is zero).
  double Relative() const;
  double Limit() const;
  /// Relative() / Limit(); 0 where both are 0.
  double Ratio() const;
  struct Element {
    double error, truth, ideal, typical, independent, contributions;
  };
  void Add(const Element& element);
};

struct BiasSums {
  double sum = 0;       ///< (got - rounded truth) in ulps
  double typical = 0;   ///< typical errors in ulps
  double variance = 0;  ///< of what chance does to the sum
  double elements = 0;
  double toward_zero = 0;  ///< Sum with the sign relative to the truth's: negative for truncation.
  /// What `sum` and `toward_zero` become where the errors of all elements share a sign and are as
  /// large as honest ones get. Next to ties, which small integers and short binary fractions love,
  /// that is more than the errors themselves.
  double upward = 0, downward = 0, outward = 0, inward = 0;

  double Mean() const { return elements > 0 ? sum / elements : 0; }
  double MeanTowardZero() const { return elements > 0 ? toward_zero / elements : 0; }
  double StandardError() const;
  double Limit() const;
};

struct Groups {
  GroupSums all;
  std::vector<GroupSums> rows;  ///< One an index of all axes but the last.
  std::vector<GroupSums>
      columns;  ///< One an index of the last axis; empty for one-dimensional outputs.
  BiasSums bias;
  Growth growth;
  std::vector<std::uint64_t>
      ulps;  ///< Histogram of |got - rounded truth|: 0, 1, 2, 3-4, 5-8, ... ulps.
  double largest_ulps = 0;
};

/// Over the elements that are finite on both sides and constrained.
Groups GroupErrors(const OutputTruth& truth, const Tensor& got);

}  // namespace assay::oracle
