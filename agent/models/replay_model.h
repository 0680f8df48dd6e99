// `replay/FILE`: a transcript (runs/transcript.h) as a model: deterministic, offline, free.
//
// Recorded exchanges are found by name and must have been asked for the same conversation, byte for
// byte; hand-written ones are handed out in order. Recorded replies arrive in the order in which
// they arrived then, so that a run with several requests at once takes the same course.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/models/model.h"
#include "runs/transcript.h"

namespace assay::models {

class ReplayModel final : public Model {
 public:
  ReplayModel(runs::Transcript transcript, std::string file);
  const runs::Transcript& transcript() const { return transcript_; }

  void Start(Ticket ticket, ModelRequest request) override;
  void Cancel(Ticket ticket) override;
  std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override;
  std::string Notice() const override;
  std::optional<Error> Stuck() const override;
  void PassOver(const std::vector<std::string>& names) override;

 private:
  void SkipPassedOver();
  std::optional<Error> Divergence(const ModelRequest& request,
                                  const runs::Exchange& exchange) const;

  runs::Transcript transcript_;
  std::string file_;
  std::size_t next_ = 0;
  std::set<std::string> passed_over_;
  std::vector<std::pair<Ticket, ModelRequest>> pending_;  // in the order started
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

}  // namespace assay::models
