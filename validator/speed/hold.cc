#include "validator/speed/hold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/rows.h"
#include "validator/oracle/element.h"

namespace assay::speed {
namespace {

// A whole truth takes about 100 bytes and 200 ns of this machine for each output element; the oracle
// keeps as many as an op has workloads.
constexpr double kMostWholeOutputs = 1 << 21;
// Of the op's own operations, each of which is some fifty in FP64 with its bound: a second of a card.
constexpr double kMostWholeOperations = 0x1p34;

// Rows of ops whose truths hang on choices, which have none for single elements.
constexpr std::size_t kManyRows = 12;
constexpr std::size_t kFewRows = 3;

/// Elements in which calls differ most, absolutely, and as many for their size. Few enough to be
/// computed whatever one takes.
constexpr std::size_t kSuspects = 3;

void Take(const oracle::Comparison& comparison, std::vector<Finding>& findings) {
  for (const auto* found : {&comparison.numeric, &comparison.precision})
    findings.insert(findings.end(), found->begin(), found->end());
}

std::uint64_t ElementsOf(const TensorMap& outputs) {
  std::uint64_t elements = 0;
  for (const auto& [name, tensor] : outputs)
    elements += static_cast<std::uint64_t>(tensor.elements);
  return elements;
}

Result<Holding> HoldWhole(oracle::Oracle& oracle, const ops::Instance& instance, const Held& held) {
  ASSAY_TRY(const auto truth, oracle.EvaluateFor(instance, held.case_, held.inputs, held.outputs));
  Holding holding{.findings = {}, .elements = ElementsOf(held.outputs), .whole = true};
  Take(oracle::Compare(instance, *truth, held.case_, held.inputs, held.outputs), holding.findings);
  return holding;
}

Result<Holding> HoldRows(oracle::Oracle& oracle, const ops::Instance& instance, const Held& held,
                         std::size_t most, std::uint64_t seed) {
  const auto axis = campaign::AxisOfRows(instance.op);
  if (!axis) {
    return Fail(ErrorKind::kUnsupported, "what follows from a choice hangs on all of its scores",
                instance.op.name);
  }
  const std::int64_t all = held.inputs.axes.at(*axis);
  std::set<std::int64_t> chosen = {0, all - 1};
  Rng rng(DeriveSeed(seed, "rows"));
  while (chosen.size() < std::min(most, static_cast<std::size_t>(all)))
    chosen.insert(static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(all))));
  const std::vector<std::int64_t> rows(chosen.begin(), chosen.end());
  cases::Materialised some{.axes = held.inputs.axes, .inputs = {}};
  some.axes[*axis] = static_cast<std::int64_t>(rows.size());
  ASSAY_TRY(some.inputs, campaign::TakeRows(instance.op.inputs, held.inputs.inputs, *axis, rows));
  ASSAY_TRY(const TensorMap got,
            campaign::TakeRows(instance.op.outputs, held.outputs, *axis, rows));
  cases::Case value = held.case_;
  value.origin = fmt::format("rows {} of {}", fmt::join(rows, " "), all);
  ASSAY_TRY(const auto truth, oracle.EvaluateFor(instance, value, some, got));
  oracle::Comparison comparison = oracle::Compare(instance, *truth, value, some, got);
  campaign::NameRows(rows, comparison);
  Holding holding{.findings = {}, .elements = ElementsOf(got)};
  Take(comparison, holding.findings);
  return holding;
}

Holding HoldPoints(const ops::Instance& instance, const oracle::SparseTruth& truth,
                   const TensorMap& outputs) {
  Holding holding;
  for (const auto& [name, points] : truth) holding.elements += points.size();
  oracle::Comparison comparison;
  campaign::ComparePoints(instance, truth, outputs, comparison);
  Take(comparison, holding.findings);
  return holding;
}

