#include "validator/emu/race/sync.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace assay::emu {
namespace {

/// Of messages that every waiter may take: bulk copies speak to whoever waits at their mbarrier.
constexpr BlockNumber kAnyBlock = 0xffffffffu;
/// A cluster's barrier is no memory location.
constexpr Location kNowhere{0xffffffffu, ~0ull};

}  // namespace

void SyncObjects::Begin() {
  lanes_.clear();
  regions_.clear();
  mbarriers_.clear();
  clusters_.clear();
  block_meetings_.clear();
  warp_meetings_.clear();
  sequential_fences_ = false;
  open_fences_.clear();
  device_fences_.reset();
  cluster_fences_.clear();
  block_fences_.clear();
  ended_fences_.clear();
  next_agent_ = 1;
}

void SyncObjects::EndRegion(RegionId region) {
  regions_.erase(region);
  mbarriers_.erase(region);
}

void SyncObjects::EndBlock(BlockNumber block) {
  // Nobody was there to see where they belong: they come last.
  std::erase_if(open_fences_, [&](const OpenFence& fence) { return fence.block == block; });
  if (lanes_.empty() && !sequential_fences_) return;
  const std::uint32_t warps = order_.warps_per_block();
  for (std::uint32_t w = 0; w < warps; ++w) {
    const auto lanes = lanes_.find(block * warps + w);
    if (lanes != lanes_.end()) {
      if (follow_fences_) {
        auto times = std::make_unique<FenceTimes>();
        for (std::size_t r = 0; r < kReaches; ++r) {
          for (std::size_t lane = 0; lane < kWarpSize; ++lane)
            (*times)[r][lane] = (*lanes->second)[lane].fence[r].now;
        }
        ended_fences_[block * warps + w] = std::move(times);
      }
      lanes_.erase(lanes);
    }
    warp_meetings_.erase(block * warps + w);
  }
  block_meetings_.erase(block);
}

SyncObjects::LaneState& SyncObjects::Lane(WarpNumber warp, int lane) {
  std::unique_ptr<WarpLanes>& lanes = lanes_[warp];
  if (lanes == nullptr) lanes = std::make_unique<WarpLanes>();
  return (*lanes)[static_cast<std::size_t>(lane)];
}

SyncObjects::LaneState* SyncObjects::FindLane(WarpNumber warp, int lane) {
  const auto at = lanes_.find(warp);
  return at == lanes_.end() ? nullptr : &(*at->second)[static_cast<std::size_t>(lane)];
}

bool SyncObjects::Needed(const Message& message, BlockNumber block, Reach& needed) const {
  if (message.block == block || message.block == kAnyBlock) {
    needed = Reach::kBlock;
    return true;
  }
  if (order_.ClusterOf(message.block) == order_.ClusterOf(block)) {
    needed = Reach::kCluster;
    return message.reach >= Reach::kCluster;
  }
  needed = Reach::kDevice;
  return message.reach >= Reach::kDevice;
}

void SyncObjects::Take(WarpNumber warp, LaneMask lanes, const Chain& chain, std::size_t from,
                       std::size_t to, Reach reach, bool sequential) {
  const BlockNumber block = order_.BlockOf(warp);
  const ClockPtr* only = nullptr;
  std::shared_ptr<Clock> joined;
  for (std::size_t i = from; i < to; ++i) {
    Reach needed{};
    if (chain.log[i].sequential && !sequential) continue;
    if (!Needed(chain.log[i], block, needed) || needed > reach) continue;
    if (only == nullptr) {
      only = &chain.log[i].clock;
      continue;
    }
    if (joined == nullptr) joined = std::make_shared<Clock>(**only);
    joined->Join(*chain.log[i].clock);
  }
  if (joined != nullptr) {
    order_.Learn(warp, lanes, joined);
  } else if (only != nullptr) {
    order_.Learn(warp, lanes, *only);
  }
}

