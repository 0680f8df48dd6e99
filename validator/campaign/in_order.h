// Things made by several threads, and taken in order by one.
//
// MakeInOrder calls `make(i)` for 0 <= i < count, from `threads` threads, and hands what came of it to
// `take(i, thing)` in the order of i and from the calling thread, until that says false. Nothing is
// begun more than `ahead` + `threads` places beyond what was taken, so that little is made in vain;
// what was begun by then is waited for and dropped. So what is taken does not depend on time, nor on
// the number of threads, as long as `make` depends on i alone.
//
// What `make` throws is thrown where its thing would have been taken. With one thread everything
// happens on the calling one, and nothing is made that is not taken.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace assay::campaign {

/// With an `order`, things are begun in that one: of places that differ from those of taking by no more
/// than `ahead`. One thread takes no notice of it.
template <class Make, class Take>
void MakeInOrder(std::size_t count, std::size_t threads, std::size_t ahead, const Make& make,
                 const Take& take, std::span<const std::size_t> order = {}) {
  using Thing = decltype(make(std::size_t{}));
  threads = std::min(threads, count);
  if (threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!take(i, make(i))) return;
    }
    return;
  }
  struct Made {
    std::optional<Thing> thing;
    std::exception_ptr thrown;
    bool ready = false;
  };
  std::vector<Made> all(count);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0;   // to be begun,
  std::size_t taken = 0;  // and handed over.
  const auto work = [&] {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return next >= count || next < taken + ahead + threads; });
      if (next >= count) return;
      const std::size_t mine = order.empty() ? next : order[next];
      ++next;
      lock.unlock();
      Made made;
      try {
        made.thing.emplace(make(mine));
      } catch (...) {
        made.thrown = std::current_exception();
      }
      made.ready = true;
      lock.lock();
      all[mine] = std::move(made);
      changed.notify_all();
    }
  };
  std::vector<std::jthread> workers;
  // Whatever ends this, nothing more is begun, and `workers` joins before the rest goes.
  struct Stop {
    std::vector<std::jthread>& workers;
    std::mutex& mutex;
    std::condition_variable& changed;
    std::size_t& next;
    std::size_t count;
    ~Stop() {
      {
        const std::lock_guard lock(mutex);
        next = count;
      }
      changed.notify_all();
      workers.clear();
    }
  } const stop{workers, mutex, changed, next, count};
  for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(work);
  while (taken < count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return all[taken].ready; });
    Made made = std::exchange(all[taken], {});
    lock.unlock();
    if (made.thrown) std::rethrow_exception(made.thrown);
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): made, or thrown
    if (!take(taken, *std::move(made.thing))) return;
    lock.lock();
    ++taken;
    lock.unlock();
    changed.notify_all();
  }
}

}  // namespace assay::campaign
