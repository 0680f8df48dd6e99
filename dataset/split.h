// Splits: which attempts train, which validate, which test.
//
//   SplitRecipe recipe{.seed = 1, .hold_out = {"softmax"}};
//   ASSAY_TRY(const SplitReport report, MakeSplit(corpus, recipe));
//   ASSAY_TRY_VOID(CheckSplit(corpus, "default"));
//
// Whole families of ops (families.h) go to a part: an op that is evaluated, and its sisters, are
// never seen in training. Families are ranked by a hash of seed and name; the first ones test, the
// next ones validate. A family with an op that an earlier split of the same name kept from training
// stays where it was, so that a corpus may grow without its evaluation leaking.
//
// An attempt of one part that is a near-duplicate (normalise.h: same normalised text, same skeleton,
// or a likeness of kAlike) of one of a part before it, in the order test, validation, train, is
// withheld: it belongs to no part. Attempts without a kernel have no near-duplicates.
//
// A split is kept in the corpus under its name. CheckSplit derives families and near-duplicates
// again and compares; exports refuse a split that fails it. Linear but for the pairs that share a
// quarter of a sketch.
#pragma once

#include <set>

#include "dataset/corpus.h"

namespace assay::dataset {

inline constexpr std::string_view kTrain = "train";
inline constexpr std::string_view kValidation = "validation";
inline constexpr std::string_view kTest = "test";
inline constexpr std::string_view kWithheld = "withheld";

struct SplitRecipe {
  std::string name = "default";
  std::uint64_t seed = 1;
  double test = 0.1;  ///< Share of the families. More than 0: at least one, where there are three.
  double validation = 0.1;         ///< The same.
  std::set<std::string> hold_out;  ///< Ops whose families test, whatever the seed.
  std::map<std::string, std::set<std::string>> tags;  ///< Added to those of the ops' names.
  bool anew = false;                                  ///< Forget what an earlier split held out.
};

struct SplitReport {
  std::map<std::string, std::uint64_t> attempts;          ///< By part.
  std::map<std::string, std::set<std::string>> families;  ///< By part.
};

Result<SplitReport> MakeSplit(Corpus& corpus, const SplitRecipe& recipe);

/// Fails, saying where, if the split is missing, older than some attempts, or leaks.
Status CheckSplit(Corpus& corpus, const std::string& name);

/// Part of each attempt, by its id.
Result<std::map<std::int64_t, std::string>> PartsOf(Corpus& corpus, const std::string& name);

/// How the split was made, for cards: seed, shares, held-out ops, tags.
Result<Json> RecipeOf(Corpus& corpus, const std::string& name);

}  // namespace assay::dataset
