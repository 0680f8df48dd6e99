#include "validator/emu/weak/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "validator/emu/site.h"
#include "validator/execution/contests.h"

namespace assay::emu {
namespace {

using Bytes = std::array<std::byte, 8>;

std::string Hex(const Bytes& bytes, std::uint32_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), count);
  return fmt::format("{:#x}", value);
}

std::string Where(const MemoryPlace& place) {
  return place.buffer.empty() ? fmt::format("{:#x}", place.address)
                              : fmt::format("{}[{}]", place.buffer, place.index);
}

}  // namespace

void Contention::BeginLaunch() {
  sums_.clear();
  lasts_.clear();
  places_ = 0;
}

void Contention::EndBlock(RegionId shared_region) {
  if (const auto at = sums_.find(shared_region); at != sums_.end()) {
    places_ -= at->second.size();
    sums_.erase(at);
  }
  if (const auto at = lasts_.find(shared_region); at != lasts_.end()) {
    places_ -= at->second.size();
    lasts_.erase(at);
  }
}

Contention::Sum* Contention::SumAt(const CoreWarp& warp, int lane, const MemoryRegion& region,
                                   const std::byte* at) {
  const auto offset = region.race_offset + static_cast<std::uint64_t>(at - region.data);
  auto& sums = sums_[region.race_region];
  auto found = sums.find(offset);
  if (found == sums.end()) {
    if (places_ >= kMostPlaces) return nullptr;
    ++places_;
    found = sums.emplace(offset, Sum{}).first;
  }
  Sum& sum = found->second;
  const bool ordered = std::ranges::any_of(sum.adds, [&](const Add& add) {
    return race_.Knows(warp.number, lane, add.warp, add.lane, add.time);
  });
  if (ordered) sum.adds.clear();
  return sum.adds.size() == kMostAdds ? nullptr : &sum;
}

void Contention::OnFloatAdd(const CoreWarp& warp, std::uint32_t pc, int lane,
                            const MemoryRegion& region, const std::byte* at, const std::byte* value,
                            std::uint32_t bytes, Combine combine, bool flush) {
  if (bytes > kMostBytes || std::ranges::find(settled_, pc) != settled_.end()) return;
  Sum* const sum = SumAt(warp, lane, region, at);
  if (sum == nullptr) return;
  if (sum->adds.empty()) std::memcpy(sum->before.data(), at, bytes);
  Add& add = sum->adds.emplace_back(Add{.warp = warp.number,
                                        .time = race_.Now(warp.number),
                                        .pc = pc,
                                        .lane = static_cast<std::uint8_t>(lane)});
  std::memcpy(add.value.data(), value, bytes);
  if (sum->adds.size() >= 2) {
    Judge(*sum, region, at, bytes, [&](Bytes& result, const Add& each) {
      combine(result.data(), each.value.data(), flush);
    });
  }
}

bool Contention::EndsUpdate(std::uint32_t pc) {
  return std::ranges::find(settled_, pc) == settled_.end() && updates_.IsUpdate(pc);
}

void Contention::OnSwap(CoreWarp& warp, std::uint32_t pc, int lane, const MemoryRegion& region,
                        const std::byte* at, std::uint32_t bytes) {
  Sum* const sum = SumAt(warp, lane, region, at);
  if (sum == nullptr) return;
  // Additions of another kind at the same place: their order matters too, but not to these.
  if (!sum->adds.empty() && sum->adds.front().pc != pc) sum->adds.clear();
  if (sum->adds.empty()) sum->before = updates_.Found(warp, pc, lane);
  Add add{.warp = warp.number,
          .time = race_.Now(warp.number),
          .pc = pc,
          .lane = static_cast<std::uint8_t>(lane),
          .inputs = updates_.Inputs(warp, pc, lane)};
  add.value = updates_.Apply(warp, pc, add.inputs, updates_.Found(warp, pc, lane));
  sum->adds.push_back(std::move(add));
  if (sum->adds.size() >= 2) {
    Judge(*sum, region, at, bytes, [&](Bytes& result, const Add& each) {
      result = updates_.Apply(warp, pc, each.inputs, result);
    });
  }
}

/// The same additions in other orders: the last two, all from the end, by their bits.
void Contention::Judge(const Sum& sum, const MemoryRegion& region, const std::byte* at,
                       std::uint32_t bytes, const Apply& apply) {
  const std::size_t n = sum.adds.size();
  std::vector<std::size_t> order(n);
  const auto total = [&] {
    Bytes result = sum.before;
    for (const std::size_t i : order) apply(result, sum.adds[i]);
    return result;
  };
  std::iota(order.begin(), order.end(), std::size_t{0});
  const Bytes plain = total();
  const auto differs = [&](Bytes& other) {
    other = total();
    return std::memcmp(other.data(), plain.data(), bytes) != 0;
  };
  Bytes other{};
  std::swap(order[n - 1], order[n - 2]);
  bool found = differs(other);
  if (!found && n > 2) {
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    found = differs(other);
  }
  if (!found && n > 2) {
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return std::memcmp(sum.adds[a].value.data(), sum.adds[b].value.data(), bytes) < 0;
    });
    found = differs(other);
  }
  if (!found) return;

  const Add& last = sum.adds.back();
  const Add& before = sum.adds[n - 2];
  settled_.push_back(last.pc);
  const std::uint32_t warps = engine_.launch.warps;
  const auto side = [&](const Add& add) {
    return Access{.what = VerbOf(engine_.program.InstructionAt(add.pc)),
                  .site = SiteOf(engine_, add.pc),
                  .thread = ThreadOf(engine_, add.warp / warps, add.warp % warps, add.lane),
                  .value = Hex(add.value, bytes)};
  };
  Finding finding;
  finding.kind = FindingKind::kNondeterministic;
  finding.accesses = {side(last), side(before)};
  const bool shared = region.kind == MemoryRegion::Kind::kShared;
  finding.memory = PlaceIn(region, shared ? "shared" : "global",
                           region.base + static_cast<std::uint64_t>(at - region.data), bytes);
  const bool update = updates_.IsUpdate(last.pc);
  finding.message = fmt::format(
      "{} at {} {} {} in the order in which threads come: the same {} {} give the bits {} in one "
      "order and {} in another",
      finding.accesses[0].what, LineOf(engine_, last.pc),
      update ? "puts what was computed of floats into" : "adds floats to", Where(*finding.memory),
      n, update ? "computations" : "values", Hex(plain, bytes), Hex(other, bytes));
  finding.missing = fmt::format("an order between the additions at {} and at {}",
                                LineOf(engine_, before.pc), LineOf(engine_, last.pc));
  finding.cause = "float sums depend on the order of their terms";
  finding.statistics = {{.name = "contenders", .value = static_cast<double>(n)}};
  if (inexact_.size() < kMostFacts) inexact_.push_back(std::move(finding));
}

