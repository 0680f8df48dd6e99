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

}  // namespace assay::campaign
