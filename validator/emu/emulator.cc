#include "validator/emu/emulator.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/shadow/tracker.h"
#include "validator/emu/site.h"
#include "validator/emu/tensor_map.h"
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

/// Buffers that need filling and are larger than this are filled where they are touched.
constexpr std::uint64_t kLargeBuffer = std::uint64_t{64} << 20;

/// Buffers of the request, in order, as allocations 1, 2, ...
bool AddBuffers(Engine& engine, std::span<const std::span<std::byte>> buffers) {
  const std::vector<BufferSpec>& specs = engine.execution.buffers;
  if (buffers.size() != specs.size()) {
    engine.End(Stop::kEngineFailure,
               "the number of buffers differs from the number of their descriptions");
    return false;
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const BufferSpec& spec = specs[i];
    const std::uint64_t bytes = SizeOf(spec.dtype) * static_cast<std::uint64_t>(spec.elements);
    if (buffers[i].size() < bytes || spec.misalign % SizeOf(spec.dtype) != 0) {
      engine.End(Stop::kEngineFailure,
                 fmt::format("buffer '{}' does not fit its description", spec.name));
      return false;
    }
    MemoryRegion region;
    if (spec.fill != BufferFill::kProvided) {
      const std::uint8_t value = spec.fill == BufferFill::kZero ? 0 : spec.poison;
      if (bytes <= kLargeBuffer) {
        std::memset(buffers[i].data(), value, bytes);
      } else {
        engine.fills.push_back(std::make_unique<LazyFill>(buffers[i].first(bytes), value));
        region.lazy = engine.fills.back().get();
      }
    }
    region.kind = MemoryRegion::Kind::kBuffer;
    region.data = buffers[i].data();
    region.size = bytes;
    region.writable = spec.role != BufferRole::kInput;
    region.is_output = spec.role == BufferRole::kOutput;
    region.element_bytes = static_cast<std::uint32_t>(SizeOf(spec.dtype));
    region.name = spec.name;
    AddRegion(engine, std::move(region), spec.misalign, spec.fill != BufferFill::kUninitialised);
  }
  return true;
}

/// Storage for module variables, then their initialisers, then the pointers inside those.
void AddModuleVariables(Engine& engine) {
  const ptx::Module& module = engine.program.module;
  engine.module_regions.assign(module.variables.size(), 0);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& variable = module.variables[i];
    if (engine.program.module_variables[i].where == PlacedVariable::Where::kShared) continue;
    total += variable.bytes;
    if (total > engine.execution.limits.max_memory_bytes) {
      engine.End(Stop::kResourceLimit,
                 fmt::format("the module's variables, up to '{}', are larger than the memory limit",
                             variable.name));
      return;
    }
    std::vector<std::byte>& storage = engine.owned.emplace_back(variable.bytes);
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
    region.name = SourceName(variable.name);
    engine.module_regions[i] = AddRegion(engine, std::move(region), 0, true);
  }
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    for (const ptx::Relocation& relocation : module.variables[i].relocations) {
      if (engine.module_regions[i] == 0) continue;
      std::uint64_t value = relocation.to_function
                                ? kCodeWindow + (std::uint64_t{relocation.index} + 1) * 16
                                : engine.regions[engine.module_regions[relocation.index]].base;
      value += static_cast<std::uint64_t>(relocation.addend);
      const MemoryRegion& region = engine.regions[engine.module_regions[i]];
      if (relocation.bytes > 8 || relocation.offset + relocation.bytes > region.size) continue;
      std::memcpy(region.data + relocation.offset, &value, relocation.bytes);
    }
  }
}

/// Narrows a scalar to a parameter's size. Empty: it does not fit.
std::vector<std::uint8_t> FitScalar(const Argument& argument, std::uint64_t bytes) {
  std::vector<std::uint8_t> value = argument.bytes;
  if (value.size() == bytes) return value;
  if (IsFloat(argument.dtype)) return {};
  const bool negative =
      IsSignedInteger(argument.dtype) && !value.empty() && (value.back() & 0x80) != 0;
  const std::uint8_t fill = negative ? 0xff : 0;
  if (value.size() < bytes) {
    value.resize(bytes, fill);
    return value;
  }
  for (std::size_t i = bytes; i < value.size(); ++i) {
    if (value[i] != fill) return {};
  }
  // The sign must survive as well, where there is one: 200 does not fit a signed byte, but PTX
  // parameters carry no sign.
  if (negative && (value[bytes - 1] & 0x80) == 0) return {};
  value.resize(bytes);
  return value;
}

