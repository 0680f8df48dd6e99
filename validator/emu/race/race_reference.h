// A race detector that is slow and obviously right, to check the real one against.
//
// Every access of every lane is a node; each node has the full set of nodes that happen before it,
// built from the definitions of the PTX memory model one by one. Nothing is forgotten and nothing
// is packed: quadratic in time and memory, for traces of some hundred events. Takes the same calls
// as RaceDetector, for one trace of one launch.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "validator/emu/race/race.h"
#include "validator/emu/race/rules.h"

namespace assay::emu {

class ReferenceDetector {
 public:
  struct Found {
    std::uint32_t first_pc = 0;
    std::uint32_t second_pc = 0;
    Race::Class race_class = Race::Class::kRace;
    auto operator<=>(const Found&) const = default;
  };

  explicit ReferenceDetector(const RaceDetector::Shape& shape) : shape_(shape) {}

  /// All races, and for each byte of memory those on it.
  std::set<Found> found;
  std::map<std::uint64_t, std::set<Found>> by_byte;
  /// Bytes with a race that no reading of the model can excuse. On the others, a detector may stay
  /// silent: by the letter, a write that was overwritten by its own thread before the overwriting
  /// one was observed still races with what follows the observer.
  std::set<std::uint64_t> must_find;

  void Access(const WarpAccess& access) { Perform(access, nullptr); }

  void Fence(WarpNumber warp, LaneMask lanes, Order order, Scope scope) {
    ForLanes(warp, lanes, [&](Thread thread) {
      Known& me = threads_[thread];
      if (Acquires(order)) {
        for (const SeenRelease& seen : me.seen) AcquireFrom(thread, seen.message, Level(scope));
      }
      if (Releases(order)) me.fences.push_back(Message{me.known, thread, Level(scope)});
    });
  }

  void BarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp, LaneMask lanes,
                     bool waits) {
    Meeting& meeting = meetings_[{block, barrier}];
    ForLanes(warp, lanes, [&](Thread thread) {
      Merge(meeting.together, threads_[thread].known);
      if (waits) meeting.waiting.push_back(thread);
    });
  }
  void BarrierComplete(BlockNumber block, std::uint32_t barrier) {
    Meeting& meeting = meetings_[{block, barrier}];
    for (const Thread thread : meeting.waiting) Merge(threads_[thread].known, meeting.together);
    meeting = {};
  }
  void WarpBarrier(WarpNumber warp, LaneMask lanes) {
    Nodes together;
    ForLanes(warp, lanes, [&](Thread thread) { Merge(together, threads_[thread].known); });
    ForLanes(warp, lanes, [&](Thread thread) { Merge(threads_[thread].known, together); });
  }

  void AsyncIssue(const WarpAccess& read, const WarpAccess& write, std::uint64_t token) {
    std::vector<std::pair<Thread, std::size_t>> made;
    Perform(read, &made);
    Perform(write, &made);
    for (const auto& [thread, node] : made) copies_[thread].emplace_back(token, node);
  }
  void AsyncWait(WarpNumber warp, LaneMask lanes, std::uint64_t up_to) {
    ForLanes(warp, lanes, [&](Thread thread) {
      for (const auto& [token, node] : copies_[thread]) {
        if (token <= up_to) Add(threads_[thread].known, node);
      }
    });
  }

  void MbarrierArrive(std::uint64_t object, WarpNumber warp, LaneMask lanes, Scope scope,
                      bool relaxed) {
    ForLanes(warp, lanes, [&](Thread thread) {
      Known& me = threads_[thread];
      auto& out = mbarriers_[object].collecting;
      if (!relaxed) out.push_back(Message{me.known, thread, Level(scope)});
      out.insert(out.end(), me.fences.begin(), me.fences.end());
    });
  }
  void MbarrierPublishCopies(std::uint64_t object, WarpNumber warp, LaneMask lanes,
                             std::uint64_t up_to) {
    ForLanes(warp, lanes, [&](Thread thread) {
      Message message{{}, thread, 1};
      for (const auto& [token, node] : copies_[thread]) {
        if (token <= up_to) Add(message.known, node);
      }
      mbarriers_[object].collecting.push_back(message);
    });
  }
  void MbarrierComplete(std::uint64_t object) {
    Phases& phases = mbarriers_[object];
    phases.complete = std::move(phases.collecting);
    phases.collecting.clear();
  }
  void MbarrierWait(std::uint64_t object, WarpNumber warp, LaneMask lanes, Scope scope,
                    bool relaxed) {
    ForLanes(warp, lanes, [&](Thread thread) {
      for (const Message& message : mbarriers_[object].complete) {
        if (relaxed) {
          threads_[thread].seen.push_back(SeenRelease{message, ~0ull});
        } else {
          AcquireFrom(thread, message, Level(scope));
        }
      }
    });
  }

