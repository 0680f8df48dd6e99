// Device::Time: how long calls take, each as if it were the first.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "validator/gpu/device_parts.h"

namespace assay::gpu {
namespace {

constexpr std::uint32_t kToolThreads = 256;
constexpr std::uint32_t kToolBlocksOfAProcessor = 4;

}  // namespace

int Device::Attribute(int attribute) const {
  int value = 0;
  return driver_.device_attribute(&value, attribute, number_) == kSuccess ? value : 0;
}

Outcome Device::StartTool(const char* name, std::span<void* const> arguments, Stream stream,
                          std::uint32_t blocks, std::uint32_t shared_bytes) {
  Function function = nullptr;
  if (const int code = driver_.module_function(&function, tools_, name))
    return DriverFault{code, "cuModuleGetFunction"};
  if (shared_bytes > 0)
    driver_.function_attribute(function, kMaxDynamicSharedBytes, static_cast<int>(shared_bytes));
  if (blocks == 0) {
    const int processors = std::max(Attribute(kProcessors), 1);
    blocks = static_cast<std::uint32_t>(processors) * kToolBlocksOfAProcessor;
  }
  LaunchConfig config{.grid = {blocks, 1, 1},
                      .block = {shared_bytes > 0 ? 1024 : kToolThreads, 1, 1},
                      .shared_bytes = shared_bytes,
                      .stream = stream};
  std::vector<void*> parameters(arguments.begin(), arguments.end());
  if (const int code = driver_.launch(&config, function, parameters.data(), nullptr))
    return DriverFault{code, "cuLaunchKernelEx"};
  return std::nullopt;
}

Outcome Device::Sweep(const Scratch& scratch) {
  DeviceAddress at = scratch.address;
  std::uint64_t words = scratch.bytes / 16;
  void* const arguments[] = {&at, &words};
  return StartTool("sweep", arguments, nullptr);
}

Outcome Device::Between(const std::function<Outcome()>& work, double& seconds) {
  const Mark begin(driver_), end(driver_);
  if (const int code = driver_.event_record(begin.get(), nullptr))
    return DriverFault{code, "cuEventRecord"};
  if (Outcome fault = work()) return fault;
  if (const int code = driver_.event_record(end.get(), nullptr))
    return DriverFault{code, "cuEventRecord"};
  // All streams: what a call started anywhere ends within it.
  if (const int code = driver_.synchronise()) return DriverFault{code, "cuCtxSynchronize"};
  float milliseconds = 0;
  if (const int code = driver_.event_elapsed(&milliseconds, begin.get(), end.get()))
    return DriverFault{code, "cuEventElapsedTime"};
  seconds = static_cast<double>(milliseconds) * 1e-3;
  return std::nullopt;
}

bool Device::LaySlots(const Execution& execution, std::uint32_t count,
                      std::span<const std::span<std::byte>> buffers, Slots& slots, Report& report) {
  const auto refuse = [&](std::string why) {
    report.stop = Stop::kUnsupported;
    report.reason = std::move(why);
    return false;
  };
  if (count == 0 || execution.launches.size() % count != 0 || buffers.size() % count != 0)
    return refuse("the execution cannot be divided into slots");
  const bool plain =
      std::ranges::none_of(execution.buffers, [](const auto& b) { return b.reuse.has_value(); }) &&
      std::ranges::all_of(execution.launches, [](const auto& l) {
        return l.fresh.empty() && l.only.empty() && l.threads.empty();
      });
  if (!plain) return refuse("slots have buffers of their own, and whole grids");
  slots.count = count;
  slots.buffers = static_cast<std::uint32_t>(buffers.size() / count);
  slots.launches = static_cast<std::uint32_t>(execution.launches.size() / count);
  slots.specs = execution.buffers;
  slots.host = buffers;
  slots.first.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& spec = execution.buffers[i];
    if (spec.role == BufferRole::kOutput && spec.fill == BufferFill::kProvided)
      slots.first[i].assign(buffers[i].begin(), buffers[i].end());
  }
  Outcome fault = memory_.Lay(execution.buffers, buffers);
  if (!fault) fault = memory_.Enter(0, {}, report.findings);
  if (fault) {
    NoteFault(*fault, "", report);
    return false;
  }
  for (const assay::Launch& launch : execution.launches) {
    PreparedLaunch& prepared = slots.prepared.emplace_back();
    if (!IsEmpty(launch) && !Prepare(launch, prepared, report)) return false;
  }
  return true;
}

