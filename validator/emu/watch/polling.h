// Warps that wait by looking at memory: put aside until something that they look at changes.
//
// Model: a warp that comes back to the registers it had, having changed nothing, will go round the
// same way for as long as the words that it read hold what they held. Not to run it until one of
// them changes is a schedule like any other, and shows whatever looking again would have shown:
// nothing but loads and atomics that leave memory as it is are left out. A warp that has polled in
// vain is followed, instruction by instruction, until it is back where it was; what it read on the
// way is what it waits for. Under schedules with old values (weak/stale.h) a load that returned one
// counts as a change of memory, so that whoever waits has seen the newest of everything, and what a
// thread has seen never becomes older.
//
// Lanes of a warp that poll while others of it could go on (`if (threadIdx.x == 0) while (...);`, and the
// others stand behind it) are followed in the same way, and then let the others go first: lanes make
// progress by themselves, so that it is an order like any other.
//
// Not put aside: loops that count their rounds, read a clock, store, call, or look at another
// block's shared memory; and warps of which several groups of lanes can run.
//
// Cost: a test for each turn of a warp; loops are followed at a few times the cost of running them,
// seldom where that comes to nothing. A waiting warp costs a comparison of what it looks at.
// Deterministic. Not thread-safe.
//
//   if (polling.Waits(warp, poller)) ... else if (polling.Suspects(warp, poller)) polling.Follow(...)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

/// What is known of one warp.
struct Poller {
  struct Word {
    const std::byte* at = nullptr;
    std::uint32_t bytes = 0;
    std::array<std::byte, 16> seen{};
  };
  std::vector<Word> words;      ///< What it waits for; empty: it does not.
  std::uint64_t next_look = 0;  ///< CoreWarp::executed from which on it is worth following again.
  std::uint32_t in_vain = 0;    ///< Times that it was followed for nothing.

  /// Is it put aside, and is all that it looked at as it was?
  bool Waits() const;
};

class Polling {
 public:
  explicit Polling(Device& device);

  /// Is it put aside, with nothing to go on for? Otherwise it no longer is.
  static bool Waits(const CoreWarp& warp, Poller& poller);
  /// After a turn that changed nothing: did it poll?
  bool Suspects(const CoreWarp& warp, const Poller& poller);
  /// Follows it for a few rounds; adds the instructions to `ran`. True: it is put aside. Where it
  /// polls and other lanes of it could go on, those are next.
  bool Follow(CoreWarp& warp, Poller& poller, std::uint64_t& ran);
  /// The same for a warp that waited until now: most that wait for their turn find that it is not
  /// theirs.
  bool LooksAgain(CoreWarp& warp, Poller& poller, std::uint64_t& ran);

 private:
  /// What an instruction in a loop means for whoever may wait there.
  enum class Look : std::uint8_t {
    kUnasked,
    kNothing,  ///< Computes.
    kReads,    ///< Reads memory,
    kPolls,    ///< such as others write to in order to be seen.
    kOther,    ///< Does something else than wait.
  };
  struct Saved {
    bool predicate = false;
    Slot slot = kNoSlot;
    std::array<std::byte, kSlotBytes> before{};
  };

  Look LookAt(std::uint32_t pc);
  bool Round(CoreWarp& warp, std::uint64_t& ran);
  bool GoRound(CoreWarp& warp, std::uint64_t& ran);
  void Save(const CoreWarp& warp, bool predicate, Slot slot);
  bool SameAsSaved(const CoreWarp& warp) const;
  bool NoteWords(CoreWarp& warp, const Decoded& op);

  Device& engine_;
  std::vector<Look> looks_;   ///< By pc.
  std::vector<Saved> saved_;  ///< Registers that the round has written, as they were before it.
  std::vector<Poller::Word> words_;  ///< What it has read.
};

}  // namespace assay::emu
