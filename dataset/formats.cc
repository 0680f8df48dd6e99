#include "dataset/formats.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "base/text.h"
#include "dataset/split.h"
#include "rewards/score.h"

namespace assay::dataset {
namespace {

constexpr std::string_view kAccepted = "accepted";
constexpr std::string_view kRefuted = "refuted";

std::string BindingText(const Target& target) {
  std::string text;
  for (const auto& [variable, dtype] : target.binding)
    text += (text.empty() ? "" : ",") + variable + "=" + dtype;
  return text;
}

Json Assistant(const std::string& text) {
  return Json::array({{{"role", "assistant"}, {"content", text}}});
}

bool IsKernelLine(const SourceSite& site) {
  return site.line > 0 && site.file.ends_with("kernel.cu");
}

struct Guilt {
  double weight = 0;
  std::string how;
  std::string what;
};

// The lines of the kernel that a verdict blames: where the error entered where shadow values tell,
// else where the accesses were made.
std::map<std::uint32_t, Guilt> GuiltyLines(const verdict::Verdict& verdict) {
  std::map<std::uint32_t, Guilt> guilty;
  const auto blame = [&](const SourceSite& site, double weight, std::string_view how,
                         const std::string& what) {
    if (!IsKernelLine(site)) return;
    Guilt& guilt = guilty[site.line];
    if (weight > guilt.weight) guilt = {weight, std::string(how), what};
  };
  for (const verdict::Counterexample* const counterexample : verdict.Counterexamples()) {
    for (const Finding& finding : counterexample->findings) {
      for (const ErrorShare& share : finding.origins)
        blame(share.site, share.share, "shadow_values", std::string(Name(finding.kind)));
      for (const Access& access : finding.accesses) {
        blame(access.site, 1, FamilyOf(finding.kind) == "race" ? "race_site" : "access",
              std::string(Name(finding.kind)) + ": " + access.what);
      }
    }
  }
  return guilty;
}

constexpr auto kFormats = std::to_array<Format>({
    {"sft", "conversations that end in an accepted kernel", &RowMaker::Sft},
    {"repair", "failing kernel, counterexample, fixed kernel", &RowMaker::Repair},
    {"preference", "an accepted kernel against a refuted one", &RowMaker::Preference},
    {"rl", "a candidate with its reward, gate by gate", &RowMaker::Rl},
    {"process", "refuted kernels line by line, the guilty ones marked", &RowMaker::Process},
});

}  // namespace

std::span<const Format> AllFormats() { return kFormats; }

Result<RowMaker> RowMaker::Make(Corpus& corpus, const std::string& split) {
  RowMaker maker(corpus);
  ASSAY_TRY(maker.attempts_, corpus.Attempts());
  ASSAY_TRY(maker.findings_, corpus.Findings());
  ASSAY_TRY(maker.parts_, PartsOf(corpus, split));
  for (std::size_t i = 0; i < maker.attempts_.size(); ++i)
    maker.by_number_[{maker.attempts_[i].run, maker.attempts_[i].number}] = i;
  return maker;
}

const std::string& RowMaker::PartOf(const AttemptRow& attempt) const {
  static const std::string kNone(kWithheld);
  const auto part = parts_.find(attempt.id);
  return part == parts_.end() ? kNone : part->second;
}

const AttemptRow* RowMaker::ParentOf(const AttemptRow& attempt) const {
  const auto parent = by_number_.find({attempt.run, attempt.parent});
  return parent == by_number_.end() ? nullptr : &attempts_[parent->second];
}

const std::vector<FindingRow>& RowMaker::FindingsOf(const AttemptRow& attempt) const {
  static const std::vector<FindingRow> kNone;
  const auto found = findings_.find(attempt.id);
  return found == findings_.end() ? kNone : found->second;
}

Result<Json> RowMaker::Prompt(const AttemptRow& attempt, bool root_only) {
  ASSAY_TRY(const std::string text, corpus_->Text(attempt.prompt));
  ASSAY_TRY(const Json messages, ParseJson(text, "prompt"));
  if (!root_only) return messages;
  Json root = Json::array();
  for (const Json& message : messages) {
    root.push_back(message);
    if (message.at("role") == "user") break;
  }
  return root;
}

Result<std::string> RowMaker::Answer(const AttemptRow& attempt) {
  ASSAY_TRY(const std::string kernel, corpus_->Text(attempt.source));
  ASSAY_TRY(const std::string launch, corpus_->Text(attempt.launch));
  return AnswerOf(kernel, launch, attempt.language);
}

Json RowMaker::About(const AttemptRow& attempt) const {
  const std::vector<FindingRow>& findings = FindingsOf(attempt);
  return {{"op", attempt.target.op},
          {"op_digest", attempt.target.op_digest},
          {"binding", BindingText(attempt.target)},
          {"arch", attempt.target.arch},
          {"language", attempt.language},
          {"model", attempt.model},
          {"run", attempt.run_identity},
          {"attempt", attempt.number},
          {"outcome", attempt.outcome},
          {"gate", attempt.gate},
          {"finding", findings.empty() ? "" : findings.front().kind},
          {"counterexample_digest", findings.empty() ? "" : findings.front().counterexample},
          {"judge", attempt.judge},
          {"licence", attempt.licence}};
}

Status RowMaker::Sft(const TakeRow& take) {
  for (const AttemptRow& attempt : attempts_) {
    if (!attempt.first || attempt.outcome != kAccepted || attempt.source.empty()) continue;
    ASSAY_TRY(Json messages, Prompt(attempt, false));
    // Without a question there is nothing to learn an answer to.
    if (messages.empty()) continue;
    ASSAY_TRY(const std::string answer, Answer(attempt));
    messages.push_back({{"role", "assistant"}, {"content", answer}});
    ASSAY_TRY_VOID(
        take(PartOf(attempt), {{"messages", std::move(messages)}, {"about", About(attempt)}}));
  }
  return {};
}

Result<Json> RowMaker::RepairRow(const AttemptRow& failing, const AttemptRow& fixed, int steps) {
  const FindingRow& finding = FindingsOf(failing).front();
  ASSAY_TRY(Json prompt, Prompt(failing, true));
  ASSAY_TRY(const std::string kernel, corpus_->Text(failing.source));
  ASSAY_TRY(const std::string launch, corpus_->Text(failing.launch));
  ASSAY_TRY(const std::string counterexample, corpus_->Text(finding.counterexample));
  ASSAY_TRY(const std::string fixed_kernel, corpus_->Text(fixed.source));
  ASSAY_TRY(const std::string fixed_launch, corpus_->Text(fixed.launch));
  return Json{{"prompt", std::move(prompt)},
              {"failing_kernel", kernel},
              {"failing_launch", launch},
              {"finding", finding.message},
              {"line", finding.line},
              {"counterexample", counterexample},
              {"fixed_kernel", fixed_kernel},
              {"fixed_launch", fixed_launch},
              {"steps", steps},
              {"about", About(failing)}};
}

Status RowMaker::Repair(const TakeRow& take) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const AttemptRow& fixed : attempts_) {
    if (fixed.outcome != kAccepted || fixed.source.empty()) continue;
    int steps = 0;
    // Up its line, until another accepted one, from which on the line repaired nothing.
    for (const AttemptRow* at = ParentOf(fixed); at != nullptr; at = ParentOf(*at)) {
      ++steps;
      if (at->outcome == kAccepted) break;
      if (at->outcome != kRefuted || at->source.empty() || FindingsOf(*at).empty()) continue;
      if (PartOf(*at) != PartOf(fixed)) continue;
      if (!seen.emplace(at->sameness, fixed.sameness).second) continue;
      ASSAY_TRY(const Json row, RepairRow(*at, fixed, steps));
      ASSAY_TRY_VOID(take(PartOf(fixed), row));
    }
  }
  return {};
}

