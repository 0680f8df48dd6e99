#include "dataset/split.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "dataset/families.h"
#include "dataset/likes.h"

namespace assay::dataset {
namespace {

using Parts = std::map<std::string, std::string>;  // by family or by op

std::string Hint(const std::string& name) {
  return "assay corpus split" + (name == "default" ? "" : " --name " + name);
}

Json ToJson(const SplitRecipe& recipe) {
  Json tags = Json::object();
  for (const auto& [op, words] : recipe.tags) tags[op] = words;
  return {{"name", recipe.name},         {"seed", recipe.seed},
          {"test", recipe.test},         {"validation", recipe.validation},
          {"hold_out", recipe.hold_out}, {"tags", std::move(tags)}};
}

std::map<std::string, std::set<std::string>> TagsFromJson(const Json& recipe) {
  std::map<std::string, std::set<std::string>> tags;
  for (const auto& [op, words] : recipe.at("tags").items()) {
    for (const Json& word : words) tags[op].insert(word.get<std::string>());
  }
  return tags;
}

std::set<std::string> OpsOf(const std::vector<AttemptRow>& attempts) {
  std::set<std::string> ops;
  for (const AttemptRow& attempt : attempts) ops.insert(attempt.target.op);
  return ops;
}

// What an earlier split of the name kept from training.
Result<Parts> EarlierParts(Corpus& corpus, const std::string& name) {
  Parts parts;
  ASSAY_TRY_VOID(
      corpus.db().Each("SELECT o.op, o.part FROM split_op o JOIN split s ON s.id = o.split "
                       "WHERE s.name = ? AND o.part <> 'train'",
                       {name}, [&](const Row& row) -> Status {
                         parts[row.Text(0)] = row.Text(1);
                         return {};
                       }));
  return parts;
}

// Part of each family.
Parts Assign(const SplitRecipe& recipe, const Parts& family_of, const Parts& earlier) {
  Parts parts;
  // Test wins where two ops of a family were held out for different parts.
  for (const auto& [op, part] : earlier) {
    const auto family = family_of.find(op);
    if (family == family_of.end()) continue;
    std::string& now = parts[family->second];
    if (now != kTest) now = part;
  }
  for (const auto& [op, family] : family_of) {
    if (recipe.hold_out.contains(op)) parts[family] = kTest;
  }
  std::vector<std::pair<std::uint64_t, std::string>> ranked;
  std::set<std::string> families;
  for (const auto& [op, family] : family_of) families.insert(family);
  for (const std::string& family : families) {
    if (!parts.contains(family)) ranked.emplace_back(DeriveSeed(recipe.seed, family), family);
  }
  std::ranges::sort(ranked);
  const std::size_t all = families.size();
  const auto wanted = [&](double share) -> std::size_t {
    if (share <= 0) return 0;
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(std::llround(share * static_cast<double>(all))));
  };
  const auto held = [&](std::string_view part) {
    return static_cast<std::size_t>(
        std::ranges::count_if(parts, [&](const auto& each) { return each.second == part; }));
  };
  std::size_t next = 0;
  for (const auto& [part, share] :
       {std::pair{kTest, recipe.test}, {kValidation, recipe.validation}}) {
    std::size_t have = held(part);
    // One family is left to train on, whatever the shares.
    for (; have < wanted(share) && next + 1 < ranked.size(); ++have)
      parts[ranked[next++].second] = part;
  }
  for (; next < ranked.size(); ++next) parts[ranked[next].second] = kTrain;
  return parts;
}

std::map<std::int64_t, std::string> PartOfEach(const std::vector<AttemptRow>& attempts,
                                               const Parts& family_of, const Parts& part_of) {
  std::map<std::int64_t, std::string> result;
  Likes before;  // attempts of the parts that come first
  for (const std::string_view part : {kTest, kValidation, kTrain}) {
    std::vector<const AttemptRow*> members;
    for (const AttemptRow& attempt : attempts) {
      if (part_of.at(family_of.at(attempt.target.op)) != part) continue;
      const bool like = before.Find(attempt).has_value();
      result[attempt.id] = like ? kWithheld : part;
      if (!like) members.push_back(&attempt);
    }
    for (const AttemptRow* const member : members) before.Add(*member);
  }
  return result;
}

Result<std::int64_t> IdOfSplit(Corpus& corpus, const std::string& name) {
  ASSAY_TRY(const auto id, corpus.db().Number("SELECT id FROM split WHERE name = ?", {name}));
  if (id) return *id;
  return Fail(ErrorKind::kUsage, "there is no split '" + name + "'", corpus.db().file().string(),
              "make it with " + Hint(name));
}

Status Keep(Corpus& corpus, const SplitRecipe& recipe, const Parts& family_of, const Parts& part_of,
            const std::map<std::int64_t, std::string>& parts) {
  Database& db = corpus.db();
  ASSAY_TRY(const auto old, db.Number("SELECT id FROM split WHERE name = ?", {recipe.name}));
  if (old) {
    ASSAY_TRY_VOID(db.Run("DELETE FROM split_part WHERE split = ?", {*old}));
    ASSAY_TRY_VOID(db.Run("DELETE FROM split_op WHERE split = ?", {*old}));
    ASSAY_TRY_VOID(db.Run("DELETE FROM split WHERE id = ?", {*old}));
  }
  ASSAY_TRY_VOID(
      db.Run("INSERT INTO split(name, recipe, attempts) VALUES (?, ?, ?)",
             {recipe.name, CompactJson(ToJson(recipe)), static_cast<std::int64_t>(parts.size())}));
  const std::int64_t id = db.LastId();
  for (const auto& [attempt, part] : parts) {
    ASSAY_TRY_VOID(db.Run("INSERT INTO split_part(split, attempt, part) VALUES (?, ?, ?)",
                          {id, attempt, part}));
  }
  for (const auto& [op, family] : family_of) {
    ASSAY_TRY_VOID(db.Run("INSERT INTO split_op(split, op, family, part) VALUES (?, ?, ?, ?)",
                          {id, op, family, part_of.at(family)}));
  }
  return {};
}

std::unexpected<Error> Leak(Corpus& corpus, const std::string& name, const std::string& what) {
  return Fail(ErrorKind::kMalformedInput, "the split '" + name + "' leaks: " + what,
              corpus.db().file().string(), "make it again with " + Hint(name));
}

}  // namespace

