#include "batch/sisters.h"

#include <map>

#include "runs/folder.h"
#include "validator/verdict/regression_store.h"

namespace assay::batch {
namespace {

constexpr std::size_t kMostRegressions = 16;

class JudgeWithRegressions final : public loop::Judge {
 public:
  JudgeWithRegressions(std::unique_ptr<loop::Judge> judge,
                       std::vector<verdict::Counterexample> regressions)
      : judge_(std::move(judge)), regressions_(std::move(regressions)) {}

  gates::Judgement Assess(const ops::Instance& instance, const verdict::Candidate& candidate,
                          const loop::JudgeContext& context) override {
    loop::JudgeContext more = context;
    // What refuted this very line of attempts comes first.
    more.regressions.insert(more.regressions.end(), regressions_.begin(), regressions_.end());
    return judge_->Assess(instance, candidate, more);
  }

 private:
  std::unique_ptr<loop::Judge> judge_;
  std::vector<verdict::Counterexample> regressions_;
};

}  // namespace

std::vector<std::optional<std::size_t>> Leaders(const Plan& plan) {
  std::map<std::string, std::size_t> first;
  std::vector<std::optional<std::size_t>> leaders(plan.tasks.size());
  if (!plan.share) return leaders;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const auto [found, leads] = first.emplace(plan.tasks[i].request.instance.op.digest, i);
    if (!leads) leaders[i] = found->second;
  }
  return leaders;
}

std::optional<std::size_t> LeaderOf(const Plan& plan, std::size_t index) {
  return Leaders(plan)[index];
}

Result<prompts::Sister> SisterFrom(const std::string& instance, const Path& vetted) {
  prompts::Sister sister{.instance = instance, .candidate = {}};
  ASSAY_TRY(sister.candidate.kernel, ReadFile(vetted / "kernel.cu", 4u << 20));
  ASSAY_TRY(sister.candidate.launch, ReadFile(vetted / "launch.json", 4u << 20));
  return sister;
}

bool TakesSister(const loop::GenerateRequest& request) {
  return !request.model.spec.starts_with("replay/");
}

Status ShareRegressions(const Path& folder, const ops::Instance& instance, const Path& run) {
  const verdict::RegressionStore store(folder);
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(run));
  for (const runs::StampedEvent& event : events) {
    if (const auto* judged = std::get_if<runs::AttemptJudged>(&event.event))
      ASSAY_TRY_VOID(store.Add(instance, judged->verdict));
  }
  return {};
}

std::vector<verdict::Counterexample> SharedRegressions(const Path& folder,
                                                       const ops::Instance& leader) {
  return verdict::RegressionStore(folder, kMostRegressions).Load(leader);
}

std::vector<std::unique_ptr<loop::Judge>> WithRegressions(
    std::vector<std::unique_ptr<loop::Judge>> judges,
    const std::vector<verdict::Counterexample>& regressions) {
  if (regressions.empty()) return judges;
  for (std::unique_ptr<loop::Judge>& judge : judges)
    judge = std::make_unique<JudgeWithRegressions>(std::move(judge), regressions);
  return judges;
}

}  // namespace assay::batch
