// Where the time of judging goes: for each op's naive candidate, or any other, the seconds that one
// verdict spends in the compiler (the candidate, and the reference for each kind of number), in loading
// PTX, in runs of the candidate and of the reference by wave, in the judge itself (inputs, comparison,
// planning), in messages to workers, and in waiting. Prints one JSON document; numbers are for reading,
// no test looks at them.
//
//   build/release/bin/phase_bench [--twice] [--effort quick|standard|thorough] [--ops FOLDER]
//                                 [OP[:DTYPE][=FOLDER]...] > phases.json
//
// FOLDER holds kernel.cu and launch.json of another candidate than the naive one; --ops names one more
// folder of ops. With --twice each is judged again with the same oracle, as a repair loop does: what is
// left is what an attempt costs by itself. Runs of workers are wall time, summed over workers, so that
// all phases together are more than the verdict's seconds where several work at once; the judge's own
// are processor time, and so is "processor", of all processes: of a wave, and of the attempt. Workers stay warm, and nothing is kept on disk.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/heap.h"
#include "bench/processor_time.h"
#include "validator/emu/emulator.h"
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

  void Add(const Phase& other) {
    seconds += other.seconds;
    runs += other.runs;
    steps += other.steps;
    warp_steps += other.warp_steps;
  }
  Json ToJson() const {
    Json json = {{"seconds", seconds}, {"runs", runs}};
    if (steps == 0) return json;
    json["steps"] = steps;
    json["warp_steps"] = warp_steps;
    return json;
  }
};

/// Seconds of one judgement. Runs are put down to the wave that reports next.
class Ledger {
 public:
  explicit Ledger(unsigned jobs) : jobs_(jobs) {}

