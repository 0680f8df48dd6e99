#include "validator/oracle/points.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// The rules for single elements (validator/oracle/element.h), for truths that come one by one.
class PointCheck {
 public:
  PointCheck(const ops::Instance& instance, const ops::TensorSpec& spec)
      : any_nan_(instance.op.contract.nan_policy == "any"),
        unit_(UnitRoundoff(instance.op.contract.accumulate)) {
    truth_.dtype = instance.TypeOf(spec);
    truth_.value = truth_.allowance = truth_.typical = {0};
  }

  bool Agrees(double got, const TruthPoint& point) {
    if (got == point.value || std::fabs(got - point.value) <= point.allowance) return true;
    truth_.value[0] = point.value;
    truth_.allowance[0] = point.allowance;
    const ElementClass verdict = CheckElement(truth_, 0, got, any_nan_, unit_).verdict;
    return verdict == ElementClass::kRight || verdict == ElementClass::kUnconstrained;
  }

 private:
  bool any_nan_;
  double unit_;
  OutputTruth truth_;
};

}  // namespace

bool Agrees(const ops::Instance& instance, const ops::TensorSpec& output, double got,
            const TruthPoint& truth) {
  return PointCheck(instance, output).Agrees(got, truth);
}

Finding WrongValue(const std::string& output, const Shape& shape, double got,
                   const TruthPoint& truth) {
  Finding finding;
  finding.kind = FindingKind::kWrongValue;
  ElementPlace place{.output = output,
                     .index = IndexOf(truth.index, shape),
                     .expected = truth.value,
                     .got = got,
                     .allowance = truth.allowance};
  std::string index;
  for (const std::int64_t coordinate : place.index)
    index += (index.empty() ? "" : ", ") + std::to_string(coordinate);
  finding.message = fmt::format("{}[{}] is {}, but the op defines {}", output, index,
                                Shown(place.got), Shown(place.expected));
  finding.cause = fmt::format(
      "element {} of {}: an index that is computed in 32 bits, or a size that is not provided for",
      truth.index, ElementCount(shape).value_or(0));
  finding.element = std::move(place);
  return finding;
}

void ComparePoints(const ops::Instance& instance, const SparseTruth& truth,
                   const TensorMap& outputs, Comparison& comparison) {
  for (const auto& [name, points] : truth) {
    const ops::TensorSpec* spec = instance.op.FindOutput(name);
    const auto found = outputs.find(name);
    if (spec == nullptr || found == outputs.end()) continue;
    PointCheck check(instance, *spec);
    for (const TruthPoint& point : points) {
      if (check.Agrees(found->second.At(point.index), point)) continue;
      comparison.numeric.push_back(
          WrongValue(name, found->second.shape, found->second.At(point.index), point));
      break;
    }
  }
}

}  // namespace assay::oracle
