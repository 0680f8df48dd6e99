// What judging costs: seconds, cases and emulated instructions of one verdict, for an op's known-good
// candidate and for the wrong ones in corpus/hostile. Prints one JSON document; numbers are for
// reading, no test looks at them.
//
//   build/release/bin/judge_bench [OP] [quick|standard|thorough] [--no-cache] > judge.json
//
// OP defaults to embedding_rmsnorm_backward, effort to standard. Each verdict is reached with a
// fresh oracle, as by a command of its own; workers stay warm. As by commands, compiled references
// are kept in a folder, a new one here: the first verdict of an op compiles its reference, the
// others do with --no-cache alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/heap.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"

namespace assay::gates {
namespace {

const Path kSource = ASSAY_SOURCE_DIR;

struct Cost {
  double seconds = 0;
  std::uint64_t cases = 0;
  std::uint64_t steps = 0;
  verdict::Outcome outcome{};
};

Result<Cost> Judge(engine::Toolbox& toolbox, const ops::Instance& instance, const Path& folder,
                   campaign::Effort effort) {
  ASSAY_TRY(std::string kernel, ReadFile(folder / "kernel.cu"));
  ASSAY_TRY(std::string launch, ReadFile(folder / "launch.json"));
  oracle::Oracle oracle(toolbox.compiler(), toolbox.emulator());
  SystemClock clock;
  Options options;
  options.effort = effort;
  options.holdout_seed = [] { return 20'260'101u; };
  Gatekeeper gatekeeper({toolbox.compiler(), toolbox.emulator(), oracle, clock, {}}, options);
  const auto start = std::chrono::steady_clock::now();
  const Judgement judgement =
      gatekeeper.Judge(instance, {.kernel = std::move(kernel), .launch = std::move(launch)});
  Cost cost;
  cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  cost.outcome = judgement.verdict.outcome;
  for (const verdict::GateResult& gate : judgement.verdict.gates) {
    // The gates of the campaign share its cases.
    if (gate.gate == "race" || gate.gate == "numeric" || gate.gate == "precision") continue;
    cost.cases += gate.cases;
    cost.steps += gate.steps;
  }
  return cost;
}

Json ToJson(const Cost& cost) {
  return {{"outcome", std::string(Name(cost.outcome))},
          {"seconds", cost.seconds},
          {"cases", cost.cases},
          {"steps", cost.steps}};
}

Result<Json> Wrong(engine::Toolbox& toolbox, const ops::Library& library, campaign::Effort effort) {
  std::vector<double> seconds;
  std::size_t refuted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "corpus" / "hostile")) {
    if (!std::filesystem::exists(entry.path() / "expect.json")) continue;
    ASSAY_TRY(const Json expectation, ReadJsonFile((entry.path() / "expect.json").string()));
    ASSAY_TRY(const ops::OpSpec op, library.Find(expectation.at("op").get<std::string>()));
    const auto dtypes = expectation.at("dtypes").get<std::map<std::string, std::string>>();
    ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, dtypes, "sm_90"));
    ASSAY_TRY(const Cost cost, Judge(toolbox, instance, entry.path(), effort));
    seconds.push_back(cost.seconds);
    refuted += cost.outcome == verdict::Outcome::kRefuted ? 1 : 0;
  }
  std::ranges::sort(seconds);
  if (seconds.empty()) return Json::object();
  return Json{{"candidates", seconds.size()},
              {"refuted", refuted},
              {"median_seconds", seconds[seconds.size() / 2]},
              {"ninth_decile_seconds", seconds[seconds.size() * 9 / 10]},
              {"longest_seconds", seconds.back()}};
}

Result<Json> Measure(const std::string& name, campaign::Effort effort, const Path& compilations) {
  ASSAY_TRY(const auto toolbox, engine::Toolbox::Create({.compilations = compilations}));
  const ops::Library library{{kSource / "ops"}};
  ASSAY_TRY(const ops::OpSpec op, library.Find(name));
  ASSAY_TRY(const ops::Instance instance, ops::MakeInstance(op, {}, "sm_90"));
  if (!op.naive) return Fail(ErrorKind::kUsage, "the op has no known-good candidate", name);
  ASSAY_TRY(const Cost right, Judge(*toolbox, instance, *op.naive, effort));
  ASSAY_TRY(Json wrong, Wrong(*toolbox, library, effort));
  return Json{{"op", name}, {"right", ToJson(right)}, {"wrong", std::move(wrong)}};
}

}  // namespace
}  // namespace assay::gates

int main(int argc, char** argv) {
  assay::KeepFreedMemory();
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool no_cache = std::erase(words, "--no-cache") > 0;
  const std::string op = !words.empty() ? words[0] : "embedding_rmsnorm_backward";
  const std::string word = words.size() > 1 ? words[1] : "standard";
  const auto effort = word == "quick"      ? assay::campaign::Effort::kQuick
                      : word == "thorough" ? assay::campaign::Effort::kThorough
                                           : assay::campaign::Effort::kStandard;
  std::string folder = (std::filesystem::temp_directory_path() / "judge_bench-XXXXXX").string();
  if (!no_cache && mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 3;
  }
  const auto measured = assay::gates::Measure(op, effort, no_cache ? "" : folder);
  if (!no_cache) std::filesystem::remove_all(folder);
  if (!measured) {
    std::fprintf(stderr, "%s\n", assay::ToString(measured.error()).c_str());
    return 3;
  }
  std::puts(assay::PrettyJson(*measured).c_str());
}