Result<SplitReport> MakeSplit(Corpus& corpus, const SplitRecipe& recipe) {
  SplitReport report;
  ASSAY_TRY_VOID(corpus.db().Atomically([&]() -> Status {
    ASSAY_TRY(const std::vector<AttemptRow> attempts, corpus.Attempts());
    const std::set<std::string> ops = OpsOf(attempts);
    for (const std::string& op : recipe.hold_out) {
      if (ops.contains(op)) continue;
      const std::string nearest = Nearest(op, std::vector<std::string>(ops.begin(), ops.end()));
      return Fail(ErrorKind::kUsage, "the corpus has no attempts of the op '" + op + "'",
                  "--hold-out", nearest.empty() ? "" : "did you mean '" + nearest + "'?");
    }
    Parts earlier;
    if (!recipe.anew) {
      ASSAY_TRY(earlier, EarlierParts(corpus, recipe.name));
    }
    const Parts family_of = FamiliesOf(ops, recipe.tags);
    const Parts part_of = Assign(recipe, family_of, earlier);
    const auto parts = PartOfEach(attempts, family_of, part_of);
    for (const auto& [id, part] : parts) ++report.attempts[part];
    for (const auto& [family, part] : part_of) report.families[part].insert(family);
    return Keep(corpus, recipe, family_of, part_of, parts);
  }));
  return report;
}

Result<std::map<std::int64_t, std::string>> PartsOf(Corpus& corpus, const std::string& name) {
  ASSAY_TRY(const std::int64_t id, IdOfSplit(corpus, name));
  std::map<std::int64_t, std::string> parts;
  ASSAY_TRY_VOID(corpus.db().Each("SELECT attempt, part FROM split_part WHERE split = ?", {id},
                                  [&](const Row& row) -> Status {
                                    parts[row.Int(0)] = row.Text(1);
                                    return {};
                                  }));
  return parts;
}

Result<Json> RecipeOf(Corpus& corpus, const std::string& name) {
  ASSAY_TRY_VOID(IdOfSplit(corpus, name));
  ASSAY_TRY(const auto text, corpus.db().Text("SELECT recipe FROM split WHERE name = ?", {name}));
  return ParseJson(text.value_or(""), "the recipe of split " + name);
}

Status CheckSplit(Corpus& corpus, const std::string& name) {
  ASSAY_TRY(const auto parts, PartsOf(corpus, name));
  ASSAY_TRY(const Json recipe, RecipeOf(corpus, name));
  ASSAY_TRY(const std::vector<AttemptRow> attempts, corpus.Attempts());
  Parts part_of_family;
  const Parts family_of = FamiliesOf(OpsOf(attempts), TagsFromJson(recipe));
  for (const AttemptRow& attempt : attempts) {
    const auto part = parts.find(attempt.id);
    if (part == parts.end()) {
      return Fail(ErrorKind::kUsage,
                  "attempts have been ingested since the split '" + name + "' was made",
                  corpus.db().file().string(), "make it again with " + Hint(name));
    }
    if (part->second == kWithheld) continue;
    const std::string& family = family_of.at(attempt.target.op);
    const auto known = part_of_family.emplace(family, part->second).first;
    if (known->second != part->second)
      return Leak(corpus, name, "the family " + family + " is in two parts");
  }
  Likes before;
  for (const std::string_view part : {kTest, kValidation, kTrain}) {
    std::vector<const AttemptRow*> members;
    for (const AttemptRow& attempt : attempts) {
      if (parts.at(attempt.id) != part) continue;
      if (before.Find(attempt)) {
        return Leak(corpus, name,
                    "run " + attempt.run_identity.substr(0, 12) + ", attempt " +
                        std::to_string(attempt.number) + " is a near-duplicate of another part's");
      }
      members.push_back(&attempt);
    }
    for (const AttemptRow* const member : members) before.Add(*member);
  }
  return {};
}

}  // namespace assay::dataset
