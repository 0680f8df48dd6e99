#include "validator/oracle/growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::oracle {
namespace {

constexpr double kFewestElements = 16;
constexpr std::size_t kFewestOctaves = 3;
// Below this much more than the output's own rounding, nothing is known of what lies beneath.
constexpr double kVisible = 2;

struct Point {
  double x, y, weight;
};

}  // namespace

void Growth::Add(const Element& element) {
  if (!(element.length >= 2) || !std::isfinite(element.error) || !std::isfinite(element.typical) ||
      element.typical == 0)
    return;
  const double log_length = std::log2(element.length);
  Bin& bin = bins_[std::min(static_cast<std::size_t>(log_length), bins_.size() - 1)];
  bin.elements += 1;
  bin.log_length += log_length;
  bin.error2 += element.error * element.error;
  bin.ideal2 += element.ideal * element.ideal;
  bin.typical2 += element.typical * element.typical;
  bin.unit2 += element.typical * element.typical / (element.length - 1);
}

void Growth::Merge(const Growth& other) {
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    bins_[i].elements += other.bins_[i].elements;
    bins_[i].log_length += other.bins_[i].log_length;
    bins_[i].error2 += other.bins_[i].error2;
    bins_[i].ideal2 += other.bins_[i].ideal2;
    bins_[i].typical2 += other.bins_[i].typical2;
    bins_[i].unit2 += other.bins_[i].unit2;
  }
}

std::optional<GrowthFit> Growth::Fit() const {
  std::vector<Point> points;
  GrowthFit fit;
  for (const Bin& bin : bins_) {
    if (bin.elements < kFewestElements || !(bin.error2 > kVisible * bin.ideal2)) continue;
    const double excess2 = bin.error2 - bin.ideal2;
    const double x = bin.log_length / bin.elements;
    // The logarithm of a mean square of k normals has a standard deviation of sqrt(2 / k).
    points.push_back({x, 0.5 * std::log2(excess2 / bin.unit2),
                      2 * bin.elements * std::log(2.0) * std::log(2.0)});
    fit.longest = std::exp2(x);
    fit.in_typicals = std::sqrt(excess2 / bin.typical2);
  }
  if (points.size() < kFewestOctaves) return std::nullopt;
  double weight = 0, mean_x = 0, mean_y = 0;
  for (const Point& point : points) {
    weight += point.weight;
    mean_x += point.weight * point.x;
    mean_y += point.weight * point.y;
  }
  mean_x /= weight;
  mean_y /= weight;
  double xx = 0, xy = 0;
  for (const Point& point : points) {
    xx += point.weight * (point.x - mean_x) * (point.x - mean_x);
    xy += point.weight * (point.x - mean_x) * (point.y - mean_y);
  }
  fit.exponent = xy / xx;
  double scatter = 0;
  for (const Point& point : points) {
    const double off = point.y - mean_y - fit.exponent * (point.x - mean_x);
    scatter += point.weight * off * off;
  }
  const double freedom = static_cast<double>(points.size()) - 2;
  fit.standard_error = std::sqrt(std::max(1.0, scatter / freedom) / xx);
  fit.octaves = static_cast<int>(points.size());
  return fit;
}

std::vector<GrowthPoint> Growth::Points() const {
  std::vector<GrowthPoint> points;
  for (const Bin& bin : bins_) {
    if (bin.elements < kFewestElements || !(bin.error2 > kVisible * bin.ideal2)) continue;
    const GrowthPoint point{.terms = std::exp2(bin.log_length / bin.elements),
                            .error = std::sqrt((bin.error2 - bin.ideal2) / bin.unit2),
                            .typical = std::sqrt(bin.typical2 / bin.unit2),
                            .elements = bin.elements};
    if (std::isfinite(point.error) && std::isfinite(point.typical)) points.push_back(point);
  }
  return points;
}

}  // namespace assay::oracle
