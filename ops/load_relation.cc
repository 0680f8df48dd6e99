#include "ops/load_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ops/names.h"

namespace assay::ops {
namespace {

using Kind = Relation::Kind;

std::unexpected<Error> Bad(std::string message, std::string place, std::string cure = {}) {
  return Fail(ErrorKind::kMalformedInput, std::move(message), std::move(place), std::move(cure));
}

// One of two words.
Result<bool> IsFirst(ObjectReader& reader, const std::string& key, const std::string& first,
                     const std::string& second) {
  ASSAY_TRY(const std::string word, reader.Optional<std::string>(key, first));
  if (word != first && word != second) {
    return Bad(fmt::format("unknown word '{}'", word), reader.PlaceOf(key),
               fmt::format("say {} or {}", first, second));
  }
  return word == first;
}

Status ReadPolicies(ObjectReader& reader, Relation& relation) {
  if (reader.Has("nan")) {
    ASSAY_TRY(const bool propagates, IsFirst(reader, "nan", "propagate", "any"));
    relation.any_nan = !propagates;
  }
  ASSAY_TRY(const bool any_zero, IsFirst(reader, "negative_zero", "any", "keep"));
  relation.keeps_zero_sign = !any_zero;
  ASSAY_TRY(relation.where, reader.Optional<std::string>("where", ""));
  return {};
}

Status ReadKind(ObjectReader& reader, Relation& relation) {
  switch (relation.kind) {
    case Kind::kNorm: {
      ASSAY_TRY(relation.over, reader.Optional<std::int64_t>("over", 1));
      return {};
    }
    case Kind::kUnordered: {
      ASSAY_TRY(relation.of, reader.Optional<std::string>("ties_of", ""));
      if (reader.Has("padding")) {
        ASSAY_TRY(relation.padding, reader.Required<double>("padding"));
      }
      return {};
    }
    case Kind::kChoice: {
      ASSAY_TRY(relation.of, reader.Required<std::string>("scores"));
      ASSAY_TRY(relation.largest, IsFirst(reader, "best", "largest", "smallest"));
      ASSAY_TRY(relation.sorted, IsFirst(reader, "order", "sorted", "any"));
      ASSAY_TRY(const bool any, IsFirst(reader, "ties", "any", "first"));
      relation.first_of_ties = !any;
      return {};
    }
    case Kind::kUsual:
    case Kind::kAllowance:
    case Kind::kExact:
    case Kind::kAny:
      return {};
  }
  return {};
}

std::vector<std::string> TextsOf(const std::vector<Expression>& shape, std::size_t count) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(count, shape.size()); ++i) texts.push_back(shape[i].text());
  return texts;
}

bool IsFloatInAll(const OpSpec& op, const TensorSpec& spec) {
  if (const auto bound = op.dtypes.find(spec.dtype_name); bound != op.dtypes.end())
    return std::ranges::all_of(bound->second, IsFloat);
  return IsFloat(*ParseDType(spec.dtype_name));
}

bool IsIntegerInAll(const OpSpec& op, const TensorSpec& spec) {
  if (const auto bound = op.dtypes.find(spec.dtype_name); bound != op.dtypes.end())
    return std::ranges::none_of(bound->second, IsFloat);
  return !IsFloat(*ParseDType(spec.dtype_name));
}

/// Checks one output's relation against the op.
class RelationChecker {
 public:
  RelationChecker(const OpSpec& op, const TensorSpec& output, std::string place)
      : op_(op), output_(output), relation_(output.relation), place_(std::move(place)) {}

  Status Run() const {
    if (!relation_.where.empty()) ASSAY_TRY_VOID(CheckWhere());
    switch (relation_.kind) {
      case Kind::kNorm:
        return CheckNorm();
      case Kind::kUnordered:
        return CheckUnordered();
      case Kind::kChoice:
        return CheckChoice();
      case Kind::kUsual:
      case Kind::kAllowance:
      case Kind::kExact:
      case Kind::kAny:
        return {};
    }
    return {};
  }

 private:
  Result<const TensorSpec*> Other(const std::string& name, const std::string& key) const {
    std::vector<std::string> names;
    for (const auto* specs : {&op_.outputs, &op_.hidden}) {
      for (const TensorSpec& spec : *specs) {
        if (spec.name == name && spec.name != output_.name) return &spec;
        if (spec.name != output_.name) names.push_back(spec.name);
      }
    }
    auto unknown = UnknownName("output", name, std::move(names), place_ + "/" + key);
    return unknown;
  }

  Status CheckWhere() const {
    ASSAY_TRY(const TensorSpec* mask, Other(relation_.where, "where"));
    const std::size_t rank = mask->shape.size();
    if (mask->relation.kind == Kind::kChoice)
      return Bad("a choice cannot say where to compare", place_ + "/where", "name a hidden output");
    if (rank > output_.shape.size() || TextsOf(output_.shape, rank) != TextsOf(mask->shape, rank)) {
      return Bad(
          fmt::format("the shape of '{}' is not the leading part of this output's", mask->name),
          place_ + "/where", "give it the same leading extents");
    }
    return {};
  }

