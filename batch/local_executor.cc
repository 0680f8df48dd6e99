#include "batch/local_executor.h"

#include <algorithm>
#include <condition_variable>
#include <thread>

namespace assay::batch {
namespace {

// Who takes which instance: the next in order whose leader is not among those still open.
class Queue {
 public:
  Queue(std::vector<std::size_t> todo, const std::vector<std::optional<std::size_t>>& leaders,
        std::function<bool()> stop)
      : waiting_(std::move(todo)),
        open_(waiting_.begin(), waiting_.end()),
        leaders_(leaders),
        stop_(std::move(stop)) {}

  /// Waits for one that may begin; nothing when there is none left, or none is to begin any more.
  std::optional<std::size_t> Take() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (failed_ || waiting_.empty() || stop_()) return std::nullopt;
      const auto ready = std::ranges::find_if(waiting_, [&](std::size_t index) {
        return !leaders_[index] || !open_.contains(*leaders_[index]);
      });
      if (ready != waiting_.end()) {
        const std::size_t index = *ready;
        waiting_.erase(ready);
        return index;
      }
      changed_.wait(lock);  // a leader is under way: its end wakes us
    }
  }

  void Ended(std::size_t index, Status status) {
    const std::lock_guard lock(mutex_);
    open_.erase(index);
    if (!status && !failed_) failed_ = std::move(status.error());
    changed_.notify_all();
  }

  const std::optional<Error>& failed() const { return failed_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> waiting_;
  std::set<std::size_t> open_;  // waiting or under way
  const std::vector<std::optional<std::size_t>>& leaders_;
  std::function<bool()> stop_;
  std::optional<Error> failed_;
};

}  // namespace

Status LocalExecutor::Run(Work& work, const std::vector<std::size_t>& todo) {
  const auto stop = [&] {
    return (tools_.interrupted && tools_.interrupted()) || work.purse().Exceeded().has_value();
  };
  Queue queue(InOrder(work.plan(), todo), work.leaders(), stop);
  const auto run = [&](std::size_t index) -> Status {
    RunInputs inputs{.task = work.plan().tasks[index],
                     .batch = work.folder().path(),
                     .sister = work.SisterOf(index),
                     .regressions = work.RegressionsOf(index)};
    RunTools tools = tools_;
    tools.observe = [&work, index](const loop::Notice& notice) { work.Notice(index, notice); };
    ASSAY_TRY_VOID(work.Started(index, WhereWeAre(), inputs.sister ? inputs.sister->instance : ""));
    return work.Ended(index, RunInstance(inputs, tools));
  };
  const std::size_t threads =
      std::clamp<std::size_t>(jobs_, 1, std::max<std::size_t>(todo.size(), 1));
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 0; i < threads; ++i) {
      pool.emplace_back([&] {
        while (const std::optional<std::size_t> index = queue.Take())
          queue.Ended(*index, run(*index));
      });
    }
  }
  if (queue.failed()) return std::unexpected(*queue.failed());
  return {};
}

}  // namespace assay::batch
