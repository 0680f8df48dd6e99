// What functions do together: calls, barriers, waiting, and whether blocks depend on each other.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/facts/flow.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Mod;
using ptx::Space;

namespace {

bool IsOwnShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }

bool LetsBlocksMeet(const Instruction& in) {
  const ptx::Form& form = ptx::FormOf(in);
  if (form.rules.effect == ptx::Effect::kPeers || form.rules.effect == ptx::Effect::kFence)
    return true;
  const bool copy = ptx::FamilyOf(in.opcode) == ptx::Family::kAsyncCopy;
  if (in.space == Space::kSharedCluster && !copy) return true;
  if (IsOwnShared(in.space)) return false;
  const bool strong = form.rules.shadow == ptx::Shadow::kLoad &&
                      (in.Has(Mod::kVolatile) || in.Has(Mod::kRelaxed) || in.Has(Mod::kAcquire));
  return strong || ptx::UpdatesMemory(form);
}

bool IsBlockBarrier(const Instruction& in) {
  return ptx::FormOf(in).rules.effect == ptx::Effect::kBlock;
}

/// Of one function alone.
struct Own {
  const Instruction* meets = nullptr;  ///< The first that lets blocks see each other.
  bool barriers = false;
  Polling polling;
};

bool IsCluster(const ptx::LaunchBounds& bounds) {
  return bounds.explicit_cluster || bounds.max_cluster_rank > 1 ||
         std::ranges::any_of(bounds.cluster, [](std::uint32_t blocks) { return blocks > 1; });
}

}  // namespace

void FindFlow(const ptx::Module& module, Facts& facts) {
  const CallGraph graph = CallsOf(module);
  std::vector<Own> own(module.functions.size());
  for (std::size_t f = 0; f < own.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    for (const Instruction& in : function.body) {
      if (own[f].meets == nullptr && LetsBlocksMeet(in)) own[f].meets = &in;
      own[f].barriers = own[f].barriers || IsBlockBarrier(in);
    }
    own[f].polling = PollingOf(function);
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
    bool polls = false;
    bool polls_unknown = false;
    const Instruction* meets = nullptr;
    for (const std::uint32_t reached : graph.Reached(f)) {
      unknown = unknown || graph.unknown[reached];
      recursive = recursive || graph.recursive[reached];
      barriers = barriers || own[reached].barriers;
      polls = polls || !own[reached].polling.reads.empty();
      polls_unknown = polls_unknown || own[reached].polling.unknown;
      if (meets == nullptr) meets = own[reached].meets;
    }
    const bool cluster = IsCluster(module.functions[f].bounds);
    out.calls_unknown = answer(unknown, false);
    out.recursive = answer(recursive, unknown);
    out.barriers = answer(barriers, unknown);
    out.polls = answer(polls, unknown || polls_unknown);
    out.blocks_depend = answer(meets != nullptr || cluster, unknown);
    if (meets != nullptr) {
      out.blocks_depend_on =
          fmt::format("{} at PTX line {}", ptx::Mnemonic(meets->opcode), meets->ptx_line);
    } else if (cluster) {
      out.blocks_depend_on = "blocks form clusters";
    } else if (unknown) {
      out.blocks_depend_on = "code that is not in the module";
    }
  }
}

}  // namespace assay::facts
