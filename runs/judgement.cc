#include "runs/judgement.h"

#include "base/digest.h"

namespace assay::runs {
namespace {

constexpr std::string_view kSchema = "assay.judgement/1";

Json WordsToJson(const std::map<std::string, std::string>& words) {
  Json json = Json::object();
  for (const auto& [key, value] : words) json[key] = value;
  return json;
}

Result<std::map<std::string, std::string>> Words(ObjectReader& reader, std::string_view key) {
  ASSAY_TRY(const Json json, reader.Required<Json>(key));
  if (!json.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf(key));
  std::map<std::string, std::string> words;
  for (const auto& [name, value] : json.items()) {
    ASSAY_TRY(words[name],
              json_detail::Convert<std::string>(value, reader.PlaceOf(key) + "/" + name));
  }
  return words;
}

}  // namespace

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
                    {"binding", WordsToJson(BindingWords(instance))},
                    {"arch", instance.arch},
                    {"kernel", Sha256Hex(candidate.kernel)},
                    {"launch", Sha256Hex(candidate.launch)},
                    {"malformed", malformed ? Sha256Hex(*malformed) : ""},
                    {"judge", WordsToJson(judge.versions)},
                    {"engine", judge.engine},
                    {"effort", judge.effort},
                    {"seed", judge.seed},
                    {"unsafe_no_jail", judge.unsafe_no_jail}};
  return Sha256Hex(CompactJson(key));
}

Json ToJson(const Judged& judged) {
  return {{"schema", kSchema},
          {"key", judged.key},
          {"op", judged.op},
          {"op_digest", judged.op_digest},
          {"binding", WordsToJson(judged.binding)},
          {"arch", judged.arch},
          {"judge", WordsToJson(judged.judge)},
          {"model", judged.model},
          {"prompt", judged.prompt},
          {"kernel", judged.candidate.kernel},
          {"launch", judged.candidate.launch},
          {"reply", judged.reply},
          {"verdict", verdict::ToJson(judged.verdict)}};
}

Result<Judged> JudgedFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSchema) {
    return Fail(ErrorKind::kMalformedInput, "schema '" + schema + "' is not known",
                reader.PlaceOf("schema"), "use the version of assay that wrote the file");
  }
  Judged judged;
  ASSAY_TRY(judged.key, reader.Required<std::string>("key"));
  ASSAY_TRY(judged.op, reader.Required<std::string>("op"));
  ASSAY_TRY(judged.op_digest, reader.Required<std::string>("op_digest"));
  ASSAY_TRY(judged.binding, Words(reader, "binding"));
  ASSAY_TRY(judged.arch, reader.Required<std::string>("arch"));
  ASSAY_TRY(judged.judge, Words(reader, "judge"));
  ASSAY_TRY(judged.model, reader.Required<std::string>("model"));
  ASSAY_TRY(judged.prompt, reader.Required<Json>("prompt"));
  ASSAY_TRY(judged.candidate.kernel, reader.Required<std::string>("kernel"));
  ASSAY_TRY(judged.candidate.launch, reader.Required<std::string>("launch"));
  ASSAY_TRY(judged.reply, reader.Required<std::string>("reply"));
  ASSAY_TRY(const Json verdict_json, reader.Required<Json>("verdict"));
  ASSAY_TRY(judged.verdict, verdict::VerdictFromJson(verdict_json, reader.PlaceOf("verdict")));
  ASSAY_TRY_VOID(reader.Finish());
  return judged;
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
