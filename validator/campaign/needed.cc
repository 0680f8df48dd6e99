// Slices of several launches: of the last one some blocks run, of those before it the ones that write what
// these read (producers.h).
//
// The blocks of each launch must not depend on each other, and what is handed on must not be filled before the
// first launch: then a byte that no block has written is seen when it is read, and a run that misses none is
// what the whole grids would have done.
#include <algorithm>
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

std::vector<BufferRange> WrittenBytes(const engine::Binding& binding) {
  std::vector<BufferRange> written;
  for (std::uint32_t i = 0; i < binding.buffers.size(); ++i) {
    const BufferSpec& spec = binding.execution.buffers[i];
    if (spec.role == BufferRole::kInput || spec.fill != BufferFill::kUninitialised) continue;
    const std::size_t size = SizeOf(spec.dtype);
    const std::size_t first = written.size();
    for (const std::int64_t element : WrittenElements(*binding.buffers[i], size, kGarbage)) {
      const std::uint64_t at = static_cast<std::uint64_t>(element) * size;
      if (written.size() > first && written.back().first + written.back().bytes == at) {
        written.back().bytes += size;
      } else {
        written.push_back({i, at, size});
      }
    }
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

Result<std::optional<Runner::Needed>> Runner::RunNeeded(const Binder& bind, std::uint8_t poison,
                                                        std::uint64_t seed, std::uint64_t count,
                                                        std::uint64_t most_steps,
                                                        std::uint64_t& steps) const {
  const auto run = [&](engine::Binding& binding) -> Result<Report> {
    binding.execution.note_missing = true;
    binding.execution.limits.max_steps = most_steps;
    ASSAY_TRY(Report report,
              engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
    steps += report.counters.steps;
    return report;
  };
  // One launch by itself, over garbage that is known.
  const auto run_alone = [&](std::size_t launch, std::vector<BlockRange> only,
                             engine::Binding& binding) -> Result<Report> {
    ASSAY_TRY(binding, bind(kGarbage));
    binding.execution.launches = {binding.execution.launches[launch]};
    binding.execution.launches.front().only = std::move(only);
    return run(binding);
  };
  ASSAY_TRY(engine::Binding binding, bind(poison));
  const facts::Facts* const facts = subject_.compiled->facts.get();
  if (!MayFollow(binding.execution, facts)) return std::nullopt;
  const std::size_t last = binding.execution.launches.size() - 1;

  std::vector<std::optional<Producers>> producers(last);
  std::vector<std::uint64_t> block_steps(last, 0);
  for (std::size_t i = 0; i < last; ++i) {
    const std::array<std::uint32_t, 3> grid = binding.execution.launches[i].grid;
    std::vector<std::vector<BufferRange>> samples;
    for (const std::uint64_t block : SampleBlocks(grid)) {
      engine::Binding alone;
      ASSAY_TRY(const Report report, run_alone(i, {{block, 1}}, alone));
      // What takes from a launch before it as well is not followed.
      if (report.stop != Stop::kCompleted || !report.findings.empty() || !report.missing ||
          !report.missing->empty())
        return std::nullopt;
      block_steps[i] = std::max(block_steps[i], report.counters.steps);
      samples.push_back(WrittenBytes(alone));
    }
    producers[i] = Producers::Of(grid, samples);
    if (!producers[i]) return std::nullopt;
  }

  const std::vector<BlockRange> chosen =
      ChooseBlocks(Blocks(binding.execution.launches[last]), count, seed);
  engine::Binding alone;
  ASSAY_TRY(const Report reads, run_alone(last, chosen, alone));
  std::optional<std::vector<BufferRange>> missing = reads.missing;
  std::vector<std::set<std::uint64_t>> blocks(last);
  for (int round = 0; round < kMostRounds && missing && !missing->empty(); ++round) {
    const std::vector<std::set<std::uint64_t>> before = blocks;
    std::uint64_t estimate = 0;
    for (std::size_t i = 0; i < last; ++i) {
      if (!producers[i]->AddWritersOf(*missing, blocks[i])) return std::nullopt;
      estimate += blocks[i].size() * block_steps[i];
    }
    if (blocks == before || estimate > most_steps) return std::nullopt;
    ASSAY_TRY(binding, bind(poison));
    for (std::size_t i = 0; i < last; ++i) {
      Launch& launch = binding.execution.launches[i];
      launch.only.clear();
      // Of a launch of which nothing is needed one block runs: no blocks at all would mean all of them.
      if (blocks[i].empty()) blocks[i].insert(0);
      for (const std::uint64_t block : blocks[i]) launch.only.push_back({block, 1});
    }
    binding.execution.launches[last].only = chosen;
    ASSAY_TRY(Report report, run(binding));
    if (report.stop == Stop::kStepLimit || report.stop == Stop::kResourceLimit) return std::nullopt;
    missing = report.missing;
    if (missing && missing->empty()) return Needed{std::move(binding), std::move(report)};
  }
  return std::nullopt;
}

}  // namespace assay::campaign
