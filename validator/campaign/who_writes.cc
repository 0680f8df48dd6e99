// Who writes the end of an output. Where of several launches only what is needed runs (needed.cc), the last launch is
// asked by itself; where the last blocks of a grid write nothing, the one before them is looked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// What outputs hold where it is asked whether anybody writes them, over other garbage than what may be handed on: two
// patterns, for a number may look like one.
constexpr std::array<std::uint8_t, 2> kUnwritten = {0x3c, 0xa5};

// What one block may take until it has written something.
constexpr std::uint64_t kStepsToSee = 8'000'000;
}  // namespace

// The last launch by itself. What it reads of others is garbage, and what it stores is; but whether it stores hangs on
// that only where a branch or an address does, which is found: then nothing is said.
Result<std::optional<std::vector<OutputState>>> Runner::LeftByTheLast(const Binder& bind,
                                                                      const Alone& what,
                                                                      std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::span<const Launch> launches = whole.execution.launches;
  const auto is_of_others = [&](std::size_t buffer) {
    return std::ranges::any_of(launches.first(launches.size() - 1), [&](const Launch& launch) {
      return std::ranges::any_of(launch.args, [&](const Argument& argument) {
        return argument.kind != Argument::Kind::kScalar && argument.buffer == buffer;
      });
    });
  };
  engine::Binding alone;
  ASSAY_TRY(const Report report, RunAlone(bind, launches.size() - 1, what, alone));
  steps += report.counters.steps;
  const auto is_of_values = [&](const Finding& finding) {
    return (finding.kind == FindingKind::kUninitialisedUse ||
            finding.kind == FindingKind::kMachineDependent) &&
           finding.memory &&
           std::ranges::any_of(alone.execution.buffers, [&](const BufferSpec& spec) {
             return spec.role == BufferRole::kOutput && spec.name == finding.memory->buffer;
           });
  };
  if (report.stop != Stop::kCompleted ||
      report.findings.size() >= alone.execution.limits.max_findings ||
      !std::ranges::all_of(report.findings, is_of_values))
    return std::nullopt;
  const std::uint8_t before = what.outputs.value_or(kGarbage);
  const engine::BoundCall& call = alone.calls.front();
  auto left = EndsLeftBy(call, before, report);
  if (left && std::ranges::any_of(*left, [&](const OutputState& output) {
        return is_of_others(call.buffer_of.find(output.name)->second);
      }))
    return std::nullopt;
  return left;
}

Result<std::optional<std::vector<OutputState>>> Runner::LeftByAll(const Binder& bind,
                                                                  const Alone& what,
                                                                  std::uint64_t& steps) const {
  engine::Binding binding;
  ASSAY_TRY(const std::optional<Report> report, RunSkeleton(bind, what, binding));
  if (!report) return std::nullopt;
  steps += report->counters.steps;
  if (report->stop != Stop::kCompleted) return std::nullopt;
  const engine::BoundCall& call = binding.calls.front();
  if (what.whose_ends) return EndsNobodyWrote(call, *report);
  return EndsLeftBy(call, what.outputs.value_or(kGarbage), *report);
}

std::optional<std::vector<OutputState>> Runner::EndsNobodyWrote(const engine::BoundCall& call,
                                                                const Report& report) {
  if (!report.writers) return std::nullopt;
  std::vector<OutputState> left;
  for (const auto& [name, tensor] : call.outputs) {
    const std::size_t buffer = call.buffer_of.find(name)->second;
    if (std::ranges::any_of(*report.writers, [&](const WrittenRange& written) {
          return written.range.buffer == buffer;
        }))
      continue;
    left.push_back({.name = name,
                    .shape = tensor.shape,
                    .unwritten_bytes = SizeOf(tensor.dtype),
                    .first_unwritten = tensor.elements - 1});
  }
  return left;
}

