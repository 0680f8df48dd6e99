#include "validator/emu/weak/stale.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace assay::emu {
namespace {

/// Which bytes of cell `cell` an access of [offset, offset + bytes) touches.
std::uint8_t MaskIn(std::uint64_t cell, std::uint64_t offset, std::uint64_t bytes,
                    std::uint32_t cell_bytes) {
  const std::uint64_t start = cell * cell_bytes;
  std::uint8_t mask = 0;
  for (std::uint32_t i = 0; i < cell_bytes; ++i) {
    if (start + i >= offset && start + i < offset + bytes)
      mask = static_cast<std::uint8_t>(mask | 1u << i);
  }
  return mask;
}

}  // namespace

StaleReads::StaleReads(Device& device, RaceDetector& race, std::uint32_t percent)
    : engine_(device),
      race_(race),
      percent_(percent),
      rng_(DeriveSeed(device.execution.schedule.seed, "stale reads")) {
  race_.FollowFenceOrder(DeriveSeed(device.execution.schedule.seed, "fence order"));
  race_.SetWriteWatch(this);
}

void StaleReads::BeginLaunch() {
  regions_.clear();
  cells_ = 0;
  waiting_.clear();
}

void StaleReads::EndBlock(RegionId shared_region) {
  const auto at = regions_.find(shared_region);
  if (at == regions_.end()) return;
  cells_ -= at->second.size();
  regions_.erase(at);
}

bool StaleReads::TakesTurns() { return rng_.Below(2) == 0; }

void StaleReads::Forget(RegionId region, std::uint64_t offset, std::uint64_t bytes) {
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  const std::uint64_t first = offset / kCell;
  const std::uint64_t last = (offset + bytes - 1) / kCell;
  if (last - first < at->second.size()) {
    for (std::uint64_t cell = first; cell <= last; ++cell) cells_ -= at->second.erase(cell);
  } else {
    cells_ -= std::erase_if(
        at->second, [&](const auto& each) { return each.first >= first && each.first <= last; });
  }
}

void StaleReads::OnAsyncWrite(RegionId region, std::uint64_t offset, std::uint32_t bytes) {
  Forget(region, offset, bytes);
}

void StaleReads::OnWrite(const WarpAccess& write, const std::uintptr_t* pointers,
                         const MemoryRegion& region) {
  const bool strong = write.atomic || write.order != Order::kWeak;
  if (!strong && !regions_.contains(write.region)) return;
  const std::uint32_t time = race_.Now(write.warp);
  number_ += kStep;
  for (int i = 0; i < kWarpSize; ++i) {
    const int lane = write.reversed ? kWarpSize - 1 - i : i;
    if ((write.lanes >> lane & 1u) == 0) continue;
    const std::uint64_t offset = write.offsets[lane];
    // A plain write next to loads that could miss it is a race, or ordered before them all.
    if (!strong) {
      Forget(write.region, offset, write.bytes);
      continue;
    }
    if (cells_ >= kCellsKept) {
      regions_.clear();
      cells_ = 0;
    }
    Cells& cells = regions_[write.region];
    const std::uint64_t last = (offset + write.bytes - 1) / kCell;
    for (std::uint64_t number = offset / kCell; number <= last; ++number) {
      const auto [at, fresh] = cells.try_emplace(number);
      cells_ += fresh ? 1 : 0;
      Cell& cell = at->second;
      const std::uint8_t mask = MaskIn(number, offset, write.bytes, kCell);
      if (cell.writes.empty() || cell.writes.back().number != number_) {
        if (cell.writes.size() == kWritesKept) {
          cell.floor = std::max(cell.floor, cell.writes.front().number);
          cell.writes.erase(cell.writes.begin());
        }
        cell.writes.push_back(Write{.number = number_,
                                    .warp = write.warp,
                                    .lanes = 0,
                                    .time = time,
                                    .pc = write.pc,
                                    .atomic = write.atomic,
                                    .published = race_.PublishedAt(write.region, offset)});
      }
      Write& entry = cell.writes.back();
      entry.lanes |= LaneMask{1} << lane;
      const std::uint32_t fresh_bytes = mask & ~std::uint32_t{entry.mask};
      entry.mask |= mask;
      for (std::uint32_t byte = 0; byte < kCell; ++byte) {
        if ((fresh_bytes >> byte & 1u) == 0) continue;
        const std::uintptr_t from = pointers[lane] + number * kCell + byte - offset;
        std::memcpy(&entry.before[byte], reinterpret_cast<const std::byte*>(from), 1);
        const auto in_region = from - reinterpret_cast<std::uintptr_t>(region.data);
        const bool defined = region.defined == nullptr || region.defined->Defined(in_region, 1);
        if (defined) entry.defined = static_cast<std::uint8_t>(entry.defined | 1u << byte);
      }
    }
  }
}

StaleReads::Reader* StaleReads::FindReader(Cell& cell, WarpNumber warp, int lane) {
  const auto at = std::ranges::find_if(
      cell.readers, [&](const Reader& r) { return r.warp == warp && r.lane == lane; });
  return at == cell.readers.end() ? nullptr : &*at;
}

void StaleReads::See(Cell& cell, WarpNumber warp, int lane, std::uint64_t number, bool old,
                     std::int32_t note) {
  Reader* reader = FindReader(cell, warp, lane);
  if (reader == nullptr) {
    if (cell.readers.size() == kReadersKept) {
      // Whoever is forgotten must not see less than before: so nobody may.
      const auto oldest = std::ranges::min_element(cell.readers, {}, &Reader::number);
      cell.floor = std::max(cell.floor, oldest->number);
      cell.readers.erase(oldest);
    }
    reader =
        &cell.readers.emplace_back(Reader{.warp = warp, .lane = static_cast<std::uint8_t>(lane)});
  }
  // All that it took in a row, as who polls does, was looked at again.
  if (reader->note >= 0 && number > reader->number)
    notes_[static_cast<std::size_t>(reader->note)].seen_later += reader->in_a_row;
  reader->time = race_.Now(warp);
  reader->number = number;
  reader->note = note;
  reader->in_a_row = old ? static_cast<std::uint8_t>(reader->in_a_row + 1) : std::uint8_t{0};
}