void LaunchFailure(Engine& engine, std::string message) {
  Finding finding;
  finding.kind = FindingKind::kLaunchFailure;
  finding.message = message;
  engine.findings.Add(std::move(finding), kNoPc, engine.launch.number);
  engine.End(Stop::kFault, std::move(message));
}

/// Limits that the device or the emulator has, beyond what the launch itself says.
bool CheckSizes(Engine& engine, const ptx::Function& function, const FunctionCode& code) {
  constexpr std::uint64_t kMaxParameterBytes = 32764;
  constexpr std::uint64_t kMaxStaticShared = 16u << 20;
  if (code.param_bytes > kMaxParameterBytes) {
    LaunchFailure(engine,
                  fmt::format("the parameters of '{}' take {} bytes, more than the limit of {}",
                              function.name, code.param_bytes, kMaxParameterBytes));
    return false;
  }
  if (engine.program.shared_static_bytes > kMaxStaticShared) {
    engine.End(Stop::kResourceLimit, fmt::format("the module declares {} bytes of shared memory",
                                                 engine.program.shared_static_bytes));
    return false;
  }
  return true;
}

/// A tensor map, as the bytes of its parameter.
bool TensorMapArgument(Engine& engine, const Argument& argument, std::uint64_t bytes,
                       const std::string& kernel, std::vector<std::uint8_t>& value) {
  std::string why;
  TensorMap map;
  if (argument.buffer >= engine.execution.buffers.size() || bytes != kTensorMapBytes) {
    why = fmt::format("its parameter has {} bytes, not {}", bytes, kTensorMapBytes);
  } else {
    const MemoryRegion& region = engine.regions[argument.buffer + 1];
    why = MakeTensorMap(argument.map, region.base, region.size, map);
  }
  if (!why.empty()) {
    LaunchFailure(engine,
                  fmt::format("tensor map '{}' of kernel '{}': {}", argument.name, kernel, why));
    return false;
  }
  const TensorMapImage image = Pack(map);
  value.resize(image.size());
  std::memcpy(value.data(), image.data(), image.size());
  return true;
}

bool SetParameters(Engine& engine, const ptx::Function& function, const FunctionCode& code,
                   const Launch& launch) {
  if (launch.args.size() != function.params.size()) {
    LaunchFailure(engine, fmt::format("kernel '{}' takes {} parameters, but the launch gives {}",
                                      function.name, function.params.size(), launch.args.size()));
    return false;
  }
  std::vector<std::byte>& storage =
      engine.owned.emplace_back(std::max<std::uint64_t>(1, code.param_bytes));
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const Argument& argument = launch.args[i];
    const std::size_t variable = function.returns.size() + i;
    const PlacedVariable& place = code.variables[variable];
    std::vector<std::uint8_t> value;
    if (argument.kind == Argument::Kind::kBuffer) {
      if (argument.buffer >= engine.execution.buffers.size() || place.bytes != 8) {
        LaunchFailure(
            engine, fmt::format("argument '{}' is a buffer, but parameter {} of '{}' has {} bytes",
                                argument.name, i + 1, function.name, place.bytes));
        return false;
      }
      const std::uint64_t address = engine.regions[argument.buffer + 1].base;
      value.resize(8);
      std::memcpy(value.data(), &address, 8);
    } else if (argument.kind == Argument::Kind::kTensorMap) {
      if (!TensorMapArgument(engine, argument, place.bytes, function.name, value)) return false;
    } else {
      value = FitScalar(argument, place.bytes);
      if (value.size() != place.bytes) {
        LaunchFailure(
            engine,
            fmt::format("argument '{}' ({}, {} bytes) does not fit parameter {} of '{}' ({} bytes)",
                        argument.name, Name(argument.dtype), argument.bytes.size(), i + 1,
                        function.name, place.bytes));
        return false;
      }
    }
    std::memcpy(storage.data() + place.offset, value.data(), value.size());
  }
  MemoryRegion region;
  region.kind = MemoryRegion::Kind::kParams;
  region.data = storage.data();
  region.size = code.param_bytes;
  region.writable = false;
  region.name = "parameters";
  engine.launch.params_region = AddRegion(engine, std::move(region), 0, true);
  return true;
}

