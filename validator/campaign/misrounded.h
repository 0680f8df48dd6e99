// Shapes at which an integer that the program makes of a float (a quotient by a reciprocal, a root) is another one than exact
// arithmetic would give: at one count of parts of many, and from some length on. Nothing is run for that: what the program
// computes there is (decisions.h).
//
// A right kernel may correct such a number afterwards; so nothing follows from this but which cases run.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/campaign/decisions.h"

namespace assay::campaign {

struct MisroundedShape {
  ops::AxisValues axes;
  double share = 0;  ///< Of threads and turns of loops, as far as they were looked at.
};

/// Of lengths of each axis from anywhere, beside short others, beside one as long as can be, and beside one just past a number
/// of the plan, where another kernel begins. By elements, ascending. Deterministic; some thousand shapes are looked at, half a
/// millisecond each at the most (two beside the plan's numbers).
std::vector<MisroundedShape> ShapesMisrounded(const ops::Instance& instance,
                                              const ops::LaunchPlan& plan,
                                              const Decisions& decisions, std::uint64_t seed);

}  // namespace assay::campaign
