// Does the block that comes last do more than the others?
//
// Counters that all blocks add to (done, or the one that work is drawn from) may tell somebody that all others have come:
// who may then go over what they wrote once more. What few blocks wrote by then is no result yet. So a block runs with each
// such counter as the others would have left it, and must write what it writes otherwise, but for a few words that were zeros:
// a counter that is set back.
#include <algorithm>
#include <utility>

#include "validator/campaign/blocks.h"
#include "validator/campaign/handed_on.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/queue.h"

namespace assay::campaign {
namespace {

constexpr std::uint64_t kFewBytes = 64;
constexpr std::size_t kMostCounters = 16;

bool Within(const BufferRange& inner, const BufferRange& outer) {
  return inner.buffer == outer.buffer && inner.first >= outer.first &&
         inner.first + inner.bytes <= outer.first + outer.bytes;
}

}  // namespace

Result<bool> Runner::LastMayDoMore(const Binder& bind, const Queue* queue,
                                   const std::vector<BufferRange>& of_all,
                                   std::uint64_t most_steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::uint64_t blocks = Blocks(whole.execution.launches.front());
  struct Ran {
    Report report;
    std::uint64_t bytes = 0;  // That it wrote, of what started as nothing.
  };
  const auto run = [&](std::vector<std::pair<BufferRange, std::uint64_t>> words,
                       std::optional<Tickets> tickets) -> Result<Ran> {
    const bool ask = words.empty();
    engine::Binding alone;
    Ran ran;
    ASSAY_TRY(ran.report, RunAlone(bind, 0,
                                   {.only = {{blocks - 1, 1}},
                                    .most_steps = most_steps,
                                    .only_where = true,
                                    .without_values = true,
                                    .tickets = std::move(tickets),
                                    .note_drawn = ask,
                                    .words = std::move(words)},
                                   alone));
    for (const BufferRange& range : WrittenBytes(alone, ran.report)) ran.bytes += range.bytes;
    return ran;
  };
  const auto is_fine = [](const Report& report) {
    return report.stop == Stop::kCompleted && report.findings.empty();
  };
  ASSAY_TRY(const Ran plain,
            run({}, queue == nullptr ? std::optional<Tickets>() : std::optional(queue->Deal({}))));
  if (!is_fine(plain.report) || !plain.report.drawn) return true;
  // What is left by something else than draws may be looked at in other ways.
  std::vector<DrawnWord> counters;
  for (const DrawnWord& drawn : *plain.report.drawn) {
    if (std::ranges::any_of(of_all, [&](const BufferRange& r) { return Within(drawn.word, r); }))
      counters.push_back(drawn);
  }
  std::uint64_t bytes = 0, drawn_bytes = 0;
  for (const BufferRange& range : of_all) bytes += range.bytes;
  for (const DrawnWord& counter : counters) drawn_bytes += counter.word.bytes;
  if (bytes != drawn_bytes || counters.size() > kMostCounters) return true;
  for (const DrawnWord& counter : counters) {
    const bool is_queue = queue != nullptr && counter.word == queue->word;
    const std::uint64_t start = is_queue ? queue->tickets * queue->step : 0;
    std::vector<std::pair<BufferRange, std::uint64_t>> words = {
        {counter.word, start + (blocks - 1) * (counter.value - start)}};
    if (queue != nullptr && !is_queue)
      words.emplace_back(queue->word, queue->tickets * queue->step);
    ASSAY_TRY(const Ran last, run(std::move(words), std::nullopt));
    if (!is_fine(last.report) || last.bytes > plain.bytes ||
        last.report.counters.bytes_written > plain.report.counters.bytes_written + kFewBytes)
      return true;
  }
  return false;
}

}  // namespace assay::campaign
