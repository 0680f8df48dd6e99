// Turns: the shapes at which a candidate's decisions change sides.
//
// Along each axis, the others small: by doubling and bisection for what grows, and one by one along
// small extents for what repeats (`n % 37`). Deterministic; a few thousand shapes are looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validator/campaign/decisions.h"

namespace assay::campaign {

/// How a decision comes out: 0, 1, 2 for <, =, >.
inline constexpr std::uint8_t kUnknownOutcome = 3;
inline std::uint8_t CodeOf(const std::optional<Outcome>& outcome) {
  return outcome ? static_cast<std::uint8_t>(outcome->sign + 1) : kUnknownOutcome;
}

/// `base` with one axis moved, whether or not the op admits that.
ops::AxisValues Moved(const ops::AxisValues& base, const ops::Axis& axis, std::int64_t value);

/// Small shapes to start from: all axes at their minimum, all at 2, all different.
std::vector<ops::AxisValues> BasesOf(const ops::Instance& instance);

/// The bases, and the shapes around each change of a decision that hangs on shapes alone. Distinct,
/// no more than a few hundred.
std::vector<ops::AxisValues> TurnsOf(const ops::Instance& instance, const Decisions& decisions);

}  // namespace assay::campaign
