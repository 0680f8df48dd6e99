#include "validator/emu/race/sync.h"

#include <algorithm>
#include <bit>

namespace assay::emu {

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
  if (reach != Reach::kBlock && order_.blocks_per_cluster() > 1)
    order_.Learn(warp, lanes, PartOfCluster(messages, order_.ClusterOf(block)));
  order_.Learn(warp, lanes, PartOfBlock(messages, block));
}

template <class Takes>
const ClockPtr& SyncObjects::JoinPart(const Messages& messages,
                                      Messages::Part Messages::Parts::* which, std::uint32_t whose,
                                      const Takes& takes) {
  std::shared_ptr<Messages::Parts>& parts = messages.parts;
  if (parts == nullptr) {
    parts = std::make_shared<Messages::Parts>();
  } else if (parts.use_count() > 1) {
    parts = std::make_shared<Messages::Parts>(*parts);
  }
  Messages::Part& part = (*parts).*which;
  if (part.whose != whose) part = {.whose = whose};
  const ClockPtr before = part.joined;
  for (; part.count < messages.count; ++part.count) {
    const Message& message = (*messages.log)[part.count];
    if (takes(message)) part.joined = Joined(part.joined, message.clock);
  }
  if (part.joined != before) Place(part.joined, before);
  return part.joined;
}

/// What somebody of the block takes, however narrow its scope is.
const ClockPtr& SyncObjects::PartOfBlock(const Messages& messages, BlockNumber block) {
  return JoinPart(messages, &Messages::Parts::of_block, block, [&](const Message& message) {
    return message.block == block || message.block == kAnyBlock;
  });
}

/// What somebody of the cluster takes whose scope is that wide, but for what reaches a block alone.
const ClockPtr& SyncObjects::PartOfCluster(const Messages& messages, std::uint32_t cluster) {
  return JoinPart(messages, &Messages::Parts::of_cluster, cluster, [&](const Message& message) {
    return message.block != kAnyBlock && message.reach >= Reach::kCluster &&
           order_.ClusterOf(message.block) == cluster;
  });
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