/// Checks a launch against the device's and the kernel's limits, and sets engine.launch.
bool PrepareLaunch(Engine& engine, const Launch& launch, std::uint32_t number) {
  LaunchState& state = engine.launch;
  state = LaunchState{};
  state.number = number;
  state.launch = &launch;
  const ptx::Module& module = engine.program.module;
  const auto found = std::ranges::find_if(module.functions, [&](const ptx::Function& function) {
    return function.is_entry && function.has_body && function.name == launch.entry;
  });
  if (found == module.functions.end()) {
    LaunchFailure(engine, fmt::format("the PTX has no kernel '{}'", launch.entry));
    return false;
  }
  state.function = static_cast<std::uint32_t>(found - module.functions.begin());
  state.grid = launch.grid;
  state.block = launch.block;
  state.cluster = launch.cluster;
  if (found->bounds.cluster[0] != 0) {
    for (std::size_t i = 0; i < 3; ++i) state.cluster[i] = std::max(1u, found->bounds.cluster[i]);
  }
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (launch.grid[1] > 65535 || launch.grid[2] > 65535 || blocks > 0x7fffffff) {
    LaunchFailure(engine, fmt::format("a grid of {} x {} x {} blocks is beyond the device's limits",
                                      launch.grid[0], launch.grid[1], launch.grid[2]));
    return false;
  }
  if (blocks == 0 || threads == 0) {
    LaunchFailure(engine, "a launch needs at least one block of at least one thread");
    return false;
  }
  if (threads > 1024 || launch.block[2] > 64) {
    LaunchFailure(engine, fmt::format("a block of {} x {} x {} threads is beyond the limit of 1024",
                                      launch.block[0], launch.block[1], launch.block[2]));
    return false;
  }
  const ptx::LaunchBounds& bounds = found->bounds;
  const auto product = [](const std::array<std::uint32_t, 3>& dims) {
    std::uint64_t all = 1;
    for (const std::uint32_t dim : dims) all *= std::max(1u, dim);
    return dims[0] == 0 ? 0 : all;
  };
  if (const std::uint64_t most = product(bounds.max_threads); most != 0 && threads > most) {
    LaunchFailure(engine, fmt::format("kernel '{}' is bounded to {} threads a block "
                                      "(__launch_bounds__), but is launched with {}",
                                      found->name, most, threads));
    return false;
  }
  if (const std::uint64_t exact = product(bounds.required_threads);
      exact != 0 && threads != exact) {
    LaunchFailure(engine,
                  fmt::format("kernel '{}' needs {} threads a block, but is launched with {}",
                              found->name, exact, threads));
    return false;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (state.cluster[i] == 0 || state.grid[i] % state.cluster[i] != 0) {
      LaunchFailure(engine, "the grid is not a multiple of the cluster");
      return false;
    }
  }
  state.blocks_per_cluster = state.cluster[0] * state.cluster[1] * state.cluster[2];
  if (state.blocks_per_cluster > 16) {
    LaunchFailure(engine, fmt::format("a cluster of {} blocks is beyond the limit of 16",
                                      state.blocks_per_cluster));
    return false;
  }
  constexpr std::uint64_t kMaxSharedBytes = 227 * 1024;
  if (launch.shared_bytes > kMaxSharedBytes) {
    LaunchFailure(engine,
                  fmt::format("{} bytes of dynamic shared memory are beyond the limit of {}",
                              launch.shared_bytes, kMaxSharedBytes));
    return false;
  }
  constexpr std::uint64_t kMaxCooperativeThreads = 132 * 2048;
  if (launch.cooperative && blocks * threads > kMaxCooperativeThreads) {
    LaunchFailure(engine, "a cooperative launch must fit on the device at once: too many threads");
    return false;
  }
  state.threads = static_cast<std::uint32_t>(threads);
  state.warps = (state.threads + kWarpSize - 1) / kWarpSize;
  state.blocks = static_cast<std::uint32_t>(blocks);
  state.dynamic_shared = launch.shared_bytes;
  if (launch.cooperative) {
    std::vector<std::byte>& storage = engine.owned.emplace_back(4096);
    MemoryRegion region;
    region.kind = MemoryRegion::Kind::kGridWorkspace;
    region.data = storage.data();
    region.size = storage.size();
    region.element_bytes = 4;
    region.name = "grid workspace";
    state.grid_workspace = engine.regions[AddRegion(engine, std::move(region), 0, true)].base;
  }
  if (!CheckSizes(engine, *found, engine.program.functions[state.function])) return false;
  return SetParameters(engine, *found, engine.program.functions[state.function], launch);
}

