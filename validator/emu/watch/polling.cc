#include "validator/emu/watch/polling.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "validator/emu/address_space.h"
#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/weak/stale.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

/// Instructions after which a loop is too long to be one that waits, and words that one looks at.
constexpr std::uint64_t kMostSteps = 256;
constexpr std::size_t kMostWords = 96;
/// Rounds until the registers must be what they were: what was loaded last may be from another value
/// of the word, and pauses grow up to a limit.
constexpr int kMostRounds = 12;
/// Instructions until a warp that was followed for nothing is followed again: doubled each time.
constexpr std::uint64_t kPause = 256;
constexpr std::uint32_t kMostDoublings = 8;
/// Of Device::last_progress: memory has not changed.
constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// The only split that can run, or null.
const Split* OnlyReady(const CoreWarp& warp) {
  const Split* only = nullptr;
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (split.wait != Wait::kReady) continue;
    if (only != nullptr) return nullptr;
    only = &split;
  }
  return only;
}

/// The split that ran last, where it can run again: the only one that can, or the one that passed over
/// the others. Null where that is not known.
const Split* LastRun(const CoreWarp& warp) {
  if (const Split* const only = OnlyReady(warp)) return only;
  const Split* last = nullptr;
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (split.wait != Wait::kReady || split.passed_over != 0) continue;
    if (last != nullptr) return nullptr;
    last = &split;
  }
  return last;
}

/// All that can run but `one` cannot, for now. Are there any?
bool SetOthersAside(CoreWarp& warp, const Split& one) {
  bool any = false;
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (&split == &one || split.wait != Wait::kReady) continue;
    split.wait = Wait::kAside;
    any = true;
  }
  return any;
}

/// They can again; `first`: before whoever passed over them.
void TakeBack(CoreWarp& warp, bool first) {
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (split.wait != Wait::kAside) continue;
    split.wait = Wait::kReady;
    if (first) split.passed_over = std::max(split.passed_over, kSplitPatience);
  }
}

/// Does it stand where lanes that were set aside wait to be joined?
bool MeetsOthers(const CoreWarp& warp, const Split& split) {
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& other = warp.splits[static_cast<std::size_t>(i)];
    if (other.wait == Wait::kAside && other.pc == split.pc && other.frame == split.frame)
      return true;
  }
  return false;
}

bool IsShared(ptx::Space space, std::uint64_t address) {
  return space == ptx::Space::kShared || space == ptx::Space::kSharedCta ||
         space == ptx::Space::kSharedCluster ||
         (space == ptx::Space::kGeneric && (address & kWindowMask) == kSharedWindow);
}

bool IsOwn(ptx::Space space, std::uint64_t address) {
  return space == ptx::Space::kLocal || space == ptx::Space::kParam ||
         space == ptx::Space::kParamEntry || space == ptx::Space::kParamFunc ||
         (space == ptx::Space::kGeneric && (address & kWindowMask) == kLocalWindow);
}

/// The region, where what it holds can be waited for: it stays what it is while this block runs.
const MemoryRegion* LastingRegion(const CoreWarp& warp, ptx::Space space, std::uint64_t address) {
  if (IsShared(space, address)) {
    const MemoryRegion* const region = SharedRegion(*warp.block, address & 0xffffffffu);
    const std::vector<MemoryRegion>& own = warp.block->shared;
    const bool is_own =
        region != nullptr &&
        std::ranges::any_of(own, [&](const MemoryRegion& each) { return &each == region; });
    return is_own ? region : nullptr;
  }
  const MemoryRegion* const region = GenericRegion(*warp.device, address);
  if (region == nullptr || region->freed || region->kind == MemoryRegion::Kind::kHeap)
    return nullptr;
  return region;
}

}  // namespace

Polling::Polling(Device& device) : engine_(device), looks_(device.program.code.size()) {}

