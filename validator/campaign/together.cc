// Slices of a launch whose blocks meet in memory that is zero before it: at tickets, counters, sums of parts.
//
// Which blocks meet nobody says. So a few run alone, each of which leaves a mark in what was zero, and where is
// taken to move evenly from block to block (producers.h). Blocks that leave marks at the same places run together:
// all parts of a split sum, for whoever comes last to add up.
//
// None of them waits for others (facts::Polls), so that what some blocks do before any other begins is what they
// may do in the whole grid: what is found wrong on the way is wrong. What they computed is believed only where
// the guess holds for more blocks, from near and far, and nothing was read that no block has written.
#include <algorithm>
#include <set>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {
namespace {

// Blocks that the guess is tried on, beside the last one.
constexpr int kTried = 3;

bool MayMeet(const Execution& execution, const facts::Facts* facts) {
  const Launch& launch = execution.launches.front();
  const bool alone = launch.cluster[0] * launch.cluster[1] * launch.cluster[2] == 1;
  if (launch.cooperative || !alone || Blocks(launch) < 2 ||
      MayBe(facts::Polls(facts, launch.entry)))
    return false;
  bool any = false;
  for (const BufferSpec& buffer : execution.buffers) {
    if (buffer.fill != BufferFill::kZero) continue;
    // Of results that start as zeros nobody knows which were meant to be written.
    if (buffer.role != BufferRole::kWorkspace) return false;
    any = true;
  }
  return any;
}

/// Where something else than zero stands now in what was zero.
std::vector<BufferRange> Marks(const engine::Binding& binding, const Report& report) {
  std::vector<BufferRange> marks;
  for (std::uint32_t i = 0; i < binding.buffers.size(); ++i) {
    const BufferSpec& spec = binding.execution.buffers[i];
    if (spec.fill != BufferFill::kZero) continue;
    const std::size_t size = SizeOf(spec.dtype);
    AddRanges(i, WrittenElements(*binding.buffers[i], size, 0, report, i), size, marks);
  }
  return marks;
}

}  // namespace

struct Runner::Meetings {
  std::optional<Producers> marks;  // Nothing: they do not move evenly.
  std::uint64_t block_steps = 0;   // The most that one of the blocks took.
  // Blocks that leave other marks than they should, by that.
  std::vector<std::pair<std::uint64_t, std::vector<BufferRange>>> odd;
};

Result<std::shared_ptr<const Runner::Meetings>> Runner::LearnMeetings(
    const Binder& bind, const cases::Materialised& filled, std::uint64_t most_steps) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = meetings_.find(key); known != meetings_.end()) return known->second;
  }
  auto learned = std::make_shared<Meetings>();
  ASSAY_TRY(const engine::Binding whole, bind(0));
  const std::array<std::uint32_t, 3> grid = whole.execution.launches.front().grid;
  bool all_ended = true;
  std::uint64_t learned_from = 0;
  const auto marks_of = [&](std::uint64_t block) -> Result<std::vector<BufferRange>> {
    engine::Binding alone;
    ASSAY_TRY(const Report report,
              RunAlone(bind, 0, {.only = {{block, 1}}, .most_steps = most_steps}, alone));
    all_ended = all_ended && report.stop == Stop::kCompleted && report.findings.empty();
    learned->block_steps = std::max(learned->block_steps, report.counters.steps);
    learned_from += report.counters.steps;
    return Marks(alone, report);
  };
  std::vector<std::vector<BufferRange>> samples;
  for (const std::uint64_t block : SampleBlocks(grid)) {
    ASSAY_TRY(samples.emplace_back(), marks_of(block));
    if (!all_ended) break;
  }
  std::optional<Producers> expected;
  if (all_ended && !samples.front().empty())
    expected = Producers::Of(grid, samples, Producers::Places::kShared);
  if (expected && !expected->IsOfAll()) expected.reset();
  if (expected) {
    ASSAY_TRY_VOID(expected->Refine(
        [&](std::uint64_t block) -> Result<std::optional<std::vector<BufferRange>>> {
          if (!all_ended || learned_from > kMostToLearn) return std::nullopt;
          return marks_of(block);
        }));
  }
  if (expected) {
    const std::uint64_t all = Blocks(whole.execution.launches.front());
    Rng rng(DeriveSeed(all, "meetings"));
    std::set<std::uint64_t> tried = {all - 1};
    for (int i = 0; i < kTried; ++i) tried.insert(rng.Below(all));
    for (const std::uint64_t block : tried) {
      ASSAY_TRY(std::vector<BufferRange> marks, marks_of(block));
      if (marks != expected->WrittenBy(block)) learned->odd.emplace_back(block, std::move(marks));
    }
    if (all_ended) learned->marks = *std::move(expected);
  }
  const std::lock_guard lock(mutex_);
  return meetings_.emplace(key, std::move(learned)).first->second;
}

Result<std::optional<Runner::Needed>> Runner::RunTogether(
    const Binder& bind, const cases::Probe& probe, const cases::Materialised& filled,
    std::uint64_t count, std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(engine::Binding binding, bind(probe.poison));
  if (!MayMeet(binding.execution, subject_.compiled->facts.get())) return std::nullopt;
  ASSAY_TRY(const std::shared_ptr<const Meetings> meetings,
            LearnMeetings(bind, filled, most_steps));
  const std::optional<Producers>& marked = meetings->marks;
  if (!marked) return std::nullopt;
  Launch& launch = binding.execution.launches.front();
  std::set<std::uint64_t> blocks;
  const auto add = [&](std::uint64_t block, std::span<const BufferRange> marks) {
    blocks.insert(block);
    return marked->AddWritersOf(marks, blocks);
  };
  std::vector<BlockRange> chosen = ChooseBlocks(Blocks(launch), count, probe.case_.seed);
  if (chosen.empty()) return std::nullopt;  // all
  for (const BlockRange& range : chosen) {
    for (std::uint64_t block = range.first; block < range.first + range.count; ++block) {
      if (!add(block, marked->WrittenBy(block))) return std::nullopt;
    }
  }
  for (const auto& [block, marks] : meetings->odd) {
    if (!add(block, marks)) return std::nullopt;
  }
  if (blocks.size() * meetings->block_steps > most_steps) return std::nullopt;
  launch.only.clear();
  for (const std::uint64_t block : blocks) launch.only.push_back({block, 1});
  binding.execution.note_missing = true;
  binding.execution.limits.max_steps = most_steps;
  ASSAY_TRY(Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
  steps += report.counters.steps;
  if (IsTooLong(report)) return std::nullopt;
  const bool is_found = report.stop != Stop::kCompleted || !report.findings.empty();
  const bool is_whole = meetings->odd.empty() && report.missing && report.missing->empty();
  if (!is_found && !is_whole) return std::nullopt;
  return Needed{std::move(binding), std::move(report), count};
}

}  // namespace assay::campaign
