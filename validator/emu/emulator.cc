#include "validator/emu/emulator.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "validator/emu/buffers.h"
#include "validator/emu/count.h"
#include "validator/emu/launch.h"
#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/shadow/tracker.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/costs.h"
#include "validator/emu/watch/disguised.h"
#include "validator/emu/watch/draws.h"
#include "validator/emu/watch/machine_flow.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/missing.h"
#include "validator/emu/watch/narrow_numbers.h"
#include "validator/emu/watch/writers.h"
#include "validator/emu/weak/contention.h"
#include "validator/emu/weak/stale.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/verifier.h"

namespace assay::emu {
namespace {

std::vector<std::uint32_t> LineStarts(std::string_view text) {
  std::vector<std::uint32_t> starts = {0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return starts;
}

/// Storage for module variables, then their initialisers, then the pointers inside those.
void AddModuleVariables(Device& device) {
  const ptx::Module& module = device.program.module;
  device.module_regions.assign(module.variables.size(), 0);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& variable = module.variables[i];
    const PlacedVariable& placed = device.program.module_variables[i];
    if (placed.where == PlacedVariable::Where::kShared) continue;
    total += variable.bytes;
    if (total > device.execution.limits.max_memory_bytes) {
      device.End(Stop::kResourceLimit,
                 fmt::format("the module's variables, up to '{}', are larger than the memory limit",
                             variable.name));
      return;
    }
    std::vector<std::byte>& storage = device.owned.emplace_back(variable.bytes);
    std::copy_n(variable.initialiser.begin(),
                std::min<std::size_t>(variable.initialiser.size(), storage.size()),
                storage.begin());
    MemoryRegion region;
    region.kind = variable.space == ptx::Space::kConst ? MemoryRegion::Kind::kConst
                                                       : MemoryRegion::Kind::kGlobal;
    region.data = storage.data();
    region.size = storage.size();
    region.writable = region.kind == MemoryRegion::Kind::kGlobal;
    region.element_bytes = static_cast<std::uint32_t>(std::max(1, ptx::BitsOf(variable.type) / 8));
    region.name = placed.name;
    device.module_regions[i] = AddRegion(device, std::move(region), 0, true);
  }
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    for (const ptx::Relocation& relocation : module.variables[i].relocations) {
      if (device.module_regions[i] == 0) continue;
      std::uint64_t value = relocation.to_function
                                ? kCodeWindow + (std::uint64_t{relocation.index} + 1) * 16
                                : device.regions[device.module_regions[relocation.index]].base;
      value += static_cast<std::uint64_t>(relocation.addend);
      const MemoryRegion& region = device.regions[device.module_regions[i]];
      if (relocation.bytes > 8 || relocation.offset + relocation.bytes > region.size) continue;
      std::memcpy(region.data + relocation.offset, &value, relocation.bytes);
      if (region.defined == nullptr) continue;
      const std::uint8_t number = StoredChoiceNumber(device, {.whole_address = true});
      // The lowest byte of a variable's address is promised.
      const std::uint64_t first = relocation.to_function ? 0 : 1;
      if (relocation.bytes > first)
        region.defined->SetChosen(relocation.offset + first, relocation.bytes - first, number);
    }
  }
}

/// An output that undefined bytes were written to is written: what is wrong is the value. Stores say
/// so themselves; asynchronous copies do here. False where a race explains the bytes: without it they
/// would have been defined in time.
bool ExplainUndefined(const Device& device, std::size_t buffer, Report& report) {
  const MemoryRegion& region = device.buffers[buffer].region;
  if (report.stop != Stop::kCompleted || !region.is_output || !region.defined->WrittenUndefined())
    return true;
  const auto told = [&](const Finding& finding) {
    return finding.kind == FindingKind::kUninitialisedUse && finding.memory &&
           finding.memory->buffer == region.name;
  };
  if (std::ranges::any_of(report.findings, told)) return true;
  const auto raced = [](const Finding& finding) { return finding.kind == FindingKind::kDataRace; };
  if (std::ranges::any_of(report.findings, raced)) return false;
  Finding finding;
  finding.kind = FindingKind::kUninitialisedUse;
  finding.memory = PlaceIn(region, "global", region.base + region.defined->FirstUndefined(), 0);
  finding.message = fmt::format(
      "undefined bytes are copied to the output '{}'; the first that is undefined in the end is "
      "{}[{}]",
      region.name, region.name, finding.memory->index);
  finding.missing = "a value for the bytes of shared memory that are copied";
  report.findings.push_back(std::move(finding));
  return true;
}

void FinishReport(Device& device, Report& report) {
  // Whose definedness is tracked says itself what was never written; who counts does not ask.
  if (!device.track_defined && device.costs == nullptr) {
    for (const auto& fill : device.fills) fill->TouchAll();
  }
  report.stop = device.stop;
  report.reason = device.reason;
  report.findings = device.findings.Take();
  report.counters = device.counters;
  for (std::size_t i = 0; i < device.execution.buffers.size(); ++i) {
    std::uint64_t unwritten = 0;
    std::int64_t first = -1;
    if (i < device.buffers.size() && device.buffers[i].region.defined != nullptr) {
      const MemoryRegion& region = device.buffers[i].region;
      unwritten = region.defined->CountUndefined();
      if (unwritten > 0)
        first = static_cast<std::int64_t>(region.defined->FirstUndefined() / region.element_bytes);
      if (unwritten > 0 && !ExplainUndefined(device, i, report)) {
        unwritten = 0;
        first = -1;
      }
    }
    report.unwritten_bytes.push_back(unwritten);
    report.first_unwritten.push_back(first);
    if (device.execution.note_disguised && i < device.buffers.size())
      AddDisguised(device.buffers[i].region, static_cast<std::uint32_t>(i),
                   device.execution.buffers[i], report.disguised);
  }
  for (std::uint32_t pc = 0; pc < device.branch_sides.size(); ++pc) {
    if (device.branch_sides[pc] == 0) continue;
    const SourcePlace place = SourcePlaceOf(device, pc);
    report.coverage.push_back({.ptx_line = device.program.InstructionAt(pc).ptx_line,
                               .file = std::string(place.file),
                               .line = place.line,
                               .column = place.column,
                               .sides = device.branch_sides[pc]});
  }
  for (std::uint32_t i = 0; i < device.numbers.size(); ++i) {
    if (device.numbers[i] == 0) continue;
    const std::uint32_t pc = static_cast<std::uint32_t>(i / kNumbersOfOne);
    const ptx::Instruction& instruction = device.program.InstructionAt(pc);
    report.numbers.push_back({.ptx_line = instruction.ptx_line,
                              .which = static_cast<std::uint8_t>(i % kNumbersOfOne),
                              .digits = static_cast<std::uint8_t>(DigitsKept(instruction)),
                              .line = SourcePlaceOf(device, pc).line,
                              .most = device.numbers[i]});
  }
}

/// What counting adds to a run.
struct Counting {
  const CountOptions& options;
  std::vector<LaunchCounts> launches;
};

Report RunOn(const Program& program, const Execution& execution,
             std::span<const std::span<std::byte>> buffers, Counting* counting);

}  // namespace