void SyncObjects::AddPending(WarpNumber warp, int lane, const Pending& read) {
  LaneState& state = Lane(warp, lane);
  for (Pending& pending : state.pending) {
    if (pending.chain == read.chain) {
      const std::size_t seen = std::max(pending.seen, read.seen);
      pending = read;
      pending.seen = seen;
      return;
    }
  }
  if (state.pending.size() == kPendingKept) {
    const Pending& oldest = state.pending.front();
    for (std::size_t i = 0; i < oldest.seen; ++i) {
      Reach needed{};
      const Message& message = oldest.chain->log[i];
      if (message.sequential || !Needed(message, order_.BlockOf(warp), needed)) continue;
      ClockPtr& spilled = state.spilled[static_cast<std::size_t>(needed)];
      spilled = Joined(spilled, message.clock);
    }
    state.pending.erase(state.pending.begin());
  }
  state.pending.push_back(read);
}

void SyncObjects::NoteRead(std::vector<Pending>& reads, const Pending& read) {
  for (Pending& known : reads) {
    if (known.chain != read.chain) continue;
    known.seen = std::max(known.seen, read.seen);
    return;
  }
  if (reads.size() == kReadsKept) reads.erase(reads.begin());
  reads.push_back(read);
}

void SyncObjects::Meet(Meeting& meeting) {
  if (meeting.fresh_fences != nullptr) {
    meeting.fences = Joined(meeting.fences, meeting.fresh_fences);
    meeting.fresh_fences.reset();
  }
  for (const Pending& read : meeting.fresh_reads) NoteRead(meeting.reads, read);
  meeting.fresh_reads.clear();
}

void SyncObjects::OnBlockMeets(BlockNumber block) {
  if (!sequential_fences_) return;
  if (const auto at = block_meetings_.find(block); at != block_meetings_.end()) Meet(at->second);
}

void SyncObjects::OnWarpMeets(WarpNumber warp) {
  if (!sequential_fences_) return;
  if (const auto at = warp_meetings_.find(warp); at != warp_meetings_.end()) Meet(at->second);
}

void SyncObjects::TakeReads(WarpNumber warp, LaneMask lanes, const std::vector<Pending>& reads) {
  for (const Pending& read : reads)
    Take(warp, lanes, *read.chain, 0, read.seen, Reach::kDevice, true);
}

void SyncObjects::OnFence(WarpNumber warp, LaneMask lanes, bool acquires, bool releases,
                          bool sequential, Reach reach) {
  if (follow_fences_) SettleFences(order_.BlockOf(warp));
  const bool ordered = sequential && follow_fences_.has_value();
  // Within a block there are barriers, and no idiom that needs narrower ones.
  sequential = sequential && reach == Reach::kDevice;
  if (sequential) {
    sequential_fences_ = true;
    Meeting* const meetings[] = {&block_meetings_[order_.BlockOf(warp)], &warp_meetings_[warp]};
    for (Meeting* meeting : meetings) {
      TakeReads(warp, lanes, meeting->reads);
      if (meeting->fresh_fences == nullptr) meeting->fresh_fences = std::make_shared<Clock>();
      meeting->fresh_fences->Join(order_.ExportLanes(warp, lanes));
    }
  }
  if (acquires) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      LaneState* state = FindLane(warp, lane);
      if (state == nullptr) break;
      for (Pending& pending : state->pending) {
        Take(warp, 1u << lane, *pending.chain, 0, pending.seen, reach, sequential);
        pending.narrow = true;
      }
      for (std::size_t r = 0; r <= static_cast<std::size_t>(reach); ++r) {
        if (state->spilled[r] == nullptr) continue;
        order_.Learn(warp, 1u << lane, state->spilled[r]);
        state->spilled[r].reset();
      }
      // A device-wide fence has taken all that can ever be taken.
      if (reach == Reach::kDevice) state->pending.clear();
    }
  }
  if (releases) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      LaneState& state = Lane(warp, lane);
      const Snapshot snapshot = order_.Take(warp, lane);
      for (std::size_t r = 0; r <= static_cast<std::size_t>(reach); ++r) {
        state.fence[r] = snapshot;
        state.exported[r].reset();
      }
    }
    order_.Tick(order_.BlockOf(warp));
  }
  if (ordered) {
    open_fences_.push_back({order_.BlockOf(warp), warp, lanes, reach, false,
                            std::make_shared<Clock>(order_.ExportLanes(warp, lanes))});
    if (follow_fences_->Below(4) != 0) SettleOpen(order_.BlockOf(warp));
    // What a lane does behind the fence is not what the fence will publish.
    order_.Tick(order_.BlockOf(warp));
  }
}

