// What the agent itself costs: orchestration per attempt (all that is neither model nor judge:
// prompts, events, files, state), and many streams at once on one thread. Prints one JSON document.
//
//   agent_bench [ATTEMPTS] [STREAMS]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/loop/generate.h"
#include "agent/models/http_model.h"
#include "agent/testing/fakes.h"
#include "agent/testing/fault_server.h"

namespace assay {
namespace {

using Steady = std::chrono::steady_clock;
using testing::ReplyWith;

double MillisecondsSince(Steady::time_point begin) {
  return std::chrono::duration<double, std::milli>(Steady::now() - begin).count();
}

double ThreadCpuMilliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

// A refine run whose model and judge answer at once. An attempt lasts from one AttemptBegan to the
// next.
Json Orchestration(int attempts) {
  testing::TemporaryFolder folder;
  SystemClock clock;
  loop::GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.strategy.attempts = attempts;
  request.out = folder.path() / "run";
  testing::ScriptedModel model(std::vector<std::string>(static_cast<std::size_t>(attempts),
                                                        ReplyWith("refute race data_race")));
  std::vector<double> each;
  Steady::time_point last = Steady::now();
  const auto observe = [&](const loop::Notice& notice) {
    if (!std::holds_alternative<loop::AttemptBegan>(notice)) return;
    each.push_back(MillisecondsSince(last));
    last = Steady::now();
  };
  loop::Environment environment{.clock = clock,
                                .make_judges = testing::ScriptedJudges(),
                                .observe = observe,
                                .prompts = testing::PromptsFolder(),
                                .model = &model};
  const double cpu_before = ThreadCpuMilliseconds();
  const auto outcome = loop::Generate(request, environment);
  ASSAY_CHECK(outcome.has_value(), outcome ? "" : ToString(outcome.error()));
  const double cpu = ThreadCpuMilliseconds() - cpu_before;
  each.erase(each.begin());
  std::ranges::sort(each);
  return {{"name", "orchestration_per_attempt"},
          {"attempts", attempts},
          {"median_ms", each[each.size() / 2]},
          {"p95_ms", each[each.size() * 95 / 100]},
          {"cpu_ms", cpu / attempts},
          {"limit_ms", 20}};
}

// All streams are open at once before the first is answered.
Json Streams(int streams) {
  testing::FaultServer server;
  server.MeetBeforeAnswering(streams);
  server.Say(std::string(32 * 1024, 'x'));
  SystemClock clock;
  models::HttpModelOptions options;
  options.model = "fake-1";
  options.base_url = server.base_url();
  options.max_in_flight = static_cast<std::size_t>(streams);
  auto transport = models::MakeCurlTransport({});
  ASSAY_CHECK(transport.has_value());
  models::HttpModel model(models::OpenAiProtocol(), options, *std::move(transport), clock, Rng(1));
  const double cpu_before = ThreadCpuMilliseconds();
  const Steady::time_point begin = Steady::now();
  for (int i = 1; i <= streams; ++i) {
    model.Start(static_cast<models::Ticket>(i),
                {.name = "attempt-" + std::to_string(i),
                 .conversation = {{{runs::Role::kUser, "go", false}}},
                 .temperature = {}});
  }
  int done = 0;
  while (done < streams) {
    for (const models::ModelEvent& event : model.Poll(std::chrono::milliseconds(1000))) {
      if (event.kind != models::ModelEvent::Kind::kDone) continue;
      ASSAY_CHECK(event.reply.has_value(), event.reply ? "" : ToString(event.reply.error()));
      ++done;
    }
  }
  return {{"name", "concurrent_streams_on_one_thread"},
          {"streams", streams},
          {"wall_ms", MillisecondsSince(begin)},
          {"client_thread_cpu_ms", ThreadCpuMilliseconds() - cpu_before}};
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const int attempts = argc > 1 ? std::max(2, std::atoi(argv[1])) : 100;
  const int streams = argc > 2 ? std::clamp(std::atoi(argv[2]), 1, 64) : 64;
  const assay::Json report = {
      {"schema", "assay.bench/1"},
      {"bench", "agent"},
      {"results", {assay::Orchestration(attempts), assay::Streams(streams)}}};
  std::fputs(assay::PrettyJson(report).c_str(), stdout);
}
