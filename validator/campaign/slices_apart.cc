// Slices of launches whose blocks may meet, by what their program says, where they do not: at that shape a sum is not split, say.
//
// Where all blocks would take long some run all the same, and count where they did nothing by which they may meet (alone.h).
// Where they did, the slice is as it was before, and runs as others do.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/slice.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// What all blocks take, before some of them are tried.
constexpr std::uint64_t kWorthTrying = 200'000'000;

}  // namespace

bool Runner::Slice::MayRunApart() const {
  const std::vector<Launch>& launches = bound_.execution.launches;
  return wants_.watch && cut_.size() < launches.size() &&
         std::ranges::all_of(launches, engine::IsAlone) &&
         (probe_.slice_blocks > 0 ? probe_.apart
                                  : wants_.apart_or_nothing || IsEstimatedAbove(kWorthTrying));
}

Result<bool> Runner::Slice::RunApart() {
  const std::vector<std::size_t> cut = std::exchange(cut_, {});
  const std::uint64_t all = all_;
  const std::set<std::uint64_t> writers = writers_;
  for (std::size_t i = 0; i < bound_.execution.launches.size(); ++i) {
    const std::uint64_t blocks = Blocks(bound_.execution.launches[i]);
    if (blocks < 2) continue;
    cut_.push_back(i);
    all_ = std::max(all_, blocks);
  }
  writers_ = LastOfTurns(*runner_.subject_.plan, filled_.axes);
  apart_ = run_.probe.apart = true;
  ASSAY_TRY(bound_, BindOver(probe_.poison));
  ASSAY_TRY_VOID(RunPrepared());
  if (!met_ && run_.left_out.empty()) return true;
  const std::uint64_t steps = run_.steps;
  run_ = {};
  run_.probe = probe_;
  run_.steps = steps;
  apart_ = met_ = ran_ = only_writers_ = writers_left_it_ = whole_ = end_is_unknown_ = false;
  cut_ = cut;
  all_ = all;
  writers_ = writers;
  ASSAY_TRY(bound_, BindOver(probe_.poison));
  return false;
}

}  // namespace assay::campaign
