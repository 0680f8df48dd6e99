#include "validator/emu/monitor/shadow.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace assay::emu {
namespace {

constexpr std::uint32_t kLaneBits = 5;
constexpr RecordId kMaxRecords = 1u << 26;

}  // namespace

std::size_t Shadow::HashElements::operator()(const std::vector<std::uint32_t>& v) const {
  std::uint64_t hash = v.size();
  for (const std::uint32_t e : v) hash = Mix64(hash ^ e);
  return static_cast<std::size_t>(hash);
}

void Shadow::Account(std::int64_t delta) {
  bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes_) + delta);
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  if (bytes_ > max_bytes_) exhausted_ = true;
}

void Shadow::Clear() {
  regions_.clear();
  records_.assign(1, Record{});
  pinned_.assign(1, true);
  free_records_.clear();
  memo_.fill(0);
  sets_.assign(1, Set{});
  free_sets_.clear();
  set_index_.clear();
  collect_at_ = 1u << 16;
  bytes_ = 0;
}

void Shadow::DropRegion(RegionId region) {
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  for (auto& [number, page] : at->second) {
    for (auto& cells : page->lines) {
      if (cells == nullptr) continue;
      for (const Ref ref : cells->refs) Release(ref);
      Account(-static_cast<std::int64_t>(sizeof(Cells) + cells->refs.size() * sizeof(Ref)));
    }
    Account(-static_cast<std::int64_t>(sizeof(Page)));
  }
  regions_.erase(at);
}

Shadow::Cells* Shadow::Touch(RegionId region, std::uint64_t line, std::uint8_t shift) {
  std::unique_ptr<Page>& page = regions_[region][line / kPageLines];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    Account(sizeof(Page));
  }
  std::unique_ptr<Cells>& cells = page->lines[line % kPageLines];
  if (cells == nullptr) {
    cells = std::make_unique<Cells>();
    cells->shift = shift;
    cells->refs.assign(2 * (kLineBytes >> shift), 0);
    Account(static_cast<std::int64_t>(sizeof(Cells) + cells->refs.size() * sizeof(Ref)));
  } else if (cells->shift > shift) {
    Refine(*cells, shift);
  }
  return exhausted_ ? nullptr : cells.get();
}

void Shadow::Refine(Cells& cells, std::uint8_t shift) {
  const std::size_t copies = std::size_t{1} << (cells.shift - shift);
  std::vector<Ref> refs;
  refs.reserve(cells.refs.size() * copies);
  for (const Ref ref : cells.refs) {
    refs.insert(refs.end(), copies, ref);
    if ((ref & kSetBit) != 0) {
      sets_[(ref & ~kSetBit) >> kLaneBits].users += static_cast<std::uint32_t>(copies - 1);
    }
  }
  Account(static_cast<std::int64_t>((refs.size() - cells.refs.size()) * sizeof(Ref)));
  cells.refs = std::move(refs);
  cells.shift = shift;
}

RecordId Shadow::Intern(const Record& record) {
  const std::uint64_t hash =
      Mix64((std::uint64_t{record.warp} << 32 | record.pc) ^ record.pattern * 0x9e3779b97f4a7c15u);
  RecordId& memo = memo_[hash % memo_.size()];
  const Record& known = records_[memo];
  if (memo != 0 && known.warp == record.warp && known.time == record.time &&
      known.pc == record.pc && known.pattern == record.pattern && known.traits == record.traits) {
    return memo;
  }
  const RecordId id = Allocate(record);
  memo_[hash % memo_.size()] = id;
  return id;
}

RecordId Shadow::Allocate(const Record& record) {
  if (free_records_.empty() && records_.size() >= collect_at_) CollectRecords();
  if (!free_records_.empty()) {
    const RecordId id = free_records_.back();
    free_records_.pop_back();
    records_[id] = record;
    return id;
  }
  if (records_.size() >= kMaxRecords) {
    exhausted_ = true;
    return 0;
  }
  records_.push_back(record);
  pinned_.push_back(false);
  Account(sizeof(Record));
  return static_cast<RecordId>(records_.size() - 1);
}

