// How fast a kernel is on one workload, as a share of what the machine allows: the one value that
// whoever compares kernels looks at, measured on a GPU or modelled without one.
//
// The limit of a workload is the time below which no kernel can get: its compulsory bytes over the
// bandwidth, or its operations over the rate, whichever is longer. A share is limit over time, in
// (0, 1]; larger is faster. Without a GPU nobody claims milliseconds: then there is the share alone.
//
// Values; no behaviour beyond JSON and one mean.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay::speed {

struct SpeedEstimate {
  std::string workload;           ///< "rows=8192 columns=4096".
  std::optional<double> seconds;  ///< The median, where it was measured.
  double share = 0;               ///< Of the limit, 0..1.
  std::string limiter;  ///< In words: "memory: 0.8 of the copy bandwidth", "bank conflicts".
  bool operator==(const SpeedEstimate&) const = default;
};

/// What two kernels are compared by: the geometric mean of the shares, 0 where there are none.
inline double GeometricMean(std::span<const SpeedEstimate> estimates) {
  double sum = 0;
  for (const SpeedEstimate& estimate : estimates) sum += std::log(estimate.share);
  return estimates.empty() ? 0 : std::exp(sum / static_cast<double>(estimates.size()));
}

inline Json ToJson(const SpeedEstimate& estimate) {
  Json json = {
      {"workload", estimate.workload}, {"share", estimate.share}, {"limiter", estimate.limiter}};
  if (estimate.seconds) json["seconds"] = *estimate.seconds;
  return json;
}

}  // namespace assay::speed