  void Compiled(std::string what, double seconds) {
    const std::lock_guard lock(mutex_);
    compiling_since_ += seconds;
    compiling_[std::move(what)].Add({.seconds = seconds, .runs = 1});
  }
  void Ran(const Execution& execution, engine::Trust trust, double seconds, const Report* report) {
    Phase run{.seconds = seconds, .runs = 1};
    if (report != nullptr) {
      run.steps = report->counters.steps;
      run.warp_steps = report->counters.warp_steps;
    }
    const std::lock_guard lock(mutex_);
    programs_.insert(execution.ptx);
    if (report != nullptr && run.steps < 10'000) smallest_.push_back(seconds);
    (trust == engine::Trust::kCandidate ? candidate_ : reference_).Add(run);
    longest_.push_back({last_, trust == engine::Trust::kCandidate, run});
    pending_[trust == engine::Trust::kCandidate ? 0 : 1].Add(run);
  }
  void Reported(const Progress& progress) {
    const std::size_t end = progress.detail.find(": case ");
    const std::lock_guard lock(mutex_);
    std::string wave = end == std::string::npos ? progress.gate : progress.detail.substr(0, end);
    if (wave != last_) SettleProcessor();
    last_ = std::move(wave);
    Settle();
  }

  Json ToJson(double seconds, double own) {
    const std::lock_guard lock(mutex_);
    SettleProcessor();
    Settle();
    Phase compiling;
    Json by_what = Json::object();
    for (const auto& [what, phase] : compiling_) {
      by_what[what] = phase.ToJson();
      compiling.Add(phase);
    }
    Json waves = Json::object();
    for (const auto& [wave, of] : waves_) {
      waves[wave] = {{"candidate", of.candidate.ToJson()},
                     {"reference", of.reference.ToJson()},
                     {"wall", of.wall},
                     {"processor", of.processor},
                     {"judge", of.own},
                     {"idle", of.Idle(jobs_)}};
    }
    std::ranges::sort(longest_, std::ranges::greater{},
                      [](const Single& each) { return each.run.seconds; });
    Json longest = Json::array();
    for (const Single& each : longest_ | std::views::take(kLongest)) {
      Json json = each.run.ToJson();
      json["wave"] = each.wave;
      json["of"] = each.of_candidate ? "candidate" : "reference";
      longest.push_back(std::move(json));
    }
    const auto load_start = Time::now();
    for (const std::string& ptx : programs_) (void)emu::Program::Load(ptx);
    const double loading = Since(load_start);
    double message = 0;
    if (!smallest_.empty()) {
      const auto middle = smallest_.begin() + static_cast<std::ptrdiff_t>(smallest_.size() / 2);
      std::ranges::nth_element(smallest_, middle);
      message = *middle;
    }
    const double busy = compiling.seconds + candidate_.seconds + reference_.seconds + own;
    return {{"compiling", {{"all", compiling.ToJson()}, {"by", by_what}}},
            {"loading_each_program_once", {{"seconds", loading}, {"programs", programs_.size()}}},
            {"candidate", candidate_.ToJson()},
            {"reference", reference_.ToJson()},
            {"judge_processor_seconds", own},
            {"median_seconds_of_a_run_below_10000_steps", message},
            {"messages_at_most", message * static_cast<double>(candidate_.runs + reference_.runs)},
            {"idle", std::max(0.0, jobs_ * seconds - busy)},
            {"waves", waves},
            {"longest_runs", longest}};
  }

 private:
  struct Wave {
    Phase candidate, reference;
    double wall = 0, own = 0, compiling = 0;
    double processor = 0;  ///< Of all processes.

    /// Seconds of cores in which nothing of ours ran. What was begun in one wave and ended in the next
    /// counts where it ended.
    double Idle(unsigned jobs) const {
      return std::max(0.0, jobs * wall - candidate.seconds - reference.seconds - compiling - own);
    }
  };
  struct Single {
    std::string wave;  ///< That was reported last when it ended.
    bool of_candidate;
    Phase run;
  };
  static constexpr std::size_t kLongest = 12;

  /// Once a wave: it looks at every process of the machine.
  void SettleProcessor() {
    const double now = ProcessorSecondsOfAll();
    waves_[last_].processor += now - std::exchange(processor_, now);
  }
  void Settle() {
    Wave& wave = waves_[last_];
    wave.candidate.Add(std::exchange(pending_[0], {}));
    wave.reference.Add(std::exchange(pending_[1], {}));
    wave.compiling += std::exchange(compiling_since_, 0);
    wave.wall += Since(std::exchange(settled_, Time::now()));
    const std::clock_t now = std::clock();
    wave.own += static_cast<double>(now - std::exchange(own_, now)) / CLOCKS_PER_SEC;
  }

  unsigned jobs_;
  Time::time_point settled_ = Time::now();
  std::clock_t own_ = std::clock();
  double processor_ = ProcessorSecondsOfAll();
  double compiling_since_ = 0;
  std::vector<Single> longest_;

  std::mutex mutex_;
  std::map<std::string, Phase> compiling_;
  std::map<std::string, Wave> waves_;
  std::array<Phase, 2> pending_;
  Phase candidate_, reference_;
  std::set<std::string> programs_;
  std::vector<double> smallest_;
  std::string last_ = "before the first case";
};

/// The engine, with a clock beside it.
class TimedEngine final : public engine::Engine {
 public:
  TimedEngine(engine::Engine& inner, Ledger*& ledger) : inner_(inner), ledger_(ledger) {}
  std::string_view name() const override { return inner_.name(); }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     engine::Trust trust) override {
    const auto start = Time::now();
    auto report = inner_.Run(execution, buffers, trust);
    ledger_->Ran(execution, trust, Since(start), report ? &*report : nullptr);
    return report;
  }

 private:
  engine::Engine& inner_;
  Ledger*& ledger_;
};

class TimedCompiler final : public engine::Compiler {
 public:
  TimedCompiler(engine::Compiler& inner, Ledger*& ledger) : inner_(inner), ledger_(ledger) {}
  Result<engine::CompileOutcome> Compile(const engine::CompileRequest& request) override {
    const auto start = Time::now();
    auto outcome = inner_.Compile(request);
    std::string what = "candidate";
    if (request.trust == engine::Trust::kReference) {
      what = "reference";
      for (const std::string& define : request.defines) {
        if (define.starts_with("ASSAY_ROUND") || define.starts_with("ASSAY_FUSED"))
          what += " " + define;
      }
    }
    ledger_->Compiled(std::move(what), Since(start));
    return outcome;
  }

 private:
  engine::Compiler& inner_;
  Ledger*& ledger_;
};

struct Subject {
  std::string op;
  std::string dtype;  ///< Empty: the op's first.
  Path folder;        ///< Empty: the naive candidate.
};

struct Settings {
  bool twice = false;
  campaign::Effort effort = campaign::Effort::kStandard;
  std::vector<Path> ops = {Path(ASSAY_SOURCE_DIR) / "ops"};
  std::vector<Subject> subjects;
};

constexpr unsigned kJobs = 2;