Status RowMaker::Preference(const TakeRow& take) {
  std::map<std::int64_t, std::vector<const AttemptRow*>> by_run;
  for (const AttemptRow& attempt : attempts_) by_run[attempt.run].push_back(&attempt);
  std::set<std::pair<std::string, std::string>> seen;
  for (const AttemptRow& chosen : attempts_) {
    if (chosen.outcome != kAccepted || chosen.source.empty()) continue;
    ASSAY_TRY(const Json prompt, Prompt(chosen, true));
    if (prompt.empty()) continue;
    // The latest first: they differ least, and so say most.
    std::size_t pairs = 0;
    for (const AttemptRow* const rejected : by_run[chosen.run] | std::views::reverse) {
      if (pairs == kMostPairs) break;
      if (rejected->outcome != kRefuted || rejected->source.empty()) continue;
      if (rejected->root_prompt != chosen.root_prompt || rejected->target != chosen.target)
        continue;
      if (PartOf(*rejected) != PartOf(chosen)) continue;
      if (!seen.emplace(rejected->sameness, chosen.sameness).second) continue;
      ASSAY_TRY(const std::string good, Answer(chosen));
      ASSAY_TRY(const std::string bad, Answer(*rejected));
      ++pairs;
      ASSAY_TRY_VOID(take(PartOf(chosen), {{"prompt", prompt},
                                           {"chosen", Assistant(good)},
                                           {"rejected", Assistant(bad)},
                                           {"about", About(*rejected)}}));
    }
  }
  return {};
}