RecordId Shadow::NewPinned(const Record& record) {
  const RecordId id = Allocate(record);
  pinned_[id] = true;
  return id;
}

void Shadow::Unpin(RecordId id) { pinned_[id] = false; }

void Shadow::CollectRecords() {
  std::vector<bool> used = pinned_;
  const auto mark = [&](Ref ref) {
    if (ref == 0) return;
    const std::uint32_t index = (ref & ~kSetBit) >> kLaneBits;
    if ((ref & kSetBit) == 0) {
      used[index] = true;
      return;
    }
    for (const std::uint32_t element : sets_[index].elements)
      used[(element & ~kSetBit) >> kLaneBits] = true;
  };
  for (const auto& [region, pages] : regions_) {
    for (const auto& [number, page] : pages) {
      for (const auto& cells : page->lines) {
        if (cells == nullptr) continue;
        for (const Ref ref : cells->refs) mark(ref);
      }
    }
  }
  memo_.fill(0);
  for (RecordId id = static_cast<RecordId>(records_.size()); id-- > 1;) {
    if (!used[id]) free_records_.push_back(id);
  }
  // Collect again when as much is new as was found alive: the walk over the cells is then paid for.
  collect_at_ = std::max<std::size_t>(1u << 16, 2 * (records_.size() - free_records_.size()));
}

void Shadow::Decode(Ref ref, std::vector<Element>& out) const {
  if (ref == 0) return;
  const std::uint32_t index = (ref & ~kSetBit) >> kLaneBits;
  const auto lane = static_cast<std::uint8_t>(ref & (kWarpSize - 1));
  if ((ref & kSetBit) == 0) {
    out.push_back(Element{index, lane, false});
    return;
  }
  for (const std::uint32_t e : sets_[index].elements) {
    out.push_back(Element{(e & ~kSetBit) >> kLaneBits,
                          static_cast<std::uint8_t>((e + lane) & (kWarpSize - 1)),
                          (e & kSetBit) != 0});
  }
}

void Shadow::Release(Ref ref) {
  if ((ref & kSetBit) == 0) return;
  const std::uint32_t index = (ref & ~kSetBit) >> kLaneBits;
  Set& set = sets_[index];
  if (--set.users != 0) return;
  set_index_.erase(set.elements);
  Account(
      -static_cast<std::int64_t>(2 * set.elements.size() * sizeof(std::uint32_t) + sizeof(Set)));
  set.elements.clear();
  free_sets_.push_back(index);
}

Ref Shadow::Encode(const std::vector<Element>& elements, Ref old) {
  if (elements.empty()) {
    Release(old);
    return 0;
  }
  if (elements.size() == 1 && !elements[0].later_value) {
    Release(old);
    return elements[0].record << kLaneBits | elements[0].lane;
  }
  const std::uint32_t lane = elements[0].lane;
  key_.clear();
  for (const Element& e : elements) {
    key_.push_back((e.later_value ? kSetBit : 0u) | e.record << kLaneBits |
                   ((e.lane - lane) & (kWarpSize - 1)));
  }
  std::uint32_t index = 0;
  if (const auto known = set_index_.find(key_); known != set_index_.end()) {
    index = known->second;
  } else {
    if (!free_sets_.empty()) {
      index = free_sets_.back();
      free_sets_.pop_back();
    } else {
      index = static_cast<std::uint32_t>(sets_.size());
      ASSAY_CHECK(index < kMaxRecords, "more sets than a reference can name");
      sets_.emplace_back();
    }
    sets_[index].elements = key_;
    set_index_.emplace(key_, index);
    Account(static_cast<std::int64_t>(2 * key_.size() * sizeof(std::uint32_t) + sizeof(Set)));
  }
  ++sets_[index].users;
  Release(old);
  return kSetBit | index << kLaneBits | lane;
}

}  // namespace assay::emu
