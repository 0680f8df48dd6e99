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
// "recorded" or "by hand": recorded exchanges are found by name and must have been asked for the
// same conversation, byte for byte; hand-written ones need only a reply each and are handed out in
// order. ReplayModel is `replay/FILE`: deterministic, offline, free. Recorded replies arrive in the
// order in which they arrived then, so that a run with several requests at once takes the same
// course.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/model.h"
#include "base/file.h"
#include "base/json.h"

namespace assay::agent {

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
  std::map<int, std::vector<std::uint64_t>> holdout_seeds;  ///< By attempt.
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

class ReplayModel final : public Model {
 public:
  ReplayModel(Transcript transcript, std::string file);
  const Transcript& transcript() const { return transcript_; }

  void Start(Ticket ticket, ModelRequest request) override;
  void Cancel(Ticket ticket) override;
  std::vector<ModelEvent> Poll(std::chrono::milliseconds timeout) override;
  void Wake() override;
  std::string Notice() const override;
  std::optional<Error> Stuck() const override;
  void PassOver(const std::vector<std::string>& names) override;

 private:
  void SkipPassedOver();
  std::optional<Error> Divergence(const ModelRequest& request, const Exchange& exchange) const;

  Transcript transcript_;
  std::string file_;
  std::size_t next_ = 0;
  std::set<std::string> passed_over_;
  std::vector<std::pair<Ticket, ModelRequest>> pending_;  // in the order started
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

}  // namespace assay::agent
