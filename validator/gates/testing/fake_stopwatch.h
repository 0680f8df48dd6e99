// A stopwatch that runs a C++ function call by call, and a judge with a meter over it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/test_folder.h"
#include "validator/gates/testing/fakes.h"
#include "validator/speed/meter.h"

namespace assay::gates {

/// Times calls of "y = 2 x" as Device::Time does: poison before each, bits compared after each.
class FakeStopwatch final : public engine::Stopwatch {
 public:
  using Kernel = std::function<void(std::span<const float> x, std::span<float> y, int call)>;
  Kernel kernel = Good();
  double seconds = 1e-3;
  std::optional<double> library;
  std::vector<RowsPrimitive> rows;  ///< Those that were timed.
  Stop stop = Stop::kCompleted;
  std::vector<Finding> findings;
  std::optional<StressPlan::Beside> changed_beside;  ///< Where repetitions have other bits.
  int calls = 0;
  int conditions = 0;

  static Kernel Good() {
    return [](std::span<const float> x, std::span<float> y, int) {
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
    };
  }

  Result<Timed> Time(const Execution& execution, const TimingPlan& plan,
                     std::span<SharedMemory* const> buffers) override {
    Timed timed;
    timed.report.stop = stop;
    timed.report.reason = "the kernel did not end";
    timed.report.findings = findings;
    if (stop != Stop::kCompleted) return timed;
    const std::size_t share = buffers.size() / plan.slots;
    const auto floats = [&](std::size_t buffer) {
      return std::span(reinterpret_cast<float*>(buffers[buffer]->bytes().data()),
                       static_cast<std::size_t>(execution.buffers[buffer].elements));
    };
    for (std::uint32_t round = 0; round < plan.rounds && timed.timing.changed.empty(); ++round) {
      for (std::uint32_t slot = 0; slot < plan.slots; ++slot) {
        const std::span<float> y = floats(slot * share + 1);
        std::vector<float> made(y.size(), std::nanf(""));
        kernel(floats(slot * share), made, calls++);
        timed.timing.calls.push_back({slot, seconds});
        if (round > 0 && std::memcmp(made.data(), y.data(), y.size_bytes()) != 0)
          timed.timing.changed.push_back(slot);
        std::ranges::copy(made, y.begin());
      }
    }
    return timed;
  }
  Result<Stressed> Repeat(const Execution&, const StressPlan& plan,
                          std::span<SharedMemory* const>) override {
    ++conditions;
    const bool now = plan.beside == changed_beside;
    return Stressed{.report = {},
                    .stress = {.made = plan.repetitions, .changed = now ? 7 : -1, .slots = {}}};
  }
  Result<Rates> Measure() override { return Card(); }
  Result<double> Time(const MatrixProduct&) override {
    if (!library) return Fail(ErrorKind::kEnvironment, "no library", "test");
    return *library;
  }
  Result<double> Time(const RowsPrimitive& primitive) override {
    rows.push_back(primitive);
    if (!library) return Fail(ErrorKind::kEnvironment, "no library", "test");
    return *library;
  }
  /// 8 bytes an element: 2^20 elements need 1 ms.
  static Rates Card() {
    Rates rates;
    rates.device = "a card";
    rates.copy_bytes_per_second = 8.0 * (1 << 20) / 1e-3;
    rates.launch_seconds = 1e-6;
    rates.l2_bytes = 1 << 20;
    rates.memory_bytes = std::uint64_t{1} << 33;
    return rates;
  }
};

struct Timed {
  explicit Timed(const std::string& speed = R"({"bar": 0.4})") : folder("speed-gate") {
    folder.Write("op.json", R"({"speed": )" + speed + "}");
    bench.instance.op.folder = folder.path();
    bench.oracle.slices = true;
    bench.instance.op.workloads = {{.axes = {{"n", 1 << 20}}, .note = "large"}};
    bench.instance.op.properties = {{"deterministic", {}}};
  }
  Gatekeeper keeper() {
    Tools tools = bench.tools();
    tools.gpu = &gpu;
    tools.meter = &meter;
    return Gatekeeper(tools, bench.options);
  }
  const verdict::GateResult& Gate() {
    judgement = keeper().Judge(bench.instance, bench.candidate);
    return GateOf(judgement.verdict, "speed");
  }

  ops::TestFolder folder;
  FakeBench bench;
  campaign::FakeEngine gpu;
  FakeStopwatch stopwatch;
  speed::Meter meter{{stopwatch, gpu, bench.oracle, bench.oracle}, FakeStopwatch::Card()};
  Judgement judgement;
};

}  // namespace assay::gates
