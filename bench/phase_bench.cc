// Where the time of judging goes: for each op's naive candidate, the seconds that one verdict spends
// in the compiler, in runs of the candidate, in runs of the reference, and in the judge itself
// (inputs, comparison, planning), and what a run costs before its first instruction. Prints one JSON
// document; numbers are for reading, no test looks at them.
//
//   build/release/bin/phase_bench [OP|FOLDER...] > phases.json
//
// A FOLDER holds op.json and naive/. Runs of workers are wall time, summed over workers, so that all
// phases together are more than the verdict's seconds where several work at once; the judge's own are
// processor time. Each verdict is reached with a fresh oracle; workers stay warm.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"

namespace assay::gates {
namespace {

using Time = std::chrono::steady_clock;

double Since(Time::time_point start) {
  return std::chrono::duration<double>(Time::now() - start).count();
}

struct Phase {
  double seconds = 0;
  std::uint64_t runs = 0;
  std::uint64_t steps = 0;
  std::uint64_t warp_steps = 0;
  std::vector<double> smallest = {};  ///< Seconds of runs with next to nothing to do.

  Json ToJson() const {
    Json json = {
        {"seconds", seconds}, {"runs", runs}, {"steps", steps}, {"warp_steps", warp_steps}};
    if (smallest.empty()) return json;
    std::vector<double> sorted = smallest;
    std::ranges::nth_element(sorted,
                             sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
    json["median_seconds_of_a_run_below_10000_steps"] = sorted[sorted.size() / 2];
    return json;
  }
};

/// The engine, with a clock beside it.
class TimedEngine final : public engine::Engine {
 public:
  explicit TimedEngine(engine::Engine& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    const auto start = Time::now();
    auto report = inner_.Run(execution, buffers, trust);
    const double seconds = Since(start);
    const std::lock_guard lock(mutex_);
    Phase& phase = trust == engine::Trust::kCandidate ? candidate : reference;
    phase.seconds += seconds;
    ++phase.runs;
    if (!report) return report;
    phase.steps += report->counters.steps;
    phase.warp_steps += report->counters.warp_steps;
    if (report->counters.steps < 10'000) phase.smallest.push_back(seconds);
    return report;
  }
  Phase candidate, reference;

 private:
  engine::Engine& inner_;
  std::mutex mutex_;
};

class TimedCompiler final : public engine::Compiler {
 public:
  explicit TimedCompiler(engine::Compiler& inner) : inner_(inner) {}
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    const auto start = Time::now();
    auto outcome = inner_.Compile(request);
    const std::lock_guard lock(mutex_);
    compiling.seconds += Since(start);
    ++compiling.runs;
    return outcome;
  }
  Phase compiling;

 private:
  engine::Compiler& inner_;
  std::mutex mutex_;
};

Result<Json> Measure(engine::Toolbox& toolbox, const ops::OpSpec& op) {
  ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, {}, "sm_90"));
  ASSAY_TRY(std::string kernel, ReadFile(op.folder / "naive" / "kernel.cu"));
  ASSAY_TRY(std::string launch, ReadFile(op.folder / "naive" / "launch.json"));
  TimedEngine engine(toolbox.emulator());
  TimedCompiler compiler(toolbox.compiler());
  oracle::Oracle oracle(compiler, engine);
  SystemClock clock;
  Options options;
  options.holdout_seed = [] { return 20'260'101u; };
  Gatekeeper gatekeeper({compiler, engine, oracle, clock, {}}, options);
  const std::clock_t own = std::clock();
  const auto start = Time::now();
  const Judgement judgement =
      gatekeeper.Judge(instance, {.kernel = std::move(kernel), .launch = std::move(launch)});
  return Json{
      {"op", op.name},
      {"outcome", std::string(Name(judgement.verdict.outcome))},
      {"seconds", Since(start)},
      {"cases", judgement.verdict.ledger.examined()},
      {"compiling", compiler.compiling.ToJson()},
      {"candidate", engine.candidate.ToJson()},
      {"reference", engine.reference.ToJson()},
      {"judge_processor_seconds", static_cast<double>(std::clock() - own) / CLOCKS_PER_SEC}};
}

int Main(const std::vector<std::string>& names) {
  auto toolbox = engine::Toolbox::Create({});
  if (!toolbox) {
    std::fprintf(stderr, "%s\n", ToString(toolbox.error()).c_str());
    return 3;
  }
  const ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops"}};
  Json rows = Json::array();
  for (const std::string& name : names) {
    auto op = library.Find(name);
    auto row = op ? Measure(**toolbox, *op) : Result<Json>(std::unexpected(op.error()));
    if (!row) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), ToString(row.error()).c_str());
      return 3;
    }
    rows.push_back(*std::move(row));
  }
  std::printf("%s\n", rows.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace assay::gates

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = {"rms_norm", "gemm", "attention", "cross_entropy", "softmax"};
  return assay::gates::Main(names);
}