bool StaleReads::Knows(const Write& write, WarpNumber warp, int lane) {
  for (LaneMask rest = write.lanes; rest != 0; rest &= rest - 1) {
    if (race_.Knows(warp, lane, write.warp, std::countr_zero(rest), write.time)) return true;
  }
  return false;
}

/// The number of the newest write that the lane must see: its own, one that is ordered before it, or
/// one that somebody saw who is.
std::uint64_t StaleReads::FloorOf(const Cell& cell, WarpNumber warp, int lane, std::uint32_t mask) {
  std::uint64_t floor = cell.floor;
  for (auto write = cell.writes.rbegin(); write != cell.writes.rend(); ++write) {
    if (write->number <= floor) break;
    if ((write->mask & mask) == 0) continue;
    if (Knows(*write, warp, lane)) {
      floor = write->number;
      break;
    }
  }
  for (const Reader& reader : cell.readers) {
    if (reader.number > floor && race_.Knows(warp, lane, reader.warp, reader.lane, reader.time))
      floor = reader.number;
  }
  return floor;
}

StaleReads::View StaleReads::ViewOf(const CoreWarp& warp, int lane, const MemoryRegion& region,
                                    std::uintptr_t pointer, std::uint32_t bytes) {
  View view;
  const auto found = regions_.find(region.race_region);
  if (found == regions_.end() || bytes > kMostBytes) return view;
  race_.SettleBeforeRead(warp.number, lane);
  view.offset = region.race_offset + (pointer - reinterpret_cast<std::uintptr_t>(region.data));
  view.first = view.offset / kCell;
  view.last = (view.offset + bytes - 1) / kCell;
  for (std::uint64_t number = view.first; number <= view.last; ++number) {
    const auto at = found->second.find(number);
    if (at == found->second.end()) continue;
    view.cells[number - view.first] = &at->second;
    view.any = true;
    view.floor = std::max(view.floor, FloorOf(at->second, warp.number, lane,
                                              MaskIn(number, view.offset, bytes, kCell)));
  }
  return view;
}

std::optional<StaleReads::Old> StaleReads::Read(const CoreWarp& warp, std::uint32_t pc, int lane,
                                                const MemoryRegion& region, std::uintptr_t pointer,
                                                std::uint32_t bytes) {
  const View view = ViewOf(warp, lane, region, pointer, bytes);
  if (!view.any) return std::nullopt;
  const auto& [cells, offset, first, last, floor, any] = view;

  // The writes that the load may miss, all from one of them on.
  std::vector<const Write*> missable;
  std::uint8_t in_a_row = 0;
  for (std::uint64_t number = first; number <= last; ++number) {
    Cell* const cell = cells[number - first];
    if (cell == nullptr) continue;
    const std::uint8_t mask = MaskIn(number, offset, bytes, kCell);
    for (const Write& write : cell->writes) {
      if (write.number > floor && (write.mask & mask) != 0) missable.push_back(&write);
    }
    if (const Reader* reader = FindReader(*cell, warp.number, lane))
      in_a_row = std::max(in_a_row, reader->in_a_row);
  }
  std::ranges::stable_sort(missable, {}, &Write::number);
  bool take = !missable.empty();
  if (take) {
    ++chances_;
    take = in_a_row < kMostInARow && (percent_ >= 100 || rng_.Below(100) < percent_);
  }
  if (!take) {
    for (Cell* const cell : cells) {
      if (cell != nullptr) See(*cell, warp.number, lane, number_, false, -1);
    }
    return std::nullopt;
  }

  const Write& missed = *missable[percent_ >= 100 ? 0 : rng_.Below(missable.size())];
  Old old;
  old.from = missed.published;
  std::memcpy(old.bytes.data(), reinterpret_cast<const std::byte*>(pointer), bytes);
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    const std::uint64_t number = (offset + byte) / kCell;
    const std::uint32_t at = static_cast<std::uint32_t>((offset + byte) % kCell);
    const std::uint64_t in_region = offset - region.race_offset + byte;
    bool defined = region.defined == nullptr || region.defined->Defined(in_region, 1);
    if (const Cell* const cell = cells[number - first]) {
      for (const Write& write : cell->writes) {
        if (write.number < missed.number || (write.mask >> at & 1u) == 0) continue;
        old.bytes[byte] = write.before[at];
        defined = (write.defined >> at & 1u) != 0;
        break;
      }
    }
    if (defined) old.defined |= 1u << byte;
  }
  ++taken_;
  const std::int32_t note =
      NoteTaken(warp, pc, lane, missed, region, offset - region.race_offset, bytes, &old);
  // What it has seen is the state before that write, whatever may still come in between.
  std::uint64_t seen = floor;
  for (const Cell* const cell : cells) {
    if (cell == nullptr) continue;
    for (const Write& write : cell->writes) {
      if (write.number < missed.number) seen = std::max(seen, write.number);
    }
  }
  for (Cell* const cell : cells) {
    if (cell != nullptr) See(*cell, warp.number, lane, seen, true, note);
  }
  // Whoever polls has not gone round for nothing.
  engine_.last_progress = engine_.counters.steps;
  return old;
}

}  // namespace assay::emu