std::optional<std::vector<OutputState>> Runner::EndsLeftBy(const engine::BoundCall& call,
                                                           std::uint8_t before,
                                                           const Report& report) const {
  std::vector<OutputState> left;
  for (const auto& [name, tensor] : call.outputs) {
    if (!subject_.instance->op.FindOutput(name)->updates.empty()) return std::nullopt;
    if (!EndIsUnwritten(tensor, before)) continue;
    const std::uint64_t size = SizeOf(tensor.dtype);
    // Of a large output nothing but its end was looked at.
    std::uint64_t first = static_cast<std::uint64_t>(tensor.elements) - 1, missing = 1;
    if (tensor.memory.size() <= static_cast<std::uint64_t>(kMostScanned)) {
      const std::vector<std::int64_t> written = WrittenElements(call, name, before, report);
      missing = static_cast<std::uint64_t>(tensor.elements) - written.size();
      first = 0;
      while (first < written.size() && written[first] == static_cast<std::int64_t>(first)) ++first;
    }
    left.push_back({.name = name,
                    .shape = tensor.shape,
                    .unwritten_bytes = missing * size,
                    .first_unwritten = static_cast<std::int64_t>(first)});
  }
  return left;
}

// Of [writes, writes nothing) the middle, as long as there is one. Nothing where the very last one writes, or that cannot be
// told.
Result<std::optional<std::uint64_t>> Runner::LastOf(
    std::uint64_t count, const std::string& key,
    const std::function<Result<std::optional<bool>>(std::uint64_t number)>& writes) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = last_writers_.find(key); known != last_writers_.end())
      return known->second;
  }
  std::uint64_t first = 0, behind = count - 1;
  ASSAY_TRY(std::optional<bool> does, writes(behind));
  std::optional<std::uint64_t> last;
  if (does == false) {
    while (does && behind - first > 1) {
      const std::uint64_t middle = first + (behind - first) / 2;
      ASSAY_TRY(does, writes(middle));
      if (does) (*does ? first : behind) = middle;
    }
    if (does) last = first;
  }
  const std::lock_guard lock(mutex_);
  return last_writers_.emplace(key, last).first->second;
}

Result<std::optional<bool>> Runner::WritesAny(const Binder& bind, std::size_t launch, Alone what,
                                              std::uint64_t& steps) const {
  what.most_steps = kStepsToSee;
  what.only_where = what.without_values = true;
  engine::Binding alone;
  ASSAY_TRY(const Report report, RunAlone(bind, launch, std::move(what), alone));
  steps += report.counters.steps;
  const engine::BoundCall& call = alone.calls.front();
  // What is overwritten held something else than garbage before.
  const bool any = std::ranges::any_of(call.outputs, [&](const auto& output) {
    return subject_.instance->op.FindOutput(output.first)->updates.empty()
               ? !WrittenElements(call, output.first, kGarbage, report).empty()
               : report.counters.bytes_written > 0;
  });
  return any || report.stop == Stop::kCompleted ? std::optional(any) : std::nullopt;
}

Result<std::optional<std::uint64_t>> Runner::LastThatWrites(const Binder& bind,
                                                            const cases::Materialised& filled,
                                                            std::size_t launch,
                                                            std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  return LastOf(Blocks(whole.execution.launches[launch]),
                fmt::format("{} launch={}", KeyOfShape(filled), launch), [&](std::uint64_t block) {
                  return WritesAny(bind, launch, {.only = {{block, 1}}}, steps);
                });
}

Result<std::uint64_t> Runner::LastPieceThatWrites(const Binder& bind,
                                                  const cases::Materialised& filled,
                                                  std::size_t launch, std::uint64_t length,
                                                  std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const Launch& of = whole.execution.launches[launch];
  const std::uint64_t pieces = (Threads(of) + length - 1) / length;
  ASSAY_TRY(
      const auto last,
      LastOf(pieces, fmt::format("{} launch={} pieces of {}", KeyOfShape(filled), launch, length),
             [&](std::uint64_t piece) {
               return WritesAny(
                   bind, launch,
                   {.only = {{Blocks(of) - 1, 1}}, .threads = {{piece * length, length}}}, steps);
             }));
  return last.value_or(pieces - 1);
}

