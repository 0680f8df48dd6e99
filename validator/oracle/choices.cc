#include "validator/oracle/choices.h"

#include <vector>

#include "validator/oracle/choice.h"

namespace assay::oracle {
namespace {

bool IsChoice(const ops::TensorSpec& spec) {
  return spec.relation.kind == ops::Relation::Kind::kChoice;
}

/// Fills `choice`: the rows of `made` that are right, which may be null, and else the truth's own. What
/// follows from a wrong choice is not worth an answer: the choice is the finding.
void Choose(const ops::Relation& relation, const OutputTruth& scores, const ChoiceShape& shape,
            const Tensor* made, Tensor& choice) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    std::vector<std::int64_t> chosen;
    if (made != nullptr) chosen = RowOf(*made, row, shape.chosen);
    if (made == nullptr || CheckChoice(relation, scores, row, chosen))
      chosen = BestOf(relation, scores, row, shape.chosen);
    for (std::int64_t p = 0; p < shape.chosen; ++p) {
      StoreFromInt64(choice.dtype, chosen[static_cast<std::size_t>(p)],
                     choice.Element(row * shape.chosen + p));
    }
  }
}

OutputTruth TruthOf(const Tensor& choice) {
  const auto count = static_cast<std::size_t>(choice.elements);
  OutputTruth truth;
  truth.shape = choice.shape;
  truth.dtype = choice.dtype;
  truth.exact = true;
  for (std::int64_t i = 0; i < choice.elements; ++i) truth.value.push_back(choice.At(i));
  truth.allowance.resize(count);
  truth.typical.resize(count);
  truth.independent.resize(count);
  truth.contributions.assign(count, 1);
  return truth;
}

}  // namespace

Result<Truth> TruthOfChoices(const ops::Instance& instance, const cases::Materialised& inputs,
                             const TensorMap* made, const ReferenceTruth& reference) {
  TensorMap all;
  for (const auto& [name, tensor] : inputs.inputs) {
    ASSAY_TRY(Tensor copy, tensor.Clone());
    all.emplace(name, std::move(copy));
  }
  // Until it is made, a choice is the first candidate throughout.
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (!IsChoice(spec)) continue;
    ASSAY_TRY(Shape shape, ops::ResolveShape(spec, inputs.axes));
    ASSAY_TRY(Tensor choice, Tensor::Create(instance.TypeOf(spec), std::move(shape)));
    all.emplace(spec.name, std::move(choice));
  }
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (!IsChoice(spec)) continue;
    ASSAY_TRY(const Truth before, reference(all));
    const OutputTruth& scores = before.outputs.find(spec.relation.of)->second;
    Tensor& choice = all.find(spec.name)->second;
    ASSAY_TRY(const ChoiceShape shape, ShapeOfChoice(scores, choice.shape, instance.op.name));
    const Tensor* theirs = made == nullptr ? nullptr : &made->find(spec.name)->second;
    Choose(spec.relation, scores, shape, theirs, choice);
  }
  ASSAY_TRY(Truth truth, reference(all));
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (IsChoice(spec)) truth.outputs[spec.name] = TruthOf(all.find(spec.name)->second);
  }
  return truth;
}

bool ChoseAlike(const ops::OpSpec& op, const Truth& truth, const TensorMap& outputs) {
  for (const ops::TensorSpec& spec : op.outputs) {
    if (!IsChoice(spec)) continue;
    const OutputTruth& own = truth.outputs.find(spec.name)->second;
    const Tensor& theirs = outputs.find(spec.name)->second;
    for (std::int64_t i = 0; i < theirs.elements; ++i) {
      if (theirs.At(i) != own.value[static_cast<std::size_t>(i)]) return false;
    }
  }
  return true;
}

}  // namespace assay::oracle