/// Two fences whose scopes include each other are ordered, one way or the other: here as they get
/// their places. Fences of one instruction are taken to be in both orders, which says more than the
/// model and so allows less.
void SyncObjects::JoinFenceOrder(const OpenFence& fence) {
  ClockPtr* const orders[] = {&block_fences_[fence.block],
                              &cluster_fences_[order_.ClusterOf(fence.block)], &device_fences_};
  const WarpNumber first = fence.block * order_.warps_per_block();
  for (std::size_t r = 0; r <= static_cast<std::size_t>(fence.reach); ++r) {
    *orders[r] = Joined(*orders[r], fence.knew);
    // What the lanes write behind the fence publishes what the fence has learned.
    for (LaneMask rest = fence.lanes; rest != 0; rest &= rest - 1) {
      LaneState& state = Lane(fence.warp, std::countr_zero(rest));
      for (std::size_t of = 0; of < kReaches; ++of) {
        if (state.fence[of].now == 0) continue;
        state.fence[of].clock = Joined(state.fence[of].clock, *orders[r]);
        state.exported[of].reset();
      }
    }
    if (!fence.met) {
      order_.Learn(fence.warp, fence.lanes, *orders[r]);
      continue;
    }
    for (std::uint32_t w = 0; w < order_.warps_per_block(); ++w)
      order_.Learn(first + w, kAllLanes, *orders[r]);
  }
}

void SyncObjects::SettleOpen(BlockNumber block) {
  for (const OpenFence& fence : open_fences_) {
    if (fence.block == block) JoinFenceOrder(fence);
  }
  std::erase_if(open_fences_, [&](const OpenFence& fence) { return fence.block == block; });
}

void SyncObjects::MeetOpen(BlockNumber block) {
  for (OpenFence& fence : open_fences_) fence.met = fence.met || fence.block == block;
}

Published SyncObjects::PublishedAt(Location at) const {
  const auto region = regions_.find(at.region);
  if (region == regions_.end()) return {};
  const auto found = region->second.find(at.offset);
  return found == region->second.end() ? Published{}
                                       : Published{found->second, found->second->log.size()};
}

std::optional<RaceDetector::Gap> SyncObjects::GapAt(const LaneState& state, WarpNumber writer,
                                                    int writer_lane, Time time,
                                                    BlockNumber to) const {
  using Kind = RaceDetector::Gap::Kind;
  const BlockNumber from = order_.BlockOf(writer);
  for (const Pending& pending : state.pending) {
    for (std::size_t i = 0; i < pending.seen; ++i) {
      const Message& message = pending.chain->log[i];
      if (message.sequential || (message.clock->BlockBase(from) < time &&
                                 message.clock->LaneTime(writer, writer_lane) < time))
        continue;
      Reach needed{};
      const bool reaches = Needed(message, to, needed);
      return RaceDetector::Gap{
          .kind = reaches && !pending.narrow ? Kind::kAcquire : Kind::kScope,
          .read_pc = pending.pc,
      };
    }
  }
  return std::nullopt;
}

