// Slices of a launch whose blocks meet in memory that is zero before it: at tickets, counters, sums of parts.
//
// Which blocks meet nobody says. So a few run alone, each of which leaves a mark in what was zero, and where is
// taken to move evenly from block to block (producers.h). Blocks that leave marks at the same places run together:
// all parts of a split sum, for whoever comes last to add up. So do those at the last place that they may leave one at.
//
// Where marks do not move evenly, for each block takes as much of what there is as any other, and its share begins in the
// midst of something, those next to each other meet: from a block on in both directions, as far as they leave a mark at
// one of its places. Nothing is known where a block from elsewhere, of a few that are drawn, leaves one there as well.
//
// Where blocks draw their work from a counter (queue.h), tickets take the place of blocks: the last block, or the first
// and the last one, run with those that are chosen, and whatever runs leaves marks without a ticket says nothing of one.
// Tickets that leave none meet nobody. Nor do blocks that leave none but where all do: at a counter that has nothing
// left for most of them. Whether one of them does more where it comes last is tried (last_to_come.cc).
//
// What some blocks do before any other begins is what they may do in the whole grid: what is found wrong on the way is
// wrong, also by one that runs to learn of its marks: then some run under all monitors, whoever they meet. But for one
// thing: where they wait for others (facts::Polls), these do not come, and nothing is known. What they computed is believed
// only where the guess holds for more blocks, from near and far, and nothing was read that no block has written.
#include <algorithm>
#include <set>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/queue.h"

