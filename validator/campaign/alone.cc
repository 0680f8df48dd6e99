// One launch by itself: what it reads of others is garbage, or zeros.
//
// Where only the places are asked that it writes, the skeleton of the program runs (facts/skeleton.h). It tells what the
// program does where nothing that it decides by is undefined, and nobody waits; else the program itself runs.
#include "validator/campaign/alone.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"

namespace assay::campaign {
namespace {

/// What it reads and writes is all that it is asked; races show when it runs with the others.
void AskForPlaces(const Runner::Alone& what, Execution& execution) {
  for (BufferSpec& spec : execution.buffers) {
    if (what.outputs && spec.role == BufferRole::kOutput) spec.poison = *what.outputs;
    if (what.outputs && what.zeros && spec.role == BufferRole::kWorkspace)
      spec.fill = BufferFill::kZero;
  }
  execution.checks.race = execution.checks.order = execution.checks.coverage = false;
  execution.note_missing = execution.note_disguised = true;
  execution.limits.max_steps = what.most_steps;
  execution.tickets = what.tickets;
  execution.note_drawn = what.note_drawn;
  for (const auto& [word, value] : what.words)
    execution.buffers[word.buffer].fill = BufferFill::kProvided;
}

void SetWords(const Runner::Alone& what, const engine::Binding& binding) {
  for (const auto& [word, value] : what.words)
    std::memcpy(binding.buffers[word.buffer]->bytes().data() + word.first, &value, word.bytes);
}

/// The last element of each output.
std::vector<BufferRange> EndsOf(const engine::BoundCall& call) {
  std::vector<BufferRange> ends;
  for (const auto& [name, tensor] : call.outputs) {
    const std::uint64_t size = SizeOf(tensor.dtype);
    ends.push_back({.buffer = static_cast<std::uint32_t>(call.buffer_of.find(name)->second),
                    .first = tensor.memory.size() - size,
                    .bytes = size});
  }
  std::ranges::sort(ends, {}, &BufferRange::buffer);
  return ends;
}

/// Where the skeleton needs too much, or nobody looked for what is undefined, the program does.
bool Tells(const Report& report) {
  return report.watched.initialisation && report.findings.empty() &&
         (report.stop == Stop::kCompleted || report.stop == Stop::kStepLimit);
}

}  // namespace

void UseSkeleton(const facts::Skeleton& skeleton, Execution& execution) {
  execution.ptx = skeleton.ptx;
  execution.cubin.clear();
  for (Launch& launch : execution.launches) {
    if (!skeleton.in_shared) launch.shared_bytes = 0;
  }
  for (BufferSpec& spec : execution.buffers) {
    if (spec.role == BufferRole::kOutput) spec.role = BufferRole::kWorkspace;
  }
}

void ForgetFills(Execution& execution, std::optional<std::uint8_t> held) {
  for (BufferSpec& spec : execution.buffers) {
    if (spec.role != BufferRole::kWorkspace || spec.fill != BufferFill::kZero) continue;
    spec.fill = BufferFill::kUninitialised;
    spec.poison = held.value_or(spec.poison);
  }
}

void WatchForMeetings(Execution& execution) {
  ForgetFills(execution);
  execution.note_missing = execution.ends_at_meetings = true;
}

bool MetNobody(const Report& report) {
  return !report.counters.may_meet && report.missing && report.missing->empty();
}

std::uint64_t BytesWritten(const Execution& execution) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < execution.buffers.size(); ++i) {
    const BufferSpec& spec = execution.buffers[i];
    const bool is_taken = std::ranges::any_of(execution.launches, [&](const Launch& launch) {
      return std::ranges::any_of(launch.args, [&](const Argument& argument) {
        return argument.kind != Argument::Kind::kScalar && argument.buffer == i;
      });
    });
    if (is_taken && spec.role != BufferRole::kInput)
      bytes += static_cast<std::uint64_t>(spec.elements) * SizeOf(spec.dtype);
  }
  return bytes;
}

void MakeOfProgram(Finding& finding) {
  constexpr std::string_view kSameValue = "; both wrote the same value";
  if (finding.kind == FindingKind::kSameValueRace) {
    finding.kind = FindingKind::kDataRace;
    if (const std::size_t at = finding.message.find(kSameValue); at != std::string::npos)
      finding.message.erase(at, kSameValue.size());
  }
  for (Access& access : finding.accesses) {
    access.site.ptx_line = 0;
    access.value.clear();
  }
}

