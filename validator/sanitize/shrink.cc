// The smallest launch that shows a finding: fewer blocks, then fewer threads.
#include <algorithm>
#include <array>

#include "validator/sanitize/parts.h"

namespace assay::sanitize {
namespace {

/// What may be made smaller for a kind of finding. Fewer threads must not be able to cause what is
/// being looked for: values that nobody is left to write, signals that nobody is left to give.
struct Allowance {
  FindingKind kind;
  bool grid;
  bool block;
};
constexpr std::array kAllowances = {
    Allowance{FindingKind::kOutOfBounds, true, true},
    Allowance{FindingKind::kWrongProvenance, true, true},
    Allowance{FindingKind::kMisaligned, true, true},
    Allowance{FindingKind::kUseAfterFree, true, true},
    Allowance{FindingKind::kInvalidFree, true, true},
    Allowance{FindingKind::kIndexOverflow, true, true},
    Allowance{FindingKind::kWriteToInput, true, true},
    Allowance{FindingKind::kWriteToConstant, true, true},
    Allowance{FindingKind::kUninitialisedUse, true, false},
    Allowance{FindingKind::kMachineDependent, true, false},
    Allowance{FindingKind::kDataRace, true, true},
    Allowance{FindingKind::kSameValueRace, true, true},
    Allowance{FindingKind::kReadOnlyCacheWrite, true, true},
    Allowance{FindingKind::kBarrierDivergence, true, false},
    Allowance{FindingKind::kBarrierMisuse, true, false},
    Allowance{FindingKind::kTrap, true, true},
};

constexpr int kMostRuns = 40;
/// Executions beyond this are left as they are: shrinking is a courtesy.
constexpr std::uint64_t kMostSteps = 20'000'000;

class Shrinker {
 public:
  Shrinker(const ops::SanitizePlan& plan, Execution execution, const Finding& finding,
           std::uint64_t steps, engine::Engine& engine)
      : plan_(plan), execution_(std::move(execution)), finding_(finding), engine_(engine) {
    execution_.limits.max_steps = 2 * steps + 1'000'000;
  }

  Status Run(bool grid, bool block) {
    for (Launch& launch : execution_.launches) {
      for (std::size_t axis = 0; grid && axis < 3; ++axis) {
        ASSAY_TRY_VOID(Reduce(launch.grid[axis], launch.cluster[axis]));
      }
      for (std::size_t axis = 3; block && axis-- > 0;) {
        // Whole warps first: what is odd about a block is seldom its last lanes.
        ASSAY_TRY_VOID(Reduce(launch.block[axis], axis == 0 ? 32 : 1));
      }
    }
    return {};
  }

  std::optional<SmallLaunch> Take() const {
    if (!smaller_) return std::nullopt;
    SmallLaunch small;
    for (const Launch& launch : execution_.launches)
      small.kernels.push_back({launch.grid, launch.block});
    return small;
  }

 private:
  /// Bisects `size` towards `unit`, in multiples of it, keeping what still shows the finding.
  Status Reduce(std::uint32_t& size, std::uint32_t unit) {
    std::uint32_t low = 1;
    while (size > unit && runs_ < kMostRuns && low * unit < size) {
      const std::uint32_t before = size;
      const std::uint32_t high = (before + unit - 1) / unit;
      size = (low == 1 ? 1 : low + (high - low) / 2) * unit;
      ASSAY_TRY(const bool shows, Shows());
      if (shows) {
        smaller_ = true;
        if (low == 1) break;
        continue;
      }
      low = size / unit + 1;
      size = before;
    }
    return {};
  }

  Result<bool> Shows() {
    ++runs_;
    ASSAY_TRY(const sanitize::Run run, RunOnce(plan_, execution_, engine_));
    return std::ranges::any_of(run.report.findings,
                               [&](const Finding& other) { return SameDefect(other, finding_); });
  }

  const ops::SanitizePlan& plan_;
  Execution execution_;
  const Finding& finding_;
  engine::Engine& engine_;
  int runs_ = 0;
  bool smaller_ = false;
};

}  // namespace

Result<std::optional<SmallLaunch>> Shrink(const ops::SanitizePlan& plan, Execution execution,
                                          const Finding& finding, std::uint64_t steps,
                                          engine::Engine& engine) {
  const auto allowed = std::ranges::find(kAllowances, finding.kind, &Allowance::kind);
  if (allowed == kAllowances.end() || steps > kMostSteps) return std::nullopt;
  // A kernel that lost blocks leaves more unwritten for the ones after it.
  if (finding.kind == FindingKind::kUninitialisedUse && execution.launches.size() > 1)
    return std::nullopt;
  Shrinker shrinker(plan, std::move(execution), finding, steps, engine);
  ASSAY_TRY_VOID(shrinker.Run(allowed->grid, allowed->block));
  return shrinker.Take();
}

}  // namespace assay::sanitize
