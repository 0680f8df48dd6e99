// Is the data random enough for statistics about roundings to hold?
//
// lambda * sqrt(n) * u rests on roundings that are independent. Constant or periodic data break
// that: 0.1 added a million times is rounded the same way each time, and so is exp(0 - max) for all
// the zeros of a sparse row, exp(x) for all x that are minute, and so are the few hundred values of
// bfloat16 in a row of tens of thousands; along a ramp, partial sums cross their binades at even steps. And the
// typical error of a sum rests on terms in no particular order: sorted or alternating data have
// partial sums that depend on the order in which a kernel adds. Both are looked for in the inputs;
// where they are found, the oracle takes the deterministic bound, or leaves the typical error out.
// Small inputs are never random enough, and lose nothing by it.
#pragma once

#include "base/tensor.h"

namespace assay::oracle {

struct Randomness {
  /// Values rarely repeat and do not drift along the index: roundings may be taken for independent.
  bool independent = true;
  bool exchangeable =
      true;  ///< Signs do not depend on the position: no order of summation is special.
};

/// Looks at up to some thousands of elements of each float input of at least 16 elements.
Randomness RandomnessOf(const TensorMap& inputs);

}  // namespace assay::oracle
