// What the blocks that ran at the ends of a huge case (ends.cc) left there: which elements they wrote, whether the end of an
// output is among them, and which of them are compared.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {
namespace {

// Elements of one output that are compared, spread over what was written.
constexpr std::size_t kMostCompared = 4096;

/// One of each of the first stretches of elements that follow each other.
std::vector<std::int64_t> MiddlesOfStretches(const std::vector<std::int64_t>& written) {
  constexpr std::size_t kStretches = 4;
  std::vector<std::int64_t> middles;
  for (std::size_t first = 0; first < written.size() && middles.size() < kStretches;) {
    std::size_t end = first + 1;
    while (end < written.size() && written[end] == written[end - 1] + 1) ++end;
    middles.push_back(written[first + (end - first) / 2]);
    first = end;
  }
  return middles;
}

}  // namespace

oracle::SparseElements Runner::EndsThatStay(const cases::Case& value,
                                            const cases::Materialised& filled,
                                            const TensorMap& outputs) const {
  const ops::Instance& instance = *subject_.instance;
  const auto before = [&](const std::string& output) -> const Tensor& {
    return filled.inputs.find(instance.op.FindOutput(output)->updates)->second;
  };
  oracle::SparseElements ends, stay;
  for (const auto& [name, tensor] : outputs) {
    if (!instance.op.FindOutput(name)->updates.empty() && EndIsTheSame(tensor, before(name)))
      ends[name] = {tensor.elements - 1};
  }
  if (ends.empty()) return stay;
  const auto truth = oracle_.EvaluateAt(instance, value, filled, ends);
  if (!truth) return stay;  // Of what cannot be computed nobody knows whether it changes.
  for (const auto& [name, points] : *truth) {
    for (const oracle::TruthPoint& point : points) {
      if (std::fabs(before(name).At(point.index) - point.value) > point.allowance)
        stay[name].push_back(point.index);
    }
  }
  return stay;
}

Runner::AtItsEnds Runner::LookAtEnds(const engine::BoundCall& call, std::uint8_t poison,
                                     const cases::Materialised& filled,
                                     const Report& report) const {
  AtItsEnds seen;
  for (const auto& [name, tensor] : call.outputs) {
    auto written = WrittenElements(call, name, poison, report);
    const std::string& updates = subject_.instance->op.FindOutput(name)->updates;
    if (updates.empty()) {
      seen.unwritten = seen.unwritten || EndIsUnwritten(tensor, poison);
    } else {
      const Tensor& now = tensor;
      const Tensor& before = filled.inputs.find(updates)->second;
      const std::size_t size = SizeOf(tensor.dtype);
      std::erase_if(written, [&](std::int64_t i) {
        return std::memcmp(now.Element(i), before.Element(i), size) == 0;
      });
    }
    if (const std::int64_t first = RunFromTheFront(written); first > seen.at_once) {
      seen.at_once = first;
      seen.extent = tensor.elements;
    }
    if (!written.empty()) seen.near_the_front[name] = MiddlesOfStretches(written);
    // What is chosen is compared in whole rows.
    if (!subject_.instance->op.Chooses()) written = Spread(std::move(written), kMostCompared);
    if (!written.empty()) seen.wanted[name] = std::move(written);
  }
  return seen;
}

}  // namespace assay::campaign
