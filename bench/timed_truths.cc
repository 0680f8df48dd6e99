// What timing a workload takes of this machine beside the calls: inputs drawn, truths, comparisons.
// Measured over a card that computes nothing (outputs stay zero, and so do those of untimed calls): the
// meter does all of its own work, with truths of parts from the emulator. Whole truths, which a GPU
// computes, are made up and compared. Prints one JSON document; numbers are for reading.
//
//   build/release/bin/timed_truths [OP[:DTYPE]...] > truths.json
//
// "again" is the same for a second candidate, with the truths that are kept.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "base/file.h"
#include "bench/processor_time.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gate.h"
#include "validator/oracle/truth_source.h"
#include "validator/speed/meter.h"

namespace assay::speed {
namespace {

class NoCard final : public engine::Stopwatch, public engine::Engine {
 public:
  std::string_view name() const override { return "no card"; }
  Result<Report> Run(const Execution&, std::span<SharedMemory* const>, engine::Trust) override {
    return Report{};
  }
  Result<Timed> Time(const Execution&, const TimingPlan& plan,
                     std::span<SharedMemory* const>) override {
    Timed timed;
    for (std::uint32_t slot = 0; slot < plan.slots; ++slot)
      timed.timing.calls.push_back({slot, 1e-3});
    return timed;
  }
  Result<Stressed> Repeat(const Execution&, const StressPlan&,
                          std::span<SharedMemory* const>) override {
    return Stressed{};
  }
  Result<Rates> Measure() override { return Card(); }
  Result<double> Time(const MatrixProduct&) override {
    return Fail(ErrorKind::kEnvironment, "no library", "no card");
  }
  Result<double> Time(const RowsPrimitive&) override {
    return Fail(ErrorKind::kEnvironment, "no library", "no card");
  }
  static Rates Card() {
    Rates rates;
    rates.copy_bytes_per_second = 3e12;
    rates.launch_seconds = 3e-6;
    rates.l2_bytes = std::uint64_t{50} << 20;
    // Less than a card's: this machine holds all sets of inputs at once.
    rates.memory_bytes = std::uint64_t{16} << 30;
    for (const char* dtype : {"bf16", "f16", "f32"}) rates.matrix.push_back({dtype, 8e14});
    return rates;
  }
};

/// The emulator, where generated inputs are wanted whole.
class WholeInputs final : public engine::Engine {
 public:
  explicit WholeInputs(engine::Engine& engine) : engine_(engine) {}
  std::string_view name() const override { return engine_.name(); }
  unsigned devices() const override { return 1; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    return engine_.Run(execution, buffers, trust);
  }

