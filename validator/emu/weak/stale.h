// Loads that return what stood in memory before, stores that come before one already made, loads that
// wait for the store behind them: weak memory, as far as the PTX model allows it.
//
// The emulator carries out one instruction after the other, so that a load would always return the
// newest write. The PTX memory model lets it return an earlier one, or what the buffer held at
// first, as long as nothing newer at that location is ordered before the load, and the thread itself
// has neither read nor written anything newer there. StaleReads keeps, for locations that strong
// writes and atomics go to, what stood there before each of the last few of them, and lets strong
// loads that are not ordered after such a write take it: always the oldest that is allowed, or by
// chance (Schedule::stale). What a load learns by acquiring is then what that earlier write had
// published.
//
// A strong store may come before newer ones of other threads in the same way, its place among the
// writes of its location being open: behind all that its thread must have seen, before a store (not
// before an atomic, which read what it replaced). Memory keeps what it has, and loads that still may
// miss the newer write find the store. So that two threads' stores to two places end crosswise (S,
// 2+2W). And a strong load may wait until after a strong store behind it, where no fence, access or
// use of its result stands between the two and the places differ: it then may read what came of
// that store (LB).
//
// Whether a write is ordered before an access is the race detector's to say. Its order is joined by
// the order in which this run's sequentially consistent fences ran (RaceDetector::FollowFenceOrder):
// every execution made in this way is one that the model allows. Not every execution that it allows
// is made (docs/litmus.md lists the litmus tests by what they show). Plain loads always return the
// newest write: one that is not ordered after all writes is a data race, which is reported anyway.
//
// Programs that poll see the newest value after kMostInARow old ones, so that they end.
//
// None of this is wrong by itself. What happened is noted: where a run ends otherwise than one
// without, the notes say why.
//
// Cost: nothing where no strong access is. Else a hash look-up for each strong access of a lane and
// a bounded history for each word. Not thread-safe.
//
//   if (auto old = stale.Read(warp, pc, lane, region, offset, 4)) ...   // old->bytes, old->defined
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "validator/emu/core.h"

namespace assay::emu {

struct LaneAccess;

class StaleReads : public WriteWatch {
 public:
  static constexpr std::uint32_t kMostBytes = 16;  ///< Of one element.
  static constexpr std::uint8_t kMostInARow = 3;

  /// What a load returns in place of the newest value.
  struct Old {
    std::array<std::byte, kMostBytes> bytes{};
    std::uint32_t defined = 0;  ///< By byte.
    Published from;
  };

  /// `percent`: of the loads that may return an old value, how many do; 100: all, the oldest.
  StaleReads(Device& device, RaceDetector& race, std::uint32_t percent);

  void BeginLaunch();
  void EndBlock(RegionId shared_region);

  /// Before a write or atomic of `bytes` a lane takes effect, and before the race detector hears of
  /// it. `pointers`: where the bytes are, by lane.
  void OnWrite(const WarpAccess& write, const std::uintptr_t* pointers, const MemoryRegion& region);
  void OnAsyncWrite(RegionId region, std::uint64_t offset, std::uint32_t bytes) override;

  /// Before the race detector hears of a strong load by `lane` of one element at `pointer`: the old
  /// value that it returns, or nothing for the newest.
  std::optional<Old> Read(const CoreWarp& warp, std::uint32_t pc, int lane,
                          const MemoryRegion& region, std::uintptr_t pointer, std::uint32_t bytes);

  /// A place for a store before one that has been made.
  struct Earlier {
    RegionId region = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint64_t before = 0;  ///< That write, by number, and the store's own number.
    std::uint64_t number = 0;
    WarpNumber warp = 0;
    int lane = 0;
    std::uint32_t pc = 0;
    std::uint32_t time = 0;
  };
  /// Before the race detector hears of a strong store by `lane` of one element at `pointer`, the only
  /// one of its instruction: a place before a newer write, if the store is to have one.
  std::optional<Earlier> PlaceEarlier(const CoreWarp& warp, std::uint32_t pc, int lane,
                                      const MemoryRegion& region, std::uintptr_t pointer,
                                      std::uint32_t bytes);
  /// The store takes that place; `published` is what it has published (WarpAccess::aside).
  void StoreEarlier(const Earlier& place, const std::byte* value, Published published);

  /// Before a strong load takes effect: true when it waits for a store behind it. It is made at
  /// FinishLoads, at the latest when the warp has its next turn.
  bool Postpone(const CoreWarp& warp, const Decoded& op, const LaneAccess& access);
  /// Before a strong store takes effect: a load that waits is made if it looks at the same place.
  /// True: one goes on waiting, and the others have a turn behind the store.
  bool LetLoadWait(CoreWarp& warp, const Decoded& op, const LaneAccess& access);
  void FinishLoads(CoreWarp& warp);

