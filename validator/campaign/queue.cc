// Does a launch draw its work from a counter, and how many tickets are there?
//
// One block runs alone, draws everything, and tells which word it draws from most. If work is dealt out by that word,
// the block draws the fewer tickets, the more the word holds at first: none but the one that each of its drawers takes to
// see that nothing is left, where it holds more than there are. What all of them would take is not run: the number is
// found by bisection, with runs of a part of a ticket.
//
// Which ticket writes the end of an output is guessed by where a few of them write (corners.h).
//
// That is a guess about what the word is for; RunTogether (together.cc) tries it on more tickets.
#include "validator/campaign/queue.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "validator/campaign/blocks.h"
#include "validator/campaign/corners.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"

namespace assay::campaign {
namespace {

// What the first look may take, and everything that follows together.
constexpr std::uint64_t kFirstLook = 64'000'000;
constexpr std::uint64_t kMostOfSearch = 800'000'000;
// A run has room for a part of a ticket or, where that is not enough to see that none is left, for so many of them; and for
// no fewer steps than these.
constexpr std::uint64_t kPart = 4, kTicketsAtOnce = 8;
constexpr std::uint64_t kLeastRoom = 1'000'000;
// The end is looked for so many times as far away.
constexpr std::uint64_t kFarther = 8;
// As many words are tried, those from which most is drawn.
constexpr std::size_t kMostWords = 3;
constexpr std::uint64_t kMostTickets = std::uint64_t{1} << 31;

}  // namespace

/// Asks the last block, alone, what it draws.
class Runner::QueueSearch {
 public:
  QueueSearch(const Runner& runner, const Binder& bind) : runner_(runner), bind_(bind) {}
  Result<std::optional<Queue>> Find();

 private:
  Result<Report> Run(std::optional<Tickets> tickets, std::uint64_t most);
  static bool IsFine(const Report& report) {
    return report.findings.empty() && report.drawn &&
           (report.stop == Stop::kCompleted || report.stop == Stop::kStepLimit);
  }
  /// How often it draws from a word that holds that many tickets at first; nothing where it does not come to an end soon.
  Result<std::optional<std::uint64_t>> DrawsFrom(const Queue& queue, std::uint64_t ticket,
                                                 std::uint64_t room);
  /// How many tickets there are, by runs of which each may take `room`; 0 where they do not tell. `times`: as often it
  /// drew at first.
  Result<std::uint64_t> CountTickets(const Queue& queue, std::uint64_t times, bool came_to_an_end,
                                     std::uint64_t room);

