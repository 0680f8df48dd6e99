// What a batch itself costs an instance: all that is neither model nor judge (plan, prompts, events,
// files, store, summary), and memory. Models and judges answer at once, or after a fixed time. Prints
// one JSON document.
//
//   batch_bench [INSTANCES] [MILLISECONDS]      a judgement that lasts so long, for the two jobs
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "batch/testing/fakes.h"

namespace assay {
namespace {

using Steady = std::chrono::steady_clock;

double SecondsSince(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

std::uint64_t PeakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// As many instances as are wanted, by giving one op many targets.
batch::Plan PlanOf(int instances) {
  batch::Plan plan;
  batch::Settings settings;
  settings.model.spec = "exec/scripted";
  settings.strategy.attempts = 2;
  settings.archs.clear();
  for (int i = 0; i < instances; ++i)
    settings.archs.push_back("sm_" + std::to_string(100 + i % 900) + (i < 900 ? "" : "a"));
  const ops::Library library({Path(ASSAY_SOURCE_DIR) / "ops"});
  const Status added = batch::AddOp(plan, library, "rms_norm", settings);
  ASSAY_CHECK(added.has_value(), added ? "" : ToString(added.error()));
  plan.share = false;
  return plan;
}

double Run(int instances, unsigned jobs, std::chrono::milliseconds judgement, int* accepted) {
  testing::TemporaryFolder folder;
  testing::BatchBench bench([](const std::string&, const models::ModelRequest& request) {
    return testing::Reply(request.name == "attempt-1" ? "refute race data_race" : "accept");
  });
  if (judgement.count() > 0) {
    bench.on_assess = [judgement](const verdict::Candidate&, const loop::JudgeContext&) {
      std::this_thread::sleep_for(judgement);
    };
  }
  const batch::Plan plan = PlanOf(instances);
  const Steady::time_point begin = Steady::now();
  const auto outcome = bench.Run(plan, folder.path() / "b", jobs);
  const double seconds = SecondsSince(begin);
  ASSAY_CHECK(outcome.has_value(), outcome ? "" : ToString(outcome.error()));
  *accepted = static_cast<int>(outcome->summary.totals.ends.at("accepted"));
  return seconds;
}

Json Overhead(int instances) {
  const std::uint64_t before = PeakBytes();
  int accepted = 0;
  const double seconds = Run(instances, 1, {}, &accepted);
  return {
      {"name", "overhead_per_instance"},
      {"instances", instances},
      {"accepted", accepted},
      {"attempts_each", 2},
      {"seconds", seconds},
      {"ms_each", 1000 * seconds / instances},
      {"peak_growth_bytes_each", (PeakBytes() - before) / static_cast<std::uint64_t>(instances)},
      {"peak_bytes", PeakBytes()}};
}

// The same work with one job and with two: the second should take half as long.
Json TwoJobs(int instances, std::chrono::milliseconds judgement) {
  int accepted = 0;
  const double one = Run(instances, 1, judgement, &accepted);
  const double two = Run(instances, 2, judgement, &accepted);
  return {{"name", "two_jobs"}, {"instances", instances}, {"judgement_ms", judgement.count()},
          {"one_seconds", one}, {"two_seconds", two},     {"two_of_half", two / (one / 2)},
          {"limit", 1.05}};
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const int instances = argc > 1 ? std::clamp(std::atoi(argv[1]), 10, 1800) : 1000;
  const std::chrono::milliseconds judgement(argc > 2 ? std::max(0, std::atoi(argv[2])) : 100);
  assay::Json results = assay::Json::array();
  // Smaller ones first: the peak of a process only grows.
  for (const int count : {instances / 4, instances / 2, instances})
    results.push_back(assay::Overhead(count));
  results.push_back(assay::TwoJobs(40, judgement));
  const assay::Json report = {
      {"schema", "assay.bench/1"}, {"bench", "batch"}, {"results", std::move(results)}};
  std::fputs(assay::PrettyJson(report).c_str(), stdout);
}
