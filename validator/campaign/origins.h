// Where the error of a finding comes from: the failing case is run once more with shadow values
// (docs/shadow-values.md), and the source lines whose rounding made the difference are named.
//
// Four answers are possible: lines with their shares, unless all roundings of an element are within its allowance; the line where the first infinity or NaN arose; "not a matter of rounding",
// when the kernel's own operations in FP64 are as wrong as its result; or none, when the case is too large, a limit was reached, or
// the picture is too uncertain to help anyone. A likely cause that contradicts the answer is taken back.
//
// A function of the probe and the findings alone, so that replay says the same again.
// Cost: one more run, tens of times slower, of a case that was shrunk before.
#pragma once

#include <span>
#include <vector>

#include "validator/campaign/runner.h"
#include "validator/verdict/candidate.h"

namespace assay::campaign {

/// Thread-level instructions of a run up to which it is run again with shadow values.
inline constexpr std::uint64_t kMostTracedSteps = 20'000'000;
/// Findings of one case that are traced.
inline constexpr std::size_t kMostTraced = 2;

/// Fills `origins` and `origin` of precision findings, and of wrong values that rounding explains.
void AddOrigins(const Runner& runner, const CaseRun& run, const verdict::Candidate& candidate,
                std::vector<Finding>& findings);

}  // namespace assay::campaign
