// Transcripts: every exchange of a run with its model, as JSON lines (assay.transcript/1). No
// secrets, no times.
//
//   {"schema": "assay.transcript/1", "written": "recorded", "note": "", "instance": "...", "model":
//   "openai/gpt-5", "settings": {...}}
//   {"type": "exchange", "name": "attempt-1", "digest": "...", "messages": [{"role": "system",
//   "digest": "...", "text": "..."}], "reply": {...}}
//   {"type": "judged", "attempt": 1, "holdout_seeds": [17, 4]}
//
// A message's text is written where it first occurs; later ones refer to it by digest. `written` is
// "recorded" or "by hand": recorded exchanges have a name and the digest of what was asked;
// hand-written ones need only a reply each. `replay/FILE` answers from one
// (agent/models/replay_model.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "runs/conversation.h"

namespace assay::runs {

struct TranscriptHeader {
  bool by_hand = false;
  std::string note;  ///< Shown whenever it is replayed. Required of hand-written ones.
  std::string instance;
  std::string model;
  Json settings = Json::object();  ///< Of the recorded run: what a replay must be given to take the
                                   ///< same course.
};

struct Exchange {
  std::string name;
  Conversation conversation;  ///< Empty in hand-written transcripts.
  std::string digest;
  ModelReply reply;
  std::size_t line = 0;  ///< In the file.
};

struct Transcript {
  TranscriptHeader header;
  std::vector<Exchange> exchanges;
  /// By attempt: what the recorded judgements drew. For readers; a replay draws anew, because who writes a transcript must not
  /// choose what its candidates are judged by.
  std::map<int, std::vector<std::uint64_t>> holdout_seeds;
};

Result<Transcript> ParseTranscript(std::string_view text, const std::string& file);
Result<Transcript> ReadTranscript(const Path& file);

/// Writes lines as a run goes on. Knows which texts have been written already.
class TranscriptWriter {
 public:
  std::string Header(const TranscriptHeader& header);
  std::string Line(const Exchange& exchange);
  std::string Judged(int attempt, const std::vector<std::uint64_t>& holdout_seeds);

 private:
  std::set<std::string> written_;
};

}  // namespace assay::runs