const facts::Skeleton* Runner::SkeletonFor(const Execution& execution) const {
  const engine::CompiledKernel& compiled = *subject_.compiled;
  const auto has_one = [&](const Launch& launch) {
    return std::ranges::find(compiled.skeleton.without, launch.entry) ==
           compiled.skeleton.without.end();
  };
  const bool nobody_waits = std::ranges::all_of(execution.launches, [&](const Launch& launch) {
    return has_one(launch) && !launch.cooperative &&
           launch.cluster[0] * launch.cluster[1] * launch.cluster[2] == 1 &&
           !(MayBe(facts::Polls(compiled.facts.get(), launch.entry)) &&
             MayBe(facts::BlocksDepend(compiled.facts.get(), launch.entry)));
  });
  return nobody_waits && !compiled.skeleton.ptx.empty() ? &compiled.skeleton : nullptr;
}

// All launches, of the last one some blocks or all.
Result<std::optional<Report>> Runner::RunSkeleton(const Binder& bind, Alone what,
                                                  engine::Binding& binding) const {
  ASSAY_TRY(binding, what.without_values ? bind.WithoutValues(kGarbage) : bind(kGarbage));
  Execution& execution = binding.execution;
  const facts::Skeleton* skeleton = SkeletonFor(execution);
  if (skeleton == nullptr) return std::nullopt;
  AskForPlaces(what, execution);
  execution.launches.back().only = std::move(what.only);
  execution.launches.back().threads = std::move(what.threads);
  UseSkeleton(*skeleton, execution);
  if (what.whose_ends) execution.whose = EndsOf(binding.calls.front());
  execution.drop_stores = what.drop_stores;
  ASSAY_TRY(Report report, engine_.Run(execution, binding.buffers, engine::Trust::kCandidate));
  return Tells(report) ? std::optional(std::move(report)) : std::nullopt;
}

Result<std::optional<std::vector<WrittenRange>>> Runner::WritersOf(
    const Binder& bind, const std::vector<BufferRange>& bytes, std::uint64_t most_steps,
    std::uint64_t& steps) const {
  constexpr std::size_t kMostRanges = std::size_t{1} << 14;
  std::uint64_t asked = 0;
  for (const BufferRange& range : bytes) asked += range.bytes;
  if (bytes.size() > kMostRanges || asked > kMostWhose) return std::nullopt;
  ASSAY_TRY(engine::Binding binding, bind(kGarbage));
  Execution& execution = binding.execution;
  const facts::Skeleton* skeleton = SkeletonFor(execution);
  execution.launches.pop_back();
  if (skeleton == nullptr || BytesWritten(execution) > kMostWritten) return std::nullopt;
  AskForPlaces({.most_steps = most_steps}, execution);
  UseSkeleton(*skeleton, execution);
  execution.whose = bytes;
  ASSAY_TRY(Report report, engine_.Run(execution, binding.buffers, engine::Trust::kCandidate));
  steps += report.counters.steps;
  if (!Tells(report) || report.stop != Stop::kCompleted) return std::nullopt;
  return std::move(report.writers);
}

Result<Report> Runner::RunAlone(const Binder& bind, std::size_t launch, Alone what,
                                engine::Binding& binding) const {
  const auto prepare = [&](bool without_values) -> Status {
    ASSAY_TRY(binding, without_values ? bind.WithoutValues(kGarbage) : bind(kGarbage));
    Execution& execution = binding.execution;
    if (execution.launches.size() > 1) ForgetFills(execution);
    execution.launches = {execution.launches[launch]};
    execution.launches.front().only = what.only;
    execution.launches.front().threads = what.threads;
    AskForPlaces(what, execution);
    SetWords(what, binding);
    return {};
  };
  if (what.only_where) {
    ASSAY_TRY_VOID(prepare(what.without_values));
    if (const facts::Skeleton* skeleton = SkeletonFor(binding.execution)) {
      UseSkeleton(*skeleton, binding.execution);
      ASSAY_TRY(Report report,
                engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
      if (Tells(report)) return report;
    }
  }
  ASSAY_TRY_VOID(prepare(/*without_values=*/false));
  binding.execution.follow_undefined = what.outputs.has_value();
  return engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate);
}

}  // namespace assay::campaign
