#include "validator/emu/race/record_table.h"

#include <algorithm>

namespace assay::emu {

namespace {

std::uint32_t HashOf(std::uint32_t parent, const std::vector<std::uint32_t>& elements) {
  std::uint64_t hash = elements.size() + (std::uint64_t{parent} << 32);
  for (const std::uint32_t e : elements) hash = (hash ^ e) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

void RecordTable::Clear() {
  records_.clear();
  records_.reserve(collect_at_);  // Address space only, until it is used.
  records_.push_back(Record{});
  pinned_.clear();
  free_records_.clear();
  memo_.fill({});
  sets_.assign(1, Set{});
  free_sets_.clear();
  buckets_.assign(kFirstBuckets, 0);
  collect_at_ = 1u << 16;
  ++collections_;
  set_elements_ = 0;
}

RecordId RecordTable::Intern(const Record& record) {
  const std::uint32_t hash =
      ((record.warp * 0x9e3779b9u) ^ (record.pc * 0x85ebca6bu)) + record.pattern * 0xc2b2ae35u;
  Memo& memo = memo_[(hash ^ hash >> 15) % memo_.size()];
  const Record& known = memo.record;
  if (memo.id != 0 && known.time == record.time && known.warp == record.warp &&
      known.pc == record.pc && known.pattern == record.pattern && known.traits == record.traits) {
    return memo.id;
  }
  memo.record = record;
  return memo.id = Allocate(record);
}

RecordId RecordTable::Allocate(const Record& record) {
  if (!free_records_.empty()) {
    const RecordId id = free_records_.back();
    free_records_.pop_back();
    records_[id] = record;
    return id;
  }
  if (records_.size() >= kMaxRecords) {
    full_ = true;
    return 0;
  }
  records_.push_back(record);
  return static_cast<RecordId>(records_.size() - 1);
}

RecordId RecordTable::NewPinned(const Record& record) {
  const RecordId id = Allocate(record);
  pinned_.push_back(id);
  return id;
}

void RecordTable::BeginMark() {
  marked_.assign(records_.size(), false);
  marked_sets_.assign(sets_.size(), false);
  for (const RecordId id : pinned_) marked_[id] = true;
}

void RecordTable::Mark(Ref ref) {
  if (!IsSet(ref)) {
    marked_[IndexOf(ref)] = true;
    return;
  }
  for (std::uint32_t index = IndexOf(ref); index != 0 && !marked_sets_[index];
       index = sets_[index].parent) {
    marked_sets_[index] = true;
    for (const std::uint32_t element : sets_[index].elements) marked_[RecordOf(element)] = true;
  }
}

void RecordTable::Sweep() {
  memo_.fill({});
  for (RecordId id = static_cast<RecordId>(records_.size()); id-- > 1;) {
    if (!marked_[id]) free_records_.push_back(id);
  }
  // Again when as much is new as was found alive: the walk over the cells is then paid for.
  const std::size_t alive = records_.size() - free_records_.size();
  collect_at_ = std::max<std::size_t>(1u << 16, 2 * alive);
  ++collections_;
}

void RecordTable::Decode(Ref ref, std::vector<Element>& out) const {
  if (ref == 0) return;
  const std::uint32_t lane = LaneOf(ref);
  if (!IsSet(ref)) {
    out.push_back(Element{IndexOf(ref), static_cast<std::uint8_t>(lane), false});
    return;
  }
  std::size_t at = out.size() + sets_[IndexOf(ref)].size;
  out.resize(at);
  for (std::uint32_t index = IndexOf(ref); index != 0; index = sets_[index].parent) {
    const auto& elements = sets_[index].elements;
    for (auto e = elements.rbegin(); e != elements.rend(); ++e) {
      out[--at] = Element{RecordOf(*e), static_cast<std::uint8_t>((*e + lane) & kLaneOfRef),
                          IsSet(*e), (*e & kBehindBit) != 0};
    }
  }
}

const Record& RecordTable::First(Ref ref) const {
  return IsSet(ref) ? records_[RecordOf(sets_[IndexOf(ref)].first)] : records_[IndexOf(ref)];
}

void RecordTable::ReleaseSet(std::uint32_t index) {
  while (index != 0) {
    Set& set = sets_[index];
    if (--set.users != 0) return;
    std::uint32_t* at = &BucketOf(set.hash);
    while (*at != index) at = &sets_[*at].next;
    *at = set.next;
    set_elements_ -= set.elements.size();
    set.elements.clear();
    ++set.generation;
    free_sets_.push_back(index);
    index = set.parent;
  }
}

void RecordTable::Rehash() {
  buckets_.assign(2 * buckets_.size(), 0);
  for (std::uint32_t i = 1; i < sets_.size(); ++i) {
    if (sets_[i].users == 0) continue;
    std::uint32_t& bucket = BucketOf(sets_[i].hash);
    sets_[i].next = bucket;
    bucket = i;
  }
}

Ref RecordTable::Encode(const std::vector<Element>& elements, std::uint32_t users) {
  if (elements.empty()) return 0;
  const std::uint32_t lane = elements[0].lane;
  if (elements.size() == 1 && !elements[0].later_value)
    return elements[0].record << kLaneBits | lane;
  key_.clear();
  for (const Element& e : elements) {
    key_.push_back((e.later_value ? kSetBit : 0u) | (e.behind ? kBehindBit : 0u) |
                   e.record << kLaneBits | ((e.lane - lane) & kLaneOfRef));
  }
  const std::uint32_t index = FindOrMake(0);
  sets_[index].users += users;
  return index == 0 ? 0 : kSetBit | index << kLaneBits | lane;
}

Ref RecordTable::Append(Ref ref, const Element& element) {
  key_.assign(1, (element.later_value ? kSetBit : 0u) | (element.behind ? kBehindBit : 0u) |
                     element.record << kLaneBits | ((element.lane - LaneOf(ref)) & kLaneOfRef));
  const std::uint32_t index = FindOrMake(IndexOf(ref));
  ++sets_[index].users;
  return index == 0 ? 0 : kSetBit | index << kLaneBits | LaneOf(ref);
}

std::uint32_t RecordTable::FindOrMake(std::uint32_t parent) {
  const std::uint32_t hash = HashOf(parent, key_);
  std::uint32_t index = BucketOf(hash);
  while (index != 0 && (sets_[index].hash != hash || sets_[index].parent != parent ||
                        sets_[index].elements != key_))
    index = sets_[index].next;
  if (index != 0) return index;
  if (!free_sets_.empty()) {
    index = free_sets_.back();
    free_sets_.pop_back();
  } else if (sets_.size() < kMaxRecords) {
    index = static_cast<std::uint32_t>(sets_.size());
    sets_.emplace_back();
    if (sets_.size() > buckets_.size()) Rehash();
  } else {
    full_ = true;
    return 0;
  }
  const auto own = static_cast<std::uint32_t>(key_.size());
  Set& set = sets_[index];
  set.elements.assign(key_.begin(), key_.end());
  set.hash = hash;
  set.parent = parent;
  set.first = parent != 0 ? sets_[parent].first : key_.front();
  set.size = parent != 0 ? sets_[parent].size + own : own;
  set.tidy = parent != 0 ? sets_[parent].tidy : own;
  set.wide_bytes = parent != 0 ? sets_[parent].wide_bytes
                               : records_[RecordOf(key_.front())].traits.element_bytes;
  for (const std::uint32_t element : key_) {
    const Traits& traits = records_[RecordOf(element)].traits;
    const bool alike = traits.strong() && !traits.read_only_path() &&
                       traits.reach() == Reach::kDevice && traits.element_bytes == set.wide_bytes;
    if (!alike) set.wide_bytes = 0;
  }
  sets_[parent].users += parent != 0 ? 1u : 0u;
  std::uint32_t& bucket = BucketOf(hash);
  set.next = bucket;
  bucket = index;
  set_elements_ += key_.size();
  return index;
}

Ref RecordTable::Combine(Ref writers, Ref readers) {
  if (writers == 0 || readers == 0) return writers | readers;
  combined_.clear();
  const bool readers_first = ReadersFirst(readers);
  Decode(readers_first ? readers : writers, combined_);
  Decode(readers_first ? writers : readers, combined_);
  const Ref both = Encode(combined_);
  Release(writers);
  Release(readers);
  return both;
}

std::uint64_t RecordTable::bytes() const {
  return records_.size() * sizeof(Record) + sets_.size() * sizeof(Set) +
         buckets_.size() * sizeof(buckets_[0]) + set_elements_ * sizeof(std::uint32_t) +
         free_records_.size() * sizeof(RecordId);
}

}  // namespace assay::emu
