#include "validator/oracle/cells.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {

namespace {

bool IsExact(const ops::Instance& instance, const ops::TensorSpec& spec) {
  using Kind = ops::Relation::Kind;
  if (spec.relation.kind == Kind::kExact || instance.op.contract.exact_outputs.contains(spec.name))
    return true;
  // Integers that are said to be within an allowance are rounded results.
  return !IsFloat(instance.TypeOf(spec)) && spec.relation.kind != Kind::kAllowance;
}

}  // namespace

std::optional<TruthPoint> ReadCell(const ops::Instance& instance, const ops::TensorSpec& spec,
                                   const Tensor& cells, std::int64_t index) {
  if (index < 0 || index >= cells.elements / 6) return std::nullopt;
  const Cell& cell = reinterpret_cast<const Cell*>(cells.memory.bytes().data())[index];
  if (cell.value == 0 && cell.hard == 0 && cell.terms == 0 && cell.length == 0) return std::nullopt;
  const DType dtype = instance.TypeOf(spec);
  if (IsExact(instance, spec)) return TruthPoint{index, cell.value, 0};
  if (!IsFloat(dtype)) return TruthPoint{index, cell.value, cell.hard};
  return TruthPoint{index, cell.value,
                    cell.hard + UlpAt(dtype, std::fabs(cell.value) + cell.hard) / 2};
}

OutputTruth ReadCells(const ops::Instance& instance, const ops::TensorSpec& spec,
                      const Tensor& cells, bool exchangeable) {
  OutputTruth truth;
  truth.dtype = instance.TypeOf(spec);
  truth.ordinary = exchangeable;
  truth.shape = cells.shape;
  truth.shape.pop_back();
  truth.exact = IsExact(instance, spec);
  truth.keeps_zero_sign = spec.relation.keeps_zero_sign;
  // Scores that a kernel compares are stored nowhere.
  const bool stored = instance.op.FindOutput(spec.name) != nullptr;
  const auto count = static_cast<std::size_t>(cells.elements / 6);
  const auto* data = reinterpret_cast<const Cell*>(cells.memory.bytes().data());
  truth.value.resize(count);
  truth.allowance.resize(count);
  truth.typical.resize(count);
  truth.independent.resize(count);
  truth.contributions.resize(count);
  // A scatter-add's elements are sums of as many terms as they received; a product's are not sums
  // at all: then the longest accumulation behind it counts.
  // What the accumulator holds is stored as it is where the output is as wide.
  const bool rounds_again =
      IsFloat(truth.dtype) && Precision(truth.dtype) < Precision(instance.op.contract.accumulate);
  bool sums = false;
  for (std::size_t i = 0; i < count; ++i) sums = sums || data[i].terms > 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Cell& cell = data[i];
    const double half_ulp = stored && IsFloat(truth.dtype)
                                ? UlpAt(truth.dtype, std::fabs(cell.value) + cell.hard) / 2
                                : 0;
    truth.value[i] = cell.value;
    truth.allowance[i] = truth.exact    ? 0
                         : rounds_again ? cell.hard + half_ulp
                                        : std::max(cell.hard, half_ulp);
    truth.typical[i] = exchangeable ? cell.typical : cell.hard;
    truth.independent[i] = exchangeable ? cell.independent : 0;
    truth.contributions[i] = sums ? cell.terms : std::max(cell.length, 0.0);
  }
  return truth;
}

void ReadInOrder(const Tensor& separate, const Tensor& fused, const Tensor& bounded,
                 OutputTruth& truth) {
  const std::size_t count = truth.value.size();
  const auto* cells = reinterpret_cast<const Cell*>(bounded.memory.bytes().data());
  for (std::size_t i = 0; i < count; ++i) {
    truth.in_order.push_back(separate.At(static_cast<std::int64_t>(i)));
    truth.in_order_fused.push_back(fused.At(static_cast<std::int64_t>(i)));
    truth.in_order_slack.push_back(cells[i].hard);
  }
}

}  // namespace assay::oracle
