// Pages of a memory region by number, made when somebody needs them.
//
// A region of gigabytes has millions of numbers and few pages: what stands for those that were never made is not
// even written (fresh memory of the system holds zeros), and only pages that were made are visited or freed.
//
//   PageTable<Page> pages;
//   pages.Reset(1 << 20);
//   if (Page* page = pages[7]) ...            // null until made
//   pages.Put(7, std::make_unique<Page>());
//
// Cost: 8 bytes a number up to 32,768 numbers; beyond, for each 512 numbers of which one was looked at. Not thread-safe.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace assay {

template <class Page>
class PageTable {
 public:
  PageTable() = default;
  PageTable(PageTable&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        made_(std::exchange(other.made_, {})) {}
  PageTable& operator=(PageTable&& other) noexcept {
    if (this != &other) {
      Free();
      slots_ = std::exchange(other.slots_, nullptr);
      size_ = std::exchange(other.size_, 0);
      made_ = std::exchange(other.made_, {});
    }
    return *this;
  }
  ~PageTable() { Free(); }

  /// Numbers below `size`, none of which has a page.
  void Reset(std::uint64_t size) {
    Free();
    slots_ = Zeros(size);
    size_ = size;
  }
  /// More numbers; pages stay.
  void Grow(std::uint64_t size) {
    if (size <= size_) return;
    Page** const slots = Zeros(size);
    for (const std::uint64_t number : made_) slots[number] = slots_[number];
    Drop();
    slots_ = slots;
    size_ = size;
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t made() const { return made_.size(); }
  Page* operator[](std::uint64_t number) const { return slots_[number]; }

  /// For a number that has none.
  Page& Put(std::uint64_t number, std::unique_ptr<Page> page) {
    made_.push_back(number);
    slots_[number] = page.release();
    return *slots_[number];
  }
  /// Calls see(number, page), ascending.
  template <class See>
  void ForEach(const See& see) const {
    std::vector<std::uint64_t> numbers = made_;
    std::ranges::sort(numbers);
    for (const std::uint64_t number : numbers) see(number, *slots_[number]);
  }
  /// Calls take(page) with each, in the order in which they were made, and is empty then.
  template <class Take>
  void TakeEach(const Take& take) {
    for (const std::uint64_t number : made_) {
      take(std::unique_ptr<Page>(std::exchange(slots_[number], nullptr)));
    }
    made_.clear();
  }

 private:
  static constexpr std::uint64_t kMostWritten = 32'768;

  static Page** Zeros(std::uint64_t size) {
    if (size == 0) return nullptr;
    if (size <= kMostWritten) return new Page* [size] {};
    void* const place = ::mmap(nullptr, size * sizeof(Page*), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    return static_cast<Page**>(place);
  }
  void Drop() {
    if (size_ <= kMostWritten) {
      delete[] slots_;
    } else {
      ::munmap(static_cast<void*>(slots_), size_ * sizeof(Page*));
    }
  }
  void Free() {
    for (const std::uint64_t number : made_) delete slots_[number];
    Drop();
    made_.clear();
    slots_ = nullptr;
    size_ = 0;
  }

  Page** slots_ = nullptr;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> made_;  ///< Numbers that have a page.
};

}  // namespace assay