RaceDetector::Gap SyncObjects::GapBetween(WarpNumber writer, int writer_lane, Time time,
                                          WarpNumber reader, int reader_lane) {
  using Gap = RaceDetector::Gap;
  using Kind = Gap::Kind;
  const BlockNumber from = order_.BlockOf(writer);
  const BlockNumber to = order_.BlockOf(reader);
  if (const LaneState* state = FindLane(reader, reader_lane)) {
    if (const auto gap = GapAt(*state, writer, writer_lane, time, to)) return *gap;
  }
  // Or a thread of the block read the signal, and told the reader by a barrier.
  const std::uint32_t warps = order_.warps_per_block();
  for (WarpNumber warp = to * warps; warp < (to + 1) * warps; ++warp) {
    for (int lane = 0; lane < kWarpSize && lanes_.contains(warp); ++lane) {
      const LaneState& state = *FindLane(warp, lane);
      if (state.pending.empty()) continue;
      auto gap = GapAt(state, writer, writer_lane, time, to);
      if (!gap) continue;
      const bool told = std::ranges::any_of(state.pending, [&](const Pending& pending) {
        return pending.pc == gap->read_pc &&
               order_.LaneKnows(reader, reader_lane, warp, lane, pending.time);
      });
      if (!told) continue;
      gap->elsewhere = true;
      return *gap;
    }
  }
  const Reach needed = from == to                                       ? Reach::kBlock
                       : order_.ClusterOf(from) == order_.ClusterOf(to) ? Reach::kCluster
                                                                        : Reach::kDevice;
  const auto lane = static_cast<std::size_t>(writer_lane);
  const auto fenced = [&](std::size_t r) -> Time {
    if (const LaneState* state = FindLane(writer, writer_lane)) return state->fence[r].now;
    const auto ended = ended_fences_.find(writer);
    return ended == ended_fences_.end() ? 0 : (*ended->second)[r][lane];
  };
  bool narrow = false;
  for (std::size_t r = 0; r < kReaches; ++r) {
    if (fenced(r) < time) continue;
    if (r >= static_cast<std::size_t>(needed)) return Gap{.kind = Kind::kSignal};
    narrow = true;
  }
  return Gap{.kind = narrow ? Kind::kScope : Kind::kRelease};
}

void SyncObjects::OnStrongRead(WarpNumber warp, int lane, Location at, std::uint32_t pc,
                               bool acquires, Reach reach, const Published* read_from) {
  const Published newest = read_from == nullptr ? PublishedAt(at) : Published{};
  const ChainPtr& chain = read_from == nullptr ? newest.log : read_from->log;
  const std::size_t seen = read_from == nullptr ? newest.count : read_from->count;
  if (sequential_fences_ && chain != nullptr) {
    const Pending read{.chain = chain, .seen = seen, .at = at};
    NoteRead(block_meetings_[order_.BlockOf(warp)].fresh_reads, read);
    NoteRead(warp_meetings_[warp].fresh_reads, read);
  }
  if (acquires) {
    // Also what earlier strong reads of this location saw: read, then acquire operation on the same
    // location.
    if (LaneState* state = FindLane(warp, lane)) {
      for (const Pending& pending : state->pending) {
        if (pending.at == at) Take(warp, 1u << lane, *pending.chain, 0, pending.seen, reach);
      }
    }
    if (chain == nullptr) return;
    LaneState& state = Lane(warp, lane);
    std::size_t from = 0;
    if (state.acquired.lock() == chain && state.acquired_reach == reach) from = state.acquired_seen;
    Take(warp, 1u << lane, *chain, from, seen, reach);
    state.acquired = chain;
    state.acquired_seen = std::max(from, seen);
    state.acquired_reach = reach;
  }
  // A wider acquiring fence may still come.
  if (chain != nullptr && (!acquires || reach != Reach::kDevice))
    AddPending(warp, lane,
               {.chain = chain,
                .seen = seen,
                .at = at,
                .pc = pc,
                .time = order_.NowOf(warp),
                .narrow = acquires});
}

