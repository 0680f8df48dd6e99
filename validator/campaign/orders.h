// What differs between runs of one case under different orders of blocks and warps.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "validator/execution/execution.h"
#include "validator/findings/finding.h"
#include "validator/oracle/points.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// A finding for each output whose bits differ, with what `order` noted of the plain run as its cause, `guilty` first where
/// that is known. `places`: where to look in outputs of which most was never written; null: everywhere.
void CompareSchedules(const TensorMap& plain, const TensorMap& other, const OrderReport& order,
                      const Finding* guilty, std::vector<Finding>& findings,
                      const oracle::SparseElements* places = nullptr);

/// May some kernel of the program take a lock, so that what is added up under it hangs on who had it first? So where
/// nothing is known of it (null).
bool MayLock(const facts::Facts* program);

}  // namespace assay::campaign
