// What loads and stores missed, as findings: both accesses, and the edge that is not there.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/site.h"
#include "validator/emu/watch/race_report.h"
#include "validator/emu/weak/stale.h"

namespace assay::emu {
namespace {

std::string Printed(const StaleReads::Old& old, std::uint32_t bytes) {
  if (bytes > sizeof(std::uint64_t)) return {};
  if (std::countr_one(old.defined) < static_cast<int>(bytes)) return "uninitialised memory";
  std::uint64_t value = 0;
  std::memcpy(&value, old.bytes.data(), bytes);
  return fmt::format("{:#x}", value);
}

}  // namespace

std::string StaleReads::Missing(const CoreWarp& warp, std::uint32_t pc, int lane,
                                const Write& missed, bool is_load) {
  using Gap = RaceDetector::Gap;
  const std::uint32_t warps = engine_.launch.warps;
  const std::string from = LineOf(engine_, missed.pc);
  const std::string to = LineOf(engine_, pc);
  const std::string_view who = is_load ? "reader" : "later writer";
  const bool same_block = missed.warp / warps == warp.number / warps;
  const Gap gap =
      race_.GapBetween(missed.warp, FirstLane(missed.lanes), missed.time, warp.number, lane);
  switch (gap.kind) {
    case Gap::Kind::kRelease:
      if (same_block) {
        return fmt::format(
            "a barrier between {} and {} (or a release behind the one and an acquire before the "
            "other)",
            from, to);
      }
      return MissingRelease(engine_, gap, missed.pc, pc, who);
    case Gap::Kind::kScope:
    case Gap::Kind::kSignal:
      return MissingRelease(engine_, gap, missed.pc, pc, who);
    case Gap::Kind::kAcquire:
      return MissingAcquire(engine_, gap, from, to, who);
  }
  return {};
}

std::int32_t StaleReads::NoteTaken(const CoreWarp& warp, std::uint32_t pc, int lane,
                                   const Write& missed, const MemoryRegion& region,
                                   std::uint64_t offset, std::uint32_t bytes, const Old* old) {
  auto known = std::ranges::find_if(
      notes_, [&](const Note& n) { return n.pc == pc && n.missed_pc == missed.pc; });
  if (known == notes_.end()) {
    if (notes_.size() == kNotesKept) return -1;
    Note note{.pc = pc, .missed_pc = missed.pc};
    Finding& finding = note.finding;
    finding.kind = FindingKind::kStaleRead;
    const std::uint32_t warps = engine_.launch.warps;
    Access access{.what = VerbOf(engine_.program.InstructionAt(pc)),
                  .site = SiteOf(engine_, pc),
                  .thread = ThreadOf(warp, lane),
                  .value = old == nullptr ? std::string() : Printed(*old, bytes)};
    Access store{.what = VerbOf(engine_.program.InstructionAt(missed.pc)),
                 .site = SiteOf(engine_, missed.pc),
                 .thread = ThreadOf(engine_, missed.warp / warps, missed.warp % warps,
                                    FirstLane(missed.lanes))};
    const bool shared = region.kind == MemoryRegion::Kind::kShared;
    finding.memory = PlaceIn(region, shared ? "shared" : "global", region.base + offset, bytes);
    const std::string from = LineOf(engine_, missed.pc);
    const std::string to = LineOf(engine_, pc);
    finding.missing = Missing(warp, pc, lane, missed, old != nullptr);
    const MemoryPlace& place = *finding.memory;
    const std::string where = place.buffer.empty()
                                  ? std::string("memory")
                                  : fmt::format("{}[{}]", place.buffer, place.index);
    if (old != nullptr) {
      finding.message = fmt::format(
          "{} at {} of {} returned {}, although {} at {} had come before: nothing orders that "
          "before the read, and the memory model lets it be missed",
          access.what, to, where,
          access.value.empty() ? std::string("an earlier value") : access.value, store.what, from);
    } else {
      finding.message = fmt::format(
          "{} at {} to {} ended behind {} at {}, which had come before: nothing orders that before "
          "the store, and the memory model lets either be the last",
          access.what, to, where, store.what, from);
    }
    finding.accesses = {std::move(access), std::move(store)};
    notes_.push_back(std::move(note));
    known = notes_.end() - 1;
  }
  ++known->taken;
  known->last = taken_;
  return static_cast<std::int32_t>(known - notes_.begin());
}

std::vector<Finding> StaleReads::Notes() const {
  std::vector<const Note*> order;
  for (const Note& note : notes_) order.push_back(&note);
  std::ranges::stable_sort(order, [](const Note* a, const Note* b) {
    const bool a_open = a->seen_later < a->taken, b_open = b->seen_later < b->taken;
    return a_open != b_open ? a_open : a->last > b->last;
  });
  std::vector<Finding> findings;
  for (const Note* note : order) {
    findings.push_back(note->finding);
    findings.back().statistics = {
        {.name = "occurrences", .value = static_cast<double>(note->taken)}};
  }
  return findings;
}

}  // namespace assay::emu
