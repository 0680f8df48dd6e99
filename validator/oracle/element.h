// One element against its truth: right, off by more than honest arithmetic may be, or wrong beyond
// what any rounding explains.
#pragma once

#include <cstdint>
#include <string>

#include "validator/oracle/oracle.h"

namespace assay::oracle {

enum class ElementClass : std::uint8_t {
  kRight,
  kUnconstrained,  ///< The accumulator's range is exceeded on the way: anything goes.
  kImprecise,      ///< Beyond the allowance.
  kWrong,  ///< Beyond what arithmetic in the narrowest type could do, or NaN or infinity on one
           ///< side only.
};

struct ElementCheck {
  ElementClass verdict = ElementClass::kRight;
  double error = 0;       ///< got - truth; 0 where either is not finite.
  double allowances = 0;  ///< |error| in allowances; infinite for NaN and infinity mismatches.
};

/// `any_nan`: the contract leaves open what becomes of NaN.
ElementCheck CheckElement(const OutputTruth& truth, std::size_t index, double got, bool any_nan,
                          double unit_roundoff);

/// Is `got` what `value`, which functions and quotients may move by `slack`, is stored as?
bool IsInOrder(DType type, double value, double slack, double got);

/// `value` rounded to the output's dtype, as a double.
double Rounded(DType type, double value);

/// As findings say it: nine digits, and no sign of a NaN, which means nothing.
std::string Shown(double value);

}  // namespace assay::oracle
