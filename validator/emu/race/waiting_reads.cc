#include "validator/emu/race/waiting_reads.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::emu {
namespace {

constexpr std::uint32_t kLogGranule = 8;
/// For 256 KiB: shared memory is smaller.
constexpr std::size_t kGranules = 1024;
constexpr std::size_t kWords = kGranules / 64;
constexpr std::uint32_t kWidest = 16;

/// A set of granules.
struct Granules {
  std::array<std::uint64_t, kWords> words{};

  bool Has(std::uint64_t granule) const { return (words[granule / 64] >> granule % 64 & 1u) != 0; }
  void Add(std::uint64_t granule) { words[granule / 64] |= std::uint64_t{1} << granule % 64; }
  void Join(const Granules& other) {
    for (std::size_t w = 0; w < kWords; ++w) words[w] |= other.words[w];
  }
};

/// Calls f for each granule that the access touches, some of them several times; stops when f says
/// false. The last granule stands for all behind it.
template <class F>
bool ForGranules(const WarpAccess& access, F&& f) {
  constexpr std::uint64_t kLast = kGranules - 1;
  if (access.least <= access.greatest) {
    const std::uint64_t first = std::min(access.least >> kLogGranule, kLast);
    const std::uint64_t end = std::min((access.greatest + access.bytes - 1) >> kLogGranule, kLast);
    // Both ends are touched, and of a row all that lies between.
    if (end - first < 2 || access.is_row) {
      for (std::uint64_t granule = first; granule <= end; ++granule) {
        if (!f(granule)) return false;
      }
      return true;
    }
    if (end - first < 64 && end < kLast) {
      std::uint64_t touched = 0;
      for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
        const std::uint64_t offset = access.offsets[std::countr_zero(rest)];
        touched |= std::uint64_t{1} << ((offset >> kLogGranule) - first);
        touched |= std::uint64_t{1} << (((offset + access.bytes - 1) >> kLogGranule) - first);
      }
      for (; touched != 0; touched &= touched - 1) {
        if (!f(first + static_cast<std::uint64_t>(std::countr_zero(touched)))) return false;
      }
      return true;
    }
  }
  std::uint64_t last = ~std::uint64_t{0};
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t offset = access.offsets[std::countr_zero(rest)];
    const std::uint64_t first = std::min(offset >> kLogGranule, kLast);
    const std::uint64_t end = std::min((offset + access.bytes - 1) >> kLogGranule, kLast);
    if (first == last && end == last) continue;
    for (std::uint64_t granule = first; granule <= end; ++granule) {
      if (!f(granule)) return false;
    }
    last = end;
  }
  return true;
}

/// The same for the lines of a tile.
template <class F>
bool ForGranules(const TileRead& tile, F&& f) {
  constexpr std::uint64_t kLast = kGranules - 1;
  for (std::uint32_t line = 0; line < tile.lines; ++line) {
    const std::uint64_t offset = tile.offset + line * tile.stride;
    const std::uint64_t end = std::min((offset + tile.line_bytes - 1) >> kLogGranule, kLast);
    for (std::uint64_t granule = std::min(offset >> kLogGranule, kLast); granule <= end;
         ++granule) {
      if (!f(granule)) return false;
    }
  }
  return true;
}

/// Copies that were started between two barriers.
struct Copies {
  struct Of {
    WarpNumber warp = 0;
    LaneMask lanes = 0;
    Time time = 0;
  };
  Granules written;
  std::vector<Of> by;
};

}  // namespace

struct WaitingReads::Own {
  RegionId region = 0;
  Granules read;               // Reads wait.
  Granules blocked;            // No reads may wait: since the last barrier,
  Granules always;             // for ever,
  std::vector<Copies> copies;  // until these are known to all; the last ones are still to come.
  bool copying = false;
  std::vector<Read> reads;

  /// Can these wait? Then their granules have reads that do.
  template <class Reads>
  bool Admit(const Reads& more);
};

WaitingReads::WaitingReads(ThreadOrder& order) : order_(order) {}
WaitingReads::~WaitingReads() = default;

void WaitingReads::Begin() {
  owns_.clear();
  regions_.clear();
  found_.fill({});
  waiting_ = 0;
}

void WaitingReads::Add(BlockNumber block, RegionId region) {
  auto own = std::make_unique<Own>();
  own->region = region;
  owns_[region] = std::move(own);
  regions_[block] = region;
  found_.fill({});
}

void WaitingReads::EndBlock(BlockNumber block, RegionId region) {
  regions_.erase(block);
  const auto own = owns_.find(region);
  if (own == owns_.end()) return;
  waiting_ -= own->second->reads.size();
  GiveBack(std::move(own->second->reads));
  owns_.erase(own);
  found_.fill({});
}

WaitingReads::Own* WaitingReads::Look(RegionId region) {
  const auto own = owns_.find(region);
  Found& found = found_[region % found_.size()];
  found = {region, own == owns_.end() ? nullptr : own->second.get()};
  return found.own;
}

