// A judgement by its key: what was judged, by whom, and the verdict (assay.judgement/1), kept in a
// folder so that nothing is judged twice.
//
// The key is SHA-256 over all that a verdict depends on: op (its digest covers reference, generator
// and preludes' use), binding, target, candidate, engine, effort, seed, jail, and the judge: versions
// of tools and digests of its programs. The same key, the same verdict. Another build of the judge is
// another judge.
//
// A folder holds ab/cdef....judgement.json, written by rename: several processes may share one, on
// one file system. Only conclusive verdicts are kept; what was inconclusive for want of time may be
// decided the next time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "ops/op.h"
#include "rewards/candidate.h"
#include "validator/verdict/verdict.h"

namespace assay::rewards {

/// How candidates are judged: the part of the key that is the same for all lines.
struct JudgeFacts {
  std::map<std::string, std::string> versions;  ///< By tool; digests of programs among them.
  std::string engine = "emulator";
  std::string effort = "standard";
  std::uint64_t seed = 1;
  bool unsafe_no_jail = false;
};

std::string KeyOf(const JudgeFacts& judge, const ops::Instance& instance,
                  const CandidateLine& line);

struct Judged {
  std::string key;
  std::string op;
  std::string op_digest;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::map<std::string, std::string> judge;
  CandidateLine line;
  verdict::Verdict verdict;
};
Json ToJson(const Judged& judged);
Result<Judged> JudgedFromJson(const Json& json, const std::string& place);

inline constexpr std::string_view kJudgementSuffix = ".judgement.json";

class JudgementFolder {
 public:
  /// Empty: nothing is kept.
  explicit JudgementFolder(Path root) : root_(std::move(root)) {}
  /// Nothing where there is none, or where it cannot be read: then it is judged again.
  std::optional<verdict::Verdict> Find(const std::string& key) const;
  Status Keep(const Judged& judged) const;

 private:
  Path FileOf(const std::string& key) const;
  Path root_;
};

}  // namespace assay::rewards
