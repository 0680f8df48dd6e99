#include "validator/campaign/costs.h"

#include <algorithm>
#include <cmath>

namespace assay::campaign {
namespace {

std::vector<double> LogsOf(const ops::AxisValues& axes) {
  std::vector<double> logs;
  for (const auto& [name, extent] : axes)
    logs.push_back(std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1))));
  return logs;
}

/// Of the ratios of extents, as a logarithm.
double Product(const std::vector<double>& logs, const std::vector<double>& before) {
  double product = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) product += logs[i] - before[i];
  return product;
}

}  // namespace

void Costs::Learn(const ops::AxisValues& axes, std::int64_t elements, double steps) {
  if (steps < 1 || elements < 1) return;
  Sample sample{LogsOf(axes), std::log2(static_cast<double>(elements)), std::log2(steps)};
  // Values may cost as well: the dearest case of a shape counts.
  const auto known = std::ranges::find(samples_, sample.logs, &Sample::logs);
  if (known != samples_.end()) {
    known->steps = std::max(known->steps, sample.steps);
  } else if (samples_.size() < kMost) {
    samples_.push_back(std::move(sample));
  }
}

const Costs::Sample* Costs::Nearest(const std::vector<double>& logs) const {
  const Sample* nearest = nullptr;
  double distance = HUGE_VAL;
  for (const Sample& sample : samples_) {
    if (sample.logs.size() != logs.size()) continue;
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) sum += std::fabs(logs[i] - sample.logs[i]);
    if (sum >= distance) continue;
    distance = sum;
    nearest = &sample;
  }
  return nearest;
}

std::optional<double> Costs::Estimate(const ops::AxisValues& axes, std::int64_t elements) const {
  const std::vector<double> logs = LogsOf(axes);
  const Sample* const nearest = Nearest(logs);
  if (nearest == nullptr) return std::nullopt;
  const double product = Product(logs, nearest->logs);
  const double more =
      std::log2(static_cast<double>(std::max<std::int64_t>(elements, 1))) - nearest->elements;
  // Beside long keys a thousand queries are few elements: what is past the square counts half.
  const double square = 2 * more, past = std::max(product - square, 0.0);
  const double ratio =
      more > 0 ? std::clamp(product, more, square) + past / 2 : std::min(product, more);
  return std::exp2(nearest->steps + ratio);
}

std::optional<double> Costs::EstimateAtMost(const ops::AxisValues& axes) const {
  const std::vector<double> logs = LogsOf(axes);
  const Sample* const nearest = Nearest(logs);
  if (nearest == nullptr) return std::nullopt;
  return std::exp2(nearest->steps + std::max(Product(logs, nearest->logs), 0.0));
}

std::optional<double> Costs::EstimateEach(const ops::AxisValues& axes, std::int64_t parts) const {
  // Of blocks of two attention kernels, whose columns were 14 times as many, 7.1 times the instructions.
  constexpr double kPower = 0.75;
  const std::vector<double> logs = LogsOf(axes);
  const Sample* const nearest = Nearest(logs);
  if (nearest == nullptr) return std::nullopt;
  const double product = Product(logs, nearest->logs);
  const double more =
      std::log2(static_cast<double>(std::max<std::int64_t>(parts, 1))) - nearest->elements;
  return std::exp2(nearest->steps + std::max(kPower * (product - more), 0.0));
}

}  // namespace assay::campaign