Result<Holding> HoldParts(oracle::Oracle& oracle, const ops::Instance& instance, const Held& held,
                          Depth depth, std::uint64_t seed) {
  if (instance.op.Chooses())
    return HoldRows(oracle, instance, held, depth == Depth::kMany ? kManyRows : kFewRows, seed);
  oracle::SparseElements wanted;
  for (const auto& [name, tensor] : held.outputs)
    wanted[name] = Places(tensor.elements, depth, DeriveSeed(seed, name));
  ASSAY_TRY(const oracle::SparseTruth truth,
            oracle.EvaluateSlice(instance, held.case_, held.inputs, std::move(wanted), seed));
  return HoldPoints(instance, truth, held.outputs);
}

bool NothingInParts(const Error& error) {
  return error.kind == ErrorKind::kUnsupported || error.kind == ErrorKind::kLimit;
}

struct Difference {
  double size = 0;
  std::int64_t index = 0;
  bool operator>(const Difference& other) const { return size > other.size; }
};

/// The largest ones, and where.
class Largest {
 public:
  void Add(double size, std::int64_t index) {
    if (kept_.size() == kSuspects && !(size > kept_.back().size)) return;
    if (kept_.size() == kSuspects) kept_.pop_back();
    const Difference mine{size, index};
    kept_.insert(std::ranges::upper_bound(kept_, mine, std::greater{}), mine);
  }
  const std::vector<Difference>& kept() const { return kept_; }

 private:
  std::vector<Difference> kept_;
};

/// Of elements that differ: which are held to their truths, ascending.
std::vector<std::int64_t> SuspectsOf(const Tensor& timed, const Tensor& alone) {
  Largest absolute, relative;
  constexpr std::int64_t kTogether = 4096;
  const std::size_t size = SizeOf(timed.dtype);
  for (std::int64_t first = 0; first < timed.elements; first += kTogether) {
    const std::int64_t last = std::min(first + kTogether, timed.elements);
    const std::size_t bytes = static_cast<std::size_t>(last - first) * size;
    if (std::equal(timed.Element(first), timed.Element(first) + bytes, alone.Element(first)))
      continue;
    for (std::int64_t i = first; i < last; ++i) {
      const double a = timed.At(i), b = alone.At(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double off = std::fabs(a - b);
      const double much = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
      absolute.Add(much, i);
      relative.Add(std::isinf(much) ? much : much / std::max(std::fabs(a), std::fabs(b)), i);
    }
  }
  std::set<std::int64_t> some;
  for (const auto* each : {&absolute, &relative}) {
    for (const Difference& difference : each->kept()) some.insert(difference.index);
  }
  return {some.begin(), some.end()};
}

}  // namespace

Result<bool> WholeTruthIsCheap(const ops::Instance& instance, const ops::AxisValues& axes) {
  ASSAY_TRY(const ops::SpeedContract contract, ops::SpeedOf(instance.op));
  ASSAY_TRY(const ops::LeastWork work, ops::LeastWorkOf(instance, contract, axes));
  double outputs = 0;
  for (const ops::TensorSpec& output : instance.op.outputs) {
    ASSAY_TRY(const Shape shape, ops::ResolveShape(output, axes));
    ASSAY_TRY(const std::int64_t elements, ElementCount(shape));
    outputs += static_cast<double>(elements);
  }
  // An op may state no operations; it looks at its tensors at least.
  return outputs <= kMostWholeOutputs &&
         std::max(work.operations, work.bytes) <= kMostWholeOperations;
}

std::vector<std::int64_t> Places(std::int64_t elements, Depth depth, std::uint64_t seed) {
  const bool many = depth == Depth::kMany;
  // Many: what a warp of a reference with a thread a row writes, some rows of each.
  const std::int64_t run = many ? 1 << 15 : 32;
  const int drawn = many ? 16 : 3;
  std::set<std::int64_t> starts = {0, elements - run, elements / 2};
  for (std::int64_t power = run; many && power < elements; power *= 2)
    starts.insert(power - run / 2);
  Rng rng(DeriveSeed(seed, "places"));
  for (int i = 0; i < drawn && elements > 0; ++i)
    starts.insert(static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(elements))));
  std::vector<std::int64_t> places;
  for (const std::int64_t start : starts) {
    std::int64_t i = std::max(start, places.empty() ? 0 : places.back() + 1);
    for (; i < std::min(start + run, elements); ++i) places.push_back(i);
  }
  return places;
}

