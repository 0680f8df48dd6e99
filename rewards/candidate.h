// One line of what `assay reward` reads: a candidate and what it is for (rewards/schemas/candidate.schema.json).
//
//   {"op": "rms_norm", "binding": {"T": "f16"}, "kernel": "...", "launch": {...}}
//   {"id": 17, "op": "rms_norm", "binding": "T=f16", "reply": "```cuda\n...```\n```json\n...```"}
//
// Lines come from trainers and hold what models wrote: an op is a name of the library, never a path;
// unknown keys are refused, so that a misspelled one does not change what is judged.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "validator/findings/finding.h"
#include "validator/verdict/candidate.h"

namespace assay::rewards {

struct CandidateLine {
  Json id = nullptr;  ///< A string, an integer or null; given back as it is.
  std::string op;
  std::string op_digest;  ///< Empty: any.
  std::map<std::string, std::string> binding;
  std::string arch;  ///< Empty: the command's.
  verdict::Candidate candidate;
  std::string reply;                 ///< Where the candidate came as one.
  std::optional<Finding> malformed;  ///< The reply holds no candidate.
  std::string model;
  Json prompt = Json::array();
};

/// `place` is for messages, e.g. "line 3".
Result<CandidateLine> ParseCandidate(std::string_view line, const std::string& place);

/// "T=bf16,U=f32", as exports write it.
Result<std::map<std::string, std::string>> ParseBinding(std::string_view text,
                                                        const std::string& place);

}  // namespace assay::rewards
