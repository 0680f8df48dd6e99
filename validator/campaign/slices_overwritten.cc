// Outputs that several launches write: what one wrote is no result where a block of a later one overwrites it, of which some do
// not run. Who writes an element last the skeleton of all blocks says.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/slice.h"
#include "validator/engine/window.h"

namespace assay::campaign {

// By launch and block, who writes an element last: of all blocks, or of those that ran.
Result<std::optional<Runner::Slice::Writers>> Runner::Slice::WhoWrites(
    const facts::Skeleton& skeleton, const std::vector<BufferRange>& places, bool as_it_ran) {
  ASSAY_TRY(engine::Binding binding, BindOver(kGarbage));
  Execution& execution = binding.execution;
  for (std::size_t i = 0; as_it_ran && i < execution.launches.size(); ++i) {
    execution.launches[i].only = bound_.execution.launches[i].only;
    execution.launches[i].threads = bound_.execution.launches[i].threads;
  }
  execution.whose = places;
  execution.checks.race = execution.checks.order = execution.checks.coverage = false;
  execution.limits.max_steps = kStepsToAsk;
  UseSkeleton(skeleton, execution);
  ASSAY_TRY(const Report report,
            runner_.engine_.Run(execution, binding.buffers, engine::Trust::kCandidate));
  run_.steps += report.counters.steps;
  if (report.stop != Stop::kCompleted || !report.findings.empty() ||
      !report.watched.initialisation || !report.writers)
    return std::nullopt;
  Writers writers;
  for (const WrittenRange& range : *report.writers) {
    const std::uint64_t size = SizeOf(execution.buffers[range.range.buffer].dtype);
    for (std::uint64_t at = range.range.first; at < range.range.first + range.range.bytes;
         at += size)
      writers[{range.range.buffer, static_cast<std::int64_t>(at / size)}] = {range.launch,
                                                                             range.block};
  }
  return writers;
}

Result<bool> Runner::Slice::KeepWhatStays(oracle::SparseElements& wanted) {
  // As many elements of an output are looked at, from both of its ends.
  constexpr std::size_t kMostAsked = std::size_t{1} << 16;
  const Execution& execution = bound_.execution;
  const bool some_left_out = std::ranges::any_of(execution.launches, [](const Launch& launch) {
    return !launch.only.empty() || !launch.threads.empty();
  });
  const std::set<std::uint32_t> several =
      engine::OutputsOfSeveral(execution, runner_.subject_.compiled->facts.get());
  std::map<std::uint32_t, std::vector<std::int64_t>*> asked;
  for (auto& [name, elements] : wanted) {
    const auto buffer =
        static_cast<std::uint32_t>(bound_.calls.front().buffer_of.find(name)->second);
    if (several.contains(buffer)) asked[buffer] = &elements;
  }
  if (asked.empty() || !some_left_out) return true;
  const facts::Skeleton* skeleton = runner_.SkeletonFor(execution);
  if (skeleton == nullptr) return false;
  std::vector<BufferRange> places;
  for (const auto& [buffer, elements] : asked) {
    const auto half = static_cast<std::ptrdiff_t>(kMostAsked / 2);
    if (elements->size() > kMostAsked)
      elements->erase(elements->begin() + half, elements->end() - half);
    AddRanges(buffer, *elements, SizeOf(execution.buffers[buffer].dtype), places);
  }
  const std::uint64_t steps_before = run_.steps;
  ASSAY_TRY(const auto of_these, WhoWrites(*skeleton, places, /*as_it_ran=*/true));
  if (!of_these) return false;
  std::uint64_t ran = 0, all = 0;
  for (const Launch& launch : execution.launches) {
    ran += BlocksThatRun(launch);
    all += Blocks(launch);
  }
  const bool affordable = (run_.steps - steps_before) / ran <= kStepsToAsk / all;
  std::optional<Writers> of_all;
  if (affordable && BytesWritten(execution) <= kMostWritten) {
    ASSAY_TRY(of_all, WhoWrites(*skeleton, places, /*as_it_ran=*/false));
  }
  // What the last launch writes nobody overwrites, for its blocks do not depend on each other.
  const auto stays = [&](const Place& place) {
    const auto here = of_these->find(place);
    if (here == of_these->end()) return false;
    if (!of_all) return here->second.first + 1 == execution.launches.size();
    const auto last = of_all->find(place);
    return last != of_all->end() && last->second == here->second;
  };
  for (const auto& [buffer, elements] : asked) {
    std::erase_if(*elements,
                  [&, buffer = buffer](std::int64_t element) { return !stays({buffer, element}); });
  }
  const bool any = std::ranges::any_of(asked, [](const auto& of) { return !of.second->empty(); });
  if (!of_all && !any) return false;
  std::erase_if(wanted, [](const auto& output) { return output.second.empty(); });
  return true;
}

}  // namespace assay::campaign
