// How the parts of batches' events and summaries stand in JSON.
#pragma once

#include "base/fields.h"
#include "batch/events.h"
#include "batch/summary.h"

namespace assay::batch {

/// Tokens without the word that they are estimates.
struct Tokens {
  static Json Write(const runs::Usage& usage);
  static Result<runs::Usage> Read(const Json& json, const std::string& place);
};

std::span<const std::string_view> JsonWords(const End*);

constexpr auto JsonFields(const ChangedPart*) {
  using C = ChangedPart;
  return std::tuple(Required("cause", &C::cause), Required("part", &C::part),
                    Required("before", &C::before), Required("after", &C::after));
}
constexpr auto JsonFields(const DriftRow*) {
  using D = DriftRow;
  return std::tuple(Required("instance", &D::instance), Required("kernel", &D::kernel),
                    Required("before", &D::before), Required("after", &D::after),
                    Required("reason", &D::reason), Required("gate", &D::gate),
                    Required("finding", &D::finding), Required("drifted", &D::drifted),
                    Required("changed", &D::changed));
}

}  // namespace assay::batch
