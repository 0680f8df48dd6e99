// Results held to truths that come one by one (Oracle::EvaluateAt and its like), where a whole tensor of them would be too much.
#pragma once

#include <string>

#include "base/tensor.h"
#include "ops/op.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// Is `got` what the op defines?
bool Agrees(const ops::Instance& instance, const ops::TensorSpec& output, double got,
            const TruthPoint& truth);
/// That it is not.
Finding WrongValue(const std::string& output, const Shape& shape, double got,
                   const TruthPoint& truth);

/// The first element of each output that is not what the op defines, as a finding of `comparison`.
void ComparePoints(const ops::Instance& instance, const SparseTruth& truth,
                   const TensorMap& outputs, Comparison& comparison);

}  // namespace assay::oracle