namespace {

/// Does a program write to global memory by nothing but plain stores, which leave nothing behind where that is asked for?
bool WritesByStoresAlone(const facts::Facts* program) {
  return program != nullptr && program->memory_left_out == 0 &&
         std::ranges::all_of(program->memory, [](const facts::MemoryUse& use) {
           return !use.writes || use.opcode == "st" || use.space.starts_with("shared") ||
                  use.space == "local";
         });
}

}  // namespace

// A warp of each block at a time, or, where more than plain stores write, of as many blocks as write no more than what may
// be written at once. The last warp of a block is the likeliest, then the first.
Result<Runner::End> Runner::WhoWritesTheEndInPieces(const Binder& bind, std::uint64_t most_steps,
                                                    std::uint64_t& steps) const {
  constexpr std::uint64_t kWarp = 32;
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::uint64_t bytes = BytesWritten(whole.execution);
  if (whole.execution.launches.size() != 1 || bytes > kMostWrittenInPieces ||
      SkeletonFor(whole.execution) == nullptr || Overwrites(subject_.instance->op))
    return End{};
  const facts::Facts* const program = subject_.compiled->facts.get();
  const Launch& launch = whole.execution.launches.front();
  // What blocks draw from a counter, each piece would draw from the first on; and what warps hand on through workspace it
  // would not find there.
  const bool hands_on = std::ranges::any_of(launch.args, [&](const Argument& argument) {
    return argument.kind != Argument::Kind::kScalar &&
           whole.execution.buffers[argument.buffer].role == BufferRole::kWorkspace;
  });
  if (hands_on || MayBe(facts::BlocksDepend(program, launch.entry))) return End{};
  const bool stores_alone = WritesByStoresAlone(program);
  const std::uint64_t blocks = Blocks(launch), threads = Threads(launch);
  const std::uint64_t warps = (threads + kWarp - 1) / kWarp;
  const std::uint64_t groups = stores_alone ? 1 : std::min(blocks, bytes / kMostWritten + 1);
  std::vector<std::uint64_t> order = {warps - 1};
  for (std::uint64_t warp = 0; warp + 1 < warps; ++warp) order.push_back(warp);
  std::vector<OutputState> unwritten;
  std::uint64_t taken = 0;
  for (const std::uint8_t outputs : kUnwritten) {
    // Of outputs that no piece so far comes to the end of.
    std::optional<std::vector<OutputState>> left_by_all;
    for (const std::uint64_t warp : order) {
      const std::uint64_t first = warp * kWarp;
      for (std::uint64_t group = 0; group < groups; ++group) {
        const std::uint64_t from = blocks * group / groups, to = blocks * (group + 1) / groups;
        if (taken >= most_steps) {
          steps += taken;
          return End{};
        }
        ASSAY_TRY(auto left, LeftByAll(bind,
                                       {.only = {{from, to - from}},
                                        .threads = {{first, std::min(kWarp, threads - first)}},
                                        .most_steps = most_steps - taken,
                                        .outputs = outputs,
                                        .whose_ends = stores_alone,
                                        .drop_stores = stores_alone},
                                       taken));
        if (!left) {
          steps += taken;
          return End{};
        }
        if (left_by_all) {
          std::erase_if(*left_by_all, [&](const OutputState& output) {
            return std::ranges::find(*left, output.name, &OutputState::name) == left->end();
          });
        } else {
          left_by_all = std::move(left);
        }
        if (left_by_all->empty()) {
          steps += taken;
          return End{.known = true};
        }
      }
    }
    if (!left_by_all) return End{};
    if (outputs == kUnwritten.front()) {
      unwritten = *std::move(left_by_all);
      // Who stores is noted. What else writes is seen by what is there, and a number may look like one of the patterns, and
      // not like both.
      if (stores_alone) break;
      continue;
    }
    std::erase_if(unwritten, [&](const OutputState& output) {
      return std::ranges::find(*left_by_all, output.name, &OutputState::name) == left_by_all->end();
    });
  }
  steps += taken;
  for (OutputState& output : unwritten) {
    const engine::BoundCall& call = whole.calls.front();
    const Tensor& tensor = call.outputs.find(output.name)->second;
    output.unwritten_bytes = SizeOf(tensor.dtype);
    output.first_unwritten = tensor.elements - 1;
  }
  return End{.known = true, .unwritten = std::move(unwritten)};
}

