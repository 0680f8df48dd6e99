// From lines of candidates to lines of rewards: one for each, in order, each a function of the
// candidate, the judge and the options. What `assay reward` does, and what a server would call.
//
//   Rewarder rewarder(tools, facts, "sm_90", cache_folder);
//   const RewardLine reward = rewarder.Reward(line, index);        // never fails: see RewardLine::outcome
//
// Seeds of the holdout gate follow from the key, so that the same candidate gets the same reward
// everywhere. They are no secret to one who has the seed: a reward trains, it does not vet, and
// nothing is emitted here. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "rewards/candidate.h"
#include "rewards/score.h"
#include "runs/judgement.h"

namespace assay::rewards {

/// rewards/schemas/reward.schema.json
struct RewardLine {
  std::uint64_t index = 0;
  Json id = nullptr;
  std::string key;      ///< Empty where nothing could be judged.
  std::string outcome;  ///< As in verdicts, or "invalid": the line itself is wrong.
  std::string reason;
  Score score;
  std::string finding;
  std::uint32_t line = 0;
  std::string feedback;
};
Json ToJson(const RewardLine& reward);

/// What judges; injected, so that tests need no compiler.
using JudgeFunction = std::function<verdict::Verdict(
    const ops::Instance&, const verdict::Candidate&, std::uint64_t holdout_seed)>;
using FindOp = std::function<Result<ops::OpSpec>(const std::string&)>;

class Rewarder {
 public:
  Rewarder(JudgeFunction judge, FindOp find, runs::JudgeFacts facts, std::string arch, Path cache);

  /// Judges the line, unless its verdict is known. Fails where a verdict cannot be kept.
  Result<RewardLine> Reward(std::string_view line, std::uint64_t index);
  /// The key that Reward would give the line, without judging; empty for one that is invalid.
  std::string KeyOfLine(std::string_view line);

  std::uint64_t judged() const { return judged_; }
  std::uint64_t known() const { return known_; }  ///< Found in the cache.

 private:
  struct Task {
    CandidateLine line;
    ops::Instance instance;
    std::string key;
  };
  Result<Task> Prepare(std::string_view line, const std::string& place);
  Result<ops::Instance> InstanceFor(const CandidateLine& line);

  JudgeFunction judge_;
  FindOp find_;
  runs::JudgeFacts facts_;
  std::string arch_;
  runs::JudgementFolder cache_;
  std::map<std::string, ops::OpSpec> ops_;
  std::uint64_t judged_ = 0;
  std::uint64_t known_ = 0;
};

}  // namespace assay::rewards
