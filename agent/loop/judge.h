// The judge as the agent sees it: a candidate goes in, a judgement comes out. Only GatekeeperJudge
// can return a vetted kernel, because only the Gatekeeper can make one; tests script verdicts
// through this seam and can therefore never reach emission.
//
// JudgeDesk puts judges on threads of their own, so that judging overlaps with the model: Submit
// queues, Take returns what is done. With several judges, several candidates are judged (and
// compiled) at once; none is idle while a candidate waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runs/state.h"
#include "validator/gates/gatekeeper.h"

namespace assay::loop {

/// What belongs to one judgement rather than to the judge.
struct JudgeContext {
  std::function<std::uint64_t()> holdout_seed;  ///< Fresh seeds, recorded by whoever gives them.
  std::function<void(const gates::Progress&)> progress;  ///< Called from the judging thread.
  std::vector<verdict::Counterexample> regressions;  ///< Known counterexamples of this instance.
};

class Judge {
 public:
  virtual ~Judge() = default;
  /// Never fails: what goes wrong is in the verdict. Called by one thread at a time.
  virtual gates::Judgement Assess(const ops::Instance& instance,
                                  const verdict::Candidate& candidate,
                                  const JudgeContext& context) = 0;
  /// Was the latest one broken off? Then its verdict says nothing of the candidate: it is not
  /// recorded, and whoever resumes the run judges again.
  virtual bool BrokenOff() const { return false; }
};

/// The real one. `tools` must outlive it; `options` apply to every judgement (seeds, regressions
/// come with the context).
class GatekeeperJudge final : public Judge {
 public:
  GatekeeperJudge(gates::Tools tools, gates::Options options)
      : tools_(std::move(tools)), options_(std::move(options)) {}
  gates::Judgement Assess(const ops::Instance& instance, const verdict::Candidate& candidate,
                          const JudgeContext& context) override;

 private:
  gates::Tools tools_;
  gates::Options options_;
};

class JudgeDesk {
 public:
  struct Task {
    int attempt = 0;
    verdict::Candidate candidate;
    std::vector<verdict::Counterexample> regressions;
  };
  struct Done {
    int attempt = 0;
    gates::Judgement judgement;
    std::vector<std::uint64_t> holdout_seeds;  ///< Those that were drawn.
    bool broken_off = false;
  };
  struct Report {
    int attempt = 0;
    gates::Progress progress;
  };

  /// `entropy` gives holdout seeds; `wake` is called whenever Take has something new. Both from the
  /// judges' threads.
  JudgeDesk(const ops::Instance& instance, std::vector<std::unique_ptr<Judge>> judges,
            std::function<std::uint64_t()> entropy, std::function<void()> wake);
  /// Waits for judgements under way; queued ones are dropped.
  ~JudgeDesk();

  void Submit(Task task);
  std::vector<Done> Take();
  /// Latest progress, one report an attempt at most.
  std::vector<Report> TakeProgress();
  /// Tasks submitted and not yet taken.
  std::size_t pending() const;
  /// Forgets what is queued but not begun.
  void DropQueued();

 private:
  void Work(Judge& judge);

  const ops::Instance& instance_;
  std::vector<std::unique_ptr<Judge>> judges_;
  std::function<std::uint64_t()> entropy_;
  std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Task> queue_;
  std::vector<Done> done_;
  std::vector<Report> reports_;
  std::size_t pending_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

/// Counterexamples of the attempts that `attempt` descends from, for the judge to try first. Only
/// those: which other attempts have been judged by now is a matter of timing. Holdout cases stay
/// out: what is tried again would be told.
std::vector<verdict::Counterexample> KnownCounterexamples(const runs::RunState& state,
                                                          const runs::Attempt& attempt);

}  // namespace assay::loop
