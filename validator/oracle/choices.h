// Truths of ops that choose by computed scores.
//
// The reference of such an op does not choose: it computes scores, and reads the choices as inputs.
// The judge chooses, one output after the other in the op's order, since later scores may follow from
// earlier choices: row by row as a candidate did, where that is right, and else by the true scores.
// An op with c choices takes c runs of its reference, and one more for what follows from the last; of those after the first
// only what hangs on choices runs (TruthSource::RunOfChoices). `reference` is given the same tensors each time.
#pragma once

#include <functional>

#include "ops/op.h"
#include "validator/cases/case.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {

/// Everything that the reference writes, for inputs with choices among them.
using ReferenceTruth = std::function<Result<Truth>(const TensorMap& inputs)>;

/// Truth of all outputs, choices among them. `made`: what a candidate chose; null: nobody.
Result<Truth> TruthOfChoices(const ops::Instance& instance, const cases::Materialised& inputs,
                             const TensorMap* made, const ReferenceTruth& reference);

/// Does every choice among `outputs` hold the indices of `truth`?
bool ChoseAlike(const ops::OpSpec& op, const Truth& truth, const TensorMap& outputs);

}  // namespace assay::oracle
