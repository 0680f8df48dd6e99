// Finds livelocks: threads that spin on memory which nobody is left to change.
//
// Model: between two changes of memory a warp is a deterministic automaton, since it reads only
// what stays the same. A warp that comes back to a state (registers, predicates, local memory,
// program counters) that it was in since the last change will go round for ever; when every warp
// that can run does, and no block waits to be started, nothing will ever change again, under any
// schedule. What the machine chose (clocks, and what comes of them) is no part of a state: waiting
// with patience is still waiting. Loops that count their rounds never repeat a state: those end at
// the step limit (endless.h).
//
// Cost: nothing while memory changes; after a few quiet rounds hashes of registers and local memory,
// as many as the logarithm of the rounds, and none before a warp has run for as long as one takes.
// States are compared with one remembered state, which is renewed at every power of two
// (Brent), so that memory is constant and a cycle is found within a few times its length.
//
//   SpinWatch watch(device);
//   while (...) { <one turn for every block>; if (watch.AllSpin()) ...; }
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/watch/polling.h"

namespace assay::emu {

class SpinWatch {
 public:
  explicit SpinWatch(Device& device) : engine_(device) {}

  /// To be called after each round of turns. True when every warp that can run repeats itself: those
  /// that were put aside do (`pollers`, by resident block and warp).
  bool AllSpin(const std::vector<std::vector<Poller>>& pollers);
  /// Forgets what was seen: something else than memory changed (a block began).
  void Reset();

 private:
  struct Seen {
    std::uint64_t state = 0;
    std::uint64_t executed = 0;  ///< CoreWarp::executed when `state` was taken.
    std::uint64_t samples = 0;
    std::uint64_t cost = 0;  ///< Of a look at the state, in instructions; 0: not asked yet.
    std::uint64_t paid = 0;  ///< CoreWarp::executed at the last look.
    bool repeats = false;
  };
  void Sample(const CoreWarp& warp, int ready, Seen& seen) const;

  Device& engine_;
  std::uint64_t progress_ = 0;
  std::uint32_t quiet_rounds_ = 0;
  std::unordered_map<const CoreWarp*, Seen> seen_;
};

/// Adds the livelock finding: who spins on what, and who waits for them. `ended` of `blocks` have
/// ended.
void ReportSpin(Device& device, std::uint32_t ended);

}  // namespace assay::emu
