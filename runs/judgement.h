// A judgement by its key: what was judged, by whom, and the verdict (assay.judgement/1), kept so
// that nothing is judged twice.
//
// The key is SHA-256 over all that a verdict depends on: op (its digest covers reference and
// generator), binding, target, candidate, engine, effort, seed, jail, and the judge: versions of
// tools and digests of its programs, which carry the preludes and tables. The same key, the same
// verdict. Another build of the judge is another judge.
//
// Judgements are records of an artefact store (runs/store.h): several processes may share one, on
// one file system. Only conclusive verdicts are kept; what was inconclusive for want of time may be
// decided the next time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "ops/op.h"
#include "runs/store.h"
#include "validator/verdict/candidate.h"
#include "validator/verdict/verdict.h"

namespace assay::runs {

/// How candidates are judged: the part of the key that is the same for all of them.
struct JudgeFacts {
  std::map<std::string, std::string> versions;  ///< By tool; digests of programs among them.
  std::string engine = "emulator";
  std::string effort = "standard";
  std::uint64_t seed = 1;
  bool unsafe_no_jail = false;
};

/// `malformed`: the reply, where it holds no candidate.
std::string JudgementKey(const JudgeFacts& judge, const ops::Instance& instance,
                         const verdict::Candidate& candidate,
                         const std::optional<std::string>& malformed = std::nullopt);

struct Judged {
  std::string key;
  std::string op;
  std::string op_digest;
  std::map<std::string, std::string> binding;
  std::string arch;
  std::map<std::string, std::string> judge;
  verdict::Candidate candidate;
  std::string reply;  ///< Where the candidate came as one.
  std::string model;
  Json prompt = Json::array();
  verdict::Verdict verdict;
};
Json ToJson(const Judged& judged);
Result<Judged> JudgedFromJson(const Json& json, const std::string& place);

inline constexpr std::string_view kJudgementKind = "judgement";
inline constexpr std::string_view kJudgementSuffix = ".judgement.json";

class JudgementFolder {
 public:
  /// `root` is a store's. Empty: nothing is kept.
  explicit JudgementFolder(Path root) : store_(std::move(root)) {}
  /// Nothing where there is none, or where it cannot be read: then it is judged again.
  std::optional<verdict::Verdict> Find(const std::string& key) const;
  Status Keep(const Judged& judged) const;

 private:
  Store store_;
};

/// {"T": "bf16"}
std::map<std::string, std::string> BindingWords(const ops::Instance& instance);

}  // namespace assay::runs