Contention::Contest* Contention::ContestOf(std::uint32_t pc, std::uint32_t other_pc) {
  const auto known = std::ranges::find_if(
      contests_, [&](const Contest& c) { return c.pc == pc && c.other_pc == other_pc; });
  if (known != contests_.end()) return &*known;
  if (contests_.size() == kMostFacts) return nullptr;
  return &contests_.emplace_back(Contest{.pc = pc, .other_pc = other_pc});
}

void Contention::OnStrong(const WarpAccess& access, std::uint32_t number,
                          const MemoryRegion& region, bool uses_old) {
  const bool writes = access.kind != AccessKind::kRead;
  auto& lasts = lasts_[access.region];
  std::uint64_t previous = ~std::uint64_t{0};
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = access.offsets[lane];
    if (offset == previous) {
      if (writes) lasts[offset].lanes |= LaneMask{1} << lane;
      continue;
    }
    previous = offset;
    auto found = lasts.find(offset);
    if (found == lasts.end()) {
      if (!writes || places_ >= kMostPlaces) continue;
      ++places_;
      found = lasts.emplace(offset, Last{}).first;
    } else if (uses_old && found->second.warp != access.warp) {
      const Last& last = found->second;
      if (!race_.Knows(access.warp, lane, last.warp, FirstLane(last.lanes), last.time)) {
        ++pairs_;
        if (Contest* const contest = ContestOf(access.pc, last.pc)) {
          const std::uint32_t warps = engine_.launch.warps;
          if (++contest->pairs == 1) {
            contest->looks = !writes;
            Finding& finding = contest->finding;
            finding.kind = FindingKind::kNondeterministic;
            const auto side = [&](std::uint32_t pc, WarpNumber warp, int who) {
              return Access{.what = VerbOf(engine_.program.InstructionAt(pc)),
                            .site = SiteOf(engine_, pc),
                            .thread = ThreadOf(engine_, warp / warps, warp % warps, who)};
            };
            finding.accesses = {side(access.pc, access.warp, lane),
                                side(last.pc, last.warp, FirstLane(last.lanes))};
            const bool shared = region.kind == MemoryRegion::Kind::kShared;
            finding.memory = PlaceIn(region, shared ? "shared" : "global",
                                     region.base + offset - region.race_offset, access.bytes);
            // A write sees nothing: the last one stays.
            finding.message = fmt::format(
                fmt::runtime(access.kind == AccessKind::kWrite
                                 ? "{} at {} decides {} where it comes after {} at {}, and nothing "
                                   "orders the two"
                                 : "{} at {} sees in {} whether {} at {} came first, and nothing "
                                   "orders the two"),
                finding.accesses[0].what, LineOf(engine_, access.pc), Where(*finding.memory),
                finding.accesses[1].what, LineOf(engine_, last.pc));
            finding.missing = fmt::format("an order between {} and {}", LineOf(engine_, last.pc),
                                          LineOf(engine_, access.pc));
          }
          // The later pairs of a site are like the first ones.
          if (contest->orders.size() < kMostOrders / 8 && orders_ < kMostOrders) {
            ++orders_;
            contest->orders.push_back({.launch = engine_.launch.number,
                                       .first_warp = last.warp,
                                       .first_access = last.number,
                                       .second_warp = access.warp,
                                       .second_access = number});
          }
        }
      }
    }
    if (!writes) continue;
    found->second = Last{.warp = access.warp,
                         .time = race_.Now(access.warp),
                         .pc = access.pc,
                         .number = number,
                         .lanes = LaneMask{1} << lane};
  }
}

void Contention::Report(assay::Report& report) const {
  report.order.sums = inexact_;
  for (const Contest& contest : contests_) {
    report.order.contests.push_back(contest.finding);
    report.order.contests.back().statistics = {
        {.name = kContestPairs, .value = static_cast<double>(contest.pairs)},
        {.name = kContestOrders, .value = static_cast<double>(contest.orders.size())},
        {.name = kContestLooks, .value = contest.looks ? 1.0 : 0.0}};
    report.order.orders.insert(report.order.orders.end(), contest.orders.begin(),
                               contest.orders.end());
  }
  report.order.pairs = pairs_;
}

}  // namespace assay::emu
