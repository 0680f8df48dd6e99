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

#include "agent/generate.h"
#include "agent/judge.h"
#include "agent/model.h"
#include "base/file.h"

namespace assay::agent::testing {

/// A folder of its own, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

/// An instance of the library's rms_norm in bf16.
ops::Instance RmsNorm();

/// A reply in the right form whose kernel holds `// judge: WORDS`, which ScriptedJudge obeys.
std::string ReplyWith(const std::string& words);

/// Answers by a function of the request; remembers what was asked. Replies come one a Poll, in the
/// order of requests.
class ScriptedModel final : public Model {
 public:
  using Script = std::function<Result<ModelReply>(const ModelRequest&)>;
  explicit ScriptedModel(Script script) : script_(std::move(script)) {}
  /// The n-th request gets the n-th text; more requests than texts are an error.
  explicit ScriptedModel(std::vector<std::string> texts);

  void Start(Ticket ticket, ModelRequest request) override;
  void Cancel(Ticket ticket) override;
  std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override;

  std::vector<ModelRequest> asked;
  std::vector<std::string> cancelled;

 private:
  Script script_;
  std::vector<std::pair<Ticket, ModelRequest>> pending_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

/// A verdict made of gate results: "passed", "refuted KIND", "inconclusive REASON".
gates::Verdict VerdictOf(const ops::Instance& instance, const gates::Candidate& candidate,
                         const std::string& words);

/// Obeys `// judge: accept`, `// judge: refute GATE KIND`, `// judge: inconclusive`, `// judge:
/// internal` in the kernel.
class ScriptedJudge final : public Judge {
 public:
  gates::Judgement Assess(const ops::Instance& instance, const gates::Candidate& candidate,
                          const JudgeContext& context) override;
  /// Called at the beginning of each judgement.
  std::function<void(const gates::Candidate&, const JudgeContext&)> on_assess;
};

/// Judges for Environment::make_judges.
std::function<Result<std::vector<std::unique_ptr<Judge>>>(const JudgeSettings&)> ScriptedJudges(
    std::function<void(const gates::Candidate&, const JudgeContext&)> on_assess = {},
    int count = 1);

Path PromptsFolder();
std::string Slurp(const Path& file);
/// The lines of `text`, sorted: for files in which overlapping requests and judgements may end in
/// any order.
std::string SortedLines(std::string_view text);
/// Every regular file below `folder`, relative, sorted.
std::vector<std::string> FilesBelow(const Path& folder);

}  // namespace assay::agent::testing
