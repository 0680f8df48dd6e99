// Which kind of bounded numbers a compiled reference computes in: bits of one constant of its text.
//
// NVRTC takes longer over a reference than most of its runs do, and a judgement needs two kinds and
// more: roundings that may be taken for independent or not, sums as they are written or not. So a
// reference is compiled once, reads the kind from the constant `assay_run`
// (ops/prelude/assay/reference.cuh), and each kind is the same PTX with another initial value.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "validator/oracle/truth_source.h"

namespace assay::oracle {

/// The constant's value for bounded numbers.
unsigned RunFlags(const NumberType& type);

/// `ptx` with this value in place of the one it was compiled with. As it is where it does not look at
/// the constant; kInternal where it does, and the constant is not written as expected.
Result<std::string> WithRunFlags(std::string_view ptx, unsigned flags);

}  // namespace assay::oracle
