#include "validator/oracle/element.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace assay::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// An accumulation in bf16 is off by its typical error times this, at most; what is beyond is no
// matter of precision.
constexpr double kGross = 4;

}  // namespace

std::string Shown(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value); }

double Rounded(DType type, double value) {
  if (!IsFloat(type)) return value;
  std::array<std::byte, 8> bytes{};
  StoreFromDouble(type, value, bytes.data());
  return LoadAsDouble(type, bytes.data());
}

namespace {
double Spacing(DType type, double value) { return IsFloat(type) ? UlpAt(type, value) : 1; }
}  // namespace

bool IsInOrder(DType type, double value, double slack, double got) {
  if (got == Rounded(type, value)) return true;
  return slack > 0 && std::fabs(got - value) <= slack + Spacing(type, std::fabs(value) + slack) / 2;
}

ElementCheck CheckElement(const OutputTruth& truth, std::size_t index, double got, bool any_nan,
                          double unit_roundoff) {
  const double value = truth.value[index];
  const double allowance = truth.allowance[index];
  const ElementCheck wrong{ElementClass::kWrong, 0, kInfinity};
  if (std::isnan(value)) {
    if (any_nan) return {ElementClass::kUnconstrained, 0, 0};
    return std::isnan(got) ? ElementCheck{} : wrong;
  }
  if (std::isinf(allowance)) return {ElementClass::kUnconstrained, 0, 0};
  if (truth.keeps_zero_sign && value == 0 && got == 0 && truth.typical[index] == 0 &&
      std::signbit(got) != std::signbit(value))
    return wrong;
  if (truth.exact) return got == value ? ElementCheck{} : wrong;
  if (std::isnan(got)) return wrong;
  if (std::isinf(value)) return got == value ? ElementCheck{} : wrong;
  // Infinity is right where an honest value may round to it, and a finite number where one may stay
  // below.
  const double sign = value < 0 ? -1 : 1;
  if (std::isinf(got)) {
    return Rounded(truth.dtype, value + sign * allowance) == got ? ElementCheck{} : wrong;
  }
  if (std::isinf(Rounded(truth.dtype, value))) {
    return std::isfinite(Rounded(truth.dtype, value - sign * allowance)) ? ElementCheck{} : wrong;
  }
  ElementCheck check;
  check.error = got - value;
  const double magnitude = std::fabs(check.error);
  check.allowances = allowance > 0 ? magnitude / allowance : magnitude > 0 ? kInfinity : 0;
  if (magnitude <= allowance) return check;
  const double narrow = UnitRoundoff(DType::kBF16) / unit_roundoff;
  const double gross = kGross * narrow * truth.typical[index] + 8 * Spacing(truth.dtype, value);
  check.verdict = magnitude > gross ? ElementClass::kWrong : ElementClass::kImprecise;
  return check;
}

}  // namespace assay::oracle
