// Stores that come before newer ones, and loads that wait for a store behind them.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "validator/emu/memory.h"
#include "validator/emu/weak/stale.h"

namespace assay::emu {
namespace {

using ptx::Opcode;

/// Which bytes of a cell an access of [offset, offset + bytes) touches, and where they begin in the
/// access.
struct Part {
  std::uint8_t mask = 0;
  std::uint32_t at = 0;    ///< In the cell.
  std::uint32_t from = 0;  ///< In the access.
  std::uint32_t bytes = 0;
};
Part PartIn(std::uint64_t cell_start, std::uint32_t cell_bytes, std::uint64_t offset,
            std::uint32_t bytes) {
  const std::uint64_t begin = std::max(cell_start, offset);
  const std::uint64_t end = std::min(cell_start + cell_bytes, offset + bytes);
  Part part{.at = static_cast<std::uint32_t>(begin - cell_start),
            .from = static_cast<std::uint32_t>(begin - offset),
            .bytes = static_cast<std::uint32_t>(end - begin)};
  part.mask = static_cast<std::uint8_t>(((1u << part.bytes) - 1) << part.at);
  return part;
}

bool IsRelaxed(const Decoded& op) {
  const Order order = UnpackOrder(op).order;
  return order == Order::kRelaxed || order == Order::kVolatile;
}

/// Do the register operands [begin, end) of `op` hold one of `load`'s results?
bool Touches(const Decoded& op, std::size_t begin, std::size_t end, const Decoded& load) {
  using Kind = DecodedOperand::Kind;
  for (std::size_t i = begin; i < end; ++i) {
    if (op.operands[i].kind != Kind::kSlot) continue;
    for (std::size_t d = 0; d < load.destinations; ++d) {
      if (load.operands[d].kind == Kind::kSlot && load.operands[d].slot == op.operands[i].slot)
        return true;
    }
  }
  return false;
}

/// Does a strong store follow that need not wait for the load at `pc`? On a straight line, without
/// fences and other accesses, and without instructions that use what is loaded or change its
/// address.
bool StoreFollows(const CoreWarp& warp, const Decoded& load) {
  constexpr std::uint32_t kFar = 24;
  using Kind = DecodedOperand::Kind;
  const std::uint32_t pc = warp.PcOf(load);
  const DecodedOperand& address = load.operands[load.destinations];
  const auto& code = warp.device->program.code;
  for (std::uint32_t at = pc + 1; at < code.size() && at <= pc + kFar; ++at) {
    const Decoded& op = code[at];
    if ((op.flags & (kFlagControl | kFlagFence)) != 0 || Touches(op, 0, op.operand_count, load))
      return false;
    if ((op.flags & kFlagMemory) != 0) {
      const ptx::Space space = op.source->space;
      if (op.source->opcode == Opcode::kLd && space == ptx::Space::kParam) continue;
      return op.source->opcode == Opcode::kSt && op.guard == kNoSlot && IsRelaxed(op);
    }
    for (std::size_t d = 0; d < op.destinations; ++d) {
      if (op.operands[d].kind == Kind::kSlot && address.kind == Kind::kSlot &&
          op.operands[d].slot == address.slot)
        return false;
    }
  }
  return false;
}

}  // namespace

std::optional<StaleReads::Earlier> StaleReads::PlaceEarlier(const CoreWarp& warp, std::uint32_t pc,
                                                            int lane, const MemoryRegion& region,
                                                            std::uintptr_t pointer,
                                                            std::uint32_t bytes) {
  // Whether something comes before a newer store depends on the place of the fences before it.
  if (race_.HasLateFences(warp.number)) return std::nullopt;
  const View view = ViewOf(warp, lane, region, pointer, bytes);
  // Stores that wrote all of these bytes, in every cell the same one, each with room before it.
  std::vector<Earlier> places;
  if (!view.any || view.cells[0] == nullptr) return std::nullopt;
  for (const Write& candidate : view.cells[0]->writes) {
    if (candidate.number <= view.floor || candidate.atomic) continue;
    std::uint64_t below = view.floor;
    bool fits = true;
    for (std::uint64_t number = view.first; fits && number <= view.last; ++number) {
      const Cell* const cell = view.cells[number - view.first];
      fits = cell != nullptr && cell->writes.size() < kWritesKept;
      if (!fits) break;
      const auto same = std::ranges::find(cell->writes, candidate.number, &Write::number);
      const std::uint8_t mask = PartIn(number * kCell, kCell, view.offset, bytes).mask;
      fits = same != cell->writes.end() && (same->mask & mask) == mask;
      if (fits && same != cell->writes.begin()) below = std::max(below, std::prev(same)->number);
    }
    const std::uint64_t number = below + (candidate.number - below) / 2;
    if (!fits || number == below) continue;
    places.push_back({.region = region.race_region,
                      .offset = view.offset,
                      .bytes = bytes,
                      .before = candidate.number,
                      .number = number,
                      .warp = warp.number,
                      .lane = lane,
                      .pc = pc,
                      .time = race_.Now(warp.number)});
  }
  if (places.empty()) return std::nullopt;
  ++chances_;
  // Half as often as a load misses something: that store may be what everybody waits for.
  if (rng_.Below(200) >= percent_) return std::nullopt;
  const Earlier& place = places[rng_.Below(places.size())];
  const Write& missed = *std::ranges::find(view.cells[0]->writes, place.before, &Write::number);
  ++taken_;
  NoteTaken(warp, pc, lane, missed, region, view.offset - region.race_offset, bytes, nullptr);
  return place;
}

void StaleReads::StoreEarlier(const Earlier& place, const std::byte* value, Published published) {
  Cells& cells = regions_[place.region];
  const std::uint64_t last = (place.offset + place.bytes - 1) / kCell;
  for (std::uint64_t number = place.offset / kCell; number <= last; ++number) {
    Cell& cell = cells[number];
    const Part part = PartIn(number * kCell, kCell, place.offset, place.bytes);
    const auto newer = std::ranges::find(cell.writes, place.before, &Write::number);
    if (newer == cell.writes.end()) return;
    // What stood before the newer write stood before this one, and this one stands before that.
    Write store{.number = place.number,
                .warp = place.warp,
                .lanes = LaneMask{1} << place.lane,
                .time = place.time,
                .pc = place.pc,
                .mask = part.mask,
                .defined = static_cast<std::uint8_t>(newer->defined & part.mask),
                .before = newer->before,
                .published = std::exchange(newer->published, published)};
    std::memcpy(&newer->before[part.at], value + part.from, part.bytes);
    newer->defined |= part.mask;
    cell.writes.insert(newer, std::move(store));
  }
}

bool StaleReads::Postpone(const CoreWarp& warp, const Decoded& op, const LaneAccess& access) {
  if (finishing_ || access.local || !warp.chosen_paths.empty() || !IsRelaxed(op) ||
      waiting_.contains(warp.number) || rng_.Below(100) >= kPostponed || !StoreFollows(warp, op))
    return false;
  Waiting& waiting = waiting_[warp.number];
  waiting = {.op = &op, .frame = warp.frame, .lanes = access.lanes};
  waiting.bytes = static_cast<std::uint32_t>(ptx::BitsOf(op.source->type()) / 8) * op.destinations;
  std::copy_n(access.pointer, kWarpSize, waiting.pointer.begin());
  return true;
}

bool StaleReads::LetLoadWait(CoreWarp& warp, const Decoded& op, const LaneAccess& access) {
  const auto at = waiting_.find(warp.number);
  if (at == waiting_.end()) return false;
  const Waiting& load = at->second;
  const auto bytes =
      static_cast<std::uint32_t>(ptx::BitsOf(op.source->type()) / 8) * (op.operand_count - 1u);
  const LaneMask lanes = load.lanes & access.lanes;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uintptr_t read = load.pointer[static_cast<std::size_t>(lane)];
    if (read < access.pointer[lane] + bytes && access.pointer[lane] < read + load.bytes) {
      FinishLoads(warp);
      return false;
    }
  }
  return true;
}

void StaleReads::FinishLoads(CoreWarp& warp) {
  const auto at = waiting_.find(warp.number);
  if (at == waiting_.end()) return;
  const Waiting load = at->second;
  waiting_.erase(at);
  Frame* const frame = warp.frame;
  const LaneMask exec = warp.exec;
  const auto enter = [&](Frame* now) {
    warp.frame = now;
    warp.slots = now->slots;
    warp.predicates = now->predicates;
  };
  enter(load.frame);
  warp.exec = load.lanes;
  finishing_ = true;
  load.op->monitored(warp, *load.op);
  finishing_ = false;
  warp.exec = exec;
  if (frame != nullptr) enter(frame);
}

}  // namespace assay::emu
