// What functions do together: calls, barriers, waiting, and whether blocks depend on each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/facts/flow.h"
#include "validator/ptx/facts/waits.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Mod;
using ptx::Space;

namespace {

bool IsOwnShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }
bool IsShared(Space space) { return IsOwnShared(space) || space == Space::kSharedCluster; }

/// Nothing that it does is seen beyond its own cluster.
bool StaysInTheCluster(const Instruction& in) {
  using ptx::Opcode;
  constexpr std::array kOfClusters = {Opcode::kMapa, Opcode::kBarrierCluster};
  if (std::ranges::find(kOfClusters, in.opcode) != kOfClusters.end()) return true;
  if (IsShared(in.space)) return true;
  const bool orders = ptx::FormOf(in).rules.effect == ptx::Effect::kFence;
  return orders && (in.Has(Mod::kCta) || in.Has(Mod::kCluster));
}

bool LetsBlocksMeet(const Instruction& in) {
  const ptx::Form& form = ptx::FormOf(in);
  if (form.rules.effect == ptx::Effect::kPeers || form.rules.effect == ptx::Effect::kFence)
    return !StaysInTheCluster(in);
  if (IsShared(in.space)) return false;
  const bool strong = form.rules.shadow == ptx::Shadow::kLoad &&
                      (in.Has(Mod::kVolatile) || in.Has(Mod::kRelaxed) || in.Has(Mod::kAcquire));
  return strong || ptx::UpdatesMemory(form);
}

bool Mentions(const ptx::Operand& operand, ptx::RegisterIndex reg) {
  const bool base = operand.kind == ptx::Operand::Kind::kAddress && operand.has_base_register;
  if ((operand.kind == ptx::Operand::Kind::kRegister || base) && operand.reg == reg) return true;
  return std::ranges::any_of(operand.elements,
                             [&](const ptx::Operand& each) { return Mentions(each, reg); });
}

/// Does `in` add floats to memory, and nobody looks at what was there before?
bool AddsBlindly(const ptx::Function& function, const Instruction& in) {
  constexpr std::array kFloats = {ptx::Type::kF16,    ptx::Type::kF16x2, ptx::Type::kBF16,
                                  ptx::Type::kBF16x2, ptx::Type::kF32,   ptx::Type::kF64};
  constexpr std::array kOrders = {Mod::kAcquire, Mod::kRelease, Mod::kAcqRel};
  if (in.opcode != ptx::Opcode::kRed && in.opcode != ptx::Opcode::kAtom) return false;
  if (!in.Has(Mod::kAdd) || std::ranges::find(kFloats, in.type()) == kFloats.end() ||
      std::ranges::any_of(kOrders, [&](Mod order) { return in.Has(order); }))
    return false;
  if (in.opcode == ptx::Opcode::kRed || in.operands[0].kind == ptx::Operand::Kind::kSink)
    return true;
  if (in.operands[0].kind != ptx::Operand::Kind::kRegister) return false;
  const ptx::RegisterIndex old = in.operands[0].reg;
  const auto times = std::ranges::count_if(function.body, [&](const Instruction& other) {
    return std::ranges::any_of(other.operands,
                               [&](const ptx::Operand& each) { return Mentions(each, old); });
  });
  return times == 1;
}

bool IsBlockBarrier(const Instruction& in) {
  return ptx::FormOf(in).rules.effect == ptx::Effect::kBlock;
}

/// What threads have to do with each other in one instruction.
Unit UnitOf(const Instruction& in) {
  using ptx::Effect;
  constexpr std::array kOfOneThread = {Effect::kNone, Effect::kBranch, Effect::kTable,
                                       Effect::kCall, Effect::kReturn, Effect::kExit,
                                       Effect::kTrap, Effect::kCarry,  Effect::kStack};
  if (IsShared(in.space) || IsShared(in.space2) || LetsBlocksMeet(in)) return Unit::kBlock;
  const Effect effect = ptx::FormOf(in).rules.effect;
  if (std::ranges::find(kOfOneThread, effect) != kOfOneThread.end()) return Unit::kThread;
  return effect == Effect::kWarp ? Unit::kWarp : Unit::kBlock;
}

