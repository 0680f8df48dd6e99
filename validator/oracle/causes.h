// Likely causes of an error, read off its shape. A cause is a hint for whoever repairs the kernel;
// no verdict depends on it.
#pragma once

#include <string>

#include "validator/oracle/groups.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// What the elements of one output look like as a whole.
struct ErrorShape {
  double beyond = 0;              ///< Share of elements beyond their allowance.
  double zeros = 0;               ///< Share of elements that are zero though the truth is not.
  double scale = 1;               ///< Least-squares factor: got is about scale * truth.
  double scale_rest = 1;          ///< Relative norm of what that factor leaves unexplained.
  double largest_ulps = 0;        ///< Largest |got - rounded truth| in ulps.
  double effective_roundoff = 0;  ///< The unit roundoff that would make the observed error typical.
  int bits = 0;                   ///< Most significant bits that any result uses.
  double shrunk = 0;  ///< Share of elements beyond the allowance whose magnitude is too small.
};

ErrorShape ShapeOf(const ops::Contract& contract, const OutputTruth& truth, const Tensor& got);

/// "" when nothing is recognised. `inputs` tell which rows are delicate: tiny deviations, means far
/// above them, values that exp cannot take.
std::string LikelyCause(const ops::Instance& instance, const TensorMap& inputs,
                        const OutputTruth& truth, const Tensor& got, const Groups& groups,
                        const ErrorShape& shape);
/// Of NaN or infinity where the truth is finite.
std::string CauseOfOverflow(const ops::Instance& instance, const TensorMap& inputs,
                            const OutputTruth& truth, const Tensor& got);

}  // namespace assay::oracle
