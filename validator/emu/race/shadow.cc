#include "validator/emu/race/shadow.h"

#include <algorithm>
#include <bit>

namespace assay::emu {
namespace {

/// Pages kept for reuse: those of a block's shared memory are wanted again by the next block.
constexpr std::size_t kSpare = 64;

}  // namespace

void Shadow::Clear() {
  peak_bytes_ = std::max(peak_bytes_, bytes());
  regions_.clear();
  cache_.fill({});
  table_.Clear();
  pages_in_use_ = 0;
  page_bytes_ = spare_.size() * sizeof(Page);
  cell_bytes_ = 0;
}

void Shadow::CheckLimit() {
  const std::uint64_t now = bytes();
  peak_bytes_ = std::max(peak_bytes_, now);
  if (now > max_bytes_ || table_.full()) exhausted_ = true;
}

std::uint64_t Shadow::peak_bytes() {
  peak_bytes_ = std::max(peak_bytes_, bytes());
  return peak_bytes_;
}

void Shadow::Empty(Page& page) {
  for (std::size_t i = 0; i < kPageLines; ++i) {
    Line& line = page.lines[i];
    if (line.cells != nullptr) {
      const std::size_t refs = RefCount(page.shift[i]);
      for (std::size_t c = 0; c < refs; ++c) table_.Release(line.cells[c]);
      cell_bytes_ -= CellBytes(page.shift[i]);
      line.cells.reset();
    } else {
      table_.Release(line.writers);
      table_.Release(line.readers);
    }
    line.writers = 0;
    line.readers = 0;
  }
}

void Shadow::DropRegion(RegionId region) {
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  cache_[region % cache_.size()] = {};
  peak_bytes_ = std::max(peak_bytes_, bytes());
  page_bytes_ -= at->second.pages.size() * sizeof(Page*);
  at->second.pages.TakeEach([&](std::unique_ptr<Page> page) {
    Empty(*page);
    --pages_in_use_;
    if (spare_.size() < kSpare) {
      spare_.push_back(std::move(page));
    } else {
      page_bytes_ -= sizeof(Page);
    }
  });
  regions_.erase(at);
}

Shadow::Page* Shadow::FindPage(Region& region, std::uint64_t number) {
  PageTable<Page>& pages = region.pages;
  if (number >= pages.size()) {
    if (number >= kMaxPages) {
      exhausted_ = true;
      return nullptr;
    }
    const std::uint64_t before = pages.size();
    pages.Grow(std::max(number + 1, std::min(2 * before, kMaxPages)));
    page_bytes_ += (pages.size() - before) * sizeof(Page*);
  }
  if (pages[number] == nullptr) {
    ++pages_in_use_;
    if (!spare_.empty()) {
      pages.Put(number, std::move(spare_.back()));
      spare_.pop_back();
    } else {
      pages.Put(number, std::make_unique<Page>());
      page_bytes_ += sizeof(Page);
      CheckLimit();
    }
  }
  return exhausted_ ? nullptr : pages[number];
}

Shadow::Cells Shadow::SplitFiner(Page& page, std::size_t index, std::uint32_t shift) {
  Line& line = page.lines[index];
  std::uint8_t& now = page.shift[index];
  if (line.cells == nullptr) {
    // Fine enough for what the line knows already, too.
    for (const Ref ref : {line.writers, line.readers}) {
      if (ref == 0) continue;
      shift = std::min(
          shift, static_cast<std::uint32_t>(std::countr_zero(table_.First(ref).traits.bytes)));
    }
    const std::uint32_t count = kLineBytes >> shift;
    std::array<Ref, 2 * std::size_t{kLineBytes}> refs{};
    Ref* out = refs.data();
    for (const Ref ref : {line.writers, line.readers}) {
      if (ref != 0) {
        const std::uint32_t width = table_.First(ref).traits.bytes;
        for (std::uint32_t c = 0; c < count; ++c)
          out[c] = WithLane(ref, LaneOf(ref) + (c << shift) / width);
        table_.Use(ref, count - 1);
      }
      out += count;
    }
    auto cells = std::make_unique<Ref[]>(RefCount(shift));
    if (shift == 0) {
      for (std::uint32_t c = 0; c < count; ++c) cells[c] = table_.Combine(refs[c], refs[count + c]);
    } else {
      std::copy_n(refs.data(), RefCount(shift), cells.get());
    }
    line.cells = std::move(cells);
    line.writers = 0;
    line.readers = 0;
    now = static_cast<std::uint8_t>(shift);
    cell_bytes_ += CellBytes(shift);
    CheckLimit();
  } else if (now > shift) {
    const std::uint32_t copies = 1u << (now - shift);
    const std::uint32_t before = kLineBytes >> now;
    auto cells = std::make_unique<Ref[]>(RefCount(shift));
    const auto copy = [&](Ref ref, std::size_t cell) {
      std::fill_n(cells.get() + cell * copies, copies, ref);
      table_.Use(ref, copies - 1);
    };
    for (std::uint32_t c = 0; c < before; ++c) {
      if (shift == 0) {
        copy(table_.Combine(line.cells[c], line.cells[before + c]), c);
      } else {
        copy(line.cells[c], c);
        copy(line.cells[before + c], before + c);
      }
    }
    cell_bytes_ += CellBytes(shift) - CellBytes(now);
    line.cells = std::move(cells);
    now = static_cast<std::uint8_t>(shift);
    CheckLimit();
  }
  return CellsAt(line.cells.get(), now);
}

void Shadow::Collect() {
  table_.BeginMark();
  for (const auto& [id, region] : regions_) {
    region.pages.ForEach([&](std::uint64_t, const Page& page) {
      for (std::size_t i = 0; i < kPageLines; ++i) {
        const Line& line = page.lines[i];
        if (line.cells == nullptr) {
          table_.Mark(line.writers);
          table_.Mark(line.readers);
          continue;
        }
        const std::size_t refs = RefCount(page.shift[i]);
        for (std::size_t c = 0; c < refs; ++c) table_.Mark(line.cells[c]);
      }
    });
  }
  table_.Sweep();
  CheckLimit();
}

}  // namespace assay::emu