 private:
  engine::Engine& engine_;
};

/// Truths that cost what comparing takes, and fit anything.
class MadeUp final : public oracle::Oracle {
 public:
  using Oracle::Oracle;
  Result<std::shared_ptr<const oracle::Truth>> Evaluate(
      const ops::Instance& instance, const cases::Case&,
      const cases::Materialised& inputs) override {
    auto truth = std::make_shared<oracle::Truth>();
    for (const auto* specs : {&instance.op.outputs, &instance.op.hidden}) {
      for (const ops::TensorSpec& spec : *specs) {
        ASSAY_TRY(const Shape shape, ops::ResolveShape(spec, inputs.axes));
        ASSAY_TRY(const std::int64_t elements, ElementCount(shape));
        const auto count = static_cast<std::size_t>(elements);
        oracle::OutputTruth& output = truth->outputs[spec.name];
        output.shape = shape;
        output.dtype = instance.TypeOf(spec);
        output.value.assign(count, 0);
        output.allowance.assign(count, 1);
        output.typical.assign(count, 1);
        output.independent.assign(count, 1);
        output.contributions.assign(count, 1);
      }
    }
    return std::shared_ptr<const oracle::Truth>(std::move(truth));
  }
  /// As many cells as a card would hand over.
  Result<oracle::SparseTruth> EvaluateSome(const ops::Instance& instance, const cases::Case&,
                                           const cases::Materialised& inputs,
                                           const oracle::SparseElements& wanted) override {
    oracle::SparseTruth truth;
    for (const auto& [name, elements] : wanted) {
      ASSAY_TRY(Shape shape, ops::ResolveShape(*instance.op.FindOutput(name), inputs.axes));
      shape.push_back(oracle::NumberType{}.CellWords());
      ASSAY_TRY(Tensor cells, Tensor::Create(DType::kF64, std::move(shape)));
      std::ranges::fill(cells.memory.bytes(), std::byte{1});
      for (const std::int64_t index : elements)
        truth[name].push_back({.index = index, .value = 0, .allowance = 1});
    }
    return truth;
  }
};

double Seconds(const std::function<void()>& work) {
  const double before = ProcessorSecondsOfAll();
  work();
  return ProcessorSecondsOfAll() - before;
}

Json MeasureOp(engine::Toolbox& toolbox, const ops::Instance& instance) {
  Json rows = Json::array();
  NoCard card;
  oracle::Oracle parts(toolbox.compiler(), toolbox.emulator());
  WholeInputs whole_inputs(toolbox.emulator());
  MadeUp whole(toolbox.compiler(), whole_inputs);
  Meter meter({card, card, whole, parts}, NoCard::Card());
  const Path naive = instance.op.naive.value_or(Path());
  ops::LaunchPlan plan = *ops::ParseLaunchPlan(*ReadJsonFile((naive / "launch.json").string()),
                                               "launch.json", instance.op);
  verdict::Candidate candidate;
  candidate.kernel = *ReadFile(naive / "kernel.cu");
  const engine::CompiledKernel compiled =
      toolbox.compiler().Compile(gates::RequestFor(instance, candidate, plan))->kernel;
  // The reference is compiled once.
  (void)parts.Check(instance);
  for (const ops::Workload& workload : instance.op.workloads) {
    Measurement at;
    const auto measure = [&](bool check) {
      return Seconds(
          [&] { at = meter.Measure({instance, plan, compiled}, workload, {.check = check}); });
    };
    const double inputs_of_two = measure(false);
    const double first = measure(true);
    const double again = measure(true);
    rows.push_back({{"instance", instance.Id()},
                    {"workload", at.workload},
                    {"as", at.scaled},
                    {"left_out", at.left_out},
                    {"two_inputs", inputs_of_two},
                    {"first", first},
                    {"again", again},
                    {"checked", at.checked},
                    {"compared", at.compared},
                    {"held", at.held}});
    std::fprintf(stderr, "%s %s: %.1f s, again %.1f s, %s%s\n", instance.Id().c_str(),
                 at.workload.c_str(), first, again, at.held.c_str(), at.left_out.c_str());
  }
  return rows;
}

int Main(std::span<char*> arguments) {
  engine::Toolbox::Options options;
  options.pool.workers_per_kind = 2;
  auto toolbox = engine::Toolbox::Create(options);
  if (!toolbox) {
    std::fprintf(stderr, "%s\n", ToString(toolbox.error()).c_str());
    return 1;
  }
  Json all = Json::array();
  for (const std::string_view argument : arguments) {
    const std::size_t colon = argument.find(':');
    const std::string name(argument.substr(0, colon));
    const std::string dtype(colon == argument.npos ? "bf16" : argument.substr(colon + 1));
    const auto op = ops::LoadOp(Path(ASSAY_SOURCE_DIR) / "ops" / name);
    const auto instance = op ? ops::MakeInstance(*op, {{"T", dtype}}, "sm_90")
                             : Result<ops::Instance>(std::unexpected(op.error()));
    if (!instance) {
      std::fprintf(stderr, "%s\n", ToString(instance.error()).c_str());
      return 1;
    }
    for (Json& row : MeasureOp(**toolbox, *instance)) all.push_back(std::move(row));
  }
  std::puts(all.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace assay::speed

int main(int argc, char** argv) {
  return assay::speed::Main({argv + 1, static_cast<std::size_t>(argc - 1)});
}
