#include "validator/emu/watch/costs.h"

#include <algorithm>
#include <bit>

#include "validator/emu/site.h"
#include "validator/emu/work.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

constexpr std::size_t kMostSites = 6;
constexpr std::uint32_t kRowBytes = 16;
/// PTX instructions that a branch may lead round and become a predicate of.
constexpr std::uint32_t kMostPredicated = 12;

}  // namespace

CostWatch::CostWatch(Device& device, const CountOptions& options)
    : engine_(device),
      options_(options),
      plans_(device.program.code.size()),
      sites_(device.program.code.size()) {}
CostWatch::~CostWatch() = default;

void CostWatch::BeginLaunch() {
  counts_ = &launches_.emplace_back();
  blocks_.clear();
  last_ = nullptr;
  read_.Clear();
  written_.Clear();
  std::ranges::fill(sites_, SiteCount{});
  buffer_of_.assign(engine_.regions.size(), 0);
  for (std::size_t i = 0; i < engine_.buffers.size(); ++i) {
    const std::size_t allocation = engine_.buffers[i].region.base >> kAllocationBits;
    if (allocation >= buffer_of_.size()) continue;
    counts_->buffers.push_back({.buffer = static_cast<std::uint32_t>(i)});
    buffer_of_[allocation] = static_cast<std::uint32_t>(counts_->buffers.size());
  }
}

void CostWatch::EndLaunch() {
  for (const auto& state : blocks_) Finish(*state);
  blocks_.clear();
  last_ = nullptr;
  std::erase_if(counts_->buffers, [](const BufferTraffic& traffic) {
    return traffic.read == 0 && traffic.written == 0;
  });
  AddSites();
}

void CostWatch::AddSites() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t pc = 0; pc < sites_.size(); ++pc) {
    // A few more than needed is how a last, partial access looks.
    if (4 * sites_[pc].units > 5 * sites_[pc].least) order.push_back(pc);
  }
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::uint32_t pc) { return sites_[pc].units - sites_[pc].least; });
  if (order.size() > kMostSites) order.resize(kMostSites);
  for (const std::uint32_t pc : order) {
    const SiteCount& site = sites_[pc];
    counts_->sites.push_back({.site = SiteOf(engine_, pc),
                              .shared = site.shared,
                              .requests = site.requests,
                              .units = site.units,
                              .least = site.least});
  }
}

bool CostWatch::IsPredicated(const Decoded& op, std::uint32_t pc) const {
  if (op.rules.effect != ptx::Effect::kBranch || op.target <= pc ||
      op.target - pc > kMostPredicated)
    return false;
  for (std::uint32_t at = pc + 1; at < op.target; ++at) {
    const Decoded& within = engine_.program.code[at];
    const bool forward = within.rules.effect == ptx::Effect::kBranch && within.target > at;
    if (within.source != nullptr && !forward && WorkOf(*within.source).ends_region) return false;
  }
  return true;
}

