#include "validator/emu/watch/endless.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

/// Steps of a thread's warp that are looked at, and of those that the run has taken so far: one in so many.
constexpr std::uint64_t kMostFollowed = 20'000'000;
constexpr std::uint64_t kShareOfRun = 8;
/// Turns of the other warps of a block until one that waits at a barrier goes on.
constexpr int kMostWaits = 1024;
constexpr std::uint64_t kTurnOfOthers = 64;
/// Registers that decide: more are no loop's counters.
constexpr std::size_t kMostPlaces = 64;

bool ReadsWhatStays(const Decoded& op) {
  const ptx::Space space = op.source->space;
  return op.rules.shadow == ptx::Shadow::kLoad &&
         (space == ptx::Space::kParam || space == ptx::Space::kParamEntry ||
          space == ptx::Space::kConst);
}

/// Is what it writes a function of its operands in the same lane?
bool IsPlain(const Decoded& op) {
  if (op.rules.effect != ptx::Effect::kNone || (op.flags & kFlagVolatileSpecial) != 0) return false;
  return ReadsWhatStays(op) ||
         (op.rules.shadow != ptx::Shadow::kLoad && op.rules.shadow != ptx::Shadow::kAtomic &&
          ptx::MemoryRoles(*op.source).empty());
}

bool SamePlace(const DecodedOperand& a, const DecodedOperand& b) {
  return a.kind == b.kind && a.slot == b.slot;
}

/// A thread, followed.
class Follower {
 public:
  Follower(CoreWarp& warp, const Split& split)
      : warp_(warp),
        frame_(split.frame),
        lane_(FirstLane(split.mask)),
        pc_(split.pc),
        met_(warp.device->program.code.size()) {}

  /// Looks at no more than `budget` steps.
  bool GoesRoundForEver(std::uint64_t budget);

  int lane() const { return lane_; }
  /// Where the loop's lowest instruction stands, and the last guard that could have left it.
  std::uint32_t head() const { return *std::ranges::min_element(way_); }
  std::uint32_t guard() const { return guard_; }
  std::uint64_t rounds() const { return rounds_; }

 private:
  const Split* Own() const {
    for (int i = 0; i < warp_.split_count; ++i) {
      const Split& split = warp_.splits[static_cast<std::size_t>(i)];
      if ((split.mask >> lane_ & 1) != 0) return &split;
    }
    return nullptr;
  }
  bool Step(std::uint64_t until);
  void Add(const DecodedOperand& operand) {
    if (operand.kind != DecodedOperand::Kind::kSlot &&
        operand.kind != DecodedOperand::Kind::kPredicate)
      return;
    if (std::ranges::none_of(places_, [&](const auto& each) { return SamePlace(each, operand); }))
      places_.push_back(operand);
  }
  void AddGuard(const Decoded& op) {
    if (op.guard == kNoSlot) return;
    DecodedOperand guard;
    guard.kind = DecodedOperand::Kind::kPredicate;
    guard.slot = op.guard;
    Add(guard);
  }
  bool FindPlaces();
  std::vector<std::byte> State() const;

  CoreWarp& warp_;
  const Frame* frame_;
  int lane_;
  std::uint32_t pc_;
  std::vector<bool> met_;           ///< By pc: `way_`.
  std::vector<std::uint32_t> way_;  ///< Instructions that the thread has come to.
  std::vector<DecodedOperand> places_;
  std::uint32_t guard_ = kNoPc;
  std::uint64_t rounds_ = 0;
};

/// To the thread's next instruction. False: it cannot be followed further, or steps have come to `until`.
bool Follower::Step(std::uint64_t until) {
  int waits = 0;
  while (warp_.device->counters.steps < until) {
    const Split* own = Own();
    if (own == nullptr || own->frame != frame_) return false;
    if (RunWarp(warp_, 1) == 0) {
      if (++waits > kMostWaits) return false;
      for (const auto& other : warp_.block->warps) {
        if (other.get() != &warp_ && !other->finished()) RunWarp(*other, kTurnOfOthers);
      }
    }
    if (warp_.device->stopped) return false;
    own = Own();
    if (own == nullptr || own->frame != frame_) return false;
    if (own->pc == pc_) continue;
    pc_ = own->pc;
    return true;
  }
  return false;
}

