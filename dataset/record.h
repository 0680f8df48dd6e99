// What a corpus is made of, as plain values: a run with its judged attempts. Readers (read_run.h)
// make them from whatever holds attempts; Corpus (corpus.h) keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "validator/verdict/verdict.h"

namespace assay::dataset {

/// What a kernel was to be written for.
struct Target {
  std::string op;
  std::string op_digest;
  std::map<std::string, std::string> binding;
  std::string arch;
  auto operator<=>(const Target&) const = default;
  /// "rms_norm-T=bf16-sm_90"
  std::string Id() const;
};

/// A message as trainers know it.
struct ChatMessage {
  std::string role;
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};
Json ToJson(const std::vector<ChatMessage>& messages);
Result<std::vector<ChatMessage>> MessagesFromJson(const Json& json, const std::string& place);

struct AttemptRecord {
  int number = 0;
  int parent = 0;    ///< The attempt of the same run that it follows; 0: none.
  std::string kind;  ///< "first", "repair", "restart", "optimize", "candidate".
  Target target;
  std::string model;
  std::string language = "cuda";
  std::vector<ChatMessage> prompt;    ///< The whole conversation that was sent. May be empty.
  std::string reply;                  ///< As the model wrote it.
  std::optional<std::string> kernel;  ///< Nothing where the reply held no candidate.
  std::optional<std::string> launch;
  verdict::Verdict verdict;
  std::uint64_t input_tokens = 0;  ///< Includes the cached ones.
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  bool tokens_estimated = false;
};

struct RunRecord {
  /// The same for every copy of a run, different for different runs; grows attempts, never changes.
  std::string identity;
  std::string kind = "run";  ///< "run", "rewards".
  std::string name;          ///< For people.
  Json request = Json::object();
  std::string prompts_digest;
  std::map<std::string, std::string> judge;  ///< Versions of what judged, by tool.
  std::string started;                       ///< As the run stamped it.
  std::string outcome;                       ///< Empty while it goes on.
  std::string licence;  ///< SPDX expression of what the attempts may be used under, or "unknown".
  std::string provenance;               ///< Where they come from, in words.
  std::vector<AttemptRecord> attempts;  ///< Judged ones, by number.
};

/// A candidate as a reply holds it: one fenced block a file, under the file's name.
std::string AnswerOf(std::string_view kernel, std::string_view launch, std::string_view language);

}  // namespace assay::dataset
