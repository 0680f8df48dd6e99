#include "validator/emu/watch/spin_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

/// Rounds without a change of memory before states are looked at.
constexpr std::uint32_t kQuietRounds = 3;

/// States are looked at so often while rounds double: a warp that computes for long without a store
/// is not held up by being looked at each round, and one that goes in circles meets itself again at
/// any distance.
constexpr std::uint32_t kSamplesAnOctave = 64;

/// Places that a finding names.
constexpr std::size_t kShownPolls = 3;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

std::uint64_t MixBytes(std::uint64_t hash, const std::byte* data, std::size_t bytes) {
  while (bytes >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    hash = Mix(hash, word);
    data += sizeof(word);
    bytes -= sizeof(word);
  }
  for (; bytes > 0; --bytes) hash = Mix(hash, static_cast<std::uint64_t>(*data++));
  return hash;
}

/// Slots of a frame that hold what the machine chose: clocks, and what was computed from them. They
/// change from round to round without anything coming of it; a back-off that reads a clock is a spin
/// like any other.
std::vector<bool> ChosenSlots(const CoreWarp& warp, const FunctionCode& code, const Frame& frame) {
  std::vector<bool> chosen(code.slot_count);
  const auto mark = [&](const DecodedOperand& operand) {
    for (std::size_t i = 0; i < (operand.bits + 31u) / 32u; ++i) {
      if (operand.slot + i < chosen.size()) chosen[operand.slot + i] = true;
    }
  };
  for (std::uint32_t pc = code.first_pc; pc < code.end_pc; ++pc) {
    const Decoded& op = warp.At(pc);
    const bool clock = (op.flags & kFlagVolatileSpecial) != 0;
    for (std::size_t i = 0; i < op.operand_count; ++i) {
      const DecodedOperand& operand = op.operands[i];
      if (operand.kind != DecodedOperand::Kind::kSlot) continue;
      const bool result = i < op.destinations;
      if (result ? frame.machine != nullptr && frame.machine[operand.shadow] != 0 : clock)
        mark(operand);
    }
  }
  return chosen;
}

/// All that decides what a warp does next, as long as memory stays as it is.
std::uint64_t StateOf(const CoreWarp& warp) {
  std::uint64_t hash = Mix(warp.alive, static_cast<std::uint64_t>(warp.split_count));
  hash = Mix(hash, warp.carry);
  hash = Mix(hash, std::uint64_t{warp.cluster_arrived} << 32 | warp.cluster_released);
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    hash = Mix(hash, std::uint64_t{split.pc} << 32 | split.mask);
    hash = Mix(hash, std::uint64_t{split.depth} << 8 | static_cast<std::uint64_t>(split.wait));
    hash = Mix(hash, split.need);
  }
  for (const auto& frame : warp.frames) {
    const FunctionCode& code = warp.device->program.functions[frame->function];
    const std::vector<bool> chosen = ChosenSlots(warp, code, *frame);
    for (std::size_t slot = 0; slot < code.slot_count; ++slot) {
      if (!chosen[slot]) hash = MixBytes(hash, frame->slots + slot * kSlotBytes, kSlotBytes);
    }
    for (std::size_t i = 0; i < code.predicate_count; ++i) hash = Mix(hash, frame->predicates[i]);
    for (const std::uint32_t pc : frame->return_pc) hash = Mix(hash, pc);
  }
  return MixBytes(hash, warp.local.data(), warp.local.size());
}

/// Instructions of a warp that are worth a StateOf: three times what it costs, about. A warp with many
/// registers that computes for long would spend a tenth of its time on being looked at otherwise.
std::uint64_t CostOfState(const CoreWarp& warp) {
  constexpr std::uint64_t kLocalBytes = 16;
  constexpr std::uint64_t kSlots = 24;
  std::uint64_t cost = warp.local.size() / kLocalBytes;
  for (const auto& frame : warp.frames) {
    const FunctionCode& code = warp.device->program.functions[frame->function];
    cost += code.slot_count * kSlots + (code.end_pc - code.first_pc);
  }
  return cost;
}