/// Shared memory may be reached through generic addresses as well: whoever has any may hand something on in it.
bool HasShared(std::span<const ptx::Variable> variables) {
  return std::ranges::any_of(
      variables, [](const ptx::Variable& variable) { return IsShared(variable.space); });
}

/// Of one function alone.
struct Own {
  const Instruction* meets =
      nullptr;            ///< The first that lets blocks see each other, across clusters.
  bool only_adds = true;  ///< All that do add blindly.
  bool barriers = false;
  Unit unit = Unit::kThread;
  Polling polling;
};

bool IsCluster(const ptx::LaunchBounds& bounds) {
  return bounds.explicit_cluster || bounds.max_cluster_rank > 1 ||
         std::ranges::any_of(bounds.cluster, [](std::uint32_t blocks) { return blocks > 1; });
}

}  // namespace

void FindFlow(const ptx::Module& module, const Origins& origins, Facts& facts) {
  const CallGraph graph = CallsOf(module);
  Waits waits(module, origins);
  std::vector<Own> own(module.functions.size());
  for (std::size_t f = 0; f < own.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    for (const Instruction& in : function.body) {
      if (LetsBlocksMeet(in)) {
        if (own[f].meets == nullptr) own[f].meets = &in;
        own[f].only_adds = own[f].only_adds && AddsBlindly(function, in);
      }
      own[f].barriers = own[f].barriers || IsBlockBarrier(in);
      own[f].unit = std::max(own[f].unit, UnitOf(in));
    }
    if (HasShared(module.variables) || HasShared(function.variables)) own[f].unit = Unit::kBlock;
    own[f].polling = waits.Of(static_cast<std::uint32_t>(f));
  }
  const auto answer = [](bool yes, bool unknown) {
    return yes ? Answer::kYes : unknown ? Answer::kUnknown : Answer::kNo;
  };
  for (std::uint32_t f = 0; f < own.size(); ++f) {
    Function& out = facts.functions[f];
    for (const std::uint32_t callee : graph.callees[f])
      out.calls.push_back(module.functions[callee].name);
    bool unknown = !out.is_defined;
    bool recursive = false;
    bool barriers = false;
    Unit unit = Unit::kThread;
    bool polls = false;
    bool polls_unknown = false;
    const Instruction* meets = nullptr;
    bool only_adds = true;
    for (const std::uint32_t reached : graph.Reached(f)) {
      unknown = unknown || graph.unknown[reached];
      recursive = recursive || graph.recursive[reached];
      barriers = barriers || own[reached].barriers;
      unit = std::max(unit, own[reached].unit);
      polls = polls || !own[reached].polling.reads.empty();
      polls_unknown =
          polls_unknown || own[reached].polling.unknown || !own[reached].polling.perhaps.empty();
      if (meets == nullptr) meets = own[reached].meets;
      only_adds = only_adds && own[reached].only_adds;
    }
    const bool cluster = IsCluster(module.functions[f].bounds);
    out.calls_unknown = answer(unknown, false);
    out.recursive = answer(recursive, unknown);
    out.barriers = answer(barriers, unknown);
    out.unit = unknown || cluster ? Unit::kBlock : unit;
    out.polls = answer(polls, unknown || polls_unknown);
    const bool adds = meets != nullptr && only_adds && !cluster && !unknown;
    out.only_adds = adds ? Answer::kYes : Answer::kNo;
    out.blocks_depend = answer(meets != nullptr, unknown);
    if (meets != nullptr) {
      out.blocks_depend_on =
          fmt::format("{} at PTX line {}", ptx::Mnemonic(meets->opcode), meets->ptx_line);
    } else if (unknown) {
      out.blocks_depend_on = "code that is not in the module";
    }
  }
}

}  // namespace assay::facts