void FinishReport(Engine& engine, Report& report) {
  // Whose definedness is tracked says itself what was never written.
  if (!engine.track_defined) {
    for (const auto& fill : engine.fills) fill->TouchAll();
  }
  report.stop = engine.stop;
  report.reason = engine.reason;
  report.findings = engine.findings.Take();
  report.counters = engine.counters;
  for (std::size_t i = 0; i < engine.execution.buffers.size(); ++i) {
    std::uint64_t unwritten = 0;
    std::int64_t first = -1;
    if (i + 1 < engine.regions.size() && engine.regions[i + 1].defined != nullptr) {
      const MemoryRegion& region = engine.regions[i + 1];
      unwritten = region.defined->CountUndefined();
      if (unwritten > 0)
        first = static_cast<std::int64_t>(region.defined->FirstUndefined() / region.element_bytes);
    }
    report.unwritten_bytes.push_back(unwritten);
    report.first_unwritten.push_back(first);
  }
  for (std::uint32_t pc = 0; pc < engine.branch_sides.size(); ++pc) {
    if (engine.branch_sides[pc] == 0) continue;
    SourceSite site = SiteOf(engine, pc);
    report.coverage.push_back(
        {.ptx_line = site.ptx_line, .site = std::move(site), .sides = engine.branch_sides[pc]});
  }
}

}  // namespace

std::string SourceName(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;  // The demangler would read "x" as a type.
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
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
  return std::shared_ptr<const Program>(std::move(program));
}

Report Run(const Program& program, const Execution& execution,
           std::span<const std::span<std::byte>> buffers) {
  Engine engine(program.impl(), execution);
  engine.track_defined = execution.checks.initialisation;
  engine.monitored = execution.checks.initialisation || execution.checks.race;
  engine.reverse_lanes = execution.schedule.policy == Schedule::Policy::kReversed;
  if (execution.checks.race)
    engine.race = std::make_unique<RaceDetector>(execution.limits.max_memory_bytes);
  if (execution.checks.coverage) engine.branch_sides.resize(engine.program.code.size());
  Report report;
  std::unique_ptr<ShadowTracker> shadow;
  if (execution.checks.shadow_values) {
    // Finding where an error comes from is for kernels that passed the monitors.
    engine.track_defined = engine.monitored = false;
    engine.race.reset();
    shadow = std::make_unique<ShadowTracker>(engine);
    engine.shadow = shadow.get();
  }
  if (!engine.stopped && AddBuffers(engine, buffers)) AddModuleVariables(engine);
  for (std::uint32_t i = 0; i < execution.launches.size() && !engine.stopped; ++i) {
    if (!PrepareLaunch(engine, execution.launches[i], i)) break;
    if (shadow) shadow->BeginLaunch();
    RunLaunch(engine);
    if (engine.race && engine.race->exhausted()) {
      engine.End(Stop::kResourceLimit, "the race detector reached its memory limit");
    }
  }
  FinishReport(engine, report);
  if (shadow) shadow->Finish(report);
  return report;
}

}  // namespace assay::emu
