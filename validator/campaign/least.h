// The least shapes at which something holds that holds at larger ones: past a limit of a number that grows
// by several axes at once, where no one or two of them lead.
//
// From the largest shape on, one axis after the other is made as short as it may be. What comes of it
// hangs on which goes first, so every order is tried, and the cheapest shape taken. What does not hold for
// all lengths past some length is found as well, at a length that need not be the least.
//
// Deterministic; a few hundred shapes an order.
#pragma once

#include <functional>
#include <optional>

#include "ops/op.h"

namespace assay::campaign {

/// Nothing where it does not hold at a largest shape either (the op's, or halves of it), or where
/// nothing that is found costs less than infinity.
std::optional<ops::AxisValues> LeastShape(
    const ops::Instance& instance, const std::function<bool(const ops::AxisValues&)>& holds,
    const std::function<double(const ops::AxisValues&)>& cost);

}  // namespace assay::campaign
