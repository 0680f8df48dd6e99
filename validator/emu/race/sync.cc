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
  warp_found_ = nullptr;
  meetings_ = {};
  found_ = nullptr;
  regions_.clear();
  last_steps_.assign(1, 0);
  mbarriers_.clear();
  clusters_.clear();
  block_meetings_.clear();
  warp_meetings_.clear();
  sequential_fences_ = false;
  open_fences_.clear();
  late_.clear();
  late_places_.clear();
  device_fences_.reset();
  cluster_fences_.clear();
  block_fences_.clear();
  ended_fences_.clear();
  next_agent_ = 1;
}

void SyncObjects::EndRegion(RegionId region) {
  found_ = nullptr;
  regions_.erase(region);
  mbarriers_.erase(region);
}

void SyncObjects::EndBlock(BlockNumber block) {
  EndLate(block);
  if (lanes_.empty() && !sequential_fences_) return;
  warp_found_ = nullptr;
  meetings_ = {};
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

SyncObjects::WarpLanes& SyncObjects::MakeLanes(WarpNumber warp) {
  std::unique_ptr<WarpLanes>& lanes = lanes_[warp];
  if (lanes == nullptr) lanes = std::make_unique<WarpLanes>();
  warp_found_ = lanes.get();
  warp_found_number_ = warp;
  return *warp_found_;
}

SyncObjects::WarpLanes* SyncObjects::SeekLanes(WarpNumber warp) {
  const auto at = lanes_.find(warp);
  if (at == lanes_.end()) return nullptr;
  warp_found_ = at->second.get();
  warp_found_number_ = warp;
  return warp_found_;
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

void SyncObjects::Take(WarpNumber warp, LaneMask lanes, const Messages& messages, Reach reach,
                       bool sequential) {
  const bool wide = reach == Reach::kDevice;
  if (wide) order_.Learn(warp, lanes, messages.wide);
  if (sequential) order_.Learn(warp, lanes, messages.sequential);
  if (wide && !messages.narrow) return;
  const BlockNumber block = order_.BlockOf(warp);
  ClockPtr joined;
  for (std::size_t i = 0; i < messages.count; ++i) {
    const Message& message = (*messages.log)[i];
    Reach needed{};
    if (wide && message.reach == Reach::kDevice) continue;
    if (Needed(message, block, needed) && needed <= reach) joined = Joined(joined, message.clock);
  }
  order_.Learn(warp, lanes, joined);
}

void SyncObjects::AddPending(WarpNumber warp, int lane, const Published& messages, Location at,
                             std::uint32_t pc, bool narrow) {
  LaneState& state = Lane(warp, lane);
  // Threads that spin read the same again and again: nothing is copied then.
  for (Pending& pending : state.pending) {
    if (pending.messages != messages) {
      if (pending.messages->chain != messages->chain) continue;
      if (pending.messages->version < messages->version) pending.messages = messages;
    }
    pending.at = at;
    pending.pc = pc;
    pending.time = order_.NowOf(warp);
    pending.narrow = narrow;
    return;
  }
  if (state.pending.size() == kPendingKept) {
    const Messages& oldest = *state.pending.front().messages;
    for (std::size_t i = 0; i < oldest.count; ++i) {
      Reach needed{};
      const Message& message = (*oldest.log)[i];
      if (!Needed(message, order_.BlockOf(warp), needed)) continue;
      ClockPtr& spilled = state.spilled[static_cast<std::size_t>(needed)];
      spilled = Joined(spilled, message.clock);
    }
    state.pending.erase(state.pending.begin());
  }
  state.pending.push_back(
      {.messages = messages, .at = at, .pc = pc, .time = order_.NowOf(warp), .narrow = narrow});
}

void SyncObjects::NoteRead(std::vector<Pending>& reads, const Published& messages, Location at) {
  for (Pending& known : reads) {
    if (known.messages == messages) return;
    if (known.messages->chain != messages->chain) continue;
    if (known.messages->version < messages->version) known.messages = messages;
    return;
  }
  if (reads.size() == kReadsKept) reads.erase(reads.begin());
  reads.push_back(Pending{messages, at});
}

void SyncObjects::SeekMeetings(WarpNumber warp) {
  meetings_ = {&block_meetings_[order_.BlockOf(warp)], &warp_meetings_[warp]};
  meetings_of_ = warp;
}

/// What a fence knew is made a clock only when somebody is told.
void SyncObjects::NoteFence(const Meetings& meetings, WarpNumber warp, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0;) {
    const int lane = std::countr_zero(rest);
    const bool alone = (rest & (rest - 1)) == 0;
    const Fenced fenced{order_.Take(warp, lane), alone ? rest : rest & order_.Alike(warp, lane)};
    rest &= ~fenced.lanes;
    for (Meeting* meeting : {meetings.of_block, meetings.of_warp}) NoteFenced(*meeting, fenced);
  }
}

void SyncObjects::NoteFenced(Meeting& meeting, const Fenced& fenced) {
  constexpr std::size_t kFencesKept = 64;
  auto& fresh = meeting.fresh_fences;
  // A thread's later fence knows what its earlier one knew, and takes its place: that of several
  // earlier ones, where lanes fence together that fenced apart.
  const auto covered = [&](const Fenced& old) {
    return old.snapshot.warp == fenced.snapshot.warp && (old.lanes & ~fenced.lanes) == 0;
  };
  const auto first = std::ranges::find_if(fresh, covered);
  if (first != fresh.end()) {
    *first = fenced;
    if ((fenced.lanes & (fenced.lanes - 1)) != 0)
      fresh.erase(std::remove_if(first + 1, fresh.end(), covered), fresh.end());
    return;
  }
  fresh.push_back(fenced);
  if (fresh.size() < kFencesKept) return;
  auto joined = std::make_shared<Clock>();
  if (meeting.more_fences != nullptr) joined->Join(*meeting.more_fences);
  for (const Fenced& one : fresh) joined->Join(*order_.Export(one.snapshot, one.lanes));
  meeting.more_fences = std::move(joined);
  fresh.clear();
}

void SyncObjects::Meet(Meeting& meeting) {
  if (!meeting.fresh_fences.empty() || meeting.more_fences != nullptr) {
    meeting.told = 0;
    meeting.fences = Joined(meeting.fences, meeting.more_fences);
    meeting.more_fences.reset();
    for (const Fenced& fenced : meeting.fresh_fences)
      meeting.fences = Joined(meeting.fences, order_.Export(fenced.snapshot, fenced.lanes));
    meeting.fresh_fences.clear();
  }
  for (const Pending& read : meeting.fresh_reads) NoteRead(meeting.reads, read.messages, read.at);
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
  for (const Pending& read : reads) Take(warp, lanes, *read.messages, Reach::kDevice, true);
}

void SyncObjects::OnFence(WarpNumber warp, LaneMask lanes, bool acquires, bool releases,
                          bool sequential, Reach reach) {
  if (follow_fences_) SettleBeforeFence(warp, lanes, acquires, sequential, reach);
  const bool ordered = sequential && follow_fences_.has_value();
  // Within a block there are barriers, and no idiom that needs narrower ones.
  sequential = sequential && reach == Reach::kDevice;
  if (sequential) {
    sequential_fences_ = true;
    const Meetings meetings = MeetingsOf(warp);
    for (Meeting* meeting : {meetings.of_block, meetings.of_warp})
      TakeReads(warp, lanes, meeting->reads);
    NoteFence(meetings, warp, lanes);
  }
  if (acquires) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      LaneState* state = FindLane(warp, lane);
      if (state == nullptr) break;
      for (Pending& pending : state->pending) {
        Take(warp, 1u << lane, *pending.messages, reach, sequential);
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
      state.told = 0;
    }
    order_.Tick(order_.BlockOf(warp));
  }
  if (ordered) {
    open_fences_.push_back({order_.BlockOf(warp), warp, lanes, reach, false, order_.NowOf(warp),
                            std::make_shared<Clock>(order_.ExportLanes(warp, lanes))});
    const bool open = (follow_fences_->Below(4) == 0) != late_fences_;
    if (late_fences_) BeginLate(order_.BlockOf(warp));
    if (!open) SettleOpen(order_.BlockOf(warp));
    // What a lane does behind the fence is not what the fence will publish.
    order_.Tick(order_.BlockOf(warp));
  }
}