  Status CheckNorm() const {
    const auto rank = static_cast<std::int64_t>(output_.shape.size());
    if (relation_.over < 1 || relation_.over > rank) {
      return Bad(fmt::format("a vector has 1 to {} of the dimensions here", rank), place_ + "/over",
                 "count the last dimensions that make up one vector");
    }
    if (!IsFloatInAll(op_, output_))
      return Bad("a norm is one of floats", place_ + "/kind", "use exact or allowance");
    return {};
  }

  Status CheckUnordered() const {
    if (relation_.of.empty()) return {};
    ASSAY_TRY(const TensorSpec* keys, Other(relation_.of, "ties_of"));
    const std::size_t rank = output_.shape.size();
    if (keys->relation.kind == Kind::kChoice || keys->relation.kind == Kind::kUnordered) {
      return Bad(fmt::format("'{}' has no order of its own", keys->name), place_ + "/ties_of",
                 "name an output whose elements stay in their places");
    }
    if (keys->shape.size() != rank || TextsOf(keys->shape, rank) != TextsOf(output_.shape, rank)) {
      return Bad(fmt::format("'{}' has another shape", keys->name), place_ + "/ties_of",
                 "keys and what is sorted by them have one shape");
    }
    return {};
  }

  Status CheckChoice() const {
    ASSAY_TRY(const TensorSpec* scores, Other(relation_.of, "scores"));
    if (!IsIntegerInAll(op_, output_))
      return Bad("a choice is an index", place_ + "/kind", "give the output the dtype i32 or i64");
    if (!relation_.where.empty())
      return Bad("a choice is compared everywhere", place_ + "/where", "leave it out");
    if (!output_.updates.empty())
      return Bad("a choice overwrites nothing", place_ + "/kind", "make it an output of its own");
    if (scores->relation.kind == Kind::kChoice || !IsFloatInAll(op_, *scores))
      return Bad("scores are floats", place_ + "/scores", "name an output of them");
    const std::size_t rank = scores->shape.size();
    const std::size_t chosen = output_.shape.size();
    const bool fits = rank > 0 && (chosen == rank || chosen + 1 == rank) &&
                      TextsOf(scores->shape, rank - 1) == TextsOf(output_.shape, rank - 1);
    if (!fits) {
      return Bad(fmt::format("does not fit the scores '{}'", scores->name), place_ + "/scores",
                 "scores run along their last dimension; a choice has the others, and at most one "
                 "more: how many are chosen");
    }
    return {};
  }

  const OpSpec& op_;
  const TensorSpec& output_;
  const Relation& relation_;
  std::string place_;
};

// An output that overwrites an input is that input's tensor.
Status CheckUpdate(const OpSpec& op, const TensorSpec& output, const std::string& place) {
  const TensorSpec* input = op.FindInput(output.updates);
  ASSAY_CHECK(input != nullptr, "ReadTensor looks it up");
  const std::size_t rank = std::max(input->shape.size(), output.shape.size());
  if (TextsOf(input->shape, rank) != TextsOf(output.shape, rank) ||
      input->dtype_name != output.dtype_name) {
    return Bad(
        fmt::format("has another shape or dtype than '{}', which it overwrites", input->name),
        place, "leave out shape and dtype: they are the input's");
  }
  return {};
}

}  // namespace

Result<Relation> ReadRelation(const Json& value, const std::string& place) {
  const Json object = value.is_string() ? Json{{"kind", value}} : value;
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(object, place));
  ASSAY_TRY(const std::string kind, reader.Optional<std::string>("kind", ""));
  Relation relation;
  if (!kind.empty()) {
    const auto names = RelationNames();
    const auto named = std::ranges::find(names, kind, &RelationName::name);
    if (named == names.end()) {
      std::vector<std::string> known;
      for (const RelationName& row : names) known.emplace_back(row.name);
      auto unknown = UnknownName("relation", kind, std::move(known), reader.PlaceOf("kind"));
      return unknown;
    }
    relation.kind = named->kind;
  }
  ASSAY_TRY_VOID(ReadKind(reader, relation));
  ASSAY_TRY_VOID(ReadPolicies(reader, relation));
  ASSAY_TRY_VOID(reader.Finish());
  return relation;
}

Status CheckRelations(const OpSpec& op, const std::string& file) {
  std::set<std::string, std::less<>> named, overwritten;
  for (const TensorSpec& output : op.outputs) {
    const std::string place = fmt::format("{}: /outputs/{}", file, output.name);
    ASSAY_TRY_VOID(RelationChecker(op, output, place + "/relation").Run());
    named.insert(output.relation.of);
    named.insert(output.relation.where);
    if (output.updates.empty()) continue;
    ASSAY_TRY_VOID(CheckUpdate(op, output, place));
    if (!overwritten.insert(output.updates).second) {
      return Bad(fmt::format("'{}' is overwritten twice", output.updates), place + "/updates",
                 "one output for each input that is overwritten");
    }
  }
  for (const TensorSpec& hidden : op.hidden) {
    if (named.contains(hidden.name)) continue;
    return Bad("a hidden output that no relation names",
               fmt::format("{}: /outputs/{}", file, hidden.name),
               "name it as scores or where, or remove it");
  }
  return {};
}

}  // namespace assay::ops
