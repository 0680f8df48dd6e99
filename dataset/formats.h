// The rows that trainers load, made from a corpus and a split. One function a format; each row is
// flat where it can be, and every row of a format has the same keys and types.
//
//   sft          messages: the conversation with the accepted answer               (TRL, any chat trainer)
//   repair       a failing kernel, its counterexample, and the kernel that came of it
//   preference   prompt, chosen, rejected, conversational                          (TRL's DPO format)
//   rl           prompt, completion, reward a gate, the environment to verify in   (TRL GRPO, verl)
//   process      the kernel line by line, the guilty ones labelled                 (TRL's stepwise format)
//
// Duplicates are left out: of attempts that are the same the first one is taken. Rows of two attempts
// need both in the same part. Orders are those of the corpus (Corpus::Attempts): the same corpus and
// split give the same bytes. Schemas: dataset/schemas/FORMAT.schema.json.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/corpus.h"

namespace assay::dataset {

inline constexpr std::size_t kMostPairs = 8;  ///< Preference pairs of one accepted attempt.

/// Takes a row of a part.
using TakeRow = std::function<Status(const std::string& part, const Json& row)>;

/// What makes rows: the corpus with its rows read once.
class RowMaker {
 public:
  static Result<RowMaker> Make(Corpus& corpus, const std::string& split);

  Status Sft(const TakeRow& take);
  Status Repair(const TakeRow& take);
  Status Preference(const TakeRow& take);
  Status Rl(const TakeRow& take);
  Status Process(const TakeRow& take);

  const std::vector<AttemptRow>& attempts() const { return attempts_; }

 private:
  explicit RowMaker(Corpus& corpus) : corpus_(&corpus) {}
  const std::string& PartOf(const AttemptRow& attempt) const;
  const AttemptRow* ParentOf(const AttemptRow& attempt) const;
  const std::vector<FindingRow>& FindingsOf(const AttemptRow& attempt) const;
  Result<Json> Prompt(const AttemptRow& attempt, bool root_only);
  Result<std::string> Answer(const AttemptRow& attempt);
  Json About(const AttemptRow& attempt) const;
  Result<Json> RepairRow(const AttemptRow& failing, const AttemptRow& fixed, int steps);
  Result<Json> RlRow(const AttemptRow& attempt);
  Result<Json> ProcessRow(const AttemptRow& attempt);

  Corpus* corpus_;
  std::vector<AttemptRow> attempts_;
  std::map<std::int64_t, std::vector<FindingRow>> findings_;
  std::map<std::int64_t, std::string> parts_;
  std::map<std::pair<std::int64_t, int>, std::size_t> by_number_;  ///< (run, number) -> index.
};

struct Format {
  std::string_view name;
  std::string_view what;
  Status (RowMaker::*make)(const TakeRow&);
};
std::span<const Format> AllFormats();

}  // namespace assay::dataset