int ReadySplits(const CoreWarp& warp) {
  int ready = 0;
  for (int i = 0; i < warp.split_count; ++i)
    ready += warp.splits[static_cast<std::size_t>(i)].wait == Wait::kReady ? 1 : 0;
  return ready;
}

/// What a load, an atomic or a wait for an mbarrier looks at.
std::optional<MemoryPlace> Polled(CoreWarp& warp, const Split& split) {
  const Decoded& op = warp.At(split.pc);
  const ptx::Instruction& in = *op.source;
  if (op.destinations == 0 || op.destinations >= op.operand_count) return std::nullopt;
  const auto roles = ptx::MemoryRoles(in);
  const bool waits = roles.size() == 1 && roles[0].mbarrier && !roles[0].writes;
  if (op.rules.shadow != ptx::Shadow::kLoad && op.rules.shadow != ptx::Shadow::kAtomic && !waits)
    return std::nullopt;
  const DecodedOperand& address = op.operands[op.destinations];
  if (address.kind != DecodedOperand::Kind::kSlot) return std::nullopt;
  Enter(warp, split);
  LaneAccess access;
  Addresses(warp, address, access);
  const int lane = FirstLane(split.mask);
  const ptx::Space space = waits ? ptx::Space::kShared : in.space;
  const auto bytes = waits ? 8u : static_cast<std::uint32_t>(ptx::BitsOf(in.type()) / 8);
  return PlaceOf(warp, space, access.address[lane], lane, bytes);
}

/// The value that is there, printed; empty where it cannot be read.
std::string ValueAt(const CoreWarp& warp, const MemoryPlace& place) {
  const MemoryRegion* const region = place.space == "shared"
                                         ? SharedRegion(*warp.block, place.address & 0xffffffffu)
                                         : GenericRegion(*warp.device, place.address);
  if (region == nullptr || place.bytes == 0 || place.bytes > 8) return {};
  const std::uint64_t offset =
      (place.space == "shared" ? place.address & kSharedOffsetMask : place.address) - region->base;
  if (region->size < place.bytes || offset > region->size - place.bytes) return {};
  std::uint64_t value = 0;
  std::memcpy(&value, region->data + offset, place.bytes);
  return fmt::format("{}", value);
}

std::string Describe(const MemoryPlace& place) {
  return place.buffer.empty() ? fmt::format("{:#x}", place.address)
                              : fmt::format("{}[{}]", place.buffer, place.index);
}

/// Follows a spinning warp once round its loop and adds where it looks at memory.
void CollectPolls(CoreWarp& warp, Finding& finding) {
  constexpr int kSteps = 512;
  for (int step = 0; step < kSteps && !warp.device->stopped; ++step) {
    for (int i = 0; i < warp.split_count; ++i) {
      const Split split = warp.splits[static_cast<std::size_t>(i)];
      if (split.wait != Wait::kReady) continue;
      const std::optional<MemoryPlace> place = Polled(warp, split);
      if (!place || place->space == "local" || place->space == "param") continue;
      Access access;
      access.what = fmt::format("polls {}", Describe(*place));
      access.site = SiteOf(*warp.device, split.pc);
      access.thread = ThreadOf(warp, FirstLane(split.mask));
      access.threads = static_cast<std::uint64_t>(std::popcount(split.mask));
      access.value = ValueAt(warp, *place);
      const auto known = std::ranges::find_if(finding.accesses, [&](const Access& other) {
        return other.site == access.site && other.what == access.what;
      });
      if (known == finding.accesses.end()) {
        if (!finding.memory) finding.memory = place;
        finding.accesses.push_back(std::move(access));
      } else if (known->thread != access.thread && known->value == access.value) {
        known->threads = std::max(known->threads, access.threads);
      }
    }
    RunWarp(warp, 1);
  }
}

}  // namespace