namespace assay::campaign {
namespace {

// Blocks that the guess is tried on, beside the last one.
constexpr int kTried = 3;
// Neighbours of a block that may meet it, in both directions, and what their skeletons may take.
constexpr std::uint64_t kMostNeighbours = 64;
constexpr std::uint64_t kMostOfNeighbours = 400'000'000;
// As many tickets are chosen at the most; and from so many on two blocks draw them, or what one carries from a ticket to
// the next would not show.
constexpr std::uint64_t kMostTickets = 64;
constexpr std::size_t kTicketsForTwo = 6;
// Of so many blocks, which together take that much, a place where all leave a mark is first taken for none where they meet:
// for a counter that most of them find empty.
constexpr std::uint64_t kSeveral = 4, kMuch = 128'000'000;

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

/// The last element of all that was zero.
std::vector<BufferRange> EndsOfZeros(const Execution& execution) {
  std::vector<BufferRange> ends;
  for (std::uint32_t i = 0; i < execution.buffers.size(); ++i) {
    const BufferSpec& spec = execution.buffers[i];
    const std::uint64_t size = SizeOf(spec.dtype);
    if (spec.fill == BufferFill::kZero && spec.elements > 0)
      ends.push_back({i, (static_cast<std::uint64_t>(spec.elements) - 1) * size, size});
  }
  return ends;
}

/// Is there a byte in both? Ranges ascend by buffer and place.
bool Meet(std::span<const BufferRange> some, std::span<const BufferRange> others) {
  for (std::size_t i = 0, j = 0; i < some.size() && j < others.size();) {
    const BufferRange& a = some[i];
    const BufferRange& b = others[j];
    const bool same = a.buffer == b.buffer;
    if (same && a.first < b.first + b.bytes && b.first < a.first + a.bytes) return true;
    const bool a_is_before = same ? a.first < b.first : a.buffer < b.buffer;
    (a_is_before ? i : j) += 1;
  }
  return false;
}

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

struct Runner::Meetings {
  std::optional<Producers> marks;  // Nothing: they do not move evenly.
  bool are_shares = false;         // They do not, and all blocks leave some: neighbours may meet.
  bool are_apart = false;          // None leaves any, but where all do.
  bool all_meet = false;           // All blocks leave one at some place, which is none of these.
  bool is_wrong = false;           // One that ran by itself did what none may.
  bool ended = true;               // Those that ran did so within what they were given.
  std::uint64_t block_steps = 0;   // The most that one of the blocks took,
  std::uint64_t steps = 0;         // and what all that ran took.
  // Blocks that leave other marks than they should, by that.
  std::vector<std::pair<std::uint64_t, std::vector<BufferRange>>> odd;
};

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

Result<bool> Runner::AddNeighbours(const Binder& bind, std::uint64_t block, std::uint64_t all,
                                   std::set<std::uint64_t>& blocks) const {
  std::uint64_t left = kMostOfNeighbours;
  const auto marks_of = [&](std::uint64_t one) -> Result<std::optional<std::vector<BufferRange>>> {
    engine::Binding alone;
    ASSAY_TRY(
        const Report report,
        RunAlone(
            bind, 0,
            {.only = {{one, 1}}, .most_steps = left, .only_where = true, .without_values = true},
            alone));
    left -= std::min(left, report.counters.steps);
    if (report.stop != Stop::kCompleted) return std::nullopt;
    return Marks(alone, report);
  };
  ASSAY_TRY(const auto own, marks_of(block));
  if (!own || own->empty()) return false;
  std::set<std::uint64_t> meeting = {block};
  std::uint64_t asked = 0;
  for (const bool down : {true, false}) {
    for (std::uint64_t next = block; down ? next > 0 : next + 1 < all;) {
      next = down ? next - 1 : next + 1;
      ASSAY_TRY(const auto marks, marks_of(next));
      if (!marks || ++asked > kMostNeighbours) return false;
      if (!Meet(*own, *marks)) break;
      meeting.insert(next);
    }
  }
  // That nobody else meets it is believed where some from near and far do not.
  Rng rng(DeriveSeed(block, "strangers"));
  std::set<std::uint64_t> strangers = {0, all - 1};
  for (int i = 0; i < kTried; ++i) strangers.insert(rng.Below(all));
  for (const std::uint64_t stranger : strangers) {
    if (meeting.contains(stranger)) continue;
    ASSAY_TRY(const auto marks, marks_of(stranger));
    if (!marks || Meet(*own, *marks)) return false;
  }
  blocks.merge(meeting);
  return true;
}

Result<std::optional<Runner::Needed>> Runner::RunTogether(
    const Binder& bind, const cases::Probe& probe, const cases::Materialised& filled,
    std::uint64_t count, std::uint64_t room, std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(engine::Binding binding, bind(probe.poison));
  if (!MayMeet(binding.execution)) return std::nullopt;
  ASSAY_TRY(const std::shared_ptr<const Queue> queue, LearnQueue(bind, filled));
  ASSAY_TRY(const std::shared_ptr<const Meetings> meetings,
            LearnMeetings(bind, filled, queue.get(), most_steps));
  const std::optional<Producers>& marked = meetings->marks;
  if (!marked && !meetings->are_shares && !meetings->are_apart && !meetings->is_wrong) {
    if (!meetings->ended) steps += meetings->steps;
    return std::nullopt;
  }
  Launch& launch = binding.execution.launches.front();
  const std::uint64_t all = queue == nullptr ? Blocks(launch) : queue->tickets;
  if (queue != nullptr && probe.slice_blocks == 0) {
    const std::uint64_t each = std::max<std::uint64_t>(meetings->block_steps, 1);
    count = std::clamp(room / Wants::kLittleMore / each, count, kMostTickets);
  }
  std::set<std::uint64_t> numbers;
  const auto add = [&](std::uint64_t number, std::span<const BufferRange> marks) {
    numbers.insert(number);
    return !marked || marked->AddWritersOf(marks, numbers);
  };
  // So many, and all that they meet. False: they are too many.
  std::size_t asked = 0;
  const auto choose = [&](const std::vector<BlockRange>& chosen) -> Result<bool> {
    numbers.clear();
    asked = 0;
    for (const BlockRange& range : chosen) {
      asked += range.count;
      for (std::uint64_t number = range.first; number < range.first + range.count; ++number) {
        if (meetings->are_shares) {
          ASSAY_TRY(const bool found, AddNeighbours(bind, number, all, numbers));
          if (!found) return false;
        } else if (!add(number, marked ? marked->WrittenBy(number) : std::vector<BufferRange>{})) {
          return false;
        }
      }
    }
    for (const auto& [number, marks] : meetings->odd) {
      if (!add(number, marks)) return false;
    }
    // Where counters are numbered like results, whoever meets at the last one writes the end.
    for (const BufferRange& end : EndsOfZeros(binding.execution)) {
      std::set<std::uint64_t> more = numbers;
      if (marked && marked->AddWritersOf({{end}}, more)) numbers = std::move(more);
    }
    return numbers.size() * meetings->block_steps <= most_steps;
  };
  while (true) {
    const std::vector<BlockRange> chosen = ChooseBlocks(all, count, probe.case_.seed);
    if (chosen.empty()) return std::nullopt;  // all
    ASSAY_TRY(const bool have_room, choose(chosen));
    if (have_room) break;
    // Tickets that meet many others are fewer.
    if (queue == nullptr || count == 1) {
      // Each case counts what showed that they take too long, whoever found it out first.
      steps += meetings->steps;
      return std::nullopt;
    }
    count = std::max<std::uint64_t>(count / 4, 1);
  }
  launch.only.clear();
  if (queue == nullptr) {
    for (const std::uint64_t block : numbers) launch.only.push_back({block, 1});
  } else {
    binding.execution.tickets = queue->Deal(numbers);
    const std::uint64_t last = Blocks(launch) - 1;
    // Two that do what is one's to do show as a race where different blocks draw them.
    if (numbers.size() >= kTicketsForTwo || numbers.size() > asked) launch.only.push_back({0, 1});
    launch.only.push_back({last, 1});
  }
  binding.execution.note_missing = true;
  binding.execution.limits.max_steps = most_steps;
  ASSAY_TRY(Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
  steps += report.counters.steps;
  // Others might come that it waits for.
  const bool may_wait = MayBe(facts::Polls(subject_.compiled->facts.get(), launch.entry));
  if (IsTooLong(report, may_wait)) return std::nullopt;
  const bool is_found = report.stop != Stop::kCompleted || !report.findings.empty();
  // Where all blocks meet, the last of them may be the one that writes.
  const bool is_whole =
      !meetings->is_wrong && meetings->odd.empty() && report.missing && report.missing->empty() &&
      (!meetings->all_meet ||
       std::ranges::any_of(binding.calls.front().outputs, [&](const auto& output) {
         return !subject_.instance->op.FindOutput(output.first)->updates.empty() ||
                !WrittenElements(binding.calls.front(), output.first, probe.poison, report).empty();
       }));
  if (!is_found && !is_whole) return std::nullopt;
  return Needed{std::move(binding), std::move(report), count, queue == nullptr ? 0 : all};
}

}  // namespace assay::campaign
