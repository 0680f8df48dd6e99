// Slices of several launches: of the last one some blocks run, of those before it the ones that write what
// these read (producers.h).
//
// The blocks of each launch must not depend on each other, and what is handed on must not be filled before the
// first launch: then a byte that no block has written is seen when it is read, and a run that misses none is
// what the whole grids would have done.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/runner.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Garbage that tells what was written from what was not: no number of any type has all bits set.
constexpr std::uint8_t kGarbage = 0xff;
// How often blocks are added that were missing still.
constexpr int kMostRounds = 3;

std::vector<BufferRange> WrittenBytes(const engine::Binding& binding, const Report& report) {
  std::vector<BufferRange> written;
  for (std::uint32_t i = 0; i < binding.buffers.size(); ++i) {
    const BufferSpec& spec = binding.execution.buffers[i];
    if (spec.role == BufferRole::kInput || spec.fill != BufferFill::kUninitialised) continue;
    const std::size_t size = SizeOf(spec.dtype);
    AddRanges(i, WrittenElements(*binding.buffers[i], size, kGarbage, report, i), size, written);
  }
  return written;
}

bool MayFollow(const Execution& execution, const facts::Facts* facts) {
  const std::size_t last = execution.launches.size() - 1;
  if (last == 0 || Blocks(execution.launches[last]) < 2 ||
      engine::MayCut(execution, facts, last) != engine::Cut::kIndependent)
    return false;
  for (std::size_t i = 0; i < last; ++i) {
    if (engine::MayCut(execution, facts, i) == engine::Cut::kRefused) return false;
  }
  return true;
}

}  // namespace

std::string Runner::KeyOfShape(const cases::Materialised& filled) const {
  const ops::Instance& instance = *subject_.instance;
  std::string key;
  for (const auto& [name, extent] : filled.axes) key += fmt::format("{}={} ", name, extent);
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.is_scalar && !IsFloat(instance.TypeOf(spec)))
      key += fmt::format("{}={} ", spec.name, filled.inputs.find(spec.name)->second.At(0));
  }
  return key;
}

// By launch, but for the last. Not followed: no producers.
struct Runner::HandedOn {
  std::vector<Producers> producers;
  std::vector<std::uint64_t> block_steps;  // The most that one of the sample blocks took.
};

Result<std::shared_ptr<const Runner::HandedOn>> Runner::LearnHandedOn(
    const Binder& bind, const cases::Materialised& filled, std::uint64_t most_steps) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = handed_on_.find(key); known != handed_on_.end()) return known->second;
  }
  auto learned = std::make_shared<HandedOn>();
  const auto learn = [&]() -> Result<bool> {
    ASSAY_TRY(const engine::Binding whole, bind(kGarbage));
    for (std::size_t i = 0; i + 1 < whole.execution.launches.size(); ++i) {
      const std::array<std::uint32_t, 3> grid = whole.execution.launches[i].grid;
      std::vector<std::vector<BufferRange>> samples;
      learned->block_steps.push_back(0);
      for (const std::uint64_t block : SampleBlocks(grid)) {
        engine::Binding alone;
        ASSAY_TRY(const Report report, RunAlone(bind, i, {{block, 1}}, most_steps, alone));
        // What takes from a launch before it as well is not followed.
        if (report.stop != Stop::kCompleted || !report.findings.empty() || !report.missing ||
            !report.missing->empty())
          return false;
        learned->block_steps[i] = std::max(learned->block_steps[i], report.counters.steps);
        samples.push_back(WrittenBytes(alone, report));
      }
      auto producers = Producers::Of(grid, samples);
      if (!producers) return false;
      learned->producers.push_back(*std::move(producers));
    }
    return true;
  };
  ASSAY_TRY(const bool followed, learn());
  if (!followed) learned->producers.clear();
  const std::lock_guard lock(mutex_);
  return handed_on_.emplace(key, std::move(learned)).first->second;
}

// One launch by itself, over garbage that is known.
Result<Report> Runner::RunAlone(const Binder& bind, std::size_t launch,
                                std::vector<BlockRange> only, std::uint64_t most_steps,
                                engine::Binding& binding) const {
  ASSAY_TRY(binding, bind(kGarbage));
  binding.execution.launches = {binding.execution.launches[launch]};
  binding.execution.launches.front().only = std::move(only);
  // What it reads and writes is all that it is asked; races show when it runs with the others.
  binding.execution.checks.race = binding.execution.checks.order = false;
  binding.execution.checks.coverage = false;
  binding.execution.note_missing = true;
  binding.execution.note_disguised = true;
  binding.execution.limits.max_steps = most_steps;
  return engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate);
}

Result<std::optional<Runner::Needed>> Runner::RunNeeded(
    const Binder& bind, const cases::Probe& probe, const cases::Materialised& filled,
    std::uint64_t count, std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(engine::Binding binding, bind(probe.poison));
  if (binding.execution.launches.size() == 1)
    return RunTogether(bind, probe, filled, count, most_steps, steps);
  if (!MayFollow(binding.execution, subject_.compiled->facts.get())) return std::nullopt;
  const std::size_t last = binding.execution.launches.size() - 1;
  ASSAY_TRY(const std::shared_ptr<const HandedOn> handed_on,
            LearnHandedOn(bind, filled, most_steps));
  if (handed_on->producers.empty()) return std::nullopt;

  const std::vector<BlockRange> chosen =
      ChooseBlocks(Blocks(binding.execution.launches[last]), count, probe.case_.seed);
  engine::Binding alone;
  ASSAY_TRY(const Report reads, RunAlone(bind, last, chosen, most_steps, alone));
  steps += reads.counters.steps;
  std::optional<std::vector<BufferRange>> missing = reads.missing;
  std::vector<std::set<std::uint64_t>> blocks(last);
  for (int round = 0; round < kMostRounds && missing && !missing->empty(); ++round) {
    const std::vector<std::set<std::uint64_t>> before = blocks;
    std::uint64_t estimate = 0;
    for (std::size_t i = 0; i < last; ++i) {
      if (!handed_on->producers[i].AddWritersOf(*missing, blocks[i])) return std::nullopt;
      estimate += blocks[i].size() * handed_on->block_steps[i];
    }
    if (blocks == before || estimate > most_steps) return std::nullopt;
    ASSAY_TRY(binding, bind(probe.poison));
    for (std::size_t i = 0; i < last; ++i) {
      Launch& launch = binding.execution.launches[i];
      launch.only.clear();
      // Of a launch of which nothing is needed one block runs: no blocks at all would mean all of them.
      if (blocks[i].empty()) blocks[i].insert(0);
      for (const std::uint64_t block : blocks[i]) launch.only.push_back({block, 1});
    }
    binding.execution.launches[last].only = chosen;
    binding.execution.note_missing = true;
    binding.execution.limits.max_steps = most_steps;
    ASSAY_TRY(Report report,
              engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
    steps += report.counters.steps;
    if (report.stop == Stop::kStepLimit || report.stop == Stop::kResourceLimit) return std::nullopt;
    missing = report.missing;
    if (missing && missing->empty()) return Needed{std::move(binding), std::move(report)};
  }
  return std::nullopt;
}

}  // namespace assay::campaign