Polling::Look Polling::LookAt(std::uint32_t pc) {
  Look& look = looks_[pc];
  if (look != Look::kUnasked) return look;
  const Decoded& op = engine_.program.code[pc];
  const auto roles = ptx::MemoryRoles(*op.source);
  const bool plain =
      op.rules.effect == ptx::Effect::kNone || op.rules.effect == ptx::Effect::kBranch ||
      op.rules.effect == ptx::Effect::kWarp || op.rules.effect == ptx::Effect::kFence;
  const bool loads =
      op.rules.shadow == ptx::Shadow::kLoad || op.rules.shadow == ptx::Shadow::kAtomic;
  const bool waits = roles.size() == 1 && roles[0].mbarrier && !roles[0].writes;
  if (!plain || (op.flags & kFlagVolatileSpecial) != 0) {
    look = Look::kOther;
  } else if (roles.empty()) {
    look = loads ? Look::kReads : Look::kNothing;
  } else if (roles.size() != 1 || !(loads || waits) || op.destinations >= op.operand_count ||
             op.operands[op.destinations].kind != DecodedOperand::Kind::kSlot) {
    look = Look::kOther;
  } else {
    look = waits || (op.flags & kFlagOrderMatters) != 0 ? Look::kPolls : Look::kReads;
  }
  return look;
}

bool Poller::Waits() const {
  return !words.empty() && std::ranges::all_of(words, [](const Word& word) {
    return std::memcmp(word.at, word.seen.data(), word.bytes) == 0;
  });
}

bool Polling::Waits(const CoreWarp& warp, Poller& poller) {
  if (poller.words.empty()) return false;
  // Others of its lanes may have come free.
  const bool waits = OnlyReady(warp) != nullptr && poller.Waits();
  if (!waits) poller.words.clear();
  return waits;
}

bool Polling::Suspects(const CoreWarp& warp, const Poller& poller) {
  // What it looks at may be compared with a word of its own, which is read last.
  return warp.executed >= poller.next_look && warp.last_access != kNoPc &&
         (warp.looked != 0 || LookAt(warp.last_access) == Look::kPolls) && !warp.finished() &&
         LastRun(warp) != nullptr;
}

void Polling::Save(const CoreWarp& warp, bool predicate, Slot slot) {
  const auto known = std::ranges::find_if(
      saved_, [&](const Saved& each) { return each.predicate == predicate && each.slot == slot; });
  if (known != saved_.end()) return;
  Saved& saved = saved_.emplace_back(Saved{.predicate = predicate, .slot = slot});
  if (predicate) {
    std::memcpy(saved.before.data(), &warp.frame->predicates[slot], sizeof(LaneMask));
  } else {
    std::memcpy(saved.before.data(), warp.frame->slots + slot * kSlotBytes, kSlotBytes);
  }
}

bool Polling::SameAsSaved(const CoreWarp& warp) const {
  return std::ranges::all_of(saved_, [&](const Saved& saved) {
    if (saved.predicate)
      return std::memcmp(saved.before.data(), &warp.frame->predicates[saved.slot],
                         sizeof(LaneMask)) == 0;
    return std::memcmp(saved.before.data(), warp.frame->slots + saved.slot * kSlotBytes,
                       kSlotBytes) == 0;
  });
}

/// What the instruction is about to read. False: something that cannot be waited for.
bool Polling::NoteWords(CoreWarp& warp, const Decoded& op) {
  LaneMask lanes = warp.active;
  if (op.guard != kNoSlot) {
    const LaneMask predicate = warp.predicates[op.guard];
    lanes &= op.guard_negated ? ~predicate : predicate;
  }
  const auto roles = ptx::MemoryRoles(*op.source);
  if (roles.empty() || lanes == 0) return true;
  const bool mbarrier = roles[0].mbarrier;
  const ptx::Space space = mbarrier ? ptx::Space::kShared : op.source->space;
  const std::size_t elements = std::max<std::size_t>(op.destinations, 1);
  const auto bytes = mbarrier ? 8u
                              : static_cast<std::uint32_t>(elements) *
                                    static_cast<std::uint32_t>(ptx::BitsOf(op.source->type()) / 8);
  if (bytes == 0 || bytes > sizeof(Poller::Word::seen)) return false;
  LaneAccess access;
  Addresses(warp, op.operands[op.destinations], access);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = access.address[lane];
    if (IsOwn(space, address)) continue;
    const MemoryRegion* const region = LastingRegion(warp, space, address);
    if (region == nullptr) return false;
    if (!region->writable) continue;
    const std::byte* const at = HostAddress(warp, space, address, lane, bytes);
    if (at == nullptr) return false;
    const auto known = std::ranges::find_if(
        words_, [&](const Poller::Word& word) { return word.at == at && word.bytes == bytes; });
    if (known != words_.end()) continue;
    if (words_.size() == kMostWords) return false;
    Poller::Word& word = words_.emplace_back(Poller::Word{.at = at, .bytes = bytes});
    // A page that is not filled yet holds nothing; by the time it is looked at again, it does.
    if (region->lazy != nullptr)
      region->lazy->Touch(static_cast<std::uint64_t>(at - region->data), bytes);
    std::memcpy(word.seen.data(), at, bytes);
  }
  return true;
}

