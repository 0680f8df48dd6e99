#include "validator/speed/hold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/oracle/element.h"
#include "validator/oracle/points.h"
#include "validator/oracle/rows.h"

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

Result<Holding> HoldRows(oracle::Oracle& oracle, const ops::Instance& instance, const Held& held,
                         std::size_t most, std::uint64_t seed) {
  const auto axis = oracle::AxisOfRows(instance.op);
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
  ASSAY_TRY(some.inputs, oracle::TakeRows(instance.op.inputs, held.inputs.inputs, *axis, rows));
  ASSAY_TRY(const TensorMap got, oracle::TakeRows(instance.op.outputs, held.outputs, *axis, rows));
  cases::Case value = held.case_;
  value.origin = fmt::format("rows {} of {}", fmt::join(rows, " "), all);
  ASSAY_TRY(const auto truth, oracle.EvaluateFor(instance, value, some, got));
  oracle::Comparison comparison = oracle::Compare(instance, *truth, value, some, got);
  oracle::NameRows(rows, comparison);
  Holding holding{.findings = {}, .elements = ElementsOf(got)};
  Take(comparison, holding.findings);
  return holding;
}

Holding HoldPoints(const ops::Instance& instance, const oracle::SparseTruth& truth,
                   const TensorMap& outputs) {
  Holding holding;
  for (const auto& [name, points] : truth) holding.elements += points.size();
  oracle::Comparison comparison;
  oracle::ComparePoints(instance, truth, outputs, comparison);
  Take(comparison, holding.findings);
  return holding;
}

oracle::SparseElements PlacesOf(const TensorMap& outputs, Depth depth, std::uint64_t seed) {
  oracle::SparseElements wanted;
  for (const auto& [name, tensor] : outputs)
    wanted[name] = Places(tensor.elements, depth, DeriveSeed(seed, name));
  return wanted;
}

/// What the card's oracle says, or this machine's where the card runs no such reference.
template <class Ask>
auto FirstThatCan(const Instruments& instruments, const Ask& ask) {
  auto answer = ask(instruments.truth);
  if (answer || answer.error().kind != ErrorKind::kUnsupported) return answer;
  auto other = ask(instruments.parts);
  return other ? other : answer;
}

bool NothingInParts(const Error& error) {
  return error.kind == ErrorKind::kUnsupported || error.kind == ErrorKind::kLimit;
}

struct Apart {
  double size = 0;
  std::int64_t index = 0;
  bool operator>(const Apart& other) const { return size > other.size; }
};

/// The largest ones, and where.
class Largest {
 public:
  void Add(double size, std::int64_t index) {
    if (kept_.size() == kSuspects && !(size > kept_.back().size)) return;
    if (kept_.size() == kSuspects) kept_.pop_back();
    const Apart mine{size, index};
    kept_.insert(std::ranges::upper_bound(kept_, mine, std::greater{}), mine);
  }
  const std::vector<Apart>& kept() const { return kept_; }

 private:
  std::vector<Apart> kept_;
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
    for (const Apart& apart : each->kept()) some.insert(apart.index);
  }
  return {some.begin(), some.end()};
}

Finding OtherBits(const std::string& name, const Tensor& timed, const Tensor& alone,
                  std::int64_t at) {
  Finding finding;
  finding.kind = FindingKind::kNondeterministic;
  finding.element = ElementPlace{.output = name,
                                 .index = IndexOf(at, timed.shape),
                                 .expected = alone.At(at),
                                 .got = timed.At(at),
                                 .allowance = 0};
  finding.message =
      fmt::format("{}[{}] is {}, but {} when the same call runs untimed", name,
                  fmt::join(finding.element->index, ", "), oracle::Shown(finding.element->got),
                  oracle::Shown(finding.element->expected));
  return finding;
}

using Truths = std::map<std::string, std::map<std::int64_t, oracle::TruthPoint>, std::less<>>;

/// Of what was wanted and has no truth it is 0; flushed or not, that is no number of full precision.
void AddTruths(const ops::Instance& instance, const oracle::SparseTruth& truth,
               const oracle::SparseElements& wanted, Truths& all) {
  for (const auto& [name, elements] : wanted) {
    const ops::TensorSpec* const spec = instance.op.FindOutput(name);
    if (spec == nullptr || !spec->relation.HoldsElements()) continue;
    const DType dtype = instance.TypeOf(*spec);
    const double tiny = IsFloat(dtype) ? MinNormal(dtype) : 0;
    for (const std::int64_t index : elements)
      all[name].try_emplace(index, oracle::TruthPoint{index, 0, tiny});
    const auto found = truth.find(name);
    if (found == truth.end()) continue;
    for (const oracle::TruthPoint& point : found->second) all[name][point.index] = point;
  }
}

