// Proxy fences: what the asynchronous proxy may read of what threads have written (PTX ISA, proxies;
// proxy-preserved causality order).
//
// Bulk copies and wgmma read memory through a proxy of their own. That a write happens before them is
// not enough: a fence.proxy.async must lie between, executed by a thread that knew the write (its
// own, or by a barrier), and known to the thread that starts the copy. Writers that fence before the
// barrier and a leader that fences after it are both in order.
//
// The last kKept fences of each warp are remembered; what was known at older ones is given the
// benefit of the doubt.
//
// Cost: nothing for kernels without fence.proxy.async; a snapshot a lane for each such fence.
// Not thread-safe.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "validator/emu/race/order.h"
#include "validator/emu/race/record_table.h"

namespace assay::emu {

class ProxyFences {
 public:
  explicit ProxyFences(ThreadOrder& order) : order_(order) {}

  void Begin() { warps_.clear(); }
  void EndBlock(BlockNumber block);
  void OnFence(WarpNumber warp, LaneMask lanes);
  /// Does a fence lie between that write, by `lane` of the record's warp, and what the issuer does
  /// now?
  bool Between(const Record& write, int lane, WarpNumber issuer, int issuer_lane);

 private:
  static constexpr std::size_t kKept = 16;

  struct Event {
    Time time = 0;
    std::vector<std::pair<int, Snapshot>> lanes;
  };
  struct WarpFences {
    std::deque<Event> events;  // Oldest first.
    Time forgotten = 0;        // Of the newest that was dropped.
  };
  bool Covers(const Event& event, WarpNumber by, const Record& write, int lane, WarpNumber issuer,
              int issuer_lane);

  ThreadOrder& order_;
  std::unordered_map<WarpNumber, WarpFences> warps_;
};

}  // namespace assay::emu
