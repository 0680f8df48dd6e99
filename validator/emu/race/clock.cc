#include "validator/emu/race/clock.h"

#include <algorithm>
#include <bit>

namespace assay::emu {

void Clock::Layer::RaiseBlock(BlockNumber block, Time time) {
  if (time == 0) return;
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), block,
                                   [](const BlockEntry& e, BlockNumber b) { return e.block < b; });
  if (at != blocks.end() && at->block == block) {
    at->base = std::max(at->base, time);
  } else {
    blocks.insert(at, BlockEntry{block, time});
  }
}

void Clock::Layer::RaiseLanes(WarpNumber warp, LaneMask lanes, Time time) {
  if (time == 0 || lanes == 0) return;
  auto at = std::lower_bound(warps.begin(), warps.end(), warp,
                             [](const WarpEntry& e, WarpNumber w) { return e.warp < w; });
  if (at == warps.end() || at->warp != warp) {
    at = warps.insert(at, WarpEntry{});
    at->warp = warp;
  }
  Raise(*at, lanes, time);
}

void Clock::Layer::Raise(WarpEntry& entry, LaneMask lanes, Time time) {
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
    entry.detail = static_cast<std::int32_t>(details.size());
    entry.mask = 0;
    entry.mask_time = 0;
    details.push_back(detail);
  }
  Detail& detail = details[static_cast<std::size_t>(entry.detail)];
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    Time& known = detail[static_cast<std::size_t>(std::countr_zero(rest))];
    known = std::max(known, time);
  }
}

void Clock::Layer::Join(const Layer& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  // A few entries into many: nearly all stay where they are.
  if (8 * other.size() < size()) {
    for (const BlockEntry& entry : other.blocks) RaiseBlock(entry.block, entry.base);
    for (const WarpEntry& entry : other.warps) {
      RaiseLanes(entry.warp, kAllLanes, entry.all);
      for (int lane = 0; entry.detail >= 0 && lane < kWarpSize; ++lane)
        RaiseLanes(entry.warp, 1u << lane, other.At(entry, lane));
      RaiseLanes(entry.warp, entry.mask, entry.mask_time);
    }
    return;
  }
  // Both are sorted: a plain merge.
  std::vector<BlockEntry> all_blocks;
  all_blocks.reserve(blocks.size() + other.blocks.size());
  auto a = blocks.begin();
  auto b = other.blocks.begin();
  while (a != blocks.end() || b != other.blocks.end()) {
    if (b == other.blocks.end() || (a != blocks.end() && a->block < b->block)) {
      all_blocks.push_back(*a++);
    } else if (a == blocks.end() || b->block < a->block) {
      all_blocks.push_back(*b++);
    } else {
      all_blocks.push_back(BlockEntry{a->block, std::max(a->base, b->base)});
      ++a, ++b;
    }
  }
  blocks = std::move(all_blocks);

  std::vector<WarpEntry> all_warps;
  all_warps.reserve(warps.size() + other.warps.size());
  auto wa = warps.begin();
  auto wb = other.warps.begin();
  while (wa != warps.end() || wb != other.warps.end()) {
    if (wb == other.warps.end() || (wa != warps.end() && wa->warp < wb->warp)) {
      all_warps.push_back(*wa++);
      continue;
    }
    WarpEntry merged;
    merged.warp = wb->warp;
    if (wa != warps.end() && wa->warp == wb->warp) merged = *wa++;
    Raise(merged, kAllLanes, wb->all);
    if (wb->detail >= 0) {
      const Detail& detail = other.details[static_cast<std::size_t>(wb->detail)];
      for (std::size_t lane = 0; lane < detail.size(); ++lane) {
        if (detail[lane] != 0) Raise(merged, 1u << lane, detail[lane]);
      }
    } else if (wb->mask != 0) {
      Raise(merged, wb->mask, wb->mask_time);
    }
    all_warps.push_back(merged);
    ++wb;
  }
  warps = std::move(all_warps);
}

const Clock::WarpEntry* Clock::Layer::Find(WarpNumber warp) const {
  const auto at = std::lower_bound(warps.begin(), warps.end(), warp,
                                   [](const WarpEntry& e, WarpNumber w) { return e.warp < w; });
  return at != warps.end() && at->warp == warp ? &*at : nullptr;
}

Time Clock::Layer::At(const WarpEntry& entry, int lane) const {
  if (entry.detail >= 0) {
    return std::max(
        entry.all, details[static_cast<std::size_t>(entry.detail)][static_cast<std::size_t>(lane)]);
  }
  return (entry.mask >> lane & 1u) != 0 ? std::max(entry.all, entry.mask_time) : entry.all;
}

Time Clock::Layer::BlockBase(BlockNumber block) const {
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), block,
                                   [](const BlockEntry& e, BlockNumber b) { return e.block < b; });
  return at != blocks.end() && at->block == block ? at->base : 0;
}

void Clock::Layer::DropWarps(WarpNumber first, WarpNumber last) {
  std::erase_if(warps, [&](const WarpEntry& e) { return e.warp >= first && e.warp < last; });
  if (warps.empty()) details.clear();
}

std::uint64_t Clock::Layer::bytes() const {
  return blocks.capacity() * sizeof(BlockEntry) + warps.capacity() * sizeof(WarpEntry) +
         details.capacity() * sizeof(Detail);
}