/// One at a time: what is asked for alone is computed, so that no truth means that it is 0.
Status AddOneByOne(oracle::Oracle& oracle, const ops::Instance& instance, const Held& held,
                   const oracle::SparseElements& wanted, Truths& all) {
  for (const auto& [name, elements] : wanted) {
    for (const std::int64_t index : elements) {
      const oracle::SparseElements one = {{name, {index}}};
      ASSAY_TRY(const oracle::SparseTruth truth,
                oracle.EvaluateSlice(instance, held.case_, held.inputs, one, held.case_.seed));
      AddTruths(instance, truth, one, all);
    }
  }
  return {};
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

Result<Holding> HoldWhole(const Instruments& instruments, const ops::Instance& instance,
                          const Held& held) {
  ASSAY_TRY(const auto truth, FirstThatCan(instruments, [&](oracle::Oracle& oracle) {
              return oracle.EvaluateFor(instance, held.case_, held.inputs, held.outputs);
            }));
  Holding holding{.findings = {}, .elements = ElementsOf(held.outputs)};
  Take(oracle::Compare(instance, *truth, held.case_, held.inputs, held.outputs), holding.findings);
  return holding;
}

Result<std::optional<Holding>> HoldParts(const Instruments& instruments,
                                         const ops::Instance& instance, const Held& held,
                                         Depth depth, std::uint64_t seed) {
  const auto hold = [&]() -> Result<Holding> {
    if (instance.op.Chooses()) {
      return HoldRows(instruments.parts, instance, held,
                      depth == Depth::kMany ? kManyRows : kFewRows, seed);
    }
    ASSAY_TRY(const oracle::SparseTruth truth,
              instruments.parts.EvaluateSlice(instance, held.case_, held.inputs,
                                              PlacesOf(held.outputs, depth, seed), seed));
    return HoldPoints(instance, truth, held.outputs);
  };
  Result<Holding> holding = hold();
  if (holding) return std::move(*holding);
  if (NothingInParts(holding.error())) return std::nullopt;
  return std::unexpected(holding.error());
}

Result<Holding> HoldSome(const Instruments& instruments, const ops::Instance& instance,
                         const Held& held, std::uint64_t seed) {
  const oracle::SparseElements wanted = PlacesOf(held.outputs, Depth::kMany, seed);
  const auto truth = FirstThatCan(instruments, [&](oracle::Oracle& oracle) {
    return oracle.EvaluateSome(instance, held.case_, held.inputs, wanted);
  });
  if (!truth && truth.error().kind != ErrorKind::kUnsupported)
    return std::unexpected(truth.error());
  if (truth) {
    Holding holding = HoldPoints(instance, *truth, held.outputs);
    if (holding.elements > 0) return holding;
  }
  // What hangs on choices or is no matter of elements has whole truths alone.
  return HoldWhole(instruments, instance, held);
}

Difference CompareToUntimed(const ops::Instance& instance, const TensorMap& timed,
                            const TensorMap& alone) {
  Difference difference;
  for (const auto& [name, tensor] : timed) {
    const auto found = alone.find(name);
    if (found == alone.end()) continue;
    const auto at = FirstDifference(tensor, found->second);
    if (!at) continue;
    if (ops::IsDeterministic(instance.op))
      difference.findings.push_back(OtherBits(name, tensor, found->second, *at));
    for (const std::int64_t index : SuspectsOf(tensor, found->second))
      difference.suspects.push_back({name, index, tensor.At(index)});
  }
  return difference;
}

Result<Holding> HoldSuspects(const Instruments& instruments, const ops::Instance& instance,
                             const Held& held, const std::vector<Suspect>& suspects, bool parts) {
  oracle::SparseElements wanted;
  for (const Suspect& suspect : suspects) wanted[suspect.output].push_back(suspect.index);
  for (auto& [name, elements] : wanted) {
    std::ranges::sort(elements);
    elements.erase(std::ranges::unique(elements).begin(), elements.end());
  }
  if (wanted.empty()) return Holding{};
  Truths truths;
  if (parts && !instance.op.Chooses()) {
    ASSAY_TRY_VOID(AddOneByOne(instruments.parts, instance, held, wanted, truths));
  } else {
    const auto truth = FirstThatCan(instruments, [&](oracle::Oracle& oracle) {
      return oracle.EvaluateSome(instance, held.case_, held.inputs, wanted);
    });
    // What hangs on choices: what the last call made of them.
    if (!truth && truth.error().kind == ErrorKind::kUnsupported)
      return HoldWhole(instruments, instance, held);
    if (!truth) return std::unexpected(truth.error());
    AddTruths(instance, *truth, wanted, truths);
  }
  Holding holding;
  for (const Suspect& suspect : suspects) {
    const auto output = truths.find(suspect.output);
    if (output == truths.end()) continue;
    const oracle::TruthPoint& truth = output->second.at(suspect.index);
    ++holding.elements;
    if (oracle::Agrees(instance, *instance.op.FindOutput(suspect.output), suspect.got, truth))
      continue;
    holding.findings.push_back(oracle::WrongValue(
        suspect.output, held.outputs.find(suspect.output)->second.shape, suspect.got, truth));
    break;
  }
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
