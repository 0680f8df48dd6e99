#include "agent/loop/judge.h"

namespace assay::loop {
namespace {

constexpr std::size_t kMaxRegressions = 8;

}  // namespace

gates::Judgement GatekeeperJudge::Assess(const ops::Instance& instance,
                                         const verdict::Candidate& candidate,
                                         const JudgeContext& context) {
  gates::Tools tools = tools_;
  tools.progress = context.progress;
  gates::Options options = options_;
  options.holdout_seed = context.holdout_seed;
  options.regressions = context.regressions;
  gates::Gatekeeper gatekeeper(std::move(tools), std::move(options));
  return gatekeeper.Judge(instance, candidate);
}

JudgeDesk::JudgeDesk(const ops::Instance& instance, std::vector<std::unique_ptr<Judge>> judges,
                     std::function<std::uint64_t()> entropy, std::function<void()> wake)
    : instance_(instance),
      judges_(std::move(judges)),
      entropy_(std::move(entropy)),
      wake_(std::move(wake)) {
  ASSAY_CHECK(!judges_.empty(), "a desk needs a judge");
  for (const std::unique_ptr<Judge>& judge : judges_) {
    threads_.emplace_back([this, &judge] { Work(*judge); });
  }
}

JudgeDesk::~JudgeDesk() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JudgeDesk::Submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    ++pending_;
  }
  ready_.notify_one();
}

std::vector<JudgeDesk::Done> JudgeDesk::Take() {
  const std::lock_guard lock(mutex_);
  pending_ -= done_.size();
  return std::exchange(done_, {});
}

std::vector<JudgeDesk::Report> JudgeDesk::TakeProgress() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

std::size_t JudgeDesk::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void JudgeDesk::DropQueued() {
  const std::lock_guard lock(mutex_);
  pending_ -= queue_.size();
  queue_.clear();
}

void JudgeDesk::Work(Judge& judge) {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();

    Done done;
    done.attempt = task.attempt;
    JudgeContext context;
    context.holdout_seed = [&] {
      const std::uint64_t seed = entropy_();
      done.holdout_seeds.push_back(seed);
      return seed;
    };
    context.progress = [&](const gates::Progress& progress) {
      {
        const std::lock_guard guard(mutex_);
        // People see the latest word only; a slow terminal must not pile them up.
        std::erase_if(reports_,
                      [&](const Report& report) { return report.attempt == task.attempt; });
        reports_.push_back({task.attempt, progress});
      }
      wake_();
    };
    context.regressions = std::move(task.regressions);
    done.judgement = judge.Assess(instance_, task.candidate, context);
    done.broken_off = judge.BrokenOff();

    lock.lock();
    done_.push_back(std::move(done));
    lock.unlock();
    wake_();
    lock.lock();
  }
}

std::vector<verdict::Counterexample> KnownCounterexamples(const runs::RunState& state,
                                                          const runs::Attempt& attempt) {
  std::vector<verdict::Counterexample> known;
  for (const runs::Attempt* at = state.Find(attempt.parent); at != nullptr;
       at = state.Find(at->parent)) {
    if (!at->verdict) continue;
    for (const verdict::GateResult& gate : at->verdict->gates) {
      if (gate.gate == "holdout") continue;
      for (const verdict::Counterexample& counterexample : gate.counterexamples) {
        if (counterexample.probe && known.size() < kMaxRegressions) known.push_back(counterexample);
      }
    }
  }
  return known;
}

}  // namespace assay::loop