  void ClusterArrive(WarpNumber warp, LaneMask lanes, bool relaxed) {
    MbarrierArrive(~std::uint64_t{ClusterOf(BlockOf(warp * kWarpSize))}, warp, lanes,
                   Scope::kCluster, relaxed);
  }
  void ClusterComplete(std::uint32_t cluster) { MbarrierComplete(~std::uint64_t{cluster}); }
  void ClusterWait(WarpNumber warp, LaneMask lanes) {
    MbarrierWait(~std::uint64_t{ClusterOf(BlockOf(warp * kWarpSize))}, warp, lanes, Scope::kCluster,
                 false);
  }

 private:
  using Thread = std::uint32_t;
  using Nodes = std::vector<std::uint64_t>;  // A bit a node.
  struct Node {
    Thread thread = 0;
    bool async = false;
    std::size_t event = 0;  // Lanes of one instruction share it.
    WarpAccess access;
    std::uint64_t offset = 0;
    Nodes before;
    std::map<std::uint64_t, Nodes> observed;  // By byte: the writes that made the value read.
  };
  struct Message {
    Nodes known;
    Thread thread = 0;
    int level = 0;
  };
  struct SeenRelease {
    Message message;
    std::uint64_t offset = 0;
  };
  struct Known {
    Nodes known;
    std::vector<Message> fences;
    std::vector<SeenRelease> seen;
    std::map<std::uint64_t, std::vector<Message>> released;
  };
  struct Meeting {
    Nodes together;
    std::vector<Thread> waiting;
  };
  struct Phases {
    std::vector<Message> collecting;
    std::vector<Message> complete;
  };