  /// After a fence or a strong access: whether the others have a turn now. Which block fences first,
  /// or fences and then signals, is decided between two instructions.
  bool TakesTurns();

  /// Accesses so far that might have returned an old value, or come earlier, and that did.
  std::uint64_t chances() const { return chances_; }
  std::uint64_t taken() const { return taken_; }
  /// One finding (kStaleRead) for each pair of accesses, likeliest culprit first: those whose
  /// threads did not look again, the latest of them first.
  std::vector<Finding> Notes() const;

 private:
  static constexpr std::uint32_t kCell = 4;  ///< Bytes.
  static constexpr std::size_t kWritesKept = 8;
  static constexpr std::size_t kReadersKept = 64;
  static constexpr std::size_t kCellsKept = 1 << 18;
  static constexpr std::size_t kNotesKept = 32;
  /// Numbers of two instructions lie so far apart: there is room for stores that come earlier.
  static constexpr std::uint64_t kStep = 1 << 20;
  static constexpr std::uint32_t kPostponed = 30;  ///< In a hundred, of loads that can wait.

  /// What one instruction of a warp wrote to a cell, and what stood there before. Its lanes are
  /// missed together: what stood between two of them is not known.
  struct Write {
    std::uint64_t number = 0;  ///< Of the instruction, through the whole run.
    WarpNumber warp = 0;
    LaneMask lanes = 0;
    std::uint32_t time = 0;
    std::uint32_t pc = 0;
    bool atomic = false;
    std::uint8_t mask = 0;     ///< Bytes of the cell that it wrote.
    std::uint8_t defined = 0;  ///< Bytes that were defined before.
    std::array<std::byte, kCell> before{};
    Published published;  ///< Before.
  };
  /// The latest a thread is known to have seen: the state after write `number`.
  struct Reader {
    WarpNumber warp = 0;
    std::uint32_t time = 0;
    std::uint64_t number = 0;
    std::uint8_t lane = 0;
    std::uint8_t in_a_row = 0;  ///< Old values since it last saw the newest.
    std::int32_t note = -1;     ///< Of the last one.
  };
  struct Cell {
    std::vector<Write> writes;  ///< By number.
    std::vector<Reader> readers;
    std::uint64_t floor = 0;  ///< Nobody may see less than the state after this write.
  };
  struct Note {
    std::uint32_t pc = 0;
    std::uint32_t missed_pc = 0;
    Finding finding;
    std::uint64_t taken = 0;
    std::uint64_t seen_later = 0;  ///< Threads that then read something newer there.
    std::uint64_t last = 0;
  };

  using Cells = std::unordered_map<std::uint64_t, Cell>;  ///< By cell number in the region.

  void Forget(RegionId region, std::uint64_t offset, std::uint64_t bytes);
  static Reader* FindReader(Cell& cell, WarpNumber warp, int lane);
  /// `old`: it has missed something, as `note` says where there is one.
  void See(Cell& cell, WarpNumber warp, int lane, std::uint64_t number, bool old,
           std::int32_t note);
  bool Knows(const Write& write, WarpNumber warp, int lane);
  std::uint64_t FloorOf(const Cell& cell, WarpNumber warp, int lane, std::uint32_t mask);
  /// The cells of an access, and what of them its lane must have seen.
  struct View {
    std::array<Cell*, kMostBytes / kCell + 1> cells{};
    std::uint64_t offset = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t floor = 0;
    bool any = false;
  };
  View ViewOf(const CoreWarp& warp, int lane, const MemoryRegion& region, std::uintptr_t pointer,
              std::uint32_t bytes);
  /// Of an access that missed `missed`, or came before it. `old`: what a load returned.
  std::int32_t NoteTaken(const CoreWarp& warp, std::uint32_t pc, int lane, const Write& missed,
                         const MemoryRegion& region, std::uint64_t offset, std::uint32_t bytes,
                         const Old* old);
  std::string Missing(const CoreWarp& warp, std::uint32_t pc, int lane, const Write& missed,
                      bool is_load);

  /// A load that waits for the store behind it.
  struct Waiting {
    const Decoded* op = nullptr;
    Frame* frame = nullptr;
    LaneMask lanes = 0;
    std::array<std::uintptr_t, kWarpSize> pointer{};
    std::uint32_t bytes = 0;
  };

  Device& engine_;
  RaceDetector& race_;
  std::uint32_t percent_;
  Rng rng_;
  std::unordered_map<RegionId, Cells> regions_;
  std::size_t cells_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t chances_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Note> notes_;
  std::unordered_map<WarpNumber, Waiting> waiting_;
  bool finishing_ = false;
};

}  // namespace assay::emu