void SyncObjects::MessagesOf(WarpNumber warp, int lane, Location at, bool releases, Reach reach,
                             std::vector<Message>& out) {
  const BlockNumber block = order_.BlockOf(warp);
  if (sequential_fences_) {
    const auto add = [&](const auto& meetings, auto key) {
      const auto met = meetings.find(key);
      if (met != meetings.end() && met->second.fences != nullptr)
        out.push_back(Message{met->second.fences, block, Reach::kDevice, true});
    };
    add(block_meetings_, block);
    add(warp_meetings_, warp);
  }
  LaneState* state = FindLane(warp, lane);
  if (state != nullptr) {
    for (std::size_t r = kReaches; r-- > 0;) {
      const Snapshot& snapshot = state->fence[r];
      if (snapshot.now == 0) continue;
      if (r + 1 < kReaches && state->fence[r + 1].now == snapshot.now) continue;
      if (state->exported[r] == nullptr) state->exported[r] = order_.Export(snapshot);
      out.push_back(Message{state->exported[r], block, static_cast<Reach>(r)});
    }
    for (const Released& released : state->released) {
      if (released.at == at) out.push_back(released.message);
    }
  }
  if (!releases) return;
  const Message message{order_.Export(order_.Take(warp, lane)), block, reach};
  out.push_back(message);
  order_.Tick(block);
  LaneState& own = Lane(warp, lane);
  std::erase_if(own.released,
                [&](const Released& r) { return r.at == at && r.message.reach <= reach; });
  if (own.released.size() == kReleasedKept) own.released.erase(own.released.begin());
  own.released.push_back(Released{at, message});
}

void SyncObjects::Append(ChainPtr& chain, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  if (chain == nullptr) chain = std::make_shared<Chain>();
  for (const Message& message : messages) {
    const bool known = std::any_of(chain->log.rbegin(), chain->log.rend(), [&](const Message& m) {
      return m.clock == message.clock && m.reach == message.reach &&
             m.sequential == message.sequential;
    });
    if (!known) chain->log.push_back(message);
  }
  // A lock that is taken for ever: join what the same block released, in a new chain, since readers
  // hold on to the old one.
  if (chain->log.size() < 64 || chain->log.size() < 2 * chain->compact) return;
  std::map<std::tuple<BlockNumber, Reach, bool>, std::shared_ptr<Clock>> groups;
  for (const Message& message : chain->log) {
    std::shared_ptr<Clock>& group = groups[{message.block, message.reach, message.sequential}];
    if (group == nullptr) group = std::make_shared<Clock>();
    group->Join(*message.clock);
  }
  auto compacted = std::make_shared<Chain>();
  for (auto& [key, clock] : groups)
    compacted->log.push_back(
        Message{std::move(clock), std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  compacted->compact = compacted->log.size();
  chain = std::move(compacted);
}

void SyncObjects::OnStrongWrite(WarpNumber warp, int lane, Location at, std::uint32_t bytes,
                                bool read_modify_write, bool releases, Reach reach) {
  scratch_.clear();
  MessagesOf(warp, lane, at, releases, reach, scratch_);
  if (!read_modify_write) Break(at, bytes);
  if (scratch_.empty()) return;
  Append(regions_[at.region][at.offset], scratch_);
}

Published SyncObjects::OnOvertakenWrite(WarpNumber warp, int lane, Location at, bool releases,
                                        Reach reach) {
  scratch_.clear();
  MessagesOf(warp, lane, at, releases, reach, scratch_);
  ChainPtr chain;
  Append(chain, scratch_);
  return chain == nullptr ? Published{} : Published{chain, chain->log.size()};
}

void SyncObjects::Break(Location at, std::uint32_t bytes) {
  const auto region = regions_.find(at.region);
  if (region == regions_.end()) return;
  auto& chains = region->second;
  for (auto it = chains.lower_bound(at.offset);
       it != chains.end() && it->first < at.offset + bytes;) {
    it = chains.erase(it);
  }
}

void SyncObjects::Collect(Phase& phase, BlockNumber block, Reach reach, const Clock& clock) {
  for (Phase::Part& part : phase.parts) {
    if (part.block == block && part.reach == reach) {
      part.clock->Join(clock);
      return;
    }
  }
  phase.parts.push_back({block, reach, std::make_shared<Clock>(clock)});
}

void SyncObjects::CollectAll(Phase& phase, BlockNumber block,
                             const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    if (!message.sequential) Collect(phase, block, message.reach, *message.clock);
  }
}

SyncObjects::ChainPtr SyncObjects::Completed(Phase& phase) {
  auto chain = std::make_shared<Chain>();
  for (Phase::Part& part : phase.parts)
    chain->log.push_back(Message{std::move(part.clock), part.block, part.reach});
  phase.parts.clear();
  return chain;
}

void SyncObjects::MbarrierInit(Location at) { mbarriers_[at.region].erase(at.offset); }

void SyncObjects::MbarrierArrive(Location at, WarpNumber warp, LaneMask lanes, bool releases,
                                 Reach reach) {
  Phase& phase = mbarriers_[at.region][at.offset].collecting;
  const BlockNumber block = order_.BlockOf(warp);
  if (releases) Collect(phase, block, reach, order_.ExportLanes(warp, lanes));
  if (lanes_.contains(warp)) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      scratch_.clear();
      MessagesOf(warp, std::countr_zero(rest), at, false, reach, scratch_);
      CollectAll(phase, block, scratch_);
    }
  }
  if (releases) order_.Tick(block);
}

