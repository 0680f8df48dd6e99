// Errors of vectors against their norms: for algorithms (fast Fourier transforms, Winograd's
// convolutions) whose errors spread over a vector whatever its single elements are.
//
// A vector may be off by the norm of its elements' allowances, which hold for whatever computes
// element by element, or by what a fast algorithm of log2(n) stages does, the larger:
//
//   |got - truth|  <=  max(|allowance|, 4 u (1 + log2 n) |truth| + |half ulps|)
//
// (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 24.2, with room for
// roots of unity that are themselves rounded.) Where a result or a truth is not finite, elements are
// compared one by one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validator/oracle/describe.h"
#include "validator/oracle/element.h"
#include "validator/oracle/relations.h"

namespace assay::oracle {
namespace {

struct Vector {
  double error = 0, truth = 0, allowed = 0, stored = 0;  // Squares.
  double length = 1;
  bool finite = true, open = false;
  std::size_t worst = 0;

  double Limit(double unit) const {
    const double stages = 4 * unit * (1 + std::log2(std::max(1.0, length)));
    return std::max(std::sqrt(allowed), stages * std::sqrt(truth) + std::sqrt(stored));
  }
};

Vector Measure(const OutputTruth& truth, const Tensor& got, std::size_t first, std::size_t count) {
  Vector vector;
  double most = -1;
  for (std::size_t i = first; i < first + count; ++i) {
    const double value = truth.value[i];
    const double error = got.At(static_cast<std::int64_t>(i)) - value;
    vector.open = vector.open || std::isinf(truth.allowance[i]);
    vector.finite = vector.finite && std::isfinite(value) && std::isfinite(error);
    const double half_ulp = UlpAt(truth.dtype, value) / 2;
    vector.error += error * error;
    vector.truth += value * value;
    vector.allowed += truth.allowance[i] * truth.allowance[i];
    vector.stored += half_ulp * half_ulp;
    vector.length = std::max(vector.length, truth.contributions[i]);
    if (std::fabs(error) > most) {
      most = std::fabs(error);
      vector.worst = i;
    }
  }
  return vector;
}

}  // namespace

void CompareNorm(const Compared& output, Comparison& out) {
  const OutputTruth& truth = output.truth;
  const double unit = UnitRoundoff(output.instance.op.contract.accumulate);
  std::size_t size = 1;
  for (std::int64_t k = 0; k < output.spec.relation.over; ++k)
    size *=
        static_cast<std::size_t>(truth.shape[truth.shape.size() - 1 - static_cast<std::size_t>(k)]);
  double worst = 0, worst_limit = 0;
  std::size_t place = 0, wrong = 0;
  bool not_finite = false;
  for (std::size_t first = 0; size > 0 && first < truth.value.size(); first += size) {
    const Vector vector = Measure(truth, output.got, first, size);
    if (vector.open) continue;
    if (!vector.finite) {
      for (std::size_t i = first; i < first + size && !not_finite; ++i) {
        const double got = output.got.At(static_cast<std::int64_t>(i));
        if (std::isfinite(truth.value[i]) && std::isfinite(got)) continue;
        not_finite =
            CheckElement(truth, i, got, output.AnyNan(), unit).verdict == ElementClass::kWrong;
        if (not_finite) place = i;
      }
      continue;
    }
    const double limit = vector.Limit(unit);
    const double error = std::sqrt(vector.error);
    if (error > limit) ++wrong;
    if (not_finite || !(error > 0) || error * worst_limit < worst * limit) continue;
    worst = error;
    worst_limit = limit;
    place = vector.worst;
  }
  out.statistics.push_back({"worst_vector_in_limits",
                            worst_limit > 0 ? worst / worst_limit
                            : worst > 0     ? HUGE_VAL
                                            : 0,
                            1, output.spec.name});
  if (wrong == 0 && !not_finite) return;
  const double narrow = UnitRoundoff(DType::kBF16) / unit;
  const bool imprecise = !not_finite && worst <= narrow * worst_limit;
  Finding finding;
  finding.kind = imprecise ? FindingKind::kPrecisionElement : FindingKind::kWrongValue;
  finding.element = ElementPlace{.output = output.spec.name,
                                 .index = IndexOf(truth.shape, place),
                                 .expected = truth.value[place],
                                 .got = output.got.At(static_cast<std::int64_t>(place)),
                                 .allowance = worst_limit};
  const std::string where = output.spec.name + Subscript(finding.element->index);
  finding.message =
      not_finite ? fmt::format("{} is {}, but the op defines {}", where,
                               Shown(finding.element->got), Shown(finding.element->expected))
                 : fmt::format(
                       "the vector around {} is off by {:.3g} in norm; honest {} arithmetic stays "
                       "below {:.3g}; {} of {} vectors are off",
                       where, worst, Name(output.instance.op.contract.accumulate), worst_limit,
                       wrong, truth.value.size() / size);
  finding.statistics = out.statistics;
  (imprecise ? out.precision : out.numeric).push_back(std::move(finding));
}

}  // namespace assay::oracle
