// Run folders, transcripts and corpora: they may come from anybody.
#include "agent/loop/request_json.h"
#include "base/text.h"
#include "dataset/corpus.h"
#include "dataset/pack.h"
#include "dataset/read_run.h"
#include "fuzz/target.h"
#include "rewards/candidate.h"
#include "runs/emit.h"
#include "runs/events.h"
#include "runs/judgement.h"
#include "runs/state.h"
#include "runs/transcript.h"

namespace assay::fuzz {

/// Line by line, and what follows from them.
void Events(std::string_view input) {
  runs::RunState state;
  std::uint64_t applied = 0;
  for (const std::string_view line : SplitLines(input)) {
    bool more = false;
    WithJson(line, "events.jsonl", [&](const Json& json) {
      const auto event = runs::EventFromJson(json, "events.jsonl");
      if (!event) return CheckError(event.error(), "events.jsonl");
      CheckRoundTrip(*event, runs::EventFromJson);
      more = runs::Apply(*event, state).has_value();
    });
    if (!more || ++applied > 64) break;
  }
  for (const runs::Attempt& attempt : state.attempts) {
    (void)runs::ConversationFor(state, attempt, "go on");
    (void)attempt.JoinedReply();
    const runs::Attempt* const found = state.Find(attempt.number);
    ASSAY_CHECK(found == &attempt);
  }
  (void)state.Accepted();
}

void RunRequest(std::string_view input) {
  static const ops::Library library({Path(ASSAY_SOURCE_DIR) / "ops"});
  WithJson(input, "run.json", [](const Json& json) {
    const auto request = loop::RequestFromJson(json, "run.json", library, "");
    if (!request) {
      ASSAY_CHECK(!request.error().message.empty());
      return;
    }
    // What is named in it is of the library, and nothing was read from where it says.
    ASSAY_CHECK(loop::IsOfLibrary(library, request->instance.op), request->instance.op.name);
  });
}

void Transcript(std::string_view input) {
  const auto transcript = runs::ParseTranscript(input, "t.jsonl");
  if (!transcript) return CheckError(transcript.error(), "t.jsonl");
  runs::TranscriptWriter writer;
  std::string again = writer.Header(transcript->header) + "\n";
  for (const runs::Exchange& exchange : transcript->exchanges)
    again += writer.Line(exchange) + "\n";
  const auto read = runs::ParseTranscript(again, "again");
  ASSAY_CHECK(read.has_value(), read ? std::string() : ToString(read.error()) + "\n" + again);
  ASSAY_CHECK(read->exchanges.size() == transcript->exchanges.size(), again);
}

/// A folder of the usual files with a certificate of anybody's.
void Certificate(std::string_view input) {
  static const Path folder = [] {
    const Path path = ScratchFolder() / "vetted";
    std::filesystem::create_directories(path);
    Put(path / "kernel.cu", "__global__ void k() {}\n");
    Put(path / "launch.json", "{}\n");
    return path;
  }();
  Put(folder / "certificate.json", input);
  const Status published = runs::Publish(folder, "");
  if (!published) ASSAY_CHECK(!published.error().message.empty());
}

void Candidates(std::string_view input) {
  const auto line = rewards::ParseCandidate(input, "line 3");
  if (!line) return CheckError(line.error(), "line 3");
  ASSAY_CHECK(line->op.find('/') == std::string::npos && line->op.find('\0') == std::string::npos,
              line->op);
  std::string binding;
  for (const auto& [name, type] : line->binding)
    binding += (binding.empty() ? "" : ",") + name + "=" + type;
  (void)rewards::ParseBinding(binding, "binding");
}

void Judgement(std::string_view input) {
  WithJson(input, "j.json", [](const Json& json) {
    const auto judged = runs::JudgedFromJson(json, "j.json");
    if (!judged) return CheckError(judged.error(), "j.json");
    CheckRoundTrip(*judged, runs::JudgedFromJson);
  });
}

void Packed(std::string_view input) {
  constexpr std::size_t kMost = 1 << 20;
  const auto text = dataset::Unpack(input, kMost);
  if (!text) {
    ASSAY_CHECK(!text.error().message.empty());
    return;
  }
  ASSAY_CHECK(text->size() <= kMost);
  const auto again = dataset::Unpack(dataset::Pack(*text), kMost);
  ASSAY_CHECK(again && *again == *text);
}

/// Read as `assay corpus ingest` reads another corpus.
void CorpusFile(std::string_view input) {
  const Path file = ScratchFolder() / "corpus.sqlite";
  Put(file, input);
  auto corpus = dataset::Corpus::Open(file, dataset::Database::Access::kRead);
  if (!corpus) {
    ASSAY_CHECK(!corpus.error().message.empty());
    return;
  }
  (void)corpus->Check();
  std::uint64_t attempts = 0;
  const Status read = corpus->EachRun([&attempts](const dataset::RunRecord& run) -> Status {
    attempts += run.attempts.size();
    return {};
  });
  if (!read) ASSAY_CHECK(!read.error().message.empty());
}

}  // namespace assay::fuzz
