// Is the data random enough for statistics about roundings to hold?
//
// lambda * sqrt(n) * u rests on roundings that are independent. Constant or periodic data break
// that: 0.1 added a million times is rounded the same way each time. And the typical error of a sum
// rests on terms in no particular order: sorted or alternating data have partial sums that depend
// on the order in which a kernel adds. Both are looked for in the inputs; where they are found, the
// oracle takes the deterministic bound, or leaves the typical error out. Small inputs are never
// random enough, and lose nothing by it.
#pragma once

#include "base/tensor.h"

namespace assay::oracle {

struct Randomness {
  bool independent = true;  ///< Values rarely repeat: roundings may be taken for independent.
  bool exchangeable =
      true;  ///< Signs do not depend on the position: no order of summation is special.
  bool trending = false;  ///< Neighbours lie on the same side of the middle: sorted, or in blocks.
};

/// Looks at up to some thousands of elements of each float input of at least 16 elements.
Randomness RandomnessOf(const TensorMap& inputs);

}  // namespace assay::oracle
