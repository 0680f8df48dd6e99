#include "validator/oracle/relations.h"

#include <algorithm>
#include <array>

#include "validator/oracle/permutation.h"

namespace assay::oracle {
namespace {

using Kind = ops::Relation::Kind;

void CompareNothing(const Compared&, Comparison&) {}

void CompareUnordered(const Compared& output, Comparison& out) {
  const std::string& of = output.spec.relation.of;
  const OutputTruth* keys = of.empty() ? nullptr : &output.all.outputs.find(of)->second;
  const OutputTruth matched = Matched(output.spec.relation, output.truth, keys, output.got);
  CompareElements({.instance = output.instance,
                   .inputs = output.inputs,
                   .spec = output.spec,
                   .all = output.all,
                   .truth = matched,
                   .got = output.got},
                  out);
}

constexpr std::array kRows = {
    RelationRow{Kind::kUsual, CompareElements}, RelationRow{Kind::kAllowance, CompareElements},
    RelationRow{Kind::kExact, CompareElements}, RelationRow{Kind::kAny, CompareNothing},
    RelationRow{Kind::kNorm, CompareNorm},      RelationRow{Kind::kUnordered, CompareUnordered},
    RelationRow{Kind::kChoice, CompareChoice},
};

}  // namespace

std::span<const RelationRow> RelationRows() { return kRows; }

bool Compared::AnyNan() const {
  return spec.relation.any_nan.value_or(instance.op.contract.nan_policy == "any");
}

Comparison Compare(const ops::Instance& instance, const Truth& truth, const cases::Case&,
                   const cases::Materialised& inputs, const TensorMap& outputs) {
  Comparison comparison;
  const auto compare = [&](const ops::TensorSpec& spec) {
    const auto expected = truth.outputs.find(spec.name);
    const auto got = outputs.find(spec.name);
    ASSAY_CHECK(expected != truth.outputs.end() && got != outputs.end(),
                "outputs and truth belong to the same case");
    ASSAY_CHECK(static_cast<std::size_t>(got->second.elements) == expected->second.value.size(),
                "same shape");
    const auto row = std::ranges::find(kRows, spec.relation.kind, &RelationRow::kind);
    ASSAY_CHECK(row != kRows.end(), "every kind has a row");
    row->compare({.instance = instance,
                  .inputs = inputs.inputs,
                  .spec = spec,
                  .all = truth,
                  .truth = expected->second,
                  .got = got->second},
                 comparison);
  };
  const auto is_choice = [](const ops::TensorSpec& spec) {
    return spec.relation.kind == ops::Relation::Kind::kChoice;
  };
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (is_choice(spec)) compare(spec);
  }
  // What follows from a wrong choice is wrong with it: the choice is what is told.
  if (!comparison.numeric.empty() || !comparison.precision.empty()) return comparison;
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (!is_choice(spec)) compare(spec);
  }
  return comparison;
}

}  // namespace assay::oracle