void SpinWatch::Reset() {
  quiet_rounds_ = 0;
  seen_.clear();
}

void SpinWatch::Sample(const CoreWarp& warp, int ready, Seen& seen) const {
  if (seen.cost == 0) {
    seen.cost = CostOfState(warp);
    seen.paid = warp.executed;
  }
  if (warp.executed - seen.paid < seen.cost) return;
  seen.paid = warp.executed;
  const std::uint64_t state = StateOf(warp);
  if (seen.samples > 0 && state == seen.state) {
    // Several splits take turns: each must have had one.
    const std::uint64_t least = ready == 1 ? 1 : 4 * kSplitPatience * static_cast<unsigned>(ready);
    if (warp.executed - seen.executed >= least) seen.repeats = true;
  } else if (std::has_single_bit(++seen.samples)) {
    seen.state = state;
    seen.executed = warp.executed;
  }
}

bool SpinWatch::AllSpin(const std::vector<std::vector<Poller>>& pollers) {
  if (engine_.last_progress != progress_) {
    progress_ = engine_.last_progress;
    Reset();
    return false;
  }
  if (++quiet_rounds_ < kQuietRounds) return false;
  const std::uint32_t stride = std::bit_floor(quiet_rounds_) / kSamplesAnOctave;
  if (stride > 1 && quiet_rounds_ % stride != 0) return false;
  bool any = false;
  bool all = true;
  for (std::size_t i = 0; i < engine_.resident.size(); ++i) {
    const Block& block = *engine_.resident[i];
    if (block.done) continue;
    for (const auto& warp : block.warps) {
      const int ready = warp->finished() ? 0 : ReadySplits(*warp);
      if (ready == 0) continue;
      any = true;
      if (pollers[i][warp->index].Waits()) continue;
      Seen& seen = seen_[warp.get()];
      if (!seen.repeats) Sample(*warp, ready, seen);
      all = all && seen.repeats;
    }
  }
  return any && all;
}

void ReportSpin(Device& device, std::uint32_t ended) {
  Finding finding;
  finding.kind = FindingKind::kLivelock;
  std::vector<Access> waits;
  std::uint32_t pc = kNoPc;
  for (const auto& block : device.resident) {
    if (block->done) continue;
    for (const auto& warp : block->warps) {
      if (warp->finished() || ReadySplits(*warp) == 0) continue;
      if (pc == kNoPc) {
        const auto ready = std::ranges::find(warp->splits, Wait::kReady, &Split::wait);
        pc = ready->pc;
      }
      if (finding.accesses.size() < kShownPolls) CollectPolls(*warp, finding);
    }
    for (Access& access : WaitsOf(*block)) {
      if (access.what.starts_with("waits") && waits.empty()) waits.push_back(std::move(access));
    }
  }
  if (finding.accesses.empty()) {
    // A loop that looks at nothing.
    for (const auto& block : device.resident) {
      if (block->done || !finding.accesses.empty()) continue;
      for (Access& access : WaitsOf(*block)) {
        if (finding.accesses.empty()) finding.accesses.push_back(std::move(access));
      }
    }
    finding.message = "threads loop for ever without looking at memory";
  } else {
    const Access& first = finding.accesses.front();
    finding.message = fmt::format(
        "threads spin on {}{}, and no thread is left that could change it",
        finding.memory ? Describe(*finding.memory) : "memory",
        first.value.empty() ? std::string() : fmt::format(", which holds {}", first.value));
  }
  finding.missing = fmt::format(
      "a thread that gives the signal: {} of {} blocks have ended, all others spin or wait", ended,
      device.launch.blocks);
  if (finding.accesses.size() > kShownPolls) finding.accesses.resize(kShownPolls);
  finding.accesses.insert(finding.accesses.end(), waits.begin(), waits.end());
  device.findings.Add(std::move(finding), pc, kNoPc);
}

}  // namespace assay::emu
