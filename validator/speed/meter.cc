#include "validator/speed/meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/cases/shapes.h"
#include "validator/engine/bind.h"
#include "validator/oracle/truth_source.h"
#include "validator/speed/ring.h"
#include "validator/speed/stress.h"

namespace assay::speed {
namespace {

// A request to a worker carries this many buffers.
constexpr std::size_t kMostBuffers = 60;
constexpr std::uint32_t kMostSlots = 8;
// Of the card's memory, for a ring of calls.
constexpr double kShareOfMemory = 0.6;
// The whole truth of an output element and what the judge makes of it on the way, on the card.
constexpr double kTruthBytes = 48;
constexpr int kMostHalvings = 24;
// Of repetitions under each condition. Outputs of each are read from the card and compared.
constexpr double kStressSeconds = 0.5;
constexpr double kBytesComparedASecond = 4e9;
constexpr std::uint32_t kFewestRepetitions = 3;

struct Size {
  double bytes = 0;    ///< Of a call's tensors.
  double outputs = 0;  ///< Elements.
  double output_bytes = 0;
};

Result<Size> SizeOfCall(const Subject& subject, const ops::AxisValues& axes) {
  Size size;
  for (const auto* tensors : {&subject.instance.op.inputs, &subject.instance.op.outputs}) {
    for (const ops::TensorSpec& tensor : *tensors) {
      if (tensor.is_scalar) continue;
      ASSAY_TRY(const Shape shape, ops::ResolveShape(tensor, axes));
      ASSAY_TRY(const std::int64_t elements, ElementCount(shape));
      const double bytes = static_cast<double>(elements) *
                           static_cast<double>(SizeOf(subject.instance.TypeOf(tensor)));
      size.bytes += bytes;
      if (tensors != &subject.instance.op.outputs) continue;
      size.outputs += static_cast<double>(elements);
      size.output_bytes += bytes;
    }
  }
  ASSAY_TRY(const ops::ResolvedPlan plan, ops::Resolve(subject.plan, subject.instance, axes));
  for (const ops::ResolvedWorkspace& workspace : plan.workspace)
    size.bytes +=
        static_cast<double>(workspace.elements) * static_cast<double>(SizeOf(workspace.dtype));
  return size;
}

/// What the op's reference needs beside inputs and outputs: its numbers carry their error bounds.
Result<double> TruthWorkspace(const ops::Instance& instance, const ops::AxisValues& axes) {
  if (instance.op.reference.launch.empty()) return 0.0;
  ops::Instance wide = instance;
  wide.op = ops::ReferenceOf(instance.op);
  wide.op.dtypes["Real"] = {DType::kF64};
  wide.binding["Real"] = DType::kF64;
  const std::string file = instance.op.reference.launch.string();
  ASSAY_TRY(const Json document, ReadJsonFile(file));
  ASSAY_TRY(const ops::LaunchPlan plan, ops::ParseLaunchPlan(document, file, wide.op));
  ASSAY_TRY(const ops::ResolvedPlan resolved, ops::Resolve(plan, wide, axes));
  const double words = static_cast<double>(oracle::NumberType{}.RealWords());
  double bytes = 0;
  for (const ops::ResolvedWorkspace& workspace : resolved.workspace)
    bytes +=
        static_cast<double>(workspace.elements) *
        (workspace.dtype == DType::kF64 ? 8 * words : static_cast<double>(SizeOf(workspace.dtype)));
  return bytes;
}

std::string Text(const ops::OpSpec& op, const ops::AxisValues& axes) {
  std::string text;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    const auto found = axes.find(axis.name);
    if (found == axes.end()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, found->second);
  }
  return text;
}

/// Every call of a workload is the same work: scalars that choose it have their first value.
cases::Case CaseOf(const ops::Instance& instance, const ops::AxisValues& axes, std::uint64_t seed) {
  cases::Case made{.axes = {}, .seed = seed, .profiles = {}, .origin = "workload"};
  for (const ops::Axis& axis : instance.op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable) made.axes[axis.name] = axes.at(axis.name);
  }
  for (const ops::TensorSpec& input : instance.op.inputs) {
    if (!input.is_scalar || input.domain.kind != ops::Domain::Kind::kChoice) continue;
    made.profiles[input.name] = {
        .kind = "literal", .parameters = {}, .literal = {input.domain.values.front()}};
  }
  return made;
}

}  // namespace

double Measurement::Median() const { return seconds.empty() ? 0 : seconds[seconds.size() / 2]; }

double Measurement::Spread() const {
  if (seconds.size() < 2 || Median() <= 0) return 0;
  return (seconds[seconds.size() * 3 / 4] - seconds[seconds.size() / 4]) / Median();
}

bool Measurement::UseLibrary() const {
  // Nobody keeps a kernel of their own for less than a hundredth.
  return library && *library <= Median() * (1 + std::max(Spread(), 0.01));
}

WorkloadSpeed Measurement::Summary() const {
  return {.workload = workload,
          .seconds = Median(),
          .share = share,
          .limiter = fmt::format("{}: {:.0f} % of what the card allows", limit.by, 100 * share)};
}