/// All that decides where the thread goes, as far as the way is known. False: something that is not
/// computed from registers alone.
bool Follower::FindPlaces() {
  places_.clear();
  guard_ = kNoPc;
  for (const std::uint32_t pc : way_) {
    const Decoded& op = warp_.At(pc);
    if (op.rules.effect == ptx::Effect::kCall || op.rules.effect == ptx::Effect::kStack)
      return false;
    if ((op.flags & kFlagControl) == 0) continue;
    AddGuard(op);
    if (ptx::Leaves(op.rules.effect) && op.guard != kNoSlot) guard_ = pc;
    if (op.rules.effect != ptx::Effect::kTable) continue;
    for (std::size_t i = 0; i < op.operand_count; ++i) Add(op.operands[i]);
  }
  for (std::size_t known = 0; known < places_.size(); ++known) {
    if (places_.size() > kMostPlaces) return false;
    const DecodedOperand place = places_[known];
    for (const std::uint32_t pc : way_) {
      const Decoded& op = warp_.At(pc);
      const std::span written(op.operands, op.destinations);
      if (std::ranges::none_of(written, [&](const auto& each) { return SamePlace(each, place); }))
        continue;
      if (!IsPlain(op)) return false;
      AddGuard(op);
      for (std::size_t i = op.destinations; i < op.operand_count; ++i) Add(op.operands[i]);
    }
  }
  return true;
}

std::vector<std::byte> Follower::State() const {
  std::vector<std::byte> state;
  for (const DecodedOperand& place : places_) {
    if (place.kind == DecodedOperand::Kind::kPredicate) {
      state.push_back(static_cast<std::byte>(frame_->predicates[place.slot] >> lane_ & 1));
      continue;
    }
    const std::size_t bytes = std::max(place.bits / 8u, 2u);
    const std::byte* const at =
        frame_->slots + place.slot * kSlotBytes + static_cast<std::size_t>(lane_) * bytes;
    state.insert(state.end(), at, at + bytes);
  }
  return state;
}

bool Follower::GoesRoundForEver(std::uint64_t budget) {
  std::uint32_t head = kNoPc;
  std::size_t known = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t since = 0;
  std::vector<std::byte> reference;
  const std::uint64_t until = warp_.device->counters.steps + budget;
  while (true) {
    const std::uint32_t from = pc_;
    if (!Step(until)) return false;
    if (head == kNoPc && pc_ < from) head = pc_;
    if (head == kNoPc) continue;
    if (!met_[pc_]) {
      met_[pc_] = true;
      way_.push_back(pc_);
    }
    if (pc_ != head || ++arrivals == 1) continue;
    if (way_.size() != known) {
      known = way_.size();
      if (!FindPlaces()) return false;
      reference = State();
      arrivals = 2;
      since = 0;
      continue;
    }
    ++since;
    // One state is remembered, and renewed at every power of two (Brent).
    std::vector<std::byte> now = State();
    if (now == reference) {
      rounds_ = since;
      return true;
    }
    if (std::has_single_bit(++arrivals)) {
      reference = std::move(now);
      since = 0;
    }
  }
}

void Report(Device& device, const CoreWarp& warp, const Follower& follower) {
  Finding finding;
  finding.kind = FindingKind::kLivelock;
  finding.message = fmt::format(
      "a loop never ends: after {} round{} all that decides whether it goes on is what it was",
      follower.rounds(), follower.rounds() == 1 ? "" : "s");
  finding.cause =
      "a counter that wraps round below its bound (an index of 32 bits), or one that is not moved "
      "on";
  const std::uint32_t pc = follower.guard() != kNoPc ? follower.guard() : follower.head();
  Access access;
  access.what = "goes on";
  access.site = SiteOf(device, pc);
  access.thread = ThreadOf(warp, follower.lane());
  finding.accesses.push_back(std::move(access));
  device.findings.Add(std::move(finding), pc, kNoPc);
}

bool LooksAt(Device& device, const Block& block, std::uint64_t budget) {
  if (block.done) return false;
  for (const auto& warp : block.warps) {
    for (int i = 0; i < warp->split_count; ++i) {
      const Split split = warp->splits[static_cast<std::size_t>(i)];
      if (split.wait != Wait::kReady) continue;
      Follower follower(*warp, split);
      if (!follower.GoesRoundForEver(budget)) return false;
      Report(device, *warp, follower);
      return true;
    }
  }
  return false;
}

}  // namespace

bool ReportEndless(Device& device) {
  const auto first = std::ranges::find(device.resident, false, &Block::done);
  if (first == device.resident.end()) return false;
  const std::uint64_t budget = std::min(kMostFollowed, device.counters.steps / kShareOfRun);
  if (LooksAt(device, **first, budget)) return true;
  const auto last =
      std::ranges::find(device.resident.rbegin(), device.resident.rend(), false, &Block::done);
  return !device.stopped && last->get() != first->get() && LooksAt(device, **last, budget);
}

}  // namespace assay::emu