void SyncObjects::MbarrierPublish(Location at, BlockNumber block, const Clock& clock) {
  Collect(mbarriers_[at.region][at.offset].collecting, block, Reach::kCluster, clock);
}

void SyncObjects::MbarrierPhaseComplete(Location at) {
  Mbarrier& barrier = mbarriers_[at.region][at.offset];
  if (barrier.agent != 0) {
    Clock copies;
    copies.RaiseLanes(barrier.agent, kAllLanes, barrier.phase);
    Collect(barrier.collecting, kAnyBlock, Reach::kDevice, copies);
  }
  barrier.completed = Completed(barrier.collecting);
  ++barrier.phase;
}

void SyncObjects::MbarrierWait(Location at, WarpNumber warp, LaneMask lanes, bool acquires,
                               Reach reach) {
  const ChainPtr chain = mbarriers_[at.region][at.offset].completed;
  if (chain == nullptr) return;
  if (acquires) {
    Take(warp, lanes, *chain, 0, chain->log.size(), reach);
    return;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1)
    AddPending(warp, std::countr_zero(rest),
               {.chain = chain, .seen = chain->log.size(), .at = at, .time = order_.NowOf(warp)});
}

std::pair<WarpNumber, Time> SyncObjects::MbarrierAgent(Location at) {
  Mbarrier& barrier = mbarriers_[at.region][at.offset];
  if (barrier.agent == 0) barrier.agent = NewAgent();
  return {barrier.agent, barrier.phase};
}

void SyncObjects::ClusterArrive(WarpNumber warp, LaneMask lanes, bool releases) {
  const BlockNumber block = order_.BlockOf(warp);
  Phase& phase = clusters_[order_.ClusterOf(block)].collecting;
  if (releases) Collect(phase, block, Reach::kCluster, order_.ExportLanes(warp, lanes));
  if (lanes_.contains(warp)) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      scratch_.clear();
      MessagesOf(warp, std::countr_zero(rest), kNowhere, false, Reach::kCluster, scratch_);
      CollectAll(phase, block, scratch_);
    }
  }
  order_.Tick(block);
}

void SyncObjects::ClusterComplete(std::uint32_t cluster) {
  ClusterBarrier& barrier = clusters_[cluster];
  barrier.completed = Completed(barrier.collecting);
}

void SyncObjects::ClusterWait(WarpNumber warp, LaneMask lanes) {
  const auto at = clusters_.find(order_.ClusterOf(order_.BlockOf(warp)));
  if (at == clusters_.end() || at->second.completed == nullptr) return;
  const Chain& chain = *at->second.completed;
  Take(warp, lanes, chain, 0, chain.log.size(), Reach::kCluster);
}

std::uint64_t SyncObjects::bytes() const {
  std::uint64_t total = lanes_.size() * sizeof(WarpLanes);
  for (const auto& [region, chains] : regions_) {
    for (const auto& [offset, chain] : chains) {
      total += sizeof(Chain) + chain->log.capacity() * sizeof(Message);
      for (const Message& message : chain->log) total += message.clock->bytes();
    }
  }
  return total;
}

}  // namespace assay::emu