Result<std::pair<ops::AxisValues, int>> Meter::Fit(const Subject& subject, ops::AxisValues axes,
                                                   const Settings& settings) const {
  const ops::OpSpec& op = subject.instance.op;
  // What is overwritten is copied for each set of inputs.
  const bool bounded =
      settings.check || std::ranges::any_of(op.outputs, [](const ops::TensorSpec& output) {
        return !output.updates.empty();
      });
  for (int halvings = 0; halvings <= kMostHalvings; ++halvings) {
    ASSAY_TRY(const ops::AxisValues all, ops::ResolveAxes(op, axes));
    ASSAY_TRY(const Size size, SizeOfCall(subject, all));
    const double memory = static_cast<double>(rates_.memory_bytes) * kShareOfMemory;
    double truth = 0;
    ASSAY_TRY(const bool whole, WholeTruthIsCheap(subject.instance, all));
    if (settings.check && whole) {
      ASSAY_TRY(const double workspace, TruthWorkspace(subject.instance, all));
      truth = size.bytes + kTruthBytes * size.outputs + workspace;
    }
    if (2 * size.bytes <= memory && truth <= memory &&
        (!bounded || size.outputs <= static_cast<double>(settings.most_outputs)))
      return std::pair(axes, halvings);
    auto longest = std::ranges::max_element(axes, {}, [](const auto& axis) { return axis.second; });
    if (longest == axes.end() || longest->second < 2) break;
    ops::AxisValues smaller = axes;
    smaller[longest->first] /= 2;
    ASSAY_TRY(axes, cases::SolveAxes(op, {}, smaller));
  }
  return Fail(ErrorKind::kLimit, "even a small part of it does not fit the card", op.name);
}

std::uint32_t Meter::SlotsFor(const Subject& subject, const ops::AxisValues& axes,
                              const Settings& settings) const {
  const auto size = SizeOfCall(subject, axes);
  const double bytes = size ? std::max(size->bytes, 1.0) : 1.0;
  const double memory = static_cast<double>(rates_.memory_bytes) * kShareOfMemory;
  const std::size_t buffers = subject.instance.op.inputs.size() +
                              subject.instance.op.outputs.size() + subject.plan.workspace.size();
  // A ring larger than the caches, of at least two sets: what was seen is never seen again at once.
  const double wanted = settings.check ? 2 * static_cast<double>(rates_.l2_bytes) / bytes + 1 : 2.0;
  const double most =
      std::min({static_cast<double>(kMostSlots), memory / bytes,
                static_cast<double>(kMostBuffers / std::max<std::size_t>(buffers, 1))});
  return static_cast<std::uint32_t>(std::max(1.0, std::min(std::max(wanted, 2.0), most)));
}

Result<Meter::Ring> Meter::MakeRing(const Subject& subject, const ops::AxisValues& axes,
                                    const Settings& settings, std::uint32_t slots) {
  Ring ring;
  ASSAY_TRY(ring.plan, ops::Resolve(subject.plan, subject.instance, axes));
  std::vector<std::future<Result<cases::Materialised>>> drawn;
  for (std::uint32_t i = 0; i < slots; ++i) {
    ring.cases.push_back(CaseOf(subject.instance, axes,
                                DeriveSeed(settings.seed, "speed " + std::to_string(i)) >> 16));
    drawn.push_back(std::async(std::launch::async, [&, value = ring.cases.back()] {
      return instruments_.truth.Materialise(subject.instance, value);
    }));
  }
  for (std::future<Result<cases::Materialised>>& inputs : drawn) {
    ASSAY_TRY(cases::Materialised each, inputs.get());
    ring.inputs.push_back(std::move(each));
  }
  std::vector<engine::Call> calls;
  for (const cases::Materialised& inputs : ring.inputs)
    calls.push_back({.plan = &ring.plan, .axes = &inputs.axes, .inputs = &inputs.inputs});
  ASSAY_TRY(ring.binding, engine::Bind(subject.instance, subject.compiled, calls));
  return ring;
}

Status Meter::Time(const Subject& subject, const Settings& settings, Ring& ring,
                   Measurement& result) {
  const auto slots = static_cast<std::uint32_t>(ring.cases.size());
  // Where bits may differ from call to call, each call has to be held to the truth: one round at a time.
  const bool steady = ops::IsDeterministic(subject.instance.op);
  TimingPlan plan{.slots = slots,
                  .rounds = steady ? std::max(settings.rounds, 1u) : 1,
                  .seed = DeriveSeed(settings.seed, "order"),
                  .most_seconds = settings.most_seconds};
  ASSAY_TRY(const engine::Stopwatch::Timed timed,
            instruments_.stopwatch.Time(ring.binding.execution, plan, ring.binding.buffers));
  for (const Finding& finding : timed.report.findings) {
    if (!result.guilty) result.guilty = ring.cases.front();
    result.findings.push_back(finding);
  }
  if (timed.report.stop != Stop::kCompleted) {
    if (!result.findings.empty()) return {};
    return Fail(ErrorKind::kLimit, timed.report.reason, "gpu");
  }
  for (const TimedCall& call : timed.timing.calls) result.seconds.push_back(call.seconds);
  result.before = timed.timing.before;
  result.after = timed.timing.after;
  for (const std::uint32_t slot : timed.timing.changed) {
    if (slot >= slots)
      return Fail(ErrorKind::kEnvironment, "the GPU's worker names no slot", "gpu");
    Finding finding;
    finding.kind = FindingKind::kNondeterministic;
    finding.message = fmt::format(
        "the same call gave other bits when it was timed again on the GPU ({})", result.workload);
    result.findings.push_back(std::move(finding));
    if (!result.guilty) result.guilty = ring.cases[slot];
  }
  return {};
}

