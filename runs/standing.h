// How attempts compare: by how far they got, and, once accepted, by what their kernels cost. Pure
// functions of a verdict.
#pragma once

#include <string>

#include "validator/verdict/verdict.h"

namespace assay::runs {

/// How far a judged attempt got: gates passed before the first that was not, malformed replies
/// lowest. Higher is better.
int HowFar(const verdict::Verdict& verdict);

/// What running the kernel costs, for people: the speed gate's first statistic where it measured or
/// modelled, else emulated thread-level instructions a case. 0 where neither is known.
double CostOfRunning(const verdict::Verdict& verdict);

/// What keeps an accepted kernel from meeting the op's bar of speed, in words: the speed gate's, where
/// it measured or modelled less than is asked for and let that stand. Empty: nothing is known.
std::string MissedBar(const verdict::Verdict& verdict);

/// Does `verdict`'s kernel run faster than `other`'s, by what is known of both?
bool RunsFaster(const verdict::Verdict& verdict, const verdict::Verdict& other);

}  // namespace assay::runs