Published* SyncObjects::SeekPublished(Location at) const {
  const auto region = regions_.find(at.region);
  if (region == regions_.end()) return nullptr;
  const auto place = region->second.find(at.offset);
  if (place == region->second.end()) return nullptr;
  found_at_ = at;
  found_ = &place->second;
  return found_;
}

Published SyncObjects::PublishedAt(Location at) const {
  const Published* found = FindPublished(at);
  return found == nullptr ? nullptr : *found;
}

std::optional<RaceDetector::Gap> SyncObjects::GapAt(const LaneState& state, WarpNumber writer,
                                                    int writer_lane, Time time,
                                                    BlockNumber to) const {
  using Kind = RaceDetector::Gap::Kind;
  const BlockNumber from = order_.BlockOf(writer);
  for (const Pending& pending : state.pending) {
    for (std::size_t i = 0; i < pending.messages->count; ++i) {
      const Message& message = (*pending.messages->log)[i];
      if (message.clock->BlockBase(from) < time &&
          message.clock->LaneTime(writer, writer_lane) < time)
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
  static const Published kNothing;
  const Published* const newest = read_from != nullptr ? read_from : FindPublished(at);
  const Published& messages = newest != nullptr ? *newest : kNothing;
  if (sequential_fences_ && messages != nullptr) {
    const Meetings meetings = MeetingsOf(warp);
    for (std::vector<Pending>* reads :
         {&meetings.of_block->fresh_reads, &meetings.of_warp->fresh_reads}) {
      if (reads->empty() || reads->back().messages != messages) NoteRead(*reads, messages, at);
    }
  }
  if (acquires) {
    // Also what earlier strong reads of this location saw: read, then acquire operation on the same
    // location.
    if (LaneState* state = FindLane(warp, lane)) {
      for (const Pending& pending : state->pending) {
        if (pending.at == at) Take(warp, 1u << lane, *pending.messages, reach);
      }
    }
    if (messages == nullptr) return;
    LaneState& state = Lane(warp, lane);
    if (state.acquired != messages || state.acquired_reach != reach) {
      Take(warp, 1u << lane, *messages, reach);
      state.acquired = messages;
      state.acquired_reach = reach;
    }
  }
  // A wider acquiring fence may still come.
  if (messages != nullptr && (!acquires || reach != Reach::kDevice)) {
    AddPending(warp, lane, messages, at, pc, acquires);
  }
}

/// Would MessagesOf say nothing new there to a chain?
bool SyncObjects::HasSaidAll(WarpNumber warp, int lane, std::uint64_t chain) {
  if (sequential_fences_) {
    const Meetings meetings = MeetingsOf(warp);
    for (const Meeting* met : {meetings.of_block, meetings.of_warp})
      if (met->fences != nullptr && met->told != chain) return false;
  }
  const LaneState* const state = FindLane(warp, lane);
  return state == nullptr || state->told == chain;
}

/// What a strong write says there, as far as the chain has not got it.
void SyncObjects::MessagesOf(WarpNumber warp, int lane, Location at, bool releases, Reach reach,
                             std::uint64_t chain, std::vector<Message>& out) {
  const BlockNumber block = order_.BlockOf(warp);
  if (sequential_fences_) {
    const Meetings meetings = MeetingsOf(warp);
    for (Meeting* met : {meetings.of_block, meetings.of_warp}) {
      if (met->fences == nullptr || (chain != 0 && met->told == chain)) continue;
      met->told = chain;
      out.push_back(Message{met->fences, block, Reach::kDevice, true});
    }
  }
  LaneState* state = FindLane(warp, lane);
  if (state != nullptr && (chain == 0 || state->told != chain)) {
    for (std::size_t r = kReaches; r-- > 0;) {
      const Snapshot& snapshot = state->fence[r];
      if (snapshot.now == 0) continue;
      if (r + 1 < kReaches && state->fence[r + 1].now == snapshot.now) continue;
      if (state->exported[r] == nullptr)
        state->exported[r] = order_.Export(snapshot, 1u << snapshot.lane);
      out.push_back(Message{state->exported[r], block, static_cast<Reach>(r)});
    }
    for (const Released& released : state->released) {
      if (released.at == at) out.push_back(released.message);
    }
    state->told = chain;
  }
  if (!releases) return;
  const Message message{order_.Export(order_.Take(warp, lane), 1u << lane), block, reach};
  out.push_back(message);
  order_.Tick(block);
  LaneState& own = Lane(warp, lane);
  std::erase_if(own.released,
                [&](const Released& r) { return r.at == at && r.message.reach <= reach; });
  if (own.released.size() == kReleasedKept) own.released.erase(own.released.begin());
  own.released.push_back(Released{at, message});
}

void SyncObjects::Place(const ClockPtr& clock, const ClockPtr& before) {
  if (clock == nullptr || clock->place().line != 0) return;
  // It may go on in the line that its maker learned from, or in the location's: if it covers the
  // last one there.
  for (const Clock::Place& at :
       {before != nullptr ? before->place() : Clock::Place{}, clock->made_from()}) {
    if (at.line == 0 || last_steps_[at.line] != at.step) continue;
    clock->SetPlace({at.line, ++last_steps_[at.line]});
    return;
  }
  clock->SetPlace({last_steps_.size(), 1});
  last_steps_.push_back(1);
}

/// A lock that is taken for ever: joins what the same block released, in a new log, since earlier
/// states hold on to the old one.
void SyncObjects::Compact(Messages& messages) {
  std::map<std::tuple<BlockNumber, Reach>, ClockPtr> groups;
  for (std::size_t i = 0; i < messages.count; ++i) {
    const Message& message = (*messages.log)[i];
    ClockPtr& group = groups[{message.block, message.reach}];
    group = Joined(group, message.clock);
  }
  messages.log = std::make_shared<MessageLog>();
  for (auto& [key, clock] : groups)
    messages.log->push_back(Message{std::move(clock), std::get<0>(key), std::get<1>(key)});
  messages.count = messages.compact = messages.log->size();
}

void SyncObjects::Append(Published& published, const std::vector<Message>& messages) {
  auto next =
      published == nullptr ? std::make_shared<Messages>() : std::make_shared<Messages>(*published);
  if (next->chain == 0) next->chain = next_chain_++;
  ++next->version;
  for (const Message& message : messages) {
    if (message.reach == Reach::kDevice) {
      ClockPtr& joined = message.sequential ? next->sequential : next->wide;
      const ClockPtr before = joined;
      joined = Joined(joined, message.clock);
      Place(joined, before);
    }
    if (message.sequential) continue;
    next->narrow = next->narrow || message.reach != Reach::kDevice;
    if (next->log == nullptr) next->log = std::make_shared<MessageLog>();
    next->log->push_back(message);
    ++next->count;
  }
  if (next->count >= 64 && next->count >= 2 * next->compact) Compact(*next);
  published = std::move(next);
}

void SyncObjects::OnStrongWrite(WarpNumber warp, int lane, Location at, std::uint32_t bytes,
                                bool read_modify_write, bool releases, Reach reach) {
  // A plain write begins a chain of its own, that has nothing yet.
  Published* const before = read_modify_write ? FindPublished(at) : nullptr;
  if (before != nullptr && !releases && HasSaidAll(warp, lane, (*before)->chain)) return;
  scratch_.clear();
  const std::uint64_t chain = before == nullptr ? 0 : (*before)->chain;
  MessagesOf(warp, lane, at, releases, reach, chain, scratch_);
  if (!read_modify_write) Break(at, bytes);
  if (scratch_.empty()) return;
  Append(before != nullptr ? *before : regions_[at.region][at.offset], scratch_);
}

Published SyncObjects::OnOvertakenWrite(WarpNumber warp, int lane, Location at, bool releases,
                                        Reach reach) {
  scratch_.clear();
  MessagesOf(warp, lane, at, releases, reach, 0, scratch_);
  Published published;
  if (!scratch_.empty()) Append(published, scratch_);
  return published;
}

void SyncObjects::Break(Location at, std::uint32_t bytes) {
  const auto region = regions_.find(at.region);
  if (region == regions_.end()) return;
  auto& chains = region->second;
  found_ = nullptr;
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

Published SyncObjects::Completed(Phase& phase) {
  auto messages = std::make_shared<Messages>();
  messages->chain = next_chain_++;
  messages->log = std::make_shared<MessageLog>();
  for (Phase::Part& part : phase.parts) {
    Place(part.clock, nullptr);
    if (part.reach == Reach::kDevice) {
      messages->wide = Joined(messages->wide, part.clock);
    } else {
      messages->narrow = true;
    }
    messages->log->push_back(Message{std::move(part.clock), part.block, part.reach});
  }
  messages->count = messages->log->size();
  phase.parts.clear();
  return messages;
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
      MessagesOf(warp, std::countr_zero(rest), at, false, reach, 0, scratch_);
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
  const Published completed = mbarriers_[at.region][at.offset].completed;
  if (completed == nullptr) return;
  if (acquires) {
    Take(warp, lanes, *completed, reach);
    return;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1)
    AddPending(warp, std::countr_zero(rest), completed, at, RaceDetector::Gap::kNowhere, false);
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
      MessagesOf(warp, std::countr_zero(rest), kNowhere, false, Reach::kCluster, 0, scratch_);
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
  Take(warp, lanes, *at->second.completed, Reach::kCluster);
}

std::uint64_t SyncObjects::bytes() const {
  std::uint64_t total = lanes_.size() * sizeof(WarpLanes);
  for (const auto& [region, places] : regions_) {
    for (const auto& [offset, messages] : places) {
      total += sizeof(Messages) + messages->count * sizeof(Message);
      if (messages->wide != nullptr) total += messages->wide->bytes();
    }
  }
  return total;
}

}  // namespace assay::emu