Result<Stressed> Meter::Stress(const Subject& subject, const ops::Workload& workload,
                               const Settings& settings, std::uint32_t most, double seconds) {
  ASSAY_TRY(const auto fitting, Fit(subject, workload.axes, settings));
  ASSAY_TRY(const ops::AxisValues all, ops::ResolveAxes(subject.instance.op, fitting.first));
  ASSAY_TRY(const Size size, SizeOfCall(subject, all));
  const double each = seconds + size.output_bytes / kBytesComparedASecond;
  const auto repetitions = static_cast<std::uint32_t>(
      std::clamp(kStressSeconds / std::max(each, 1e-9), std::min<double>(kFewestRepetitions, most),
                 static_cast<double>(most)));
  ASSAY_TRY(const Ring ring, MakeRing(subject, all, settings, 1));
  ASSAY_TRY(Stressed stressed,
            RunStressed(instruments_.stopwatch, subject, ring.inputs.front(), repetitions));
  stressed.case_ = ring.cases.front();
  return stressed;
}

Status Meter::TimeLibrary(const Subject& subject, const ops::SpeedContract& contract,
                          const ops::AxisValues& axes, Measurement& result) {
  std::string dtype;
  for (const ops::TensorSpec& input : subject.instance.op.inputs) {
    if (input.is_scalar) continue;
    dtype = Name(subject.instance.TypeOf(input));
    break;
  }
  Result<double> seconds = 0.0;
  if (contract.product) {
    MatrixProduct product{.dtype = dtype};
    ASSAY_TRY(product.m, (*contract.product)[0].Evaluate(axes));
    ASSAY_TRY(product.n, (*contract.product)[1].Evaluate(axes));
    ASSAY_TRY(product.k, (*contract.product)[2].Evaluate(axes));
    result.library_name = "cuBLASLt";
    seconds = instruments_.stopwatch.Time(product);
  } else if (contract.rows) {
    RowsPrimitive primitive{.operation = contract.rows->operation, .dtype = dtype};
    ASSAY_TRY(primitive.rows, contract.rows->rows.Evaluate(axes));
    ASSAY_TRY(primitive.columns, contract.rows->columns.Evaluate(axes));
    result.library_name = "cuDNN";
    seconds = instruments_.stopwatch.Time(primitive);
  } else {
    return {};
  }
  if (seconds) {
    result.library = *seconds;
  } else {
    result.no_library = seconds.error().message;
  }
  return {};
}

Measurement Meter::Measure(const Subject& subject, const ops::Workload& workload,
                           const Settings& settings) {
  Measurement result;
  result.note = workload.note;
  result.workload = Text(subject.instance.op, workload.axes);
  const auto measure = [&]() -> Status {
    ASSAY_TRY(const auto fitting, Fit(subject, workload.axes, settings));
    result.axes = fitting.first;
    if (fitting.second > 0) {
      result.scaled = fmt::format("as {}: the whole or its truth does not fit",
                                  Text(subject.instance.op, result.axes));
    }
    ASSAY_TRY(const ops::SpeedContract contract, ops::SpeedOf(subject.instance.op));
    ASSAY_TRY(const ops::AxisValues all, ops::ResolveAxes(subject.instance.op, result.axes));
    ASSAY_TRY(result.limit,
              LimitOf(subject.instance, contract, rates_, all, subject.plan.kernels.size()));
    const bool steady = ops::IsDeterministic(subject.instance.op);
    const std::uint32_t slots = SlotsFor(subject, all, settings);
    ASSAY_TRY(Ring ring, MakeRing(subject, all, settings, slots));
    // Other bits each time: rounds by themselves, each held to the truth.
    const std::uint32_t rounds = steady ? 1 : settings.check ? 3 : 2;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      ASSAY_TRY_VOID(Time(subject, settings, ring, result));
      const bool stopped = result.seconds.empty();
      if (settings.check && !stopped) {
        ASSAY_TRY_VOID(HoldToTruths(subject, settings, ring, result));
        ASSAY_TRY_VOID(HoldToUntimed(subject, ring, result));
      }
      if (!result.findings.empty()) break;
    }
    ASSAY_TRY_VOID(HoldSuspects(subject, ring, result));
    std::ranges::sort(result.seconds);
    if (result.Median() > 0) result.share = std::min(1.0, result.limit.seconds / result.Median());
    return TimeLibrary(subject, contract, all, result);
  };
  if (const Status status = measure(); !status) {
    result.left_out = ToString(status.error());
    result.seconds.clear();
  }
  return result;
}

}  // namespace assay::speed
