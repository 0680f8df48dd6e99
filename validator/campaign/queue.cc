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
    ASSAY_TRY(found, FindQueue(bind));
  }
  std::shared_ptr<const Queue> queue;
  if (found) queue = std::make_shared<const Queue>(*std::move(found));
  const std::lock_guard lock(mutex_);
  return queues_.emplace(key, std::move(queue)).first->second;
}

Result<std::optional<Runner::Queue>> Runner::FindQueue(const Binder& bind) const {
  std::uint64_t left = kMostOfSearch;
  std::optional<std::uint64_t> block;
  const auto run = [&](std::optional<Tickets> tickets, std::uint64_t most) -> Result<Report> {
    engine::Binding alone;
    if (!block) {
      ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
      block = Blocks(whole.execution.launches.front()) - 1;
    }
    ASSAY_TRY(Report report, RunAlone(bind, 0,
                                      {.only = {{*block, 1}},
                                       .most_steps = std::min(most, left),
                                       .only_where = true,
                                       .without_values = true,
                                       .tickets = std::move(tickets),
                                       .note_drawn = true},
                                      alone));
    left -= std::min(left, report.counters.steps);
    return report;
  };
  const auto is_fine = [](const Report& report) {
    return report.findings.empty() && report.drawn &&
           (report.stop == Stop::kCompleted || report.stop == Stop::kStepLimit);
  };
  ASSAY_TRY(const Report first, run(std::nullopt, kFirstLook));
  if (!is_fine(first) || !first.drawn) return std::nullopt;
  std::vector<DrawnWord> words = *first.drawn;
  std::erase_if(words, [](const DrawnWord& word) {
    return word.times < 2 || word.value == 0 || word.value % word.times != 0;
  });
  std::ranges::stable_sort(words, std::greater(), &DrawnWord::times);
  if (words.size() > kMostWords) words.resize(kMostWords);
  // How often it draws from a word that holds that many tickets at first; nothing where it does not come to an end soon.
  bool sane = true;
  const auto draws_from = [&](const Queue& queue, std::uint64_t ticket,
                              std::uint64_t room) -> Result<std::optional<std::uint64_t>> {
    ASSAY_TRY(const Report report,
              run(Tickets{.word = queue.word, .held = {ticket * queue.step}}, room));
    sane = sane && is_fine(report) && left > 0;
    if (!sane || report.stop != Stop::kCompleted) return std::nullopt;
    const auto drawn = std::ranges::find(*report.drawn, queue.word, &DrawnWord::word);
    if (drawn != report.drawn->end()) return drawn->times;
    sane = false;
    return std::nullopt;
  };
  const auto search = [&](const Queue& queue, std::uint64_t times,
                          std::uint64_t room) -> Result<std::uint64_t> {
    // From `low` on it does not come to an end; from `high` on it does, after so many draws.
    std::uint64_t low = 0, high = times;
    std::optional<std::uint64_t> draws;
    if (first.stop == Stop::kCompleted) {
      draws = times;
      high = 0;
    }
    while (!draws && sane && high < kMostTickets) {
      ASSAY_TRY(draws, draws_from(queue, high, room));
      if (!draws) low = std::exchange(high, kFarther * high);
    }
    if (!draws || !sane) return 0;
    // What is drawn where nothing is left.
    ASSAY_TRY(const auto idle, draws_from(queue, std::max(2 * high, high + *draws), room));
    if (!idle || *idle > *draws) return 0;
    while (sane && *draws == *idle && high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      ASSAY_TRY(const auto there, draws_from(queue, middle, room));
      (there ? high : low) = middle;
      if (there) draws = there;
    }
    return sane && *draws >= *idle ? high + *draws - *idle : 0;
  };
  for (const DrawnWord& word : words) {
    Queue queue{.word = word.word,
                .step = word.value / word.times,
                .ticket_steps = std::max<std::uint64_t>(first.counters.steps / word.times, 1)};
    // A part of a ticket tells that one is there, where seeing that none is left takes far less.
    const std::uint64_t part = std::clamp(queue.ticket_steps / kPart, kLeastRoom, kFirstLook);
    const std::uint64_t several =
        std::clamp(kTicketsAtOnce * queue.ticket_steps, kLeastRoom, kFirstLook);
    for (const std::uint64_t room : {part, several}) {
      sane = true;
      ASSAY_TRY(queue.tickets, search(queue, word.times, room));
      if (queue.tickets <= 1) continue;
      ASSAY_TRY(queue.writes_the_end, TicketOfTheEnd(bind, queue));
      return queue;
    }
  }
  return std::nullopt;
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
