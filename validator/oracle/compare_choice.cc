// Choices against the scores that they were made by.
#include <fmt/format.h>

#include <algorithm>

#include "validator/oracle/choice.h"
#include "validator/oracle/describe.h"
#include "validator/oracle/relations.h"

namespace assay::oracle {
namespace {

using Kind = ChoiceFault::Kind;

std::string ScoreOf(const OutputTruth& scores, std::int64_t row, std::int64_t candidate) {
  const auto at = static_cast<std::size_t>(row * scores.shape.back() + candidate);
  return fmt::format("{:.9g} (within {:.3g})", scores.value[at], scores.allowance[at]);
}

std::string Words(const ops::Relation& relation, const OutputTruth& scores, std::int64_t row,
                  std::int64_t got, const ChoiceFault& fault) {
  switch (fault.kind) {
    case Kind::kNoIndex:
      return fmt::format("which is no index: there are {} candidates", scores.shape.back());
    case Kind::kTwice:
      return "which is chosen before";
    case Kind::kNotBest:
      return fmt::format("whose score is {}; {}, which was not chosen, has {}",
                         ScoreOf(scores, row, got), fault.better,
                         ScoreOf(scores, row, fault.better));
    case Kind::kOrder:
      return fmt::format("whose score is {}; {}, which comes later, has {}",
                         ScoreOf(scores, row, got), fault.better,
                         ScoreOf(scores, row, fault.better));
    case Kind::kTie:
      return fmt::format("whose score is {}; {} has the same, and of equal scores the first is {}",
                         ScoreOf(scores, row, got), fault.better,
                         relation.sorted ? "chosen, and comes first" : "chosen");
  }
  return {};
}

std::string CauseOf(const ops::Relation& relation, const ChoiceFault& fault, bool imprecise) {
  switch (fault.kind) {
    case Kind::kNoIndex:
      return "an index of a tile that was not made one of the row, or a place that nobody filled";
    case Kind::kTwice:
      return "a candidate stays in the race after it was chosen, or two threads choose alike";
    case Kind::kTie:
      return "ties go to whoever comes first in the machine, and not in the row";
    case Kind::kOrder:
    case Kind::kNotBest:
      break;
  }
  if (imprecise) return "scores are computed, or compared, in a narrower type than the contract's";
  return fmt::format("not the {} scores are looked for, or not all of the row's",
                     relation.largest ? "largest" : "smallest");
}

}  // namespace

void CompareChoice(const Compared& output, Comparison& out) {
  const ops::Relation& relation = output.spec.relation;
  const OutputTruth& scores = output.all.outputs.find(relation.of)->second;
  const auto shape = ShapeOfChoice(scores, output.truth.shape, output.instance.op.name);
  ASSAY_CHECK(shape.has_value(), "truths come of choices that can be made");
  struct Worst {
    std::int64_t row = 0;
    ChoiceFault fault;
    double Rank() const {
      return fault.kind == Kind::kNoIndex || fault.kind == Kind::kTwice || fault.kind == Kind::kTie
                 ? HUGE_VAL
                 : fault.distance;
    }
  };
  std::optional<Worst> worst;
  std::int64_t wrong = 0, other = 0;
  for (std::int64_t row = 0; row < shape->rows; ++row) {
    const auto chosen = RowOf(output.got, row, shape->chosen);
    if (const auto fault = CheckChoice(relation, scores, row, chosen)) {
      const Worst here{row, *fault};
      if (!worst || here.Rank() > worst->Rank()) worst = here;
      ++wrong;
    } else if (chosen != BestOf(relation, scores, row, shape->chosen)) {
      ++other;
    }
  }
  if (other > 0) {
    out.statistics.push_back(
        {"near_tie_rows", static_cast<double>(other), 0,
         output.spec.name + ": rows that choose otherwise than the truth, within its errors"});
  }
  if (!worst) return;
  const ChoiceFault& fault = worst->fault;
  // Scores in the narrowest type would be off by that much more.
  const double narrow =
      UnitRoundoff(DType::kBF16) / UnitRoundoff(output.instance.op.contract.accumulate);
  const bool imprecise = (fault.kind == Kind::kNotBest || fault.kind == Kind::kOrder) &&
                         fault.distance <= narrow * fault.allowed;
  const auto at = static_cast<std::size_t>(worst->row * shape->chosen + fault.at);
  const auto best = BestOf(relation, scores, worst->row, shape->chosen);
  Finding finding;
  finding.kind = imprecise ? FindingKind::kPrecisionElement : FindingKind::kWrongValue;
  finding.element =
      ElementPlace{.output = output.spec.name,
                   .index = IndexOf(output.truth.shape, at),
                   .expected = static_cast<double>(best[static_cast<std::size_t>(fault.at)]),
                   .got = output.got.At(static_cast<std::int64_t>(at)),
                   .allowance = 0};
  const std::int64_t got =
      LoadAsInt64(output.got.dtype, output.got.Element(static_cast<std::int64_t>(at)));
  finding.message = fmt::format(
      "{}{} is {}, {}{}", output.spec.name, Subscript(finding.element->index), got,
      Words(relation, scores, worst->row, got, fault),
      wrong > 1 ? fmt::format("; {} of {} rows choose wrongly", wrong, shape->rows) : "");
  finding.cause = CauseOf(relation, fault, imprecise);
  finding.statistics = out.statistics;
  (imprecise ? out.precision : out.numeric).push_back(std::move(finding));
}

}  // namespace assay::oracle
