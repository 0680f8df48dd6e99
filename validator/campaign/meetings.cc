// Which blocks of a launch meet nobody says. So a few run alone, each of which leaves a mark in what was zero, and where is
// taken to move evenly from block to block (producers.h). What is made of that: together.cc.
#include "validator/campaign/meetings.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/queue.h"

namespace assay::campaign {
namespace {

// Blocks that the guess is tried on, beside the last one.
constexpr int kTried = 3;
// Of so many blocks, which together take that much, a place where all leave a mark is first taken for none where they meet:
// for a counter that most of them find empty.
constexpr std::uint64_t kSeveral = 4, kMuch = 128'000'000;

/// What of some lies in none of the others. Ranges ascend by buffer and place.
std::vector<BufferRange> Without(std::span<const BufferRange> some,
                                 std::span<const BufferRange> others) {
  std::vector<BufferRange> rest;
  std::size_t i = 0;
  for (BufferRange range : some) {
    const std::uint64_t end = range.first + range.bytes;
    while (i < others.size() &&
           (others[i].buffer < range.buffer ||
            (others[i].buffer == range.buffer && others[i].first + others[i].bytes <= range.first)))
      ++i;
    for (std::size_t j = i; j < others.size() && others[j].buffer == range.buffer &&
                            others[j].first < end && range.first < end;
         ++j) {
      if (others[j].first > range.first)
        rest.push_back({range.buffer, range.first, others[j].first - range.first});
      range.first = others[j].first + others[j].bytes;
    }
    if (range.first < end) rest.push_back({range.buffer, range.first, end - range.first});
  }
  return rest;
}

}  // namespace

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

bool MayMeet(const Execution& execution) {
  const Launch& launch = execution.launches.front();
  const bool alone = launch.cluster[0] * launch.cluster[1] * launch.cluster[2] == 1;
  if (launch.cooperative || !alone || Blocks(launch) < 2) return false;
  bool any = false;
  for (const BufferSpec& buffer : execution.buffers) {
    if (buffer.fill != BufferFill::kZero) continue;
    // Of results that start as zeros nobody knows which were meant to be written.
    if (buffer.role != BufferRole::kWorkspace) return false;
    any = true;
  }
  return any;
}

Result<std::shared_ptr<const Runner::Meetings>> Runner::LearnMeetings(
    const Binder& bind, const cases::Materialised& filled, const Queue* queue,
    std::uint64_t most_steps) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = meetings_.find(key); known != meetings_.end()) return known->second;
  }
  auto learned = std::make_shared<Meetings>();
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const Launch& launch = whole.execution.launches.front();
  const std::uint64_t all = queue == nullptr ? Blocks(launch) : queue->tickets;
  const std::array<std::uint32_t, 3> grid =
      queue == nullptr ? launch.grid
                       : std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(all), 1, 1};
  const bool may_wait = MayBe(facts::Polls(subject_.compiled->facts.get(), launch.entry));
  bool all_ended = true;
  std::uint64_t learned_from = 0;
  const auto run_alone = [&](Alone what) -> Result<std::vector<BufferRange>> {
    const bool only_where = what.only_where;
    what.most_steps = most_steps;
    what.without_values = only_where;
    engine::Binding alone;
    ASSAY_TRY(const Report report, RunAlone(bind, 0, std::move(what), alone));
    all_ended = all_ended && report.stop == Stop::kCompleted && report.findings.empty();
    learned->is_wrong = learned->is_wrong ||
                        (!only_where && !report.findings.empty() && !IsTooLong(report, may_wait));
    if (!only_where) learned->block_steps = std::max(learned->block_steps, report.counters.steps);
    learned_from += report.counters.steps;
    return Marks(alone, report);
  };
  // What says nothing of a number: of a queue, what is left without a ticket as well.
  std::vector<BufferRange> anyway;
  const auto run = [&](std::uint64_t number, bool only_where) -> Result<std::vector<BufferRange>> {
    if (queue == nullptr) {
      ASSAY_TRY(const auto marks, run_alone({.only = {{number, 1}}, .only_where = only_where}));
      return Without(marks, anyway);
    }
    ASSAY_TRY(const auto marks, run_alone({.only = {{Blocks(launch) - 1, 1}},
                                           .only_where = only_where,
                                           .tickets = queue->Deal({number})}));
    return Without(marks, anyway);
  };
  if (queue != nullptr) {
    ASSAY_TRY(anyway, run_alone({.only = {{Blocks(launch) - 1, 1}},
                                 .only_where = true,
                                 .tickets = queue->Deal({})}));
  }
  // The first one tells what blocks take, and whether the skeleton leaves the same marks: then it does for the others.
  std::optional<bool> only_where;
  const auto marks_of = [&](std::uint64_t block) -> Result<std::vector<BufferRange>> {
    if (only_where) return run(block, *only_where);
    ASSAY_TRY(auto marks, run(block, false));
    if (all_ended) {
      ASSAY_TRY(const auto same, run(block, true));
      only_where = same == marks && (!marks.empty() || queue != nullptr);
    }
    return marks;
  };
  std::vector<std::vector<BufferRange>> samples;
  for (const std::uint64_t block : SampleBlocks(grid)) {
    ASSAY_TRY(samples.emplace_back(), marks_of(block));
    if (!all_ended) break;
  }
  if (queue == nullptr && all_ended && all >= kSeveral && all * learned->block_steps > kMuch) {
    // Where each of them leaves one, they have nothing to do with each other, or all have.
    anyway = samples.front();
    ASSAY_TRY(const auto last, run_alone({.only = {{all - 1, 1}}, .only_where = true}));
    for (const auto& sample : samples) anyway = Without(anyway, Without(anyway, sample));
    anyway = Without(anyway, Without(anyway, last));
    for (auto& sample : samples) sample = Without(sample, anyway);
    learned->all_meet = !anyway.empty();
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
    Rng rng(DeriveSeed(all, "meetings"));
    std::set<std::uint64_t> tried = {all - 1};
    for (int i = 0; i < kTried; ++i) tried.insert(rng.Below(all));
    for (const std::uint64_t block : tried) {
      ASSAY_TRY(samples.emplace_back(), marks_of(block));
      if (samples.back() != expected->WrittenBy(block))
        learned->odd.emplace_back(block, samples.back());
    }
    // Those next to each other, of which the guess was made, may be alike where others are not.
    if (2 * learned->odd.size() > tried.size()) {
      learned->odd.clear();
    } else if (all_ended) {
      learned->marks = *std::move(expected);
    }
  }
  if ((queue != nullptr || learned->all_meet) && all_ended &&
      std::ranges::all_of(samples, [](const auto& marks) { return marks.empty(); })) {
    Rng rng(DeriveSeed(all, "meetings"));
    learned->are_apart = true;
    for (const std::uint64_t number : {all / 2, rng.Below(all), all - 1}) {
      ASSAY_TRY(const auto marks, marks_of(number));
      learned->are_apart = learned->are_apart && marks.empty() && all_ended;
    }
  }
  if ((queue != nullptr || learned->all_meet) && (learned->marks || learned->are_apart)) {
    ASSAY_TRY(const bool more, LastMayDoMore(bind, queue, anyway, most_steps));
    if (more) {
      learned->marks.reset();
      learned->odd.clear();
      learned->are_apart = false;
    }
  }
  learned->are_shares =
      queue == nullptr && !learned->all_meet && all_ended && !learned->marks &&
      std::ranges::none_of(samples, [](const auto& marks) { return marks.empty(); });
  learned->ended = all_ended;
  learned->steps = learned_from;
  const std::lock_guard lock(mutex_);
  return meetings_.emplace(key, std::move(learned)).first->second;
}

Result<std::shared_ptr<const Runner::Queue>> Runner::QueueOfItsOwn(
    const Binder& bind, const cases::Materialised& filled, std::uint64_t most_steps) const {
  ASSAY_TRY(std::shared_ptr<const Queue> queue, LearnQueue(bind, filled));
  if (queue == nullptr) return nullptr;
  ASSAY_TRY(const auto meetings, LearnMeetings(bind, filled, queue.get(), most_steps));
  return meetings->are_apart || meetings->is_wrong ? queue : nullptr;
}

}  // namespace assay::campaign
