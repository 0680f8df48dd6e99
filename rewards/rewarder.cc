#include "rewards/rewarder.h"

#include "base/rng.h"
#include "base/text.h"
#include "runs/extract.h"
#include "validator/findings/render.h"

namespace assay::rewards {
namespace {

constexpr std::size_t kMostFeedback = 4096;

RewardLine Invalid(std::uint64_t index, const Error& error) {
  RewardLine reward{.index = index};
  reward.outcome = "invalid";
  reward.reason = ToString(error);
  return reward;
}

void Explain(const verdict::Verdict& judged, const std::string& kernel, RewardLine& reward) {
  const auto counterexamples = judged.Counterexamples();
  if (counterexamples.empty() || counterexamples.front()->findings.empty()) return;
  const Finding& finding = counterexamples.front()->findings.front();
  reward.finding = Name(finding.kind);
  for (const Access& access : finding.accesses) {
    if (reward.line == 0 && access.site.file.ends_with("kernel.cu")) reward.line = access.site.line;
  }
  SourceText source;
  source.Add("kernel.cu", kernel);
  reward.feedback = Head(ValidUtf8(RenderText(finding, source)), kMostFeedback);
}

}  // namespace

Json ToJson(const RewardLine& reward) {
  Json gates = Json::array();
  for (const GateReward& gate : reward.score.gates) gates.push_back(ToJson(gate));
  return {{"schema", "assay.reward/1"},
          {"index", reward.index},
          {"id", reward.id},
          {"key", reward.key},
          {"outcome", reward.outcome},
          {"reason", reward.reason},
          {"reward", reward.score.reward ? Json(*reward.score.reward) : Json(nullptr)},
          {"conclusive", reward.score.conclusive},
          {"gates", std::move(gates)},
          {"finding", reward.finding},
          {"line", reward.line},
          {"feedback", reward.feedback}};
}

Rewarder::Rewarder(JudgeFunction judge, FindOp find, runs::JudgeFacts facts, std::string arch,
                   Path cache)
    : judge_(std::move(judge)),
      find_(std::move(find)),
      facts_(std::move(facts)),
      arch_(std::move(arch)),
      cache_(std::move(cache)) {}

Result<ops::Instance> Rewarder::InstanceFor(const CandidateLine& line) {
  auto known = ops_.find(line.op);
  if (known == ops_.end()) {
    ASSAY_TRY(ops::OpSpec op, find_(line.op));
    known = ops_.emplace(line.op, std::move(op)).first;
  }
  if (!line.op_digest.empty() && line.op_digest != known->second.digest) {
    return Fail(ErrorKind::kUsage, "the op '" + line.op + "' is not the one of the candidate",
                "op_digest", "use the version of assay that made the data, or leave op_digest out");
  }
  return ops::MakeInstance(known->second, line.binding, line.arch.empty() ? arch_ : line.arch);
}

Result<Rewarder::Task> Rewarder::Prepare(std::string_view text, const std::string& place) {
  Task task;
  ASSAY_TRY(task.line, ParseCandidate(text, place));
  ASSAY_TRY(task.instance, InstanceFor(task.line));
  task.key =
      runs::JudgementKey(facts_, task.instance, task.line.candidate,
                         task.line.malformed ? std::optional(task.line.reply) : std::nullopt);
  return task;
}

std::string Rewarder::KeyOfLine(std::string_view line) {
  const Result<Task> task = Prepare(line, "line");
  return task ? task->key : std::string();
}

Result<RewardLine> Rewarder::Reward(std::string_view text, std::uint64_t index) {
  Result<Task> prepared = Prepare(text, "line " + std::to_string(index + 1));
  if (!prepared) return Invalid(index, prepared.error());
  Task& task = *prepared;
  std::optional<verdict::Verdict> judged = cache_.Find(task.key);
  const bool known = judged.has_value();
  if (known) {
    ++known_;
  } else if (task.line.malformed) {
    judged = runs::FormatVerdict(task.instance, facts_.engine, *task.line.malformed);
  } else {
    judged = judge_(task.instance, task.line.candidate, DeriveSeed(facts_.seed, task.key));
    ++judged_;
  }
  RewardLine reward{.index = index, .id = task.line.id, .key = task.key};
  reward.outcome = verdict::Name(judged->outcome);
  reward.reason = judged->reason;
  reward.score = ScoreOf(*judged);
  Explain(*judged, task.line.candidate.kernel, reward);
  if (known) return reward;
  const runs::Judged record{.key = task.key,
                            .op = task.instance.op.name,
                            .op_digest = task.instance.op.digest,
                            .binding = runs::BindingWords(task.instance),
                            .arch = task.instance.arch,
                            .judge = facts_.versions,
                            .candidate = std::move(task.line.candidate),
                            .reply = std::move(task.line.reply),
                            .model = std::move(task.line.model),
                            .prompt = std::move(task.line.prompt),
                            .verdict = *std::move(judged)};
  ASSAY_TRY_VOID(cache_.Keep(record));
  return reward;
}

}  // namespace assay::rewards