Result<Json> Measure(engine::Toolbox& toolbox, const Settings& settings, const Subject& subject) {
  ASSAY_TRY(const ops::OpSpec op, ops::Library{settings.ops}.Find(subject.op));
  std::map<std::string, std::string> dtypes;
  if (!subject.dtype.empty()) dtypes["T"] = subject.dtype;
  ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, dtypes, "sm_90"));
  if (subject.folder.empty() && !op.naive)
    return Fail(ErrorKind::kUsage, "the op has no known-good candidate", subject.op);
  const Path folder = subject.folder.empty() ? op.naive.value_or(Path()) : subject.folder;
  ASSAY_TRY(const std::string kernel, ReadFile(folder / "kernel.cu"));
  ASSAY_TRY(const std::string launch, ReadFile(folder / "launch.json"));
  Ledger* ledger = nullptr;
  TimedEngine engine(toolbox.emulator(), ledger);
  TimedCompiler compiler(toolbox.compiler(), ledger);
  oracle::Oracle oracle(compiler, engine);
  SystemClock clock;
  Json attempts = Json::array();
  for (int attempt = 0; attempt < (settings.twice ? 2 : 1); ++attempt) {
    Ledger mine(kJobs);
    ledger = &mine;
    Options options;
    options.effort = settings.effort;
    options.jobs = kJobs;
    options.holdout_seed = [] { return 20'260'101u; };
    Gatekeeper gatekeeper({.compiler = compiler,
                           .engine = engine,
                           .oracle = oracle,
                           .clock = clock,
                           .progress = [&](const Progress& each) { mine.Reported(each); }},
                          options);
    const std::clock_t own = std::clock();
    const double processor = ProcessorSecondsOfAll();
    const auto before = oracle.counts();
    const auto start = Time::now();
    const Judgement judgement = gatekeeper.Judge(instance, {.kernel = kernel, .launch = launch});
    const double seconds = Since(start);
    const double mine_own = static_cast<double>(std::clock() - own) / CLOCKS_PER_SEC;
    const auto after = oracle.counts();
    attempts.push_back({{"outcome", std::string(Name(judgement.verdict.outcome))},
                        {"seconds", seconds},
                        {"processor", ProcessorSecondsOfAll() - processor},
                        {"cases", judgement.verdict.ledger.examined()},
                        {"ledger", verdict::ToJson(judgement.verdict.ledger).at("rows")},
                        {"truths_computed", after.computed - before.computed},
                        {"truths_known", after.known - before.known},
                        {"phases", mine.ToJson(seconds, mine_own)}});
  }
  return Json{{"instance", instance.Id()},
              {"candidate", subject.folder.empty() ? "naive" : subject.folder.filename().string()},
              {"attempts", std::move(attempts)}};
}

Result<Settings> ReadSettings(const std::vector<std::string>& words) {
  Settings settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_next = i + 1 < words.size();
    if (word == "--twice") {
      settings.twice = true;
    } else if (word == "--ops" && has_next) {
      settings.ops.emplace_back(words[++i]);
    } else if (word == "--effort" && has_next) {
      const std::string& effort = words[++i];
      settings.effort = effort == "quick"      ? campaign::Effort::kQuick
                        : effort == "thorough" ? campaign::Effort::kThorough
                                               : campaign::Effort::kStandard;
    } else if (word.starts_with("-")) {
      return Fail(ErrorKind::kUsage, "no such option", word);
    } else {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const std::size_t colon = name.find(':');
      settings.subjects.push_back(
          {.op = name.substr(0, colon),
           .dtype = colon == std::string::npos ? "" : name.substr(colon + 1),
           .folder = equals == std::string::npos ? "" : word.substr(equals + 1)});
    }
  }
  if (settings.subjects.empty()) {
    for (const char* op : {"rms_norm", "gemm", "attention", "cross_entropy", "softmax"})
      settings.subjects.push_back({.op = op, .dtype = {}, .folder = {}});
  }
  return settings;
}

int Main(const std::vector<std::string>& words) {
  const auto settings = ReadSettings(words);
  const auto toolbox = engine::Toolbox::Create({.pool = {.workers_per_kind = kJobs}});
  for (const Error* error :
       {settings ? nullptr : &settings.error(), toolbox ? nullptr : &toolbox.error()}) {
    if (error == nullptr) continue;
    std::fprintf(stderr, "%s\n", ToString(*error).c_str());
    return 3;
  }
  Json rows = Json::array();
  for (const Subject& subject : settings->subjects) {
    auto row = Measure(**toolbox, *settings, subject);
    if (!row) {
      std::fprintf(stderr, "%s: %s\n", subject.op.c_str(), ToString(row.error()).c_str());
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
  assay::KeepFreedMemory();
  return assay::gates::Main({argv + 1, argv + argc});
}