void WaitingReads::Read::OffsetsOf(std::size_t access, std::uint64_t* to) const {
  if (places.empty()) {
    std::copy(offsets.begin(), offsets.end(), to);
    return;
  }
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t place = places[access * kWarpSize + lane];
    to[lane] = offsets[0] + place / TileRead::kPitch * stride + place % TileRead::kPitch;
  }
}

WaitingReads::Read& WaitingReads::Append(Own& own, WarpNumber warp, LaneMask lanes) {
  if (own.reads.capacity() == 0 && !spare_.empty()) {
    own.reads = std::move(spare_.back());
    spare_.pop_back();
  }
  Read& waiting = own.reads.emplace_back();
  waiting.warp = warp;
  waiting.lanes = lanes;
  waiting.time = order_.NowOf(warp);
  order_.OnTouch(warp, lanes);
  ++waiting_;
  return waiting;
}

template <class Reads>
bool WaitingReads::Own::Admit(const Reads& more) {
  if (!ForGranules(more, [&](std::uint64_t granule) { return !blocked.Has(granule); }))
    return false;
  ForGranules(more, [&](std::uint64_t granule) {
    read.Add(granule);
    return true;
  });
  return true;
}

bool WaitingReads::Wait(Own& own, const WarpAccess& read) {
  if (read.bytes > kWidest || waiting_ >= kMost || !own.Admit(read)) return false;
  Read& waiting = Append(own, read.warp, read.lanes);
  waiting.pc = read.pc;
  waiting.bytes = static_cast<std::uint16_t>(read.bytes);
  waiting.element_bytes = static_cast<std::uint16_t>(read.element_bytes);
  waiting.is_row = read.is_row;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane)
    waiting.offsets[lane] = static_cast<std::uint32_t>(read.offsets[lane]);
  return true;
}

bool WaitingReads::Wait(Own& own, const TileRead& tile) {
  if (waiting_ >= kMost || !own.Admit(tile)) return false;
  Read& waiting = Append(own, tile.warp, kAllLanes);
  waiting.pc = tile.pc;
  waiting.bytes = static_cast<std::uint16_t>(tile.bytes);
  waiting.places = tile.places;
  waiting.stride = static_cast<std::uint32_t>(tile.stride);
  waiting.offsets[0] = static_cast<std::uint32_t>(tile.offset);
  return true;
}

bool WaitingReads::OnAccess(Own& own, const WarpAccess& access, bool async, WarpNumber stamped) {
  const bool strong = access.atomic || access.order != Order::kWeak;
  const bool plain = !strong && !async;
  const bool writes = access.kind != AccessKind::kRead;
  bool meets = false;
  const auto look = [&](std::uint64_t granule) {
    meets = meets || own.read.Has(granule);
    if (plain && !writes) return true;
    own.blocked.Add(granule);
    if (plain) return true;
    // Copies of a lane are waited for, and then a barrier tells everybody; of all else nobody keeps
    // track here.
    if (!strong && writes && IsTwin(stamped)) {
      if (!own.copying) own.copies.emplace_back();
      own.copying = true;
      own.copies.back().written.Add(granule);
    } else {
      own.always.Add(granule);
    }
    return true;
  };
  ForGranules(access, look);
  if (own.copying && async && writes && IsTwin(stamped))
    own.copies.back().by.push_back({access.warp, access.lanes, order_.NowOf(access.warp)});
  return meets;
}

bool WaitingReads::OnBlockMeets(BlockNumber block, Own*& own) {
  own = nullptr;
  const auto region = regions_.find(block);
  if (region == regions_.end()) return false;
  own = Find(region->second);
  own->copying = false;
  // Threads that are gone have not met anybody: what they did stays as it is.
  if (order_.HasGhosts(block)) return !own->reads.empty();
  std::erase_if(own->copies, [&](const Copies& copies) {
    return std::all_of(copies.by.begin(), copies.by.end(), [&](const Copies::Of& of) {
      return order_.TwinIsKnown(of.warp, of.lanes, of.time);
    });
  });
  own->blocked = own->always;
  for (const Copies& copies : own->copies) own->blocked.Join(copies.written);
  if (own->reads.empty()) return false;
  waiting_ -= own->reads.size();
  own->reads.clear();
  own->read = {};
  return false;
}

RegionId WaitingReads::RegionOf(const Own& own) { return own.region; }

std::vector<WaitingReads::Read> WaitingReads::Take(Own& own) {
  waiting_ -= own.reads.size();
  own.read = {};
  return std::exchange(own.reads, {});
}

void WaitingReads::GiveBack(std::vector<Read>&& reads) {
  constexpr std::size_t kSpare = 16;
  if (reads.capacity() == 0 || spare_.size() >= kSpare) return;
  spare_.push_back(std::move(reads));
  spare_.back().clear();
}

}  // namespace assay::emu
