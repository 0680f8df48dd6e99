// Turns: the shapes at which a candidate's decisions change sides.
//
// Along each axis, the others small: by doubling and bisection for what grows, and one by one along
// small extents for what repeats (`n % 37`). Deterministic; a few thousand shapes are looked at.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <stop_token>
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
/// no more than a few hundred. Fewer of them once `stop` is asked for.
std::vector<ops::AxisValues> TurnsOf(const ops::Instance& instance, const Decisions& decisions,
                                     std::stop_token stop = {});

/// The turns of a candidate, looked for by a thread of their own while something else runs: they hang on no run. Borrows
/// what it is made of.
class TurnsAhead {
 public:
  TurnsAhead(const ops::Instance& instance, const ops::LaunchPlan& plan,
             const engine::CompiledKernel& compiled);
  /// Waits for the thread, which is asked to stop.
  ~TurnsAhead();
  TurnsAhead(const TurnsAhead&) = delete;
  TurnsAhead& operator=(const TurnsAhead&) = delete;

  const Decisions& decisions() const { return decisions_; }
  /// Once.
  std::vector<ops::AxisValues> Take() { return turns_.get(); }

 private:
  Decisions decisions_;
  std::stop_source stop_;
  std::future<std::vector<ops::AxisValues>> turns_;
};

}  // namespace assay::campaign
