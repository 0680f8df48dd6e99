// Learned once for a shape and its flags: a few blocks of each launch run alone (producers.h).
#include "validator/campaign/handed_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"

namespace assay::campaign {

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

// What the blocks of one launch hand on: by those in one corner of the grid or, where these do not write alike, in the
// other.
Status Runner::LearnOfLaunch(const Binder& bind, std::size_t launch, std::uint64_t most_steps,
                             HandedOn& learned) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::array<std::uint32_t, 3> grid = whole.execution.launches[launch].grid;
  std::uint64_t most = 0, all = 0, ran = 0, learned_from = 0, most_to_see = 0;
  std::optional<Producers> producers;
  bool may_begin_anew = false;
  // The first one tells what blocks take, the others where they write.
  const auto writes = [&](std::uint64_t block) -> Result<std::optional<std::vector<BufferRange>>> {
    engine::Binding alone;
    const bool only_where = ran > 0;
    ASSAY_TRY(const Report report,
              RunAlone(bind, launch,
                       {.only = {{block, 1}}, .most_steps = most_steps, .only_where = only_where},
                       alone));
    learned_from += report.counters.steps;
    if (only_where) {
      most_to_see = std::max(most_to_see, report.counters.steps);
    } else {
      most = std::max(most, report.counters.steps);
      all += report.counters.steps;
      ++ran;
    }
    if (!only_where && report.stop == Stop::kStepLimit) learned.unending += report.counters.steps;
    // What takes from a launch before it as well is not followed.
    if (report.stop != Stop::kCompleted || !report.findings.empty() || !report.missing ||
        !report.missing->empty())
      return std::nullopt;
    return WrittenBytes(alone, report);
  };
  for (const Corner corner : {Corner::kFirst, Corner::kLast}) {
    const std::vector<std::uint64_t> blocks = SampleBlocks(grid, corner);
    if (corner == Corner::kLast && blocks == SampleBlocks(grid)) break;
    std::vector<std::vector<BufferRange>> samples;
    for (const std::uint64_t block : blocks) {
      ASSAY_TRY(auto written, writes(block));
      if (!written) break;
      samples.push_back(*std::move(written));
    }
    if (learned.unending > 0) {
      learned.whole_steps.push_back(Blocks(whole.execution.launches[launch]) * most);
      learned.block_steps.push_back(most);
      return {};
    }
    if (samples.size() < blocks.size()) continue;
    auto evenly = Producers::Of(grid, samples, Producers::Places::kOfOneBlock, corner);
    if (!evenly || (producers && !evenly->IsOfAll())) continue;
    producers = std::move(evenly);
    may_begin_anew = corner == Corner::kFirst && !samples.front().empty();
    if (!samples.front().empty() && producers->IsOfAll()) break;
  }
  if (producers && may_begin_anew) {
    ASSAY_TRY_VOID(producers->Refine([&](std::uint64_t block) {
      return learned_from > kMostToLearn
                 ? Result<std::optional<std::vector<BufferRange>>>(std::nullopt)
                 : writes(block);
    }));
  }
  learned.skeleton_steps += Blocks(whole.execution.launches[launch]) * most_to_see;
  learned.whole_steps.push_back(Blocks(whole.execution.launches[launch]) * (all / ran));
  learned.block_steps.push_back(most);
  if (producers) learned.producers.push_back(*std::move(producers));
  return {};
}

Result<std::shared_ptr<const Runner::HandedOn>> Runner::LearnHandedOn(
    const Binder& bind, const cases::Materialised& filled, std::uint64_t most_steps) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    // What did not end within less may yet.
    const auto known = handed_on_.find(key);
    if (known != handed_on_.end() &&
        (known->second->unending == 0 || known->second->unending >= most_steps))
      return known->second;
  }
  auto learned = std::make_shared<HandedOn>();
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::size_t count = whole.execution.launches.size() - 1;
  for (std::size_t i = 0; i < count && learned->unending == 0; ++i)
    ASSAY_TRY_VOID(LearnOfLaunch(bind, i, most_steps, *learned));
  if (learned->producers.size() < count) learned->producers.clear();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const HandedOn>& kept = handed_on_[key];
  // Nor is what another thread has learned by now forgotten for it.
  if (kept == nullptr || (kept->unending != 0 && kept->unending < most_steps))
    kept = std::move(learned);
  return kept;
}

std::uint64_t Runner::WholeStepsBeside(const cases::Materialised& filled,
                                       const std::vector<std::size_t>& cut) const {
  const std::lock_guard lock(mutex_);
  const auto known = handed_on_.find(KeyOfShape(filled));
  if (known == handed_on_.end()) return 0;
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < known->second->whole_steps.size(); ++i)
    if (std::ranges::find(cut, i) == cut.end()) steps += known->second->whole_steps[i];
  return steps;
}

}  // namespace assay::campaign
