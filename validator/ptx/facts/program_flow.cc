// What functions do together: calls, barriers, waiting, and whether blocks depend on each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/facts/flow.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

namespace {

/// How an opcode lets blocks see each other.
enum class Reach : std::uint8_t {
  kAlways,         ///< Wherever it stands.
  kOutsideShared,  ///< Unless it is about the block's own shared memory.
  kStrong,         ///< As that, where it is volatile, relaxed, acquiring or releasing.
};
struct ReachRow {
  Opcode opcode;
  Reach reach;
};
constexpr std::array kReach = {
    ReachRow{Opcode::kAtom, Reach::kOutsideShared},
    ReachRow{Opcode::kRed, Reach::kOutsideShared},
    ReachRow{Opcode::kCpReduceAsyncBulk, Reach::kAlways},
    ReachRow{Opcode::kCpReduceAsyncBulkTensor, Reach::kAlways},
    ReachRow{Opcode::kRedAsync, Reach::kAlways},
    ReachRow{Opcode::kStAsync, Reach::kAlways},
    ReachRow{Opcode::kLd, Reach::kStrong},
    ReachRow{Opcode::kMultimem, Reach::kAlways},
    ReachRow{Opcode::kBarrierCluster, Reach::kAlways},
    ReachRow{Opcode::kMapa, Reach::kAlways},
    ReachRow{Opcode::kFence, Reach::kAlways},
    ReachRow{Opcode::kMembar, Reach::kAlways},
    ReachRow{Opcode::kGriddepcontrol, Reach::kAlways},
};

bool IsOwnShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }

bool LetsBlocksMeet(const Instruction& in) {
  if (in.space == Space::kSharedCluster && in.opcode != Opcode::kCpAsyncBulk &&
      in.opcode != Opcode::kCpAsyncBulkTensor)
    return true;
  const auto row = std::ranges::find(kReach, in.opcode, &ReachRow::opcode);
  if (row == kReach.end()) return false;
  switch (row->reach) {
    case Reach::kAlways:
      return true;
    case Reach::kOutsideShared:
      return !IsOwnShared(in.space);
    case Reach::kStrong:
      return !IsOwnShared(in.space) &&
             (in.Has(Mod::kVolatile) || in.Has(Mod::kRelaxed) || in.Has(Mod::kAcquire));
  }
  return true;
}

bool IsBlockBarrier(Opcode opcode) { return opcode == Opcode::kBar || opcode == Opcode::kBarrier; }

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
      own[f].barriers = own[f].barriers || IsBlockBarrier(in.opcode);
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