CostWatch::Plan CostWatch::MakePlan(const Decoded& op, std::uint32_t pc) const {
  const ptx::Instruction& in = *op.source;
  Plan plan{.known = true, .work = WorkOf(in)};
  if (IsPredicated(op, pc)) plan.work.ends_region = false;
  const std::uint32_t issues = plan.work.issues;
  plan.latency = issues == 0 && plan.work.special == 0 ? 0 : options_.arithmetic;
  if (issues > 1) plan.latency += 2 * (issues - 1);
  if (plan.work.special != 0 || plan.work.pipe == Pipe::kSpecial) plan.latency += options_.special;
  if (plan.work.pipe == Pipe::kShuffle) plan.latency = options_.shared;
  if (plan.work.pipe == Pipe::kDouble || plan.work.pipe == Pipe::kConvert)
    plan.latency += options_.arithmetic;
  if (plan.work.pipe == Pipe::kMatrix) {
    plan.latency = options_.matrix;
    plan.products = ExtraSteps(in) * kProductsOfStep;
    plan.type = MatrixTypeOf(in);
    plan.group = in.opcode == Opcode::kWgmmaMmaAsync;
  }
  if (plan.work.pipe != Pipe::kMemory) return plan;
  const std::size_t destinations = op.destinations;
  const auto element = static_cast<std::uint32_t>(std::max(8, ptx::BitsOf(in.type()))) / 8;
  plan.cached = (op.flags & kFlagOrderMatters) == 0 && !in.Has(Mod::kCg) && !in.Has(Mod::kCv);
  const auto set = [&](Access access, std::size_t address, std::uint32_t bytes) {
    plan.access = access;
    plan.address = static_cast<std::uint8_t>(address);
    plan.bytes = bytes;
  };
  switch (in.opcode) {
    case Opcode::kLd:
    case Opcode::kLdu:
      set(Access::kLoad, destinations,
          element * static_cast<std::uint32_t>(std::max<std::size_t>(1, destinations)));
      plan.reads = true;
      break;
    case Opcode::kSt:
      set(Access::kStore, 0, element * in.vector_width);
      plan.writes = true;
      break;
    case Opcode::kAtom:
    case Opcode::kRed:
      set(Access::kAtomic, destinations, element * in.vector_width);
      plan.reads = plan.writes = true;
      break;
    case Opcode::kCpAsync:
      set(Access::kCopy, 1, static_cast<std::uint32_t>(op.immediate));
      break;
    case Opcode::kCpAsyncBulk:
      set(Access::kBulk, 0, 0);
      break;
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
      set(Access::kRows, in.opcode == Opcode::kLdmatrix ? destinations : 0, kRowBytes);
      break;
    case Opcode::kWmmaLoad:
      set(Access::kFragment, destinations, 0);
      plan.reads = true;
      break;
    case Opcode::kWmmaStore:
      set(Access::kFragment, 0, 0);
      plan.writes = true;
      break;
    default:
      plan.access =
          ptx::MemoryRoles(in).empty() || ptx::FamilyOf(in.opcode) == ptx::Family::kMbarrier
              ? Access::kNone
              : Access::kUnknown;
  }
  constexpr std::uint8_t kGlobal = 1, kShared = 2;
  const bool constant = in.Has(Mod::kNc) || in.space == Space::kConst ||
                        in.space == Space::kParam || in.space == Space::kParamEntry ||
                        in.space == Space::kParamFunc;
  if ((plan.reads || plan.writes) && !constant) {
    const bool shared = in.space == Space::kShared || in.space == Space::kSharedCta;
    plan.order = shared ? kShared : kGlobal;
  }
  return plan;
}

const CostWatch::Plan& CostWatch::PlanOf(const CoreWarp& warp, const Decoded& op) {
  Plan& plan = plans_[warp.PcOf(op)];
  if (!plan.known) plan = MakePlan(op, warp.PcOf(op));
  return plan;
}

CostWatch::BlockState& CostWatch::StateOf(const Block& block) {
  if (last_ != nullptr && last_->block == &block && last_->number == block.number) return *last_;
  BlockState* state = nullptr;
  for (const auto& each : blocks_) {
    if (each->block == &block) state = each.get();
  }
  if (state == nullptr) state = blocks_.emplace_back(std::make_unique<BlockState>()).get();
  if (state->warps.empty() || state->number != block.number) {
    if (!state->warps.empty()) Finish(*state);
    state->block = &block;
    state->number = block.number;
    state->warps.assign(block.warps.size(), WarpState{});
    state->barriers.clear();
    const std::size_t launch = engine_.launch.number;
    state->cache.Reset(launch < options_.l1_bytes.size() ? options_.l1_bytes[launch] : 0);
    state->read.Clear();
    state->written.Clear();
    ++counts_->blocks;
    counts_->warps += block.warps.size();
  }
  last_ = state;
  return *state;
}

void CostWatch::Finish(BlockState& state) {
  std::uint64_t longest = 0;
  for (const WarpState& warp : state.warps)
    longest = std::max({longest, warp.latest, warp.start + warp.issued});
  counts_->path_cycles += longest;
  counts_->longest_path = std::max(counts_->longest_path, longest);
}

