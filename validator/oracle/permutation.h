// Outputs whose elements may change places: which truth each of them is to be held to.
//
// Within a group (a row, or the elements of a row whose keys are equal) the truths are intervals,
// value +- allowance, and the results are points. If every point can have an interval of its own,
// the matching by earliest end finds one, so nothing right is refuted. What finds no partner is
// matched in order, and differs.
#pragma once

#include "base/tensor.h"
#include "ops/relation.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// `truth`, its elements moved to where `got` has them. `keys` is the truth of relation.of, or null.
/// O(n log n).
OutputTruth Matched(const ops::Relation& relation, const OutputTruth& truth,
                    const OutputTruth* keys, const Tensor& got);

}  // namespace assay::oracle
