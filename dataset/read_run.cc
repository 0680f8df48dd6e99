#include "dataset/read_run.h"

#include <algorithm>

#include "base/digest.h"
#include "runs/extract.h"
#include "runs/folder.h"
#include "runs/judgement.h"

namespace assay::dataset {
namespace {

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json ObjectAt(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_object() ? *found : Json::object();
}

std::map<std::string, std::string> WordsAt(const Json& json, const char* key) {
  std::map<std::string, std::string> words;
  const Json object = ObjectAt(json, key);
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) words[name] = value.get<std::string>();
  }
  return words;
}

Target TargetOf(const Json& request) {
  const Json op = ObjectAt(request, "op");
  return {.op = TextAt(op, "name"),
          .op_digest = TextAt(op, "sha256"),
          .binding = WordsAt(request, "binding"),
          .arch = TextAt(request, "arch")};
}

std::vector<ChatMessage> PromptOf(const runs::RunState& state, const runs::Attempt& attempt) {
  runs::Attempt asked = attempt;
  asked.replies.clear();
  std::vector<ChatMessage> prompt;
  for (const runs::Message& message : runs::ConversationFor(state, asked, "").messages)
    prompt.push_back({std::string(runs::Name(message.role)), message.text});
  return prompt;
}

AttemptRecord RecordOf(const runs::RunState& state, const runs::Attempt& attempt,
                       const Target& target) {
  const runs::ModelReply reply = attempt.JoinedReply();
  AttemptRecord record{.number = attempt.number,
                       .parent = attempt.parent,
                       .kind = std::string(runs::Name(attempt.kind)),
                       .target = target,
                       .model = TextAt(state.request, "model"),
                       .prompt = PromptOf(state, attempt),
                       .reply = reply.text,
                       .verdict = attempt.verdict.value_or(verdict::Verdict{}),
                       .input_tokens = reply.usage.input_tokens,
                       .cached_tokens = reply.usage.cached_input_tokens,
                       .output_tokens = reply.usage.output_tokens,
                       .tokens_estimated = reply.usage.estimated};
  // What a service was asked for may be an alias of what answered.
  if (!reply.model.empty()) record.model = reply.model;
  if (auto candidate = runs::ExtractCandidate(reply)) {
    record.kernel = std::move(candidate->kernel);
    record.launch = std::move(candidate->launch);
  }
  return record;
}

bool IsJudgement(const Path& file) {
  return file.filename().string().ends_with(runs::kJudgementSuffix);
}

// A batch has a log of its own beside its batch.json; what was judged stands in the runs below it.
bool IsRun(const Path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "events.jsonl", error) &&
         !std::filesystem::exists(folder / "batch.json", error);
}

// Any other file is taken for a database, which says what is wrong with it.
bool LooksLikeDatabase(const Path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && !IsJudgement(file);
}

}  // namespace

Result<RunRecord> ReadRun(const Path& folder, const Origin& origin) {
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(folder));
  runs::RunState state;
  RunRecord record;
  const runs::StampedEvent* judged = nullptr;
  for (const runs::StampedEvent& event : events) {
    ASSAY_TRY_VOID(runs::Apply(event, state));
    if (judged == nullptr && std::holds_alternative<runs::AttemptJudged>(event.event))
      judged = &event;
  }
  record.name = folder.lexically_normal().filename().string();
  if (record.name.empty()) record.name = folder.lexically_normal().parent_path().filename();
  record.request = state.request;
  // Where a server stands and where a key lies are nobody's business but the run's.
  record.request.erase("model_options");
  if (record.request.contains("op") && record.request["op"].is_object())
    record.request["op"].erase("folder");
  record.prompts_digest = state.prompts_digest;
  record.judge = WordsAt(state.request, "versions");
  record.started = events.front().time;
  if (state.stopped) record.outcome = verdict::Name(state.stopped->outcome);
  record.licence = origin.licence;
  record.provenance = origin.provenance.empty() ? "run " + record.name : origin.provenance;
  if (judged == nullptr) return record;
  record.identity =
      Sha256Hex(CompactJson(runs::ToJson(events.front())) + CompactJson(runs::ToJson(*judged)));
  const Target target = TargetOf(state.request);
  for (const runs::Attempt& attempt : state.attempts) {
    if (attempt.verdict) record.attempts.push_back(RecordOf(state, attempt, target));
  }
  return record;
}