/// Once round the loop, up to the instruction where the warp stands. False: it leaves, or does something
/// else than wait.
bool Polling::Round(CoreWarp& warp, std::uint64_t& ran) {
  // Steps tell changes apart, but for those of one instruction after what else happened at its step.
  const std::uint64_t before = std::exchange(engine_.last_progress, kNever);
  const bool around = GoRound(warp, ran);
  if (engine_.last_progress != kNever) return false;
  engine_.last_progress = before;
  return around;
}

bool Polling::GoRound(CoreWarp& warp, std::uint64_t& ran) {
  // A load that waits for the store behind it is made now: registers hold what was read.
  const auto finish_loads = [&] {
    if (engine_.stale != nullptr) engine_.stale->FinishLoads(warp);
  };
  finish_loads();
  const Split start = *OnlyReady(warp);
  saved_.clear();
  words_.clear();
  for (std::uint64_t steps = 0; steps < kMostSteps; ++steps) {
    const Split* const split = OnlyReady(warp);
    if (split == nullptr || split->mask != start.mask || split->frame != start.frame ||
        MeetsOthers(warp, *split))
      return false;
    if (steps > 0 && split->pc == start.pc) {
      finish_loads();
      return true;
    }
    const Look look = LookAt(split->pc);
    if (look == Look::kOther) return false;
    const Decoded& op = warp.At(split->pc);
    Enter(warp, *split);
    if (look != Look::kNothing && !NoteWords(warp, op)) return false;
    for (std::size_t i = 0; i < op.destinations; ++i) {
      const DecodedOperand& operand = op.operands[i];
      if (operand.kind == DecodedOperand::Kind::kPredicate) Save(warp, true, operand.slot);
      if (operand.kind != DecodedOperand::Kind::kSlot) continue;
      for (std::uint32_t part = 0; part < (operand.bits + 31u) / 32u; ++part)
        Save(warp, false, operand.slot + part);
    }
    const std::uint64_t now = RunWarp(warp, 1);
    ran += now;
    if (now == 0 || engine_.stopped || engine_.last_progress != kNever) return false;
  }
  return false;
}

bool Polling::Follow(CoreWarp& warp, Poller& poller, std::uint64_t& ran) {
  const Split* const last = LastRun(warp);
  bool again = last != nullptr && warp.chosen_paths.empty();
  const bool others = again && SetOthersAside(warp, *last);
  bool polls = false;
  for (int round = 0; again && round < kMostRounds; ++round) {
    const LaneMask carry = warp.carry;
    again = Round(warp, ran);
    if (!again || words_.empty() || carry != warp.carry || !SameAsSaved(warp)) continue;
    polls = true;
    break;
  }
  if (others) TakeBack(warp, polls);
  if (polls) {
    // Others of its lanes may go on: it waits once they cannot.
    if (!others) poller.words = words_;
    poller.in_vain = 0;
    poller.next_look = 0;
    return !others;
  }
  poller.next_look = warp.executed + (kPause << std::min(poller.in_vain++, kMostDoublings));
  return false;
}

bool Polling::LooksAgain(CoreWarp& warp, Poller& poller, std::uint64_t& ran) {
  if (OnlyReady(warp) == nullptr) return false;
  if (Follow(warp, poller, ran)) return true;
  // It has found what it waited for.
  poller.in_vain = 0;
  poller.next_look = 0;
  return false;
}

}  // namespace assay::emu
