// Judging the ends of a huge case: the first block and the last two of each large grid
// (engine/window.h), on inputs that are zero but for their ends, compared at the elements that these
// blocks wrote.
//
// Which elements those are is seen from the pages of the outputs that are not holes any more. The
// oracle then runs the blocks of the reference that write them. A wrapped index shows as an access
// out of bounds, as a race with the blocks at the other end, or as a value where another belongs.
//
// What cannot be run so is left out, with the reason (CaseRun::left_out): plans whose blocks
// communicate, loops that a block runs over everything, references that take too long.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "validator/campaign/effort.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Elements of one output that are compared, spread over what was written.
constexpr std::size_t kMostCompared = 4096;
// Written memory that is looked at.
constexpr std::int64_t kMostScanned = 64 << 20;

// Elements of a fresh output that no longer hold what was there before the launch: zeros, or the
// poison at the ends of it.
std::vector<std::int64_t> WrittenElements(const Tensor& tensor, std::uint8_t poison) {
  const auto size = static_cast<std::int64_t>(SizeOf(tensor.dtype));
  const auto bytes = static_cast<std::int64_t>(tensor.memory.size());
  std::array<std::byte, 8> zeros{};
  std::array<std::byte, 8> poisoned;
  poisoned.fill(static_cast<std::byte>(poison));
  std::vector<std::int64_t> written;
  std::int64_t scanned = 0;
  for (std::int64_t at = 0; at < bytes && scanned < kMostScanned;) {
    const off_t data = ::lseek(tensor.memory.fd(), at, SEEK_DATA);
    if (data < 0) break;  // ENXIO: only a hole is left
    const off_t hole = ::lseek(tensor.memory.fd(), data, SEEK_HOLE);
    const std::int64_t end = hole < 0 ? bytes : std::min<std::int64_t>(hole, bytes);
    for (std::int64_t i = data / size; i * size < end && scanned < kMostScanned; ++i) {
      const std::byte* element = tensor.Element(i);
      scanned += size;
      if (std::memcmp(element, zeros.data(), static_cast<std::size_t>(size)) != 0 &&
          std::memcmp(element, poisoned.data(), static_cast<std::size_t>(size)) != 0)
        written.push_back(i);
    }
    at = std::max<std::int64_t>(end, at + 1);
  }
  if (written.size() <= kMostCompared) return written;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < kMostCompared; ++i)
    some.push_back(written[i * (written.size() - 1) / (kMostCompared - 1)]);
  return some;
}

bool Agrees(double got, const oracle::TruthPoint& truth) {
  if (std::isnan(truth.value) || std::isnan(got)) return std::isnan(truth.value) == std::isnan(got);
  return got == truth.value || std::fabs(got - truth.value) <= truth.allowance;
}

Finding WrongValue(const std::string& output, const Tensor& tensor,
                   const oracle::TruthPoint& truth) {
  Finding finding;
  finding.kind = FindingKind::kWrongValue;
  ElementPlace place{.output = output,
                     .index = std::vector<std::int64_t>(tensor.shape.size()),
                     .expected = truth.value,
                     .got = tensor.At(truth.index),
                     .allowance = truth.allowance};
  std::int64_t rest = truth.index;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
    place.index[axis] = rest % tensor.shape[axis];
    rest /= tensor.shape[axis];
  }
  std::string index;
  for (const std::int64_t coordinate : place.index)
    index += (index.empty() ? "" : ", ") + std::to_string(coordinate);
  finding.message =
      fmt::format("{}[{}] is {}, but the op defines {}", output, index, place.got, place.expected);
  finding.cause = fmt::format(
      "element {} of {}: an index that is computed in 32 bits, or a size that is not provided for",
      truth.index, tensor.elements);
  finding.element = std::move(place);
  return finding;
}

}  // namespace

Status Runner::RunEnds(const cases::Probe& probe, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  if (instance.op.generator) {
    run.left_out = "inputs that a generator makes cannot be made in part";
    return {};
  }
  ASSAY_TRY(const cases::Materialised filled, cases::Materialise(instance, probe.case_));
  const auto plan = ops::Resolve(*subject_.plan, instance, filled.axes);
  if (!plan) {
    // The format gate speaks of plans that do not hold.
    run.left_out = ToString(plan.error());
    return {};
  }
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled.axes, .inputs = &filled.inputs}};
  auto bound = engine::Bind(instance, *subject_.compiled, calls, {.poison = probe.poison});
  if (!bound) {
    run.left_out = ToString(bound.error());
    return {};
  }
  if (!engine::CutToEnds(bound->execution, subject_.compiled->facts.get())) {
    run.left_out = "blocks of this plan may depend on each other";
    return {};
  }
  bound->execution.limits.max_steps = kHugeSteps;
  ASSAY_TRY(run.report, engine_.Run(bound->execution, bound->buffers, engine::Trust::kCandidate));
  NameTheKernelFile(run.report);
  run.steps += run.report.counters.steps;
  // A loop over billions of elements looks like one without end.
  const bool endless = std::ranges::any_of(run.report.findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kLivelock || finding.kind == FindingKind::kDeadlock;
  });
  if (endless || run.report.stop == Stop::kStepLimit || run.report.stop == Stop::kResourceLimit) {
    run.left_out = "takes too long even at its ends";
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return {};
  }
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};
  oracle::SparseElements wanted;
  for (const auto& [name, tensor] : bound->calls.front().outputs) {
    auto written = WrittenElements(tensor, probe.poison);
    if (!written.empty()) wanted[name] = std::move(written);
  }
  const auto truth = oracle_.EvaluateAt(instance, filled, wanted);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  run.comparison.emplace();
  for (const auto& [name, points] : *truth) {
    const Tensor& tensor = bound->calls.front().outputs.find(name)->second;
    for (const oracle::TruthPoint& point : points) {
      if (Agrees(tensor.At(point.index), point)) continue;
      run.comparison->numeric.push_back(WrongValue(name, tensor, point));
      break;
    }
  }
  return {};
}

}  // namespace assay::campaign
