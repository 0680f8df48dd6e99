// Where instances of a batch run: here, in threads (local_executor.h), or on a cluster
// (slurm_executor.h). One small interface; what both have in common stands here.
//
//   Work work(plan, keys, folder, store, purse, observer);
//   ASSAY_TRY_VOID(executor.Run(work, todo));
//
// An executor brings every instance of `todo` to its end, or as far as limits and `interrupted` let
// it. It records what begins and what ends through Work, which is thread-safe, and tells it to the
// observer, one call at a time. An instance that fails is an event like others; an error (Result)
// means that the batch itself cannot go on: the log cannot be written, the cluster does not answer.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "batch/folder.h"
#include "batch/plan.h"
#include "batch/purse.h"
#include "batch/sisters.h"
#include "runs/instance_key.h"
#include "runs/store.h"

namespace assay::batch {

/// Told what happens, one call at a time. `index` is the instance's place in the plan.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnBegin(const Path& folder, const Plan& plan, std::size_t todo) {
    static_cast<void>(folder), static_cast<void>(plan), static_cast<void>(todo);
  }
  virtual void OnStarted(std::size_t index, const InstanceStarted& event) {
    static_cast<void>(index), static_cast<void>(event);
  }
  virtual void OnNotice(std::size_t index, const loop::Notice& notice) {
    static_cast<void>(index), static_cast<void>(notice);
  }
  virtual void OnEnded(std::size_t index, const InstanceEnded& event) {
    static_cast<void>(index), static_cast<void>(event);
  }
  virtual void OnUpToDate(std::size_t index, const InstanceUpToDate& event) {
    static_cast<void>(index), static_cast<void>(event);
  }
  /// Words of an executor: "submitted job 17 with 20 tasks".
  virtual void OnWord(const std::string& word) { static_cast<void>(word); }
};

class Work {
 public:
  Work(const Plan& plan, const std::vector<runs::InstanceKey>& keys, BatchFolder& folder,
       const runs::Store& store, Purse& purse, Observer& observer);

  const Plan& plan() const { return plan_; }
  BatchFolder& folder() { return folder_; }
  Purse& purse() { return purse_; }
  const runs::Store& store() const { return store_; }
  Path regressions() const { return folder_.path() / "regressions"; }
  const std::vector<std::optional<std::size_t>>& leaders() const { return leaders_; }

  /// The kernel that `index` is shown: its leader's, where that was accepted.
  std::optional<prompts::Sister> SisterOf(std::size_t index) const;
  /// The cases that its leader left.
  std::vector<verdict::Counterexample> RegressionsOf(std::size_t index) const;

  Status Started(std::size_t index, const std::string& where, const std::string& sister);
  /// Keeps what the instance came to (counterexamples for its sisters, the vetted kernel in the
  /// store), then records its end.
  Status Ended(std::size_t index, const InstanceEnded& ended);
  void Notice(std::size_t index, const loop::Notice& notice);
  void Word(const std::string& word);

 private:
  Status Keep(std::size_t index, const InstanceEnded& ended) const;

  const Plan& plan_;
  const std::vector<runs::InstanceKey>& keys_;
  BatchFolder& folder_;
  const runs::Store& store_;
  Purse& purse_;
  Observer& observer_;
  const std::vector<std::optional<std::size_t>> leaders_;
  mutable std::mutex mutex_;
  std::map<std::size_t, InstanceState> known_;
  std::mutex telling_;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string name() const = 0;
  virtual Status Run(Work& work, const std::vector<std::size_t>& todo) = 0;
};

/// `todo` in the order in which to begin: by priority, leaders before their followers. A leader has
/// the priority of its most urgent follower.
std::vector<std::size_t> InOrder(const Plan& plan, std::vector<std::size_t> todo);

}  // namespace assay::batch
