// Inputs of a form: a pure function of its text, the register and the thread.
//
// A quarter of the values are special patterns of the kind (zeros, subnormals, limits, infinities,
// NaNs of several payloads, ties of rounding), a quarter random bits, a quarter of moderate size,
// and a quarter near the register before them, so that sums cancel and comparisons tie. Kinds that
// begin with "m." are matrix elements: warp 0 holds small integers, 1 values of one scale, 2 values
// of widely different scales, 3 some infinities, NaNs and subnormals; "mz." ones hold zeros,
// subnormals and extremes.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/conformance/forms.h"

namespace assay::conformance {

/// values[register][thread], registers of vectors counted one by one.
std::vector<std::vector<std::uint64_t>> InputsOf(const Form& form);

}  // namespace assay::conformance