  static bool Acquires(Order order) { return order == Order::kAcquire || order == Order::kAcqRel; }
  static bool Releases(Order order) { return order == Order::kRelease || order == Order::kAcqRel; }
  static int Level(Scope scope) {
    return scope == Scope::kCta ? 0 : scope == Scope::kCluster ? 1 : 2;
  }
  static int LevelOf(const WarpAccess& a) {
    return a.order == Order::kVolatile ? 2 : Level(a.scope);
  }
  static bool Strong(const WarpAccess& a) { return a.atomic || a.order != Order::kWeak; }
  static bool Has(const Nodes& nodes, std::size_t i) {
    return i / 64 < nodes.size() && (nodes[i / 64] >> (i % 64) & 1u) != 0;
  }
  static void Add(Nodes& nodes, std::size_t i) {
    if (nodes.size() <= i / 64) nodes.resize(i / 64 + 1);
    nodes[i / 64] |= 1ull << (i % 64);
  }
  static void Merge(Nodes& into, const Nodes& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) into[i] |= from[i];
  }
  BlockNumber BlockOf(Thread thread) const { return thread / kWarpSize / shape_.warps_per_block; }
  std::uint32_t ClusterOf(BlockNumber block) const { return block / shape_.blocks_per_cluster; }
  /// The scope that two threads need to include each other.
  int LevelBetween(Thread a, Thread b) const {
    if (BlockOf(a) == BlockOf(b)) return 0;
    return ClusterOf(BlockOf(a)) == ClusterOf(BlockOf(b)) ? 1 : 2;
  }
  template <class F>
  static void ForLanes(WarpNumber warp, LaneMask lanes, F&& f) {
    for (; lanes != 0; lanes &= lanes - 1)
      f(warp * kWarpSize + static_cast<Thread>(std::countr_zero(lanes)));
  }
  void AcquireFrom(Thread thread, const Message& message, int level) {
    const int needed = LevelBetween(thread, message.thread);
    if (message.level >= needed && level >= needed) Merge(threads_[thread].known, message.known);
  }

  /// How two accesses that nothing orders conflict; nothing when they may meet.
  std::optional<Race::Class> Conflict(const Node& a, const Node& b) const {
    if (a.access.kind == AccessKind::kRead && b.access.kind == AccessKind::kRead)
      return std::nullopt;
    if (a.access.read_only_path || b.access.read_only_path) return Race::Class::kReadOnlyCache;
    if (!Strong(a.access) || !Strong(b.access)) return Race::Class::kRace;
    const int needed = LevelBetween(a.thread, b.thread);
    if (LevelOf(a.access) < needed || LevelOf(b.access) < needed)
      return Race::Class::kScopeTooNarrow;
    const auto around = [](const WarpAccess& word, const WarpAccess& part) {
      return IsWordAround(word.kind, word.atomic, word.bytes, part.bytes);
    };
    if (a.access.bytes != b.access.bytes && !around(a.access, b.access) &&
        !around(b.access, a.access)) {
      return Race::Class::kMixedSize;
    }
    return std::nullopt;
  }

  enum class Ordering : std::uint8_t { kNone, kByCoherence, kByCausality };

  /// By causality: base causality, or observation and then base causality. An observer that itself
  /// races with what it observed shows nothing. By coherence: not the access itself was observed,
  /// but a later write to the same byte that comes after it.
  Ordering OrderOf(const Node& earlier, std::size_t earlier_index, const Node& later,
                   std::uint64_t byte) const {
    if (Has(later.before, earlier_index)) return Ordering::kByCausality;
    Ordering best = Ordering::kNone;
    for (std::size_t z = 0; z < nodes_.size(); ++z) {
      if (!Has(later.before, z)) continue;
      const auto at = nodes_[z].observed.find(byte);
      if (at == nodes_[z].observed.end()) continue;
      if (Has(at->second, earlier_index) && nodes_[z].event != earlier.event &&
          !Conflict(earlier, nodes_[z])) {
        return Ordering::kByCausality;
      }
      for (std::size_t w = 0; w < nodes_.size(); ++w) {
        if (Has(at->second, w) && Has(nodes_[w].before, earlier_index))
          best = Ordering::kByCoherence;
      }
    }
    return best;
  }

  void Check(std::size_t index) {
    const Node& later = nodes_[index];
    for (std::size_t i = 0; i < index; ++i) {
      const Node& earlier = nodes_[i];
      if (earlier.access.region != later.access.region) continue;
      const auto race_class = Conflict(earlier, later);
      if (!race_class) continue;
      const std::uint64_t from = std::max(earlier.offset, later.offset);
      const std::uint64_t to =
          std::min(earlier.offset + earlier.access.bytes, later.offset + later.access.bytes);
      for (std::uint64_t byte = from; byte < to; ++byte) {
        const Ordering ordering = *race_class == Race::Class::kReadOnlyCache
                                      ? Ordering::kNone
                                      : OrderOf(earlier, i, later, byte);
        if (ordering == Ordering::kByCausality) continue;
        const auto [low, high] = std::minmax(earlier.access.pc, later.access.pc);
        const Found race{low, high, *race_class};
        const std::uint64_t place = std::uint64_t{later.access.region} << 40 | byte;
        found.insert(race);
        by_byte[place].insert(race);
        if (ordering == Ordering::kNone) must_find.insert(place);
      }
    }
  }

  void Perform(const WarpAccess& access, std::vector<std::pair<Thread, std::size_t>>* async) {
    const std::size_t event = next_event_++;
    std::vector<std::size_t> made;
    for (int i = 0; i < kWarpSize; ++i) {
      const int lane = access.reversed ? kWarpSize - 1 - i : i;
      if ((access.lanes >> lane & 1u) == 0) continue;
      const Thread thread = access.warp * kWarpSize + static_cast<Thread>(lane);
      Known& me = threads_[thread];
      const std::uint64_t offset = access.offsets[lane];
      const std::uint64_t place = std::uint64_t{access.region} << 40 | offset;
      const std::size_t index = nodes_.size();
      Node node{thread, async != nullptr, event, access, offset, me.known, {}};
      if (access.kind != AccessKind::kWrite) {
        for (std::uint64_t b = 0; b < access.bytes; ++b) {
          // What a sibling wrote in this very instruction is not evidence of order by itself;
          // Ordered looks at the event.
          node.observed[offset + b] = chain_[place + b];
        }
      }
      nodes_.push_back(std::move(node));
      made.push_back(index);
      if (async != nullptr) {
        async->emplace_back(thread, index);
      } else {
        Add(me.known, index);
      }
      const bool read_modify_write = access.kind == AccessKind::kReadWrite && Strong(access);
      if (Strong(access) && access.kind != AccessKind::kWrite && access.returns_value) {
        if (Acquires(access.order)) {
          for (const SeenRelease& seen : me.seen) {
            if (seen.offset == place) AcquireFrom(thread, seen.message, LevelOf(access));
          }
          for (const Message& m : messages_[place]) AcquireFrom(thread, m, LevelOf(access));
        }
        for (const Message& m : messages_[place]) me.seen.push_back(SeenRelease{m, place});
      }
      if (access.kind == AccessKind::kRead) continue;
      for (std::uint64_t b = 0; b < access.bytes; ++b) {
        if (!read_modify_write) {
          chain_[place + b].clear();
          messages_[place + b].clear();
        }
        Add(chain_[place + b], index);
      }
      if (!Strong(access)) continue;
      auto& out = messages_[place];
      out.insert(out.end(), me.fences.begin(), me.fences.end());
      auto& released = me.released[place];
      out.insert(out.end(), released.begin(), released.end());
      if (Releases(access.order)) {
        out.push_back(Message{me.known, thread, LevelOf(access)});
        released.push_back(out.back());
      }
    }
    // Several lanes wrote one byte at once: which value stands is nobody's order but the
    // emulator's.
    if (access.kind == AccessKind::kWrite) {
      std::map<std::uint64_t, int> writers;
      for (const std::size_t index : made) {
        const std::uint64_t place = std::uint64_t{access.region} << 40 | nodes_[index].offset;
        for (std::uint64_t b = 0; b < access.bytes; ++b) {
          if (++writers[place + b] > 1) chain_[place + b].clear();
        }
      }
    }
    for (const std::size_t index : made) Check(index);
  }

  RaceDetector::Shape shape_;
  std::vector<Node> nodes_;
  std::size_t next_event_ = 0;
  std::map<Thread, Known> threads_;
  std::map<std::uint64_t, Nodes> chain_;
  std::map<std::uint64_t, std::vector<Message>> messages_;
  std::map<std::pair<BlockNumber, std::uint32_t>, Meeting> meetings_;
  std::map<std::uint64_t, Phases> mbarriers_;
  std::map<Thread, std::vector<std::pair<std::uint64_t, std::size_t>>> copies_;
};

}  // namespace assay::emu
