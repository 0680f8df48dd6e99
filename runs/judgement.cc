#include "runs/judgement.h"

#include "base/digest.h"
#include "base/fields.h"

namespace assay::runs {
namespace {

constexpr std::string_view kSchema = "assay.judgement/1";

using VerdictForm = JsonThrough<&verdict::VerdictFromJson>;

}  // namespace

static constexpr auto JsonFields(const Judged*) {
  using J = Judged;
  using C = verdict::Candidate;
  return std::tuple(Schema(kSchema), Required("key", &J::key), Required("op", &J::op),
                    Required("op_digest", &J::op_digest), Required("binding", &J::binding),
                    Required("arch", &J::arch), Required("judge", &J::judge),
                    Required("model", &J::model), Required("prompt", &J::prompt),
                    Within(&J::candidate, Required("kernel", &C::kernel)),
                    Within(&J::candidate, Required("launch", &C::launch)),
                    Required("reply", &J::reply), Required<VerdictForm>("verdict", &J::verdict));
}

std::map<std::string, std::string> BindingWords(const ops::Instance& instance) {
  std::map<std::string, std::string> binding;
  for (const auto& [variable, dtype] : instance.binding) binding[variable] = Name(dtype);
  return binding;
}

std::string JudgementKey(const JudgeFacts& judge, const ops::Instance& instance,
                         const verdict::Candidate& candidate,
                         const std::optional<std::string>& malformed) {
  const Json key = {{"schema", kSchema},
                    {"op", instance.op.name},
                    {"op_digest", instance.op.digest},
                    {"binding", BindingWords(instance)},
                    {"arch", instance.arch},
                    {"kernel", Sha256Hex(candidate.kernel)},
                    {"launch", Sha256Hex(candidate.launch)},
                    {"malformed", malformed ? Sha256Hex(*malformed) : ""},
                    {"judge", judge.versions},
                    {"engine", judge.engine},
                    {"effort", judge.effort},
                    {"seed", judge.seed},
                    {"unsafe_no_jail", judge.unsafe_no_jail}};
  return Sha256Hex(CompactJson(key));
}

Json ToJson(const Judged& judged) { return WriteJson(judged); }
Result<Judged> JudgedFromJson(const Json& json, const std::string& place) {
  return ReadJson<Judged>(json, place);
}

std::optional<verdict::Verdict> JudgementFolder::Find(const std::string& key) const {
  if (store_.root().empty()) return std::nullopt;
  const std::optional<std::string> text = store_.GetRecord(key, kJudgementKind);
  if (!text) return std::nullopt;
  const Result<Json> json = ParseJson(*text, key);
  if (!json) return std::nullopt;
  Result<Judged> judged = JudgedFromJson(*json, key);
  if (!judged || judged->key != key) return std::nullopt;
  return std::move(judged->verdict);
}

Status JudgementFolder::Keep(const Judged& judged) const {
  const bool conclusive = judged.verdict.outcome == verdict::Outcome::kAccepted ||
                          judged.verdict.outcome == verdict::Outcome::kRefuted;
  if (store_.root().empty() || !conclusive) return {};
  return store_.PutRecord(judged.key, kJudgementKind, CompactJson(ToJson(judged)) + "\n");
}

}  // namespace assay::runs