Clock::Clock(const Clock& other) { *this = other; }

Clock& Clock::operator=(const Clock& other) {
  if (this == &other) return *this;
  other.Settle();
  below_ = other.below_;
  top_ = other.top_;
  place_ = {};
  made_from_ = other.place_.line != 0 ? other.place_ : other.made_from_;
  return *this;
}

void Clock::Settle() const {
  if (top_.size() + top_.details.size() <= kAbove) return;
  if (below_ == nullptr) {
    below_ = std::make_shared<Layer>(std::move(top_));
  } else {
    auto both = std::make_shared<Layer>(*below_);
    both->Join(top_);
    below_ = std::move(both);
  }
  top_ = {};
}

void Clock::Join(const Clock& other) {
  if (CoversByPlace(other)) return;
  if (empty() && place_.line == 0) {
    *this = other;
    return;
  }
  if (other.below_ != nullptr && other.below_ != below_) {
    other.Settle();
    if (below_ == nullptr || other.CoversByPlace(*this)) {
      below_ = other.below_;
    } else {
      auto both = std::make_shared<Layer>(*below_);
      both->Join(*other.below_);
      below_ = std::move(both);
    }
  }
  top_.Join(other.top_);
  if (made_from_.line == 0) made_from_ = other.place_.line != 0 ? other.place_ : other.made_from_;
}

Time Clock::BlockBase(BlockNumber block) const {
  const Time above = top_.BlockBase(block);
  return below_ == nullptr ? above : std::max(above, below_->BlockBase(block));
}

Time Clock::LaneTime(WarpNumber warp, int lane) const {
  const WarpEntry* above = top_.Find(warp);
  const WarpEntry* below = below_ == nullptr ? nullptr : below_->Find(warp);
  return std::max(above == nullptr ? 0 : top_.At(*above, lane),
                  below == nullptr ? 0 : below_->At(*below, lane));
}

Time Clock::Layer::Least(const WarpEntry& entry, LaneMask lanes) const {
  if (entry.detail < 0)
    return (lanes & ~entry.mask) == 0 ? std::max(entry.all, entry.mask_time) : entry.all;
  Time least = kNever;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1)
    least = std::min(least, At(entry, std::countr_zero(rest)));
  return least;
}

Time Clock::LanesTime(WarpNumber warp, LaneMask lanes) const {
  const WarpEntry* above = top_.Find(warp);
  const WarpEntry* below = below_ == nullptr ? nullptr : below_->Find(warp);
  if (above == nullptr && below == nullptr) return 0;
  if (below == nullptr) return top_.Least(*above, lanes);
  if (above == nullptr) return below_->Least(*below, lanes);
  Time least = kNever;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    least = std::min(least, std::max(top_.At(*above, lane), below_->At(*below, lane)));
  }
  return least;
}

Time Clock::AnyLaneTime(WarpNumber warp) const {
  Time most = 0;
  for (const Layer* layer : {static_cast<const Layer*>(&top_), below_.get()}) {
    const WarpEntry* entry = layer == nullptr ? nullptr : layer->Find(warp);
    if (entry == nullptr) continue;
    most = std::max({most, entry->all, entry->mask_time});
    if (entry->detail < 0) continue;
    const Detail& detail = layer->details[static_cast<std::size_t>(entry->detail)];
    most = std::max(most, *std::max_element(detail.begin(), detail.end()));
  }
  return most;
}

bool Clock::CoversLayer(const Layer& other) const {
  for (const BlockEntry& entry : other.blocks) {
    if (BlockBase(entry.block) < entry.base) return false;
  }
  for (const WarpEntry& theirs : other.warps) {
    if (theirs.all != 0 && LanesTime(theirs.warp, kAllLanes) < theirs.all) return false;
    if (theirs.mask != 0 && LanesTime(theirs.warp, theirs.mask) < theirs.mask_time) return false;
    if (theirs.detail < 0) continue;
    const WarpEntry* above = top_.Find(theirs.warp);
    const WarpEntry* below = below_ == nullptr ? nullptr : below_->Find(theirs.warp);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Time known = std::max(above == nullptr ? 0 : top_.At(*above, lane),
                                  below == nullptr ? 0 : below_->At(*below, lane));
      if (known < other.At(theirs, lane)) return false;
    }
  }
  return true;
}

bool Clock::Covers(const Clock& other) const {
  if (CoversByPlace(other)) return true;
  if (!CoversLayer(other.top_)) return false;
  return other.below_ == nullptr || other.below_ == below_ || CoversLayer(*other.below_);
}

void Clock::DropWarps(WarpNumber first, WarpNumber last) {
  if (below_ != nullptr) {
    auto both = std::make_shared<Layer>(*below_);
    both->Join(top_);
    both->DropWarps(first, last);
    below_ = std::move(both);
    top_ = {};
    return;
  }
  top_.DropWarps(first, last);
}

ClockPtr Joined(const ClockPtr& a, const ClockPtr& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  if (a->CoversByPlace(*b)) return a;
  if (b->CoversByPlace(*a)) return b;
  if (a->Covers(*b)) return a;
  if (b->Covers(*a)) return b;
  auto joined = std::make_shared<Clock>(*a);
  joined->Join(*b);
  return joined;
}

}  // namespace assay::emu
