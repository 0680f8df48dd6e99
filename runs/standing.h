// How attempts compare: by how far they got, and, once accepted, by what their kernels cost. Pure
// functions of a verdict.
#pragma once

#include "validator/verdict/verdict.h"

namespace assay::runs {

/// How far a judged attempt got: gates passed before the first that was not, malformed replies
/// lowest. Higher is better.
int HowFar(const verdict::Verdict& verdict);

/// What running the kernel costs, to compare accepted ones: the speed gate's first statistic where
/// it measured, else emulated thread-level instructions a case. 0 where neither is known.
double CostOfRunning(const verdict::Verdict& verdict);

}  // namespace assay::runs