std::string SourceName(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;  // The demangler would read "x" as a type.
  int status = 0;
  // Of an array that is split, the compiler numbers the parts: "_ZZ1kE5found_$_0".
  const std::string whole = mangled.substr(0, mangled.find("_$_"));
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return mangled;
  // Drop the enclosing function: what follows the last "::" outside of brackets.
  const std::string_view full = text.get();
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i + 1 < full.size(); ++i) {
    if (full[i] == '(' || full[i] == '<') ++depth;
    if (full[i] == ')' || full[i] == '>') --depth;
    if (depth == 0 && full[i] == ':' && full[i + 1] == ':') start = i + 2;
  }
  return std::string(full.substr(start));
}

std::string_view Program::Impl::Line(std::uint32_t ptx_line) const {
  if (ptx_line == 0 || ptx_line > line_starts.size()) return {};
  const std::size_t start = line_starts[ptx_line - 1];
  const std::size_t end = text.find('\n', start);
  std::string_view line = std::string_view(text).substr(
      start, end == std::string::npos ? std::string::npos : end - start);
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  const auto last = line.find_last_not_of(" \t\r");
  constexpr std::size_t kLongest = 200;
  return line.substr(first, std::min(last - first + 1, kLongest));
}

Program::Program() : impl_(std::make_unique<Impl>()) {}
Program::~Program() = default;

