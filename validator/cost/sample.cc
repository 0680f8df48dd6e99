#include "validator/cost/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "validator/cases/case.h"
#include "validator/cases/recipes.h"
#include "validator/engine/worker_run.h"

namespace assay::cost {
namespace {

/// Places that blocks are taken from, and how many neighbours at each.
constexpr std::uint64_t kMostPlaces = 12;
constexpr std::uint64_t kMostNeighbours = 32;

std::uint64_t BlocksOf(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// Part of a grid at which the n-th run begins. Multiples of the golden ratio, since what blocks have
/// to do often repeats along a grid (rows of a causal mask), and even parts of it would all meet the
/// same turn.
std::uint64_t Begin(std::uint64_t all, std::uint64_t n) {
  const double turns = 0.6180339887498949 * static_cast<double>(n);
  return static_cast<std::uint64_t>((turns - std::floor(turns)) * static_cast<double>(all));
}

/// About `count` blocks of `all`: runs of two neighbours and more. Where there are many, the first and
/// the last are among them; a few all come from between, for the ends are often special. A slice of a
/// case has the opposite rule (campaign/blocks.h: the ends first, other places by seed): what is wrong
/// is sought where blocks are special, and what is usual where they are not.
std::vector<BlockRange> Choose(std::uint64_t all, std::uint64_t count) {
  if (count >= all) return {};
  const std::uint64_t places = std::clamp<std::uint64_t>(count / 2, 1, kMostPlaces);
  const bool ends = places == kMostPlaces;
  const std::uint64_t length =
      std::clamp<std::uint64_t>(count / places, 1, std::min(kMostNeighbours, all / places));
  std::vector<std::uint64_t> begins;
  for (std::uint64_t n = 1; begins.size() < places - (ends ? 2 : 0); ++n)
    begins.push_back(Begin(all - length + 1, n));
  if (ends) begins.insert(begins.end(), {0, all - length});
  std::ranges::sort(begins);
  std::vector<BlockRange> chosen;
  std::uint64_t free = 0;  // Runs of a small grid may meet.
  for (const std::uint64_t begin : begins) {
    const std::uint64_t first = std::max(begin, free);
    if (first + length > all) break;
    chosen.push_back({first, length});
    free = first + length;
  }
  return chosen;
}

CountOptions OptionsFor(const Chip& chip, std::span<const LaunchShape> launches) {
  CountOptions options;
  for (const LaunchShape& launch : launches) {
    const Occupancy occupancy = OccupancyOf(chip, launch.needs);
    const std::uint64_t resident = std::clamp<std::uint64_t>(
        (launch.blocks() + chip.multiprocessors - 1) / chip.multiprocessors, 1,
        std::max(1u, occupancy.blocks));
    const std::uint64_t shared = resident * (launch.needs.shared_bytes + 1024);
    options.l1_bytes.push_back((chip.l1_bytes - std::min(chip.l1_bytes, shared)) / resident);
  }
  options.shared = chip.shared_latency;
  options.l1 = chip.l1_latency;
  options.l2 = chip.l2_latency;
  options.dram = chip.dram_latency;
  return options;
}

std::string FirstWords(const Report& report) {
  if (!report.findings.empty()) return report.findings.front().message;
  return report.reason;
}

}  // namespace

struct Sampler::Run {
  Report report;
  std::vector<LaunchCounts> launches;
};

Result<std::unique_ptr<BoundShape>> BindShape(const Subject& subject, const ops::AxisValues& axes,
                                              std::uint64_t seed) {
  auto shape = std::make_unique<BoundShape>();
  shape->instance = subject.instance;
  shape->instance.op.generator.reset();
  for (ops::TensorSpec& input : shape->instance.op.inputs) {
    if (input.IsGenerated()) input.domain.kind = ops::Domain::Kind::kAny;
  }
  cases::Case value =
      cases::MakeCase(shape->instance, *cases::FindRecipe("plain"), axes, seed, "workload");
  ASSAY_TRY(cases::Materialised filled, cases::Materialise(shape->instance, value));
  shape->inputs = std::move(filled.inputs);
  shape->axes = std::move(filled.axes);
  // What is overwritten is copied first, page by page.
  constexpr std::int64_t kMostCopied = std::int64_t{1} << 28;
  for (const ops::TensorSpec& output : shape->instance.op.outputs) {
    if (output.updates.empty()) continue;
    if (const Tensor& input = shape->inputs.at(output.updates); input.elements > kMostCopied)
      return Fail(ErrorKind::kLimit, "the tensors that are overwritten are too large to be copied",
                  output.name);
  }
  ASSAY_TRY(shape->plan, ops::Resolve(subject.plan, shape->instance, shape->axes));
  const engine::Call call{
      .plan = &shape->plan, .axes = &shape->axes, .inputs = &shape->inputs, .times = 1};
  ASSAY_TRY(shape->binding,
            engine::Bind(shape->instance, subject.compiled, {&call, 1}, {.poison = 0}));
  return shape;
}

Result<Sampler::Run> Sampler::Count(const Execution& execution,
                                    std::span<SharedMemory* const> buffers,
                                    const CountOptions& options) const {
  engine::WorkerRun asked{.kind = sandbox::WorkerKind::kEmulate,
                          .name = "emulator",
                          .payload = execution.ptx,
                          .action = "count",
                          .deadline = std::chrono::minutes(10),
                          .hung = "the emulator hung, which says nothing of the kernel"};
  asked.header["options"] = WriteJson(options);
  ASSAY_TRY(engine::WorkerAnswer answer,
            engine::AskWorker(workers_, asked, execution, buffers, engine::Trust::kCandidate));
  Run run{.report = std::move(answer.report), .launches = {}};
  if (run.report.stop != Stop::kCompleted) return run;
  const auto counts = answer.header.find("counts");
  auto read = counts == answer.header.end()
                  ? Fail(ErrorKind::kInternal, "the emulator's reply holds no counts")
                  : ReadJson<std::vector<LaunchCounts>>(*counts, "counts");
  if (!read || read->size() != execution.launches.size()) {
    run.report = engine::EngineFailure("the emulator's counts cannot be read");
    return run;
  }
  run.launches = std::move(*read);
  return run;
}

Result<SpeedEstimate> Sampler::At(const Subject& subject, const ops::Workload& workload,
                                  const Chip& chip) const {
  SpeedEstimate nothing;
  nothing.axes = workload.axes;
  nothing.note = workload.note;
  nothing.chip = chip.name;
  const auto left_out = [&](std::string why) {
    nothing.left_out = std::move(why);
    return nothing;
  };
  auto bound = BindShape(subject, workload.axes, options_.seed);
  if (!bound) return left_out(ToString(bound.error()));
  const ops::ResolvedPlan& plan = (*bound)->plan;
  Execution& execution = (*bound)->binding.execution;
  const auto& buffers = (*bound)->binding.buffers;
  std::vector<LaunchShape> shapes;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    const Launch& launch = execution.launches[i];
    LaunchShape shape{.entry = plan.kernels[i].entry, .grid = launch.grid};
    shape.needs.threads = launch.block[0] * launch.block[1] * launch.block[2];
    shape.needs.shared_bytes = launch.shared_bytes;
    if (const auto found = subject.compiled.resources.find(launch.entry);
        found != subject.compiled.resources.end()) {
      shape.needs.registers = found->second.registers;
      shape.needs.shared_bytes += found->second.static_shared_bytes;
      shape.spill_bytes = found->second.spill_store_bytes + found->second.spill_load_bytes;
    }
    if (OccupancyOf(chip, shape.needs).blocks == 0)
      return left_out(fmt::format("a block of '{}' does not fit the chip", shape.entry));
    shapes.push_back(std::move(shape));
    most = std::max(most, BlocksOf(launch));
  }
  const CountOptions options = OptionsFor(chip, shapes);
  const auto run = [&](std::uint64_t count) -> Result<Run> {
    for (Launch& launch : execution.launches) {
      // Blocks that meet all of the grid have no part that could run alone.
      if (!launch.cooperative) launch.only = Choose(BlocksOf(launch), count);
    }
    execution.limits.max_steps = options_.most_steps;
    return Count(execution, buffers, options);
  };
  ASSAY_TRY(Run counted, run(1));
  std::uint64_t count = 1;
  if (counted.report.stop == Stop::kCompleted && most > 1) {
    const std::uint64_t each = std::max<std::uint64_t>(counted.report.counters.steps, 1);
    count = std::clamp<std::uint64_t>(options_.steps / each, 1, kMostPlaces * kMostNeighbours);
    if (most <= 2 * count) count = most;
  } else if (counted.report.stop == Stop::kFault && most > 1) {
    count = most;  // One that waits for others.
  }
  if (count > 1) {
    ASSAY_TRY(Run more, run(count));
    if (more.report.stop == Stop::kCompleted || counted.report.stop != Stop::kCompleted)
      counted = std::move(more);
  }
  if (counted.report.stop != Stop::kCompleted)
    return left_out(
        fmt::format("its blocks did not run to their end: {}", FirstWords(counted.report)));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (counted.launches[i].blocks == 0)
      return left_out(fmt::format("no block of '{}' ran", shapes[i].entry));
    shapes[i].counts = std::move(counted.launches[i]);
  }
  SpeedEstimate estimate = EstimateSpeed(chip, shapes, execution.buffers);
  estimate.axes = workload.axes;
  estimate.note = workload.note;
  return estimate;
}

Result<std::vector<SpeedEstimate>> Sampler::Workloads(const Subject& subject,
                                                      const Chip& chip) const {
  std::vector<SpeedEstimate> estimates;
  for (const ops::Workload& workload : subject.instance.op.workloads) {
    ASSAY_TRY(SpeedEstimate estimate, At(subject, workload, chip));
    estimates.push_back(std::move(estimate));
  }
  return estimates;
}

}  // namespace assay::cost