std::vector<std::uint64_t>& CostWatch::ReadyOf(WarpState& state, const CoreWarp& warp) {
  if (state.frame != warp.frame) {
    const FunctionCode& code = engine_.program.functions[warp.frame->function];
    state.frame = warp.frame;
    state.ready = &state.frames[warp.frame];
    // A frame is used again for another function of the same depth.
    state.ready->resize(
        std::max<std::size_t>(state.ready->size(), code.slot_count + code.predicate_count), 0);
  }
  return *state.ready;
}

void CostWatch::Observe(CoreWarp& warp, const Decoded& op) {
  const Plan& plan = PlanOf(warp, op);
  const auto lanes = static_cast<std::uint64_t>(std::popcount(warp.exec));
  if (lanes == 0 && plan.work.pipe != Pipe::kControl) return;
  BlockState& block = StateOf(*warp.block);
  WarpState& state = block.warps[warp.index];
  LaunchCounts& counts = *counts_;
  counts.thread_instructions += lanes;
  counts.warp_instructions += plan.work.issues + plan.work.special;
  counts.pipes[static_cast<std::size_t>(plan.work.pipe)] += plan.work.issues;
  counts.pipes[static_cast<std::size_t>(Pipe::kSpecial)] += plan.work.special;
  if (plan.products != 0) {
    (plan.group ? counts.group_products : counts.products)[static_cast<std::size_t>(plan.type)] +=
        plan.products;
  }
  if (state.at_barrier) {
    state.start = std::max(state.start, block.barriers[state.barriers - 1]) + options_.barrier;
    state.at_barrier = false;
  }
  std::vector<std::uint64_t>& ready = ReadyOf(state, warp);
  std::uint64_t start = state.start;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink || operand.kind == DecodedOperand::Kind::kNone)
      continue;
    if (operand.shadow < ready.size()) start = std::max(start, ready[operand.shadow]);
  }
  if (op.guard != kNoSlot) {
    const std::size_t guard = engine_.program.functions[warp.frame->function].slot_count + op.guard;
    if (guard < ready.size()) start = std::max(start, ready[guard]);
  }
  if (plan.order != 0) {
    // Issued in order: what waits for its data keeps a later load waiting, unless it is known to read
    // other memory.
    if (plan.reads) start = std::max(start, state.stored[plan.order]);
    if (plan.writes) state.stored[plan.order] = std::max(state.stored[plan.order], start);
  }
  std::uint64_t latency = plan.latency;
  if (plan.access != Access::kNone) latency = Touch(warp, op, plan, block);
  if (plan.access == Access::kCopy) state.copies = std::max(state.copies, start + latency);
  for (std::size_t i = 0; i < op.destinations; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink) continue;
    if (operand.shadow < ready.size()) ready[operand.shadow] = start + latency;
  }
  state.latest = std::max(state.latest, start);
  state.issued += plan.work.issues + plan.work.special;
  GroupCopies(op, state);
  if (!plan.work.ends_region) return;
  state.start = std::max(state.latest, state.start + state.issued);
  state.latest = state.start;
  state.issued = 0;
  if (!plan.work.barrier) return;
  ++counts.barriers;
  if (++state.barriers > block.barriers.size()) block.barriers.push_back(0);
  std::uint64_t& met = block.barriers[state.barriers - 1];
  met = std::max(met, state.start);
  state.at_barrier = true;
}

/// Groups of cp.async: whoever waits for all but the last n starts when those are there.
void CostWatch::GroupCopies(const Decoded& op, WarpState& state) {
  switch (op.source->opcode) {
    case Opcode::kCpAsyncCommitGroup:
      state.groups.push_back(state.copies);
      return;
    case Opcode::kCpAsyncWaitAll:
      state.start = std::max(state.start, state.copies);
      break;
    case Opcode::kCpAsyncWaitGroup: {
      const std::uint64_t open = op.source->operands.empty() ? 0 : op.source->operands[0].bits;
      if (state.groups.size() > open)
        state.start = std::max(state.start, state.groups[state.groups.size() - 1 - open]);
      break;
    }
    default:
      return;
  }
  state.latest = std::max(state.latest, state.start);
}

}  // namespace assay::emu