Result<Holding> HoldToTruth(const Instruments& instruments, const ops::Instance& instance,
                            const Held& held, Depth depth, std::uint64_t seed) {
  if (depth == Depth::kWhole) return HoldWhole(instruments.truth, instance, held);
  Result<Holding> parts = HoldParts(instruments.parts, instance, held, depth, seed);
  if (parts && parts->elements > 0) return parts;
  if (!parts && !NothingInParts(parts.error())) return parts;
  if (depth == Depth::kFew) return Holding{};
  return HoldWhole(instruments.truth, instance, held);
}

namespace {

/// The first element of each output that has other bits than `alone`.
std::vector<Finding> OtherBits(const TensorMap& timed, const TensorMap& alone) {
  std::vector<Finding> findings;
  for (const auto& [name, tensor] : timed) {
    const auto found = alone.find(name);
    if (found == alone.end()) continue;
    const auto at = FirstDifference(tensor, found->second);
    if (!at) continue;
    Finding& finding = findings.emplace_back();
    finding.kind = FindingKind::kNondeterministic;
    finding.element = ElementPlace{.output = name,
                                   .index = IndexOf(*at, tensor.shape),
                                   .expected = found->second.At(*at),
                                   .got = tensor.At(*at),
                                   .allowance = 0};
    finding.message =
        fmt::format("{}[{}] is {}, but {} when the same call runs untimed", name,
                    fmt::join(finding.element->index, ", "), oracle::Shown(finding.element->got),
                    oracle::Shown(finding.element->expected));
  }
  return findings;
}

/// Elements in which two calls differ most, absolutely and for their size, held to their truths.
Result<Holding> HoldSuspects(const Instruments& instruments, const ops::Instance& instance,
                             const Held& held, const TensorMap& alone) {
  Holding all;
  for (const auto& [name, tensor] : held.outputs) {
    const auto other = alone.find(name);
    if (other == alone.end() || other->second.elements != tensor.elements) continue;
    for (const std::int64_t index : SuspectsOf(tensor, other->second)) {
      // One at a time: what is asked for alone is computed, so that no truth means that it is 0.
      auto truth = instruments.parts.EvaluateSlice(instance, held.case_, held.inputs,
                                                   {{name, {index}}}, held.case_.seed);
      if (!truth) {
        if (!NothingInParts(truth.error())) return std::unexpected(truth.error());
        return HoldWhole(instruments.truth, instance, held);
      }
      if ((*truth)[name].empty()) {
        if (!instance.op.FindOutput(name)->relation.HoldsElements()) continue;
        // Flushed or not, what is no number of full precision is 0.
        const double tiny = IsFloat(tensor.dtype) ? MinNormal(tensor.dtype) : 0;
        (*truth)[name].push_back({.index = index, .value = 0, .allowance = tiny});
      }
      Holding one = HoldPoints(instance, *truth, held.outputs);
      all.elements += one.elements;
      all.findings.insert(all.findings.end(), one.findings.begin(), one.findings.end());
      if (!one.findings.empty()) break;
    }
  }
  return all;
}

}  // namespace

Result<Holding> HoldToUntimed(const Instruments& instruments, const ops::Instance& instance,
                              const Held& held, const TensorMap& alone) {
  std::vector<Finding> other = OtherBits(held.outputs, alone);
  Holding holding;
  if (!other.empty()) {
    ASSAY_TRY(holding, HoldSuspects(instruments, instance, held, alone));
  }
  holding.compared = ElementsOf(alone);
  if (ops::IsDeterministic(instance.op))
    holding.findings.insert(holding.findings.end(), other.begin(), other.end());
  return holding;
}

std::vector<Finding> InTimedCall(std::vector<Finding> findings, std::string_view workload) {
  for (Finding& finding : findings) {
    if (finding.kind != FindingKind::kNondeterministic)
      finding.kind = FindingKind::kDeviceDisagreement;
    finding.message = fmt::format("in a timed call on the GPU ({}): {}", workload, finding.message);
  }
  return findings;
}

}  // namespace assay::speed
