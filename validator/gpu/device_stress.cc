// Device::Repeat: the same call again and again, under conditions that change who comes first.
#include <fmt/format.h>

#include <algorithm>

#include "validator/gpu/device_parts.h"

namespace assay::gpu {
namespace {

/// Streams that run beside each other; ends with its owner.
class Streams {
 public:
  explicit Streams(const Driver& driver) : driver_(driver) {}
  ~Streams() {
    for (Stream stream : streams_) driver_.stream_destroy(stream);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  Outcome Add() {
    Stream stream = nullptr;
    if (const int code = driver_.stream_create(&stream, kNonBlocking))
      return DriverFault{code, "cuStreamCreate"};
    streams_.push_back(stream);
    return std::nullopt;
  }
  Stream operator[](std::size_t i) const { return streams_[i]; }

 private:
  const Driver& driver_;
  std::vector<Stream> streams_;
};

/// A recorded call; ends with its owner.
class Recording {
 public:
  explicit Recording(const Driver& driver) : driver_(driver) {}
  ~Recording() {
    if (runnable_ != nullptr) driver_.graph_end(runnable_);
    if (graph_ != nullptr) driver_.graph_destroy(graph_);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Outcome Record(Stream stream, const std::function<Outcome()>& call) {
    if (const int code = driver_.capture_begin(stream, kCaptureThreadLocal))
      return DriverFault{code, "cuStreamBeginCapture"};
    const Outcome fault = call();
    const int ended = driver_.capture_end(stream, &graph_);
    if (fault) return fault;
    if (ended != kSuccess) return DriverFault{ended, "cuStreamEndCapture"};
    if (const int code = driver_.graph_make(&runnable_, graph_, 0))
      return DriverFault{code, "cuGraphInstantiate"};
    return std::nullopt;
  }
  Outcome Replay(Stream stream) {
    if (const int code = driver_.graph_launch(runnable_, stream))
      return DriverFault{code, "cuGraphLaunch"};
    return std::nullopt;
  }

 private:
  const Driver& driver_;
  Graph graph_ = nullptr;
  Graph runnable_ = nullptr;
};

// Longer than most calls take; what is beside a call ends by itself.
constexpr std::uint64_t kBesideNanoseconds = 2'000'000;
constexpr std::uint64_t kHogBytes = std::uint64_t{256} << 20;

}  // namespace

Report Device::Repeat(const Execution& execution, const StressPlan& plan,
                      std::span<const std::span<std::byte>> buffers, Stress& stress) {
  using Beside = StressPlan::Beside;
  Report report;
  Slots slots;
  const std::uint32_t count = plan.beside == Beside::kItself ? 2 : 1;
  if (!Load(execution, report) || !LaySlots(execution, count, buffers, slots, report))
    return report;
  const auto fail = [&](const DriverFault& fault) {
    NoteFault(fault, "a repeated call", report);
    return report;
  };
  Streams streams(driver_);
  Scratch hogged(driver_);
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (const Outcome fault = streams.Add()) return fail(*fault);
  }
  if (plan.beside == Beside::kBandwidth) {
    if (const Outcome fault = hogged.Allocate(kHogBytes)) return fail(*fault);
  }
  const auto start_beside = [&]() -> Outcome {
    std::uint64_t nanoseconds = kBesideNanoseconds;
    if (plan.beside == Beside::kBandwidth) {
      DeviceAddress at = hogged.address;
      std::uint64_t words = hogged.bytes / 16;
      void* const arguments[] = {&at, &words, &nanoseconds};
      return StartTool("hog", arguments, streams[1],
                       2 * static_cast<std::uint32_t>(std::max(Attribute(kProcessors), 1)));
    }
    if (plan.beside != Beside::kFewProcessors) return std::nullopt;
    void* const arguments[] = {&nanoseconds};
    const auto half = static_cast<std::uint32_t>(std::max(Attribute(kProcessors) / 2, 1));
    return StartTool("occupy", arguments, streams[1], half,
                     static_cast<std::uint32_t>(std::max(Attribute(kSharedBytesOptIn), 0)));
  };
  const auto launch = [&](std::uint32_t slot) -> Outcome {
    for (std::uint32_t i = slot * slots.launches; i < (slot + 1) * slots.launches; ++i) {
      if (slots.prepared[i].function == nullptr) continue;
      if (const int code = Start(driver_, slots.prepared[i], streams[slot]))
        return DriverFault{code, "cuLaunchKernelEx"};
    }
    return std::nullopt;
  };
  Recording recording(driver_);
  if (plan.graph) {
    if (const Outcome fault = recording.Record(streams[0], [&] { return launch(0); }))
      return fail(*fault);
  }
  const auto once = [&]() -> Outcome {
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      for (const bool zeros : {false, true}) {
        if (Outcome fault = RefillSlot(slots, slot, zeros)) return fault;
      }
    }
    if (const int code = driver_.synchronise()) return DriverFault{code, "cuCtxSynchronize"};
    if (Outcome fault = start_beside()) return fault;
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      if (Outcome fault = plan.graph ? recording.Replay(streams[slot]) : launch(slot)) return fault;
    }
    if (const int code = driver_.synchronise()) return DriverFault{code, "cuCtxSynchronize"};
    return std::nullopt;
  };
  for (std::uint32_t i = 0; i < std::max(plan.repetitions, 1u) && stress.changed < 0; ++i) {
    if (const Outcome fault = once()) return fail(*fault);
    ++stress.made;
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      bool changed = false;
      const Outcome fault = i == 0 ? ReadSlot(slots, slot) : CompareSlot(slots, slot, changed);
      if (fault) return fail(*fault);
      if (!changed) continue;
      stress.changed = i;
      stress.slots.push_back(slot);
    }
  }
  if (const Outcome fault = memory_.Leave(report.findings)) return fail(*fault);
  return report;
}

}  // namespace assay::gpu
