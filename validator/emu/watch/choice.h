// Branches that the machine decides (machine.h): what hangs on them.
//
// A branch splits its lanes until its sides meet again, at its immediate post-dominator. When
// something that lasts lies between (a store, an atomic, a barrier, the end of the thread), the
// machine decides whether it happens: a finding. When nothing does, the sides differ in registers
// only: every register that is written between becomes the machine's choice in those lanes,
// whichever side they take, and stays so when the sides meet. So a back-off that reads a clock, or a
// wait that polls so many times, costs nobody anything.
//
// Cost: nothing before the first such branch; then one pass over the function, kept.
#pragma once

#include <map>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

/// What lies between a branch and where its sides meet.
struct ChoiceRegion {
  std::uint32_t join = kNoPc;          ///< kNoPc: they never do.
  std::uint32_t effect = kNoPc;        ///< The first instruction that lasts, or kNoPc.
  std::vector<std::uint32_t> written;  ///< Shadow indices.
};

/// The regions of a program's branches, by pc.
class ChoiceRegions {
 public:
  explicit ChoiceRegions(const Program::Impl& program) : program_(program) {}
  const ChoiceRegion& At(std::uint32_t branch);

 private:
  const std::vector<std::uint32_t>& MeetingPoints(std::uint32_t function);

  const Program::Impl& program_;
  std::map<std::uint32_t, ChoiceRegion> regions_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> meeting_;  // By function: immediate
                                                                 // post-dominators, from first_pc.
};

/// The machine decides whether the lanes `chosen` pass the guard of `op`. True: `op` is to run as
/// usual; false: it has run, under the guard, and its results are marked.
bool DecideByChoice(CoreWarp& warp, const Decoded& op, LaneMask chosen);
/// The machine decides where the lanes `chosen` go on.
void BranchByChoice(CoreWarp& warp, const Decoded& op, LaneMask chosen, std::uint32_t origin);

/// While lanes follow chosen paths: those that stand at their meeting point leave them. False: no
/// path is left.
bool FollowPaths(CoreWarp& warp, std::uint32_t pc);
/// What an instruction on a chosen path has written is the machine's choice.
void MarkPathResults(CoreWarp& warp, const Decoded& op);

}  // namespace assay::emu