Result<Json> RowMaker::RlRow(const AttemptRow& attempt) {
  ASSAY_TRY(Json prompt, Prompt(attempt, false));
  ASSAY_TRY(const std::string reply, corpus_->Text(attempt.reply));
  ASSAY_TRY(const verdict::Verdict verdict, corpus_->VerdictOf(attempt, {}));
  const rewards::Score score = rewards::ScoreOf(verdict);
  Json gates = Json::array();
  for (const rewards::GateReward& gate : score.gates) gates.push_back(rewards::ToJson(gate));
  const Json environment = {{"schema", "assay.environment/1"},
                            {"op", attempt.target.op},
                            {"op_digest", attempt.target.op_digest},
                            {"binding", BindingText(attempt.target)},
                            {"arch", attempt.target.arch},
                            {"engine", verdict.engine},
                            {"verify", "assay reward"}};
  // The names that verl reads, beside our own.
  return Json{{"data_source", "assay/" + attempt.target.op},
              {"ability", "cuda"},
              {"prompt", std::move(prompt)},
              {"completion", reply},
              {"reward", score.reward ? Json(*score.reward) : Json(nullptr)},
              {"conclusive", score.conclusive},
              {"gates", std::move(gates)},
              {"environment", environment},
              {"reward_model", {{"style", "rule"}, {"ground_truth", CompactJson(environment)}}},
              {"about", About(attempt)}};
}

Status RowMaker::Rl(const TakeRow& take) {
  for (const AttemptRow& attempt : attempts_) {
    if (!attempt.first) continue;
    ASSAY_TRY(const Json row, RlRow(attempt));
    if (row.at("prompt").empty()) continue;
    ASSAY_TRY_VOID(take(PartOf(attempt), row));
  }
  return {};
}

Result<Json> RowMaker::ProcessRow(const AttemptRow& attempt) {
  ASSAY_TRY(const verdict::Verdict verdict, corpus_->VerdictOf(attempt, FindingsOf(attempt)));
  const auto guilty = GuiltyLines(verdict);
  if (guilty.empty()) return Json();
  ASSAY_TRY(const std::string kernel, corpus_->Text(attempt.source));
  ASSAY_TRY(const Json prompt, Prompt(attempt, true));
  Json completions = Json::array();
  Json labels = Json::array();
  Json blamed = Json::array();
  const std::vector<std::string_view> lines = SplitLines(kernel);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto found = guilty.find(static_cast<std::uint32_t>(i + 1));
    completions.push_back(lines[i]);
    labels.push_back(found == guilty.end());
    if (found == guilty.end()) continue;
    blamed.push_back({{"line", i + 1},
                      {"weight", found->second.weight},
                      {"how", found->second.how},
                      {"what", found->second.what}});
  }
  if (blamed.empty()) return Json();
  std::string question;
  for (const Json& message : prompt) {
    if (message.at("role") == "user") question = message.at("content").get<std::string>();
  }
  return Json{{"prompt", question},
              {"completions", std::move(completions)},
              {"labels", std::move(labels)},
              {"guilty", std::move(blamed)},
              {"about", About(attempt)}};
}

Status RowMaker::Process(const TakeRow& take) {
  for (const AttemptRow& attempt : attempts_) {
    if (!attempt.first || attempt.outcome != kRefuted || attempt.source.empty()) continue;
    ASSAY_TRY(const Json row, ProcessRow(attempt));
    if (row.is_null()) continue;
    ASSAY_TRY_VOID(take(PartOf(attempt), row));
  }
  return {};
}

}  // namespace assay::dataset