Result<RunRecord> ReadJudgement(const Path& file, const Origin& origin) {
  ASSAY_TRY(const Json json, ReadJsonFile(file.string()));
  ASSAY_TRY(runs::Judged judged, runs::JudgedFromJson(json, file.string()));
  AttemptRecord attempt{.number = 1,
                        .kind = "candidate",
                        .target = {.op = judged.op,
                                   .op_digest = judged.op_digest,
                                   .binding = judged.binding,
                                   .arch = judged.arch},
                        .model = judged.model.empty() ? "unknown" : judged.model};
  ASSAY_TRY(attempt.prompt, MessagesFromJson(judged.prompt, file.string() + ": /prompt"));
  attempt.reply = judged.reply;
  if (!judged.candidate.kernel.empty()) {
    attempt.kernel = judged.candidate.kernel;
    attempt.launch = judged.candidate.launch;
    if (attempt.reply.empty()) attempt.reply = AnswerOf(*attempt.kernel, *attempt.launch, "cuda");
  }
  attempt.verdict = std::move(judged.verdict);
  RunRecord record{.identity = judged.key,
                   .kind = "rewards",
                   .name = "judgement " + judged.key.substr(0, 12),
                   .judge = judged.judge};
  record.outcome = verdict::Name(attempt.verdict.outcome);
  record.licence = origin.licence;
  record.provenance = origin.provenance.empty() ? "assay reward" : origin.provenance;
  record.attempts.push_back(std::move(attempt));
  return record;
}

Result<std::vector<Path>> FindRuns(const Path& path) {
  std::error_code error;
  if (IsJudgement(path) || IsRun(path)) return std::vector<Path>{path};
  std::vector<Path> found;
  auto walk = std::filesystem::recursive_directory_iterator(path, error);
  if (error) {
    return Fail(ErrorKind::kUsage, "cannot be read: " + error.message(), path.string(),
                "name a run's folder, a folder of runs, or a corpus");
  }
  for (; walk != std::filesystem::recursive_directory_iterator(); walk.increment(error)) {
    if (error) break;
    if (walk->path().filename() == "events.jsonl" && IsRun(walk->path().parent_path()))
      found.push_back(walk->path().parent_path());
    if (IsJudgement(walk->path())) found.push_back(walk->path());
  }
  std::ranges::sort(found);
  return found;
}

Result<IngestReport> IngestFrom(Corpus& corpus, const Path& source, const Origin& origin,
                                const std::function<void(const RunRecord&)>& seen) {
  IngestReport report;
  const auto take = [&](const RunRecord& record) -> Status {
    ASSAY_TRY(const Added added, corpus.Ingest(record));
    report.added += added;
    if (seen) seen(record);
    return {};
  };
  if (LooksLikeDatabase(source)) {
    ASSAY_TRY(Corpus other, Corpus::Open(source, Database::Access::kRead));
    ASSAY_TRY_VOID(other.EachRun(take));
    return report;
  }
  ASSAY_TRY(const std::vector<Path> folders, FindRuns(source));
  if (folders.empty()) {
    return Fail(ErrorKind::kUsage, "there are no runs here: no events.jsonl, no judgements",
                source.string(), "name a run's folder, a folder of runs, or a corpus");
  }
  for (const Path& folder : folders) {
    const Result<RunRecord> record =
        IsJudgement(folder) ? ReadJudgement(folder, origin) : ReadRun(folder, origin);
    const Status taken = record ? take(*record) : std::unexpected(record.error());
    if (taken) continue;
    // A full disk ends it; a bad run does not.
    if (taken.error().kind == ErrorKind::kEnvironment) return std::unexpected(taken.error());
    report.unreadable.push_back(WithPlace(taken.error(), folder.string()));
  }
  return report;
}

}  // namespace assay::dataset
