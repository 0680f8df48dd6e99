// Cases of which the last blocks run and what they add is looked at (sums.cc): where blocks add floats to
// memory, so that no part of the grid gives whole results, and the whole grid takes too long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "validator/campaign/trial.h"
#include "validator/cases/case.h"

namespace assay::campaign {

/// One at a shape; nothing where it would tell nothing of this op and plan: no launch only adds, no
/// output is linear in an input, or inputs would have to be made element by element.
std::optional<cases::Case> CaseOfSums(const Trial& trial, const ops::AxisValues& axes,
                                      std::string origin, std::uint64_t seed);

/// The shape with so many places for indices that each has a few terms: a truth that takes a way through all of
/// its terms, and for each of them through a row, is affordable then.
ops::AxisValues WithFewTermsEach(const ops::OpSpec& op, ops::AxisValues axes);

}  // namespace assay::campaign
