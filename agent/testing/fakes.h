// Fakes for the agent's tests: a model that says what a script tells it, a judge that reads its
// verdict from the kernel's text.
//
// The judge cannot make a vetted kernel (nobody but the Gatekeeper can), so nothing here reaches
// emission.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/loop/generate.h"
#include "agent/loop/judge.h"
#include "agent/models/model.h"
#include "base/file.h"
#include "runs/testing/fakes.h"

namespace assay::testing {

/// Answers by a function of the request; remembers what was asked. Replies come one a Poll, in the
/// order of requests.
class ScriptedModel final : public models::Model {
 public:
  using Script = std::function<Result<runs::ModelReply>(const models::ModelRequest&)>;
  explicit ScriptedModel(Script script) : script_(std::move(script)) {}
  /// The n-th request gets the n-th text; more requests than texts are an error.
  explicit ScriptedModel(std::vector<std::string> texts);

  void Start(models::Ticket ticket, models::ModelRequest request) override;
  void Cancel(models::Ticket ticket) override;
  std::vector<models::ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override;

  std::vector<models::ModelRequest> asked;
  std::vector<std::string> cancelled;

 private:
  Script script_;
  std::vector<std::pair<models::Ticket, models::ModelRequest>> pending_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

/// Obeys `// judge: accept`, `// judge: refute GATE KIND`, `// judge: inconclusive`, `// judge:
/// internal` in the kernel.
class ScriptedJudge final : public loop::Judge {
 public:
  gates::Judgement Assess(const ops::Instance& instance, const verdict::Candidate& candidate,
                          const loop::JudgeContext& context) override;
  /// Called at the beginning of each judgement.
  std::function<void(const verdict::Candidate&, const loop::JudgeContext&)> on_assess;
};

/// Judges for Environment::make_judges.
std::function<Result<std::vector<std::unique_ptr<loop::Judge>>>(const loop::JudgeSettings&)>
ScriptedJudges(
    std::function<void(const verdict::Candidate&, const loop::JudgeContext&)> on_assess = {},
    int count = 1);

Path PromptsFolder();
}  // namespace assay::testing