Result<std::shared_ptr<const Program>> Program::Load(std::string_view ptx) {
  std::shared_ptr<Program> program(new Program());
  Impl& impl = *program->impl_;
  impl.text = ptx;
  impl.line_starts = LineStarts(impl.text);
  ASSAY_TRY(impl.module, ptx::Parse(impl.text, "kernel.ptx"));
  ASSAY_TRY_VOID(ptx::Verify(impl.module));
  ASSAY_TRY_VOID(Decode(impl));
  NoteNarrowNumbers(impl);
  MarkBoundaries(impl);
  return std::shared_ptr<const Program>(std::move(program));
}

Report Run(const Program& program, const Execution& execution,
           std::span<const std::span<std::byte>> buffers) {
  return RunOn(program, execution, buffers, nullptr);
}

Counted Count(const Program& program, const Execution& execution,
              std::span<const std::span<std::byte>> buffers, const CountOptions& options) {
  Counting counting{.options = options, .launches = {}};
  Execution plain = execution;
  plain.checks = {.initialisation = false, .race = false};
  Counted counted;
  counted.report = RunOn(program, plain, buffers, &counting);
  counted.launches = std::move(counting.launches);
  return counted;
}

namespace {

Report RunOn(const Program& program, const Execution& execution,
             std::span<const std::span<std::byte>> buffers, Counting* counting) {
  Device device(program.impl(), execution);
  device.track_defined = execution.checks.initialisation;
  device.monitored = execution.checks.initialisation || execution.checks.race;
  device.reverse_lanes = execution.schedule.policy == Schedule::Policy::kReversed;
  if (execution.checks.race)
    device.race = std::make_unique<RaceDetector>(execution.limits.max_memory_bytes);
  if (execution.checks.coverage) {
    device.branch_sides.resize(device.program.code.size());
    device.numbers.resize(kNumbersOfOne * device.program.code.size());
  }
  Report report;
  report.watched = execution.checks;
  report.watched.bounds = true;
  std::unique_ptr<ShadowTracker> shadow;
  if (execution.checks.shadow_values) {
    // Finding where an error comes from is for kernels that passed the monitors.
    device.track_defined = device.monitored = false;
    report.watched.initialisation = report.watched.race = report.watched.order = false;
    device.race.reset();
    shadow = std::make_unique<ShadowTracker>(device);
    device.shadow = shadow.get();
  }
  MissingBytes missing;
  if (execution.note_missing && device.track_defined) device.missing = &missing;
  Writers writers(execution.whose);
  if (!execution.whose.empty()) device.writers = &writers;
  device.drop_stores = execution.drop_stores;
  Draws draws(execution);
  if (execution.note_drawn || execution.tickets) device.draws = &draws;
  std::unique_ptr<StaleReads> stale;
  if (device.race && execution.schedule.stale > 0) {
    stale = std::make_unique<StaleReads>(device, *device.race, execution.schedule.stale);
    device.stale = stale.get();
  }
  std::unique_ptr<Contention> contention;
  report.watched.order = device.race != nullptr && execution.checks.order;
  if (report.watched.order) {
    contention = std::make_unique<Contention>(device, *device.race);
    device.contention = contention.get();
  }
  std::unique_ptr<CostWatch> costs;
  if (counting != nullptr) {
    costs = std::make_unique<CostWatch>(device, counting->options);
    device.costs = costs.get();
  }
  if (device.race && execution.schedule.hold) device.hold.pair = &*execution.schedule.hold;
  if (!device.stopped && AddBuffers(device, buffers)) AddModuleVariables(device);
  for (std::uint32_t i = 0; i < execution.launches.size() && !device.stopped; ++i) {
    PlaceBuffers(device, i);
    if (!PrepareLaunch(device, execution.launches[i], i)) break;
    if (shadow) shadow->BeginLaunch();
    const std::uint64_t steps_before = device.counters.steps;
    RunLaunch(device);
    report.launch_steps.push_back(device.counters.steps - steps_before);
    if (device.race && device.race->exhausted()) {
      device.End(Stop::kResourceLimit, "the race detector reached its memory limit");
    }
  }
  if (stale) {
    device.counters.stale_chances = stale->chances();
    device.counters.stale_reads = stale->taken();
    report.stale_reads = stale->Notes();
  }
  if (contention) contention->Report(report);
  if (device.missing != nullptr) report.missing = missing.Take(device.buffers);
  if (device.writers != nullptr) report.writers = writers.Take();
  if (device.draws != nullptr) report.drawn = draws.Take(device);
  report.order.held = device.hold.held;
  FinishReport(device, report);
  if (shadow) shadow->Finish(report);
  if (costs) counting->launches = costs->Take();
  return report;
}

}  // namespace

}  // namespace assay::emu
