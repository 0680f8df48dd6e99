// What strong writes say to strong reads: messages at locations, and why a reader has not got one.
#include <algorithm>
#include <bit>
#include <tuple>

#include "validator/emu/race/sync.h"

namespace assay::emu {

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
  messages.parts.reset();
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

}  // namespace assay::emu
