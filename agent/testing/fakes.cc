#include "agent/testing/fakes.h"

#include <algorithm>

namespace assay::testing {

ScriptedModel::ScriptedModel(std::vector<std::string> texts) {
  auto next = std::make_shared<std::size_t>(0);
  script_ = [texts = std::move(texts),
             next](const models::ModelRequest& request) -> Result<runs::ModelReply> {
    if (*next >= texts.size())
      return Fail(ErrorKind::kNetwork, "the script is at its end", request.name);
    runs::ModelReply reply;
    reply.text = texts[(*next)++];
    reply.usage = {
        .input_tokens = 100, .cached_input_tokens = 0, .output_tokens = 50, .estimated = false};
    reply.model = "scripted-1";
    return reply;
  };
}

void ScriptedModel::Start(models::Ticket ticket, models::ModelRequest request) {
  asked.push_back(request);
  pending_.emplace_back(ticket, std::move(request));
}

void ScriptedModel::Cancel(models::Ticket ticket) {
  for (const auto& [known, request] : pending_) {
    if (known == ticket) cancelled.push_back(request.name);
  }
  std::erase_if(pending_, [ticket](const auto& entry) { return entry.first == ticket; });
}

std::vector<models::ModelEvent> ScriptedModel::Poll(std::chrono::milliseconds timeout) {
  std::vector<models::ModelEvent> events;
  if (!pending_.empty()) {
    models::ModelEvent event{.ticket = pending_.front().first,
                             .kind = models::ModelEvent::Kind::kDone};
    event.reply = script_(pending_.front().second);
    pending_.erase(pending_.begin());
    events.push_back(std::move(event));
    return events;
  }
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, timeout, [this] { return wake_; });
  wake_ = false;
  return events;
}

void ScriptedModel::Wake() {
  const std::lock_guard lock(mutex_);
  wake_ = true;
  woken_.notify_all();
}

gates::Judgement ScriptedJudge::Assess(const ops::Instance& instance,
                                       const verdict::Candidate& candidate,
                                       const loop::JudgeContext& context) {
  if (on_assess) on_assess(candidate, context);
  const std::uint64_t seed = context.holdout_seed();
  if (context.progress)
    context.progress({.gate = "memory", .detail = "case 1 of 7", .fraction = 0.1});
  constexpr std::string_view kMark = "// judge: ";
  const std::size_t at = candidate.kernel.find(kMark);
  std::string words = "inconclusive";
  if (at != std::string::npos) {
    const std::size_t begin = at + kMark.size();
    words = candidate.kernel.substr(begin, candidate.kernel.find('\n', begin) - begin);
  }
  gates::Judgement judgement;
  judgement.verdict = VerdictOf(instance, candidate, words);
  judgement.verdict.gates.back().seeds = {seed};
  return judgement;
}

std::function<Result<std::vector<std::unique_ptr<loop::Judge>>>(const loop::JudgeSettings&)>
ScriptedJudges(std::function<void(const verdict::Candidate&, const loop::JudgeContext&)> on_assess,
               int count) {
  return [on_assess,
          count](const loop::JudgeSettings&) -> Result<std::vector<std::unique_ptr<loop::Judge>>> {
    std::vector<std::unique_ptr<loop::Judge>> judges;
    for (int i = 0; i < count; ++i) {
      auto judge = std::make_unique<ScriptedJudge>();
      judge->on_assess = on_assess;
      judges.push_back(std::move(judge));
    }
    return judges;
  };
}

Path PromptsFolder() { return Path(ASSAY_SOURCE_DIR) / "prompts"; }

}  // namespace assay::testing
