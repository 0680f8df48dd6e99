// Slices of a launch whose blocks meet in memory that is zero before it: at tickets, counters, sums of parts.
//
// Blocks that leave marks at the same places (meetings.cc) run together: all parts of a split sum, for whoever comes last to
// add up. So do those at the last place that they may leave one at.
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
#include "validator/campaign/meetings.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/queue.h"

namespace assay::campaign {
namespace {

// Strangers that are tried: none of them may meet a block and its neighbours, beside the first one and the last.
constexpr int kStrangers = 3;
// Neighbours of a block that may meet it, in both directions, and what their skeletons may take.
constexpr std::uint64_t kMostNeighbours = 64;
constexpr std::uint64_t kMostOfNeighbours = 400'000'000;
// As many tickets are chosen at the most; and from so many on two blocks draw them, or what one carries from a ticket to
// the next would not show.
constexpr std::uint64_t kMostTickets = 64;
constexpr std::size_t kTicketsForTwo = 6;

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

}  // namespace

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
  for (int i = 0; i < kStrangers; ++i) strangers.insert(rng.Below(all));
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
    if (queue != nullptr && queue->writes_the_end) {
      const std::uint64_t last = *queue->writes_the_end;
      if (!add(last, marked ? marked->WrittenBy(last) : std::vector<BufferRange>{})) return false;
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
