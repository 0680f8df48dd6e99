#include "ops/relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::ops {
namespace {

using Kind = Relation::Kind;

constexpr std::array kNames = {
    RelationName{Kind::kAllowance, "allowance",
                 "each element within the error that honest arithmetic may have"},
    RelationName{Kind::kExact, "exact", "each element agrees bit for bit"},
    RelationName{Kind::kAny, "any", "must be written; its values are not compared"},
    RelationName{Kind::kNorm, "norm", "the error of each vector is small relative to its norm"},
    RelationName{Kind::kUnordered, "unordered", "its elements may come in any order"},
    RelationName{Kind::kChoice, "choice",
                 "names the best by computed scores; where scores are within their error of each "
                 "other, any of them will do"},
};

}  // namespace

std::span<const RelationName> RelationNames() { return kNames; }

std::string RelationText(const Relation& relation) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    text += text.empty() ? "" : "; ";
    text += part;
  };
  const auto named = std::ranges::find(kNames, relation.kind, &RelationName::kind);
  if (named != kNames.end()) add(named->meaning);
  if (relation.kind == Kind::kUnordered) {
    add(relation.of.empty() ? "within each row"
                            : fmt::format("where the elements of `{}` are equal", relation.of));
    if (relation.padding) add(fmt::format("{} stays in its place", *relation.padding));
  }
  if (relation.kind == Kind::kChoice) {
    add(fmt::format("the {} of `{}`, {}", relation.largest ? "largest" : "smallest", relation.of,
                    relation.sorted ? "best first" : "in any order"));
    if (relation.first_of_ties) add("of equal scores, the first one's");
  }
  if (relation.any_nan) add(*relation.any_nan ? "open where the truth is NaN" : "NaN in, NaN out");
  if (relation.keeps_zero_sign) add("-0 is not 0");
  if (!relation.where.empty()) add("compared only where it is defined");
  return text;
}

}  // namespace assay::ops