  const Runner& runner_;
  const Binder& bind_;
  std::uint64_t left_ = kMostOfSearch;
  std::optional<std::uint64_t> block_;
  bool sane_ = true;  ///< What was asked of this word was answered.
};

Result<Report> Runner::QueueSearch::Run(std::optional<Tickets> tickets, std::uint64_t most) {
  engine::Binding alone;
  if (!block_) {
    ASSAY_TRY(const engine::Binding whole, bind_.WithoutValues(kGarbage));
    block_ = Blocks(whole.execution.launches.front()) - 1;
  }
  ASSAY_TRY(Report report, runner_.RunAlone(bind_, 0,
                                            {.only = {{*block_, 1}},
                                             .most_steps = std::min(most, left_),
                                             .only_where = true,
                                             .without_values = true,
                                             .tickets = std::move(tickets),
                                             .note_drawn = true},
                                            alone));
  left_ -= std::min(left_, report.counters.steps);
  return report;
}

Result<std::optional<std::uint64_t>> Runner::QueueSearch::DrawsFrom(const Queue& queue,
                                                                    std::uint64_t ticket,
                                                                    std::uint64_t room) {
  ASSAY_TRY(const Report report,
            Run(Tickets{.word = queue.word, .held = {ticket * queue.step}}, room));
  sane_ = sane_ && IsFine(report) && left_ > 0;
  if (!sane_ || !report.drawn || report.stop != Stop::kCompleted) return std::nullopt;
  const auto drawn = std::ranges::find(*report.drawn, queue.word, &DrawnWord::word);
  if (drawn != report.drawn->end()) return drawn->times;
  sane_ = false;
  return std::nullopt;
}

Result<std::uint64_t> Runner::QueueSearch::CountTickets(const Queue& queue, std::uint64_t times,
                                                        bool came_to_an_end, std::uint64_t room) {
  sane_ = true;
  // From `low` on it does not come to an end; from `high` on it does, after so many draws.
  std::uint64_t low = 0, high = times;
  std::optional<std::uint64_t> draws;
  if (came_to_an_end) {
    draws = times;
    high = 0;
  }
  while (!draws && sane_ && high < kMostTickets) {
    ASSAY_TRY(draws, DrawsFrom(queue, high, room));
    if (!draws) low = std::exchange(high, kFarther * high);
  }
  if (!draws || !sane_) return 0;
  // What is drawn where nothing is left.
  ASSAY_TRY(const auto idle, DrawsFrom(queue, std::max(2 * high, high + *draws), room));
  if (!idle || *idle > *draws) return 0;
  while (sane_ && *draws == *idle && high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    ASSAY_TRY(const auto there, DrawsFrom(queue, middle, room));
    (there ? high : low) = middle;
    if (there) draws = there;
  }
  return sane_ && *draws >= *idle ? high + *draws - *idle : 0;
}

Result<std::optional<Runner::Queue>> Runner::QueueSearch::Find() {
  ASSAY_TRY(const Report first, Run(std::nullopt, kFirstLook));
  if (!IsFine(first) || !first.drawn) return std::nullopt;
  std::vector<DrawnWord> words = *first.drawn;
  std::erase_if(words, [](const DrawnWord& word) {
    return word.times < 2 || word.value == 0 || word.value % word.times != 0;
  });
  std::ranges::stable_sort(words, std::greater(), &DrawnWord::times);
  if (words.size() > kMostWords) words.resize(kMostWords);
  for (const DrawnWord& word : words) {
    Queue queue{.word = word.word,
                .step = word.value / word.times,
                .ticket_steps = std::max<std::uint64_t>(first.counters.steps / word.times, 1)};
    // A part of a ticket tells that one is there, where seeing that none is left takes far less.
    const std::uint64_t part = std::clamp(queue.ticket_steps / kPart, kLeastRoom, kFirstLook);
    const std::uint64_t several =
        std::clamp(kTicketsAtOnce * queue.ticket_steps, kLeastRoom, kFirstLook);
    for (const std::uint64_t room : {part, several}) {
      ASSAY_TRY(queue.tickets,
                CountTickets(queue, word.times, first.stop == Stop::kCompleted, room));
      if (queue.tickets <= 1) continue;
      ASSAY_TRY(queue.writes_the_end, runner_.TicketOfTheEnd(bind_, queue));
      return queue;
    }
  }
  return std::nullopt;
}

Result<std::shared_ptr<const Runner::Queue>> Runner::LearnQueue(
    const Binder& bind, const cases::Materialised& filled) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = queues_.find(key); known != queues_.end()) return known->second;
  }
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  std::optional<Queue> found;
  if (whole.execution.launches.size() == 1 && MayMeet(whole.execution)) {
    ASSAY_TRY(found, QueueSearch(*this, bind).Find());
  }
  std::shared_ptr<const Queue> queue;
  if (found) queue = std::make_shared<const Queue>(*std::move(found));
  const std::lock_guard lock(mutex_);
  return queues_.emplace(key, std::move(queue)).first->second;
}

// By where a few tickets write, of which each runs alone.
Result<std::optional<std::uint64_t>> Runner::TicketOfTheEnd(const Binder& bind,
                                                            const Queue& queue) const {
  std::uint64_t left = kMostToLearn;
  bool comes_to_the_end = false;
  // Of outputs that are overwritten nothing is seen.
  const PlaceOf place_of = [&](std::uint64_t ticket) -> Result<std::optional<std::int64_t>> {
    comes_to_the_end = false;
    if (left == 0) return std::nullopt;
    ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
    engine::Binding alone;
    ASSAY_TRY(const Report report,
              RunAlone(bind, 0,
                       {.only = {{Blocks(whole.execution.launches.front()) - 1, 1}},
                        .most_steps = left,
                        .only_where = true,
                        .without_values = true,
                        .tickets = queue.Deal({ticket})},
                       alone));
    left -= std::min(left, report.counters.steps);
    if (report.stop != Stop::kCompleted || !report.findings.empty()) return std::nullopt;
    const engine::BoundCall& call = alone.calls.front();
    for (const auto& [name, tensor] : call.outputs) {
      if (!subject_.instance->op.FindOutput(name)->updates.empty()) continue;
      const auto written = WrittenElements(call, name, kGarbage, report);
      if (written.empty()) continue;
      comes_to_the_end = written.back() == tensor.elements - 1;
      return written.front();
    }
    return std::nullopt;
  };
  ASSAY_TRY(const auto corners, CornersOf(queue.tickets, place_of));
  std::optional<std::uint64_t> last;
  for (const std::uint64_t ticket : corners) {
    ASSAY_TRY_VOID(place_of(ticket));
    if (comes_to_the_end) last = ticket;
  }
  return last;
}

}  // namespace assay::campaign
