// Where a decision looks at elements of an input, the value at which it comes out even is solved for and put there, with
// its neighbours: reach.h, for what inputs hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "validator/campaign/decisions.h"
#include "validator/campaign/outcomes_had.h"
#include "validator/campaign/reach.h"
#include "validator/cases/case.h"

namespace assay::campaign {

/// A shape at which elements are aimed, with the outcomes of decisions on shapes there.
struct Place {
  Decisions::Point point;
  ops::AxisValues axes;
  Outcomes outcomes;  ///< As many at each place.
};

/// For each of `of`, decisions on elements, the value that it turns on at places that differ in as many outcomes as can
/// be; request.values cases in all.
std::vector<cases::Case> CasesThatMeetValues(const ops::Instance& instance,
                                             const Decisions& decisions,
                                             std::span<const std::size_t> of,
                                             std::span<const Place> places,
                                             const ReachRequest& request);

}  // namespace assay::campaign