Outcome Device::RefillSlot(const Slots& slots, std::uint32_t slot, bool zeros) {
  for (std::uint32_t i = slot * slots.buffers; i < (slot + 1) * slots.buffers; ++i) {
    const BufferSpec& spec = slots.specs[i];
    if (spec.role == BufferRole::kInput || (spec.fill == BufferFill::kZero) != zeros) continue;
    if (zeros) {
      if (memory_.BytesOf(i) == 0) continue;
      const int code = driver_.fill_async(memory_.AddressOf(i), 0, memory_.BytesOf(i), nullptr);
      if (code != kSuccess) return DriverFault{code, "cuMemsetD8Async"};
    } else if (!slots.first[i].empty()) {
      const int code =
          driver_.to_device(memory_.AddressOf(i), slots.first[i].data(), slots.first[i].size());
      if (code != kSuccess) return DriverFault{code, "cuMemcpyHtoD"};
    } else if (Outcome fault = memory_.Refill(i)) {
      return fault;
    }
  }
  return std::nullopt;
}

Outcome Device::TimeSlot(Slots& slots, std::uint32_t slot, double& seconds) {
  // Zeros that the plan asks for are a caller's work, and counted; poison is ours.
  const auto call = [&]() -> Outcome {
    if (Outcome fault = RefillSlot(slots, slot, /*zeros=*/true)) return fault;
    for (std::uint32_t i = slot * slots.launches; i < (slot + 1) * slots.launches; ++i) {
      if (slots.prepared[i].function == nullptr) continue;
      if (const int code = Start(driver_, slots.prepared[i], nullptr))
        return DriverFault{code, "cuLaunchKernelEx"};
    }
    return std::nullopt;
  };
  return Between(call, seconds);
}

Outcome Device::ReadSlot(const Slots& slots, std::uint32_t slot) {
  for (std::uint32_t i = slot * slots.buffers; i < (slot + 1) * slots.buffers; ++i) {
    if (slots.specs[i].role != BufferRole::kOutput) continue;
    if (Outcome fault = memory_.Read(i, slots.host[i])) return fault;
  }
  return std::nullopt;
}

Outcome Device::CompareSlot(const Slots& slots, std::uint32_t slot, bool& changed) {
  std::vector<std::byte> now;
  for (std::uint32_t i = slot * slots.buffers; i < (slot + 1) * slots.buffers; ++i) {
    if (slots.specs[i].role != BufferRole::kOutput) continue;
    now.resize(slots.host[i].size());
    if (Outcome fault = memory_.Read(i, now)) return fault;
    if (std::ranges::equal(now, slots.host[i])) continue;
    changed = true;
    std::ranges::copy(now, slots.host[i].begin());
  }
  return std::nullopt;
}

Report Device::Time(const Execution& execution, const TimingPlan& plan,
                    std::span<const std::span<std::byte>> buffers, Timing& timing) {
  Report report;
  Slots slots;
  if (!Load(execution, report) || !LaySlots(execution, plan.slots, buffers, slots, report))
    return report;
  const auto fail = [&](const DriverFault& fault) {
    NoteFault(fault, "a timed call", report);
    return report;
  };
  Scratch caches(driver_);
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 20;
  const auto l2 = static_cast<std::uint64_t>(std::max(Attribute(kL2Bytes), 0));
  if (const Outcome fault = caches.Allocate(std::max(kLeast, 2 * l2))) return fail(*fault);
  if (const int code = driver_.fill(caches.address, 1, caches.bytes))
    return fail({code, "cuMemsetD8"});

  Rng rng(plan.seed);
  std::vector<std::uint32_t> order(plan.slots);
  std::iota(order.begin(), order.end(), 0u);
  const auto shuffle = [&] {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  };
  double seconds = 0, all = 0;
  std::uint32_t last = plan.slots;
  const auto call = [&](std::uint32_t slot) -> Outcome {
    last = slot;
    if (Outcome fault = RefillSlot(slots, slot, /*zeros=*/false)) return fault;
    if (Outcome fault = Sweep(caches)) return fault;
    return TimeSlot(slots, slot, seconds);
  };
  for (std::uint32_t i = 0; i < plan.warm_ups; ++i) {
    if (const Outcome fault = call(order[i % order.size()])) return fail(*fault);
  }
  timing.before = management_.Now();
  for (std::uint32_t round = 0; round < std::max(plan.rounds, 1u); ++round) {
    if (round > 0 && (all > plan.most_seconds || !timing.changed.empty())) break;
    // Never the same inputs twice in a row: those would be recognised.
    shuffle();
    if (order.size() > 1 && order.front() == last) std::swap(order.front(), order.back());
    for (const std::uint32_t slot : order) {
      if (const Outcome fault = call(slot)) return fail(*fault);
      timing.calls.push_back({slot, seconds});
      all += seconds;
      bool changed = false;
      const Outcome fault = round == 0 ? ReadSlot(slots, slot) : CompareSlot(slots, slot, changed);
      if (fault) return fail(*fault);
      if (!changed) continue;
      timing.changed.push_back(slot);
      break;
    }
  }
  timing.after = management_.Now();
  if (const Outcome fault = memory_.Leave(report.findings)) return fail(*fault);
  return report;
}

}  // namespace assay::gpu
