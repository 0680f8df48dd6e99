// Likely causes of an error, read off its shape. A cause is a hint for whoever repairs the kernel;
// no verdict depends on it.
//
// A cause is said of distributions: of one or two elements anything could be said. Those that blame
// rounding look much like a skipped element or a neighbour's value, whose errors may have any size;
// where shadow values are known, they decide (campaign/origins.h), by BlameOf.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "validator/oracle/groups.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// What the elements of one output look like as a whole.
struct ErrorShape {
  double bad = 0;                 ///< Elements beyond their allowance,
  double beyond = 0;              ///< and their share.
  double nonzero = 0;             ///< Elements whose truth is not zero,
  double rows = 0;                ///< and the rows that have any.
  double zero_elements = 0;       ///< Bad elements that are zero though the truth is not,
  double zero_rows = 0;           ///< the rows that have any,
  double zeros = 0;               ///< and their share of `nonzero`.
  double scale = 1;               ///< Least-squares factor: got is about scale * truth.
  double scale_rest = 1;          ///< Relative norm of what that factor leaves unexplained.
  double largest_ulps = 0;        ///< Largest |got - rounded truth| in ulps.
  double effective_roundoff = 0;  ///< The unit roundoff that would make the observed error typical.
  int bits = 0;                   ///< Most significant bits that any result uses,
  int truth_bits = 0;             ///< and that any rounded truth does. 0: too few to tell.
  double truncated =
      0;  ///< Share of results where truncation of the truth puts them, among those that rounding takes up and among
          ///< those that it takes down: the lesser. 0: too few to tell.
  double shrunk = 0;  ///< Share of bad elements whose magnitude is too small.
};

ErrorShape ShapeOf(const ops::Contract& contract, const OutputTruth& truth, const Tensor& got);

/// "" when nothing is recognised. `inputs` tell which rows are delicate: tiny deviations, means far
/// above them, values that exp cannot take.
std::string LikelyCause(const ops::Instance& instance, const TensorMap& inputs,
                        const OutputTruth& truth, const Tensor& got, const Groups& groups,
                        const ErrorShape& shape);
/// What a cause blames. kEither: no words of LikelyCause, or such as leave it open.
enum class Blame : std::uint8_t { kEither, kRounding, kFormula };
Blame BlameOf(std::string_view cause);
/// Of a bias toward zero, and of errors that grow with the length.
std::string CauseOfShrinking();
std::string CauseOfGrowth();
/// Of NaN or infinity where the truth is finite: said where it tells the rows that have some from
/// those that have none.
std::string CauseOfOverflow(const ops::Instance& instance, const TensorMap& inputs,
                            const OutputTruth& truth, const Tensor& got);

}  // namespace assay::oracle
