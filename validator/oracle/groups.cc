#include "validator/oracle/groups.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// Typical errors are standard deviations, rather above than below; functions' own errors share a
// sign. Four of them is beyond chance.
constexpr double kWidth = 4;
// The independent part is a true standard deviation, neither more nor less. Seven of it are beyond
// chance (3e-12) even where all elements of a row share one draw, as in a column times a row.
constexpr double kIndependentWidth = 7;
// The sums here are sums of doubles: a perfect result must not fail by their last digits.
constexpr double kSummation = 1 + 1e-9;
// Minus the logarithm of the probability beyond which chance explains nothing (8e-10).
constexpr double kBeyondChance = 21;
constexpr std::size_t kUlpBins = 12;

// What the sum of rare steps of one ulp up or down, `rate` of them expected, exceeds with a
// probability below exp(-kBeyondChance): Chernoff's bound for the difference of two Poisson
// variables. 6.5 sqrt(rate) where steps are many; three or four where hardly one is expected, and
// where standard deviations mean nothing.
double ChanceLimit(double rate) {
  if (rate <= 0) return 0;
  const auto exponent = [rate](double sum) {
    return sum * std::asinh(sum / rate) - std::hypot(sum, rate) + rate;
  };
  double low = 0;
  double high = 1;
  while (exponent(high) < kBeyondChance) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (exponent(middle) < kBeyondChance ? low : high) = middle;
  }
  return high;
}

}  // namespace

void GroupSums::Add(const Element& element) {
  const double common = element.typical - element.independent;
  error2 += element.error * element.error;
  truth2 += element.truth * element.truth;
  ideal2 += element.ideal * element.ideal;
  typical2 += common * common;
  independent2 += element.independent * element.independent;
  elements += 1;
  contributions = std::max(contributions, element.contributions);
}

double GroupSums::Relative() const {
  return truth2 > 0 ? std::sqrt(error2 / truth2) : std::sqrt(error2);
}
double GroupSums::Limit() const {
  const double limit = (std::sqrt(ideal2) + kWidth * std::sqrt(typical2) +
                        kIndependentWidth * std::sqrt(independent2)) *
                       kSummation;
  return truth2 > 0 ? limit / std::sqrt(truth2) : limit;
}
double GroupSums::Ratio() const {
  if (error2 == 0) return 0;
  const double limit = Limit();
  return limit > 0 ? Relative() / limit : INFINITY;
}

double BiasSums::StandardError() const { return elements > 0 ? std::sqrt(variance) / elements : 0; }
double BiasSums::Limit() const {
  const double shared = std::max({kWidth * typical, upward, downward, outward, inward});
  return elements > 0 ? (shared + ChanceLimit(variance)) / elements + 1e-12 : 0;
}

Groups GroupErrors(const OutputTruth& truth, const Tensor& got) {
  Groups groups;
  const auto count = static_cast<std::size_t>(got.elements);
  const auto columns =
      truth.shape.empty() ? std::size_t{1} : static_cast<std::size_t>(truth.shape.back());
  for (const auto* field :
       {&truth.value, &truth.allowance, &truth.typical, &truth.independent, &truth.contributions}) {
    ASSAY_CHECK(field->size() == count, "a truth holds every field for every element");
  }
  groups.ulps.resize(kUlpBins);
  if (columns == 0 || count == 0) return groups;
  groups.rows.resize(count / columns);
  if (truth.shape.size() > 1) groups.columns.resize(columns);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = truth.value[i];
    const double result = got.At(static_cast<std::int64_t>(i));
    const double ideal = Rounded(truth.dtype, value);
    const double typical = truth.typical[i];
    if (!std::isfinite(result) || !std::isfinite(ideal) || !std::isfinite(truth.allowance[i]))
      continue;
    const double independent = truth.independent[i];
    const GroupSums::Element element{.error = result - value,
                                     .truth = value,
                                     .ideal = ideal - value,
                                     .typical = typical,
                                     .independent = independent,
                                     .contributions = truth.contributions[i]};
    groups.rows[i / columns].Add(element);
    if (!groups.columns.empty()) groups.columns[i % columns].Add(element);
    groups.all.Add(element);
    groups.growth.Add({.length = truth.contributions[i],
                       .error = result - value,
                       .ideal = ideal - value,
                       .typical = typical});
    if (!IsFloat(truth.dtype) || value == 0) continue;
    const double ulp = UlpAt(truth.dtype, value);
    const double off = (result - ideal) / ulp;
    const double tau = typical / ulp;
    groups.bias.sum += off;
    groups.bias.toward_zero += value < 0 ? -off : off;
    groups.bias.typical += (typical - independent) / ulp;
    const double reach = kWidth * (typical - independent);
    const double above = std::fabs(Rounded(truth.dtype, value + reach) - ideal) / ulp;
    const double below = std::fabs(Rounded(truth.dtype, value - reach) - ideal) / ulp;
    // Where the next number is infinity, only finite results are compared here.
    if (std::isfinite(above)) groups.bias.upward += above;
    if (std::isfinite(below)) groups.bias.downward += below;
    if (std::isfinite(above + below)) {
      groups.bias.outward += value < 0 ? below : above;
      groups.bias.inward += value < 0 ? above : below;
    }
    // A rounding tips with a probability of about 2 tau, by one ulp.
    groups.bias.variance += tau * tau + 2 * tau;
    groups.bias.elements += 1;
    const double distance = std::fabs(off);
    groups.largest_ulps = std::max(groups.largest_ulps, distance);
    const std::size_t bin =
        distance < 0.5 ? 0
        : distance < 1.5
            ? 1
            : 1 + static_cast<std::size_t>(std::ceil(std::log2(std::min(distance, 1e9))));
    groups.ulps[std::min(bin, kUlpBins - 1)] += 1;
  }
  return groups;
}

}  // namespace assay::oracle