// Of what is stored to outputs nothing needs to be kept, unless others may read in workspace what is stored there.
Result<Runner::End> Runner::WhoOfAllWritesTheEnd(const Binder& bind, std::uint64_t most_steps,
                                                 std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const Execution& execution = whole.execution;
  bool to_outputs_alone = true;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    const auto stored = engine::StoredBy(execution, subject_.compiled->facts.get(), i);
    to_outputs_alone =
        to_outputs_alone && stored && std::ranges::all_of(*stored, [&](std::uint32_t buffer) {
          return execution.buffers[buffer].role == BufferRole::kOutput;
        });
  }
  if (!to_outputs_alone && BytesWritten(execution) > kMostWritten) return End{};
  ASSAY_TRY(auto left, LeftByAll(bind,
                                 {.most_steps = most_steps,
                                  .without_values = true,
                                  .whose_ends = true,
                                  .drop_stores = to_outputs_alone},
                                 steps));
  if (!left) return End{};
  return End{.known = true, .unwritten = *std::move(left)};
}

Result<Runner::End> Runner::WhoWritesTheEnd(const Binder& bind,
                                            const std::vector<BlockRange>& candidates,
                                            std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const bool has_skeleton = SkeletonFor(whole.execution) != nullptr;
  if (has_skeleton) most_steps = std::min(most_steps, kStepsToAsk);
  const auto left_by = [&](const std::vector<BlockRange>& blocks, std::uint8_t outputs,
                           bool zeros) {
    return LeftByTheLast(bind,
                         {.only = blocks,
                          .most_steps = most_steps,
                          .outputs = outputs,
                          .zeros = zeros,
                          .only_where = true,
                          .without_values = true},
                         steps);
  };
  // Over zeros nothing is undefined: that refutes nothing, but shows who comes to the end.
  bool tells_alone = false;
  for (const bool zeros : {false, true}) {
    ASSAY_TRY(const auto left, left_by(candidates, kUnwritten.front(), zeros));
    if (left && left->empty()) return End{.known = true};
    tells_alone = tells_alone || (left && !zeros);
  }
  if (has_skeleton && BytesWritten(whole.execution) > kMostWritten) return End{};
  const auto all_of_the_last = [&]() -> Result<std::optional<End>> {
    for (const std::uint8_t outputs : kUnwritten) {
      ASSAY_TRY(auto left, left_by({}, outputs, false));
      if (!left) return std::nullopt;
      if (left->empty()) return End{.known = true};
      if (outputs == kUnwritten.back()) return End{.known = true, .unwritten = *std::move(left)};
    }
    return std::nullopt;
  };
  std::optional<End> end;
  if (tells_alone) {
    ASSAY_TRY(end, all_of_the_last());
    if (end) return *std::move(end);
  }
  // What launches before hand on may say where, or they may write it themselves.
  for (const std::vector<BlockRange>& blocks : {candidates, std::vector<BlockRange>()}) {
    std::optional<std::vector<OutputState>> left;
    for (const std::uint8_t outputs : kUnwritten) {
      ASSAY_TRY(
          left,
          LeftByAll(bind, {.only = blocks, .most_steps = most_steps, .outputs = outputs}, steps));
      if (!left) break;
      if (left->empty()) return End{.known = true};
    }
    if (left && blocks.empty()) return End{.known = true, .unwritten = *std::move(left)};
  }
  if (!tells_alone) {
    ASSAY_TRY(end, all_of_the_last());
    if (end) return *std::move(end);
  }
  ASSAY_TRY(const auto left, left_by({}, kUnwritten.front(), true));
  return End{.known = left && left->empty(), .left_over_zeros = left && !left->empty()};
}

}  // namespace assay::campaign
