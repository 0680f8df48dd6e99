#include "validator/emu/race/clock.h"

#include <algorithm>
#include <bit>

namespace assay::emu {

void Clock::RaiseBlock(BlockNumber block, Time time) {
  if (time == 0) return;
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), block,
                                   [](const BlockEntry& e, BlockNumber b) { return e.block < b; });
  if (at != blocks_.end() && at->block == block) {
    at->base = std::max(at->base, time);
  } else {
    blocks_.insert(at, BlockEntry{block, time});
  }
}

void Clock::RaiseLanes(WarpNumber warp, LaneMask lanes, Time time) {
  if (time == 0 || lanes == 0) return;
  auto at = std::lower_bound(warps_.begin(), warps_.end(), warp,
                             [](const WarpEntry& e, WarpNumber w) { return e.warp < w; });
  if (at == warps_.end() || at->warp != warp) {
    at = warps_.insert(at, WarpEntry{});
    at->warp = warp;
  }
  Raise(*at, lanes, time);
}

void Clock::Raise(WarpEntry& entry, LaneMask lanes, Time time) {
  if (lanes == kAllLanes) {
    entry.all = std::max(entry.all, time);
    if (entry.detail < 0 && entry.mask_time <= entry.all) entry.mask = 0, entry.mask_time = 0;
    return;
  }
  if (time <= entry.all) return;
  if (entry.detail < 0) {
    if (entry.mask == 0 || (time >= entry.mask_time && (lanes & entry.mask) == entry.mask)) {
      entry.mask = lanes;
      entry.mask_time = time;
      return;
    }
    if (time <= entry.mask_time && (lanes & ~entry.mask) == 0) return;
    Detail detail{};
    for (std::size_t lane = 0; lane < detail.size(); ++lane) {
      detail[lane] = (entry.mask >> lane & 1u) != 0 ? entry.mask_time : 0;
    }
    entry.detail = static_cast<std::int32_t>(details_.size());
    entry.mask = 0;
    entry.mask_time = 0;
    details_.push_back(detail);
  }
  Detail& detail = details_[static_cast<std::size_t>(entry.detail)];
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    Time& known = detail[static_cast<std::size_t>(std::countr_zero(rest))];
    known = std::max(known, time);
  }
}

void Clock::Join(const Clock& other) {
  if (blocks_.empty() && warps_.empty()) {
    *this = other;
    return;
  }
  // Entries arrive sorted, so that most joins append or meet an equal key; a plain merge keeps both
  // sides linear.
  std::vector<BlockEntry> blocks;
  blocks.reserve(blocks_.size() + other.blocks_.size());
  auto a = blocks_.begin();
  auto b = other.blocks_.begin();
  while (a != blocks_.end() || b != other.blocks_.end()) {
    if (b == other.blocks_.end() || (a != blocks_.end() && a->block < b->block)) {
      blocks.push_back(*a++);
    } else if (a == blocks_.end() || b->block < a->block) {
      blocks.push_back(*b++);
    } else {
      blocks.push_back(BlockEntry{a->block, std::max(a->base, b->base)});
      ++a, ++b;
    }
  }
  blocks_ = std::move(blocks);

  std::vector<WarpEntry> warps;
  warps.reserve(warps_.size() + other.warps_.size());
  auto wa = warps_.begin();
  auto wb = other.warps_.begin();
  while (wa != warps_.end() || wb != other.warps_.end()) {
    if (wb == other.warps_.end() || (wa != warps_.end() && wa->warp < wb->warp)) {
      warps.push_back(*wa++);
      continue;
    }
    WarpEntry merged;
    merged.warp = wb->warp;
    if (wa != warps_.end() && wa->warp == wb->warp) merged = *wa++;
    Raise(merged, kAllLanes, wb->all);
    if (wb->detail >= 0) {
      const Detail& detail = other.details_[static_cast<std::size_t>(wb->detail)];
      for (std::size_t lane = 0; lane < detail.size(); ++lane) {
        if (detail[lane] != 0) Raise(merged, 1u << lane, detail[lane]);
      }
    } else if (wb->mask != 0) {
      Raise(merged, wb->mask, wb->mask_time);
    }
    warps.push_back(merged);
    ++wb;
  }
  warps_ = std::move(warps);
}

const Clock::WarpEntry* Clock::Find(WarpNumber warp) const {
  const auto at = std::lower_bound(warps_.begin(), warps_.end(), warp,
                                   [](const WarpEntry& e, WarpNumber w) { return e.warp < w; });
  return at != warps_.end() && at->warp == warp ? &*at : nullptr;
}

Time Clock::At(const WarpEntry& entry, int lane) const {
  if (entry.detail >= 0) {
    return std::max(
        entry.all,
        details_[static_cast<std::size_t>(entry.detail)][static_cast<std::size_t>(lane)]);
  }
  return (entry.mask >> lane & 1u) != 0 ? std::max(entry.all, entry.mask_time) : entry.all;
}

Time Clock::BlockBase(BlockNumber block) const {
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), block,
                                   [](const BlockEntry& e, BlockNumber b) { return e.block < b; });
  return at != blocks_.end() && at->block == block ? at->base : 0;
}

Time Clock::LaneTime(WarpNumber warp, int lane) const {
  const WarpEntry* entry = Find(warp);
  return entry == nullptr ? 0 : At(*entry, lane);
}

Time Clock::LanesTime(WarpNumber warp, LaneMask lanes) const {
  const WarpEntry* entry = Find(warp);
  if (entry == nullptr) return 0;
  Time least = kNever;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    least = std::min(least, At(*entry, std::countr_zero(rest)));
  }
  return least;
}

Time Clock::AnyLaneTime(WarpNumber warp) const {
  const WarpEntry* entry = Find(warp);
  if (entry == nullptr) return 0;
  Time most = std::max(entry->all, entry->mask_time);
  if (entry->detail >= 0) {
    const Detail& detail = details_[static_cast<std::size_t>(entry->detail)];
    most = std::max(most, *std::max_element(detail.begin(), detail.end()));
  }
  return most;
}

bool Clock::Covers(const Clock& other) const {
  for (const BlockEntry& entry : other.blocks_) {
    if (BlockBase(entry.block) < entry.base) return false;
  }
  for (const WarpEntry& theirs : other.warps_) {
    const WarpEntry* ours = Find(theirs.warp);
    if (ours == nullptr) return false;
    if (ours->all < theirs.all) return false;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (At(*ours, lane) < other.At(theirs, lane)) return false;
    }
  }
  return true;
}

void Clock::DropWarps(WarpNumber first, WarpNumber last) {
  std::erase_if(warps_, [&](const WarpEntry& e) { return e.warp >= first && e.warp < last; });
  if (warps_.empty()) details_.clear();
}

std::uint64_t Clock::bytes() const {
  return sizeof(Clock) + blocks_.capacity() * sizeof(BlockEntry) +
         warps_.capacity() * sizeof(WarpEntry) + details_.capacity() * sizeof(Detail);
}

ClockPtr Joined(const ClockPtr& a, const ClockPtr& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  if (a->Covers(*b)) return a;
  if (b->Covers(*a)) return b;
  auto joined = std::make_shared<Clock>(*a);
  joined->Join(*b);
  return joined;
}

}  // namespace assay::emu
