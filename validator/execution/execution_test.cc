#include "validator/execution/execution.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Execution Sample() {
  Execution execution;
  execution.buffers = {{.name = "x",
                        .dtype = DType::kBF16,
                        .elements = 12,
                        .role = BufferRole::kInput,
                        .misalign = 2},
                       {.name = "y",
                        .elements = 3,
                        .role = BufferRole::kOutput,
                        .fill = BufferFill::kUninitialised,
                        .poison = 7}};
  Launch launch;
  launch.entry = "k";
  launch.grid = {3, 2, 1};
  launch.block = {32, 4, 1};
  launch.shared_bytes = 128;
  launch.only = {{0, 1}, {4, 2}};
  launch.threads = {{127, 1}};
  launch.args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 1},
                 {.kind = Argument::Kind::kScalar,
                  .name = "n",
                  .bytes = {1, 2, 3, 255},
                  .dtype = DType::kI32}};
  execution.launches = {launch};
  execution.checks.coverage = true;
  execution.schedule = {.policy = Schedule::Policy::kPriorities,
                        .seed = ~0ull,
                        .stale = 50,
                        .hold = OrderPair{1, 2, 3, 4, 5}};
  execution.checks.order = true;
  execution.limits.max_steps = 99;
  execution.perturbation_seed = 5;
  execution.follow_undefined = true;
  execution.whose = {{0, 4, 8}, {0, 16, 1}, {1, 0, 4}};
  execution.drop_stores = true;
  execution.tickets = Tickets{.word = {1, 4, 4}, .held = {3, 1ull << 40}};
  execution.note_drawn = true;
  execution.target_sm = "sm_80";
  return execution;
}

TEST(Execution, JsonRoundTrip) {
  const Json json = ToJson(Sample());
  const auto back = ExecutionFromJson(*ParseJson(CompactJson(json), "e"));
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->launches[0].args[1].bytes, (std::vector<std::uint8_t>{1, 2, 3, 255}));
  EXPECT_EQ(back->schedule, Sample().schedule);
  EXPECT_EQ(back->tickets, Sample().tickets);
}

TEST(Execution, MalformedDocumentsAreRefused) {
  Json json = ToJson(Sample());
  json["launches"][0]["args"][0]["buffer"] = 2u;
  EXPECT_FALSE(ExecutionFromJson(json));
  json = ToJson(Sample());
  json["buffers"][0]["elements"] = -1;
  EXPECT_FALSE(ExecutionFromJson(json));
  json = ToJson(Sample());
  json["launches"][0]["grid"] = {1, 2};
  EXPECT_FALSE(ExecutionFromJson(json));
  Execution touching = Sample();
  touching.whose[1].first = 12;
  EXPECT_FALSE(ExecutionFromJson(ToJson(touching)));
  touching.whose[1] = {0, 16, ~0ull};
  EXPECT_FALSE(ExecutionFromJson(ToJson(touching)));
  for (const BufferRange& word :
       {BufferRange{1, 2, 4}, BufferRange{1, 0, 16}, BufferRange{2, 0, 4}}) {
    Execution nowhere = Sample();
    nowhere.tickets->word = word;
    EXPECT_FALSE(ExecutionFromJson(ToJson(nowhere)));
  }
  Execution forgetful = Sample();
  forgetful.whose.clear();
  EXPECT_FALSE(ExecutionFromJson(ToJson(forgetful)));
  json = ToJson(Sample());
  json["surprise"] = 1;
  EXPECT_FALSE(ExecutionFromJson(json));
  EXPECT_FALSE(ExecutionFromJson(Json::array()));
}

// Two calls of two launches each; y of the second lies where y of the first lay.
Execution Reusing() {
  Execution execution;
  execution.buffers = {{.name = "x"}, {.name = "y@call1"}, {.name = "y"}, {.name = "z"}};
  execution.buffers[2].reuse = BufferReuse{.buffer = 1, .launch = 2};
  for (const std::uint32_t y : {1u, 1u, 2u, 2u}) {
    Launch launch;
    launch.entry = "k";
    launch.args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 0},
                   {.kind = Argument::Kind::kBuffer, .name = "y", .buffer = y}};
    execution.launches.push_back(launch);
  }
  return execution;
}

TEST(Reuse, JsonRoundTrip) {
  const Json json = ToJson(Reusing());
  EXPECT_FALSE(json["buffers"][1].contains("reuse"));
  const auto back = ExecutionFromJson(*ParseJson(CompactJson(json), "e"));
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->buffers[2].reuse, (BufferReuse{1, 2}));
}

TEST(Reuse, LivesThatDoNotFitTogetherAreRefused) {
  const auto refused = [](auto change) {
    Execution execution = Reusing();
    change(execution);
    const auto back = ExecutionFromJson(ToJson(execution));
    return !back && back.error().kind == ErrorKind::kMalformedInput;
  };
  EXPECT_FALSE(refused([](Execution&) {}));
  EXPECT_FALSE(refused([](Execution& e) {
    e.buffers[3].reuse = BufferReuse{2, 3};
    e.launches[3].args[1].buffer = 3;
  }));
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{2, 2}; }));    // itself
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{~0u, 2}; }));  // nobody
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{1, 4}; }));    // never
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{1, 0}; }));    // at once
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{1, 1}; }));  // too early
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{1, 3}; }));  // too late
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[2].reuse = BufferReuse{0, 2}; }));  // in use
  EXPECT_TRUE(refused([](Execution& e) { e.buffers[3].reuse = BufferReuse{1, 3}; }));  // twice
  EXPECT_TRUE(
      refused([](Execution& e) { e.buffers[3].reuse = BufferReuse{2, 2}; }));  // same moment
  Json json = ToJson(Reusing());
  json["buffers"][2]["reuse"] = 7;
  EXPECT_FALSE(ExecutionFromJson(json));
  json["buffers"][2]["reuse"] = {{"buffer", -1}, {"launch", 2}};
  EXPECT_FALSE(ExecutionFromJson(json));
  json["buffers"][2]["reuse"] = {{"buffer", 1}};
  EXPECT_FALSE(ExecutionFromJson(json));
}

TEST(Fresh, NamesBuffersThatLiveAndMayBeWritten) {
  Execution execution = Reusing();
  execution.buffers[1].fill = BufferFill::kUninitialised;
  execution.buffers[1].role = execution.buffers[2].role = BufferRole::kOutput;
  execution.launches[1].fresh = {1};
  execution.launches[3].fresh = {2};
  const Json json = ToJson(execution);
  EXPECT_FALSE(json["launches"][0].contains("fresh"));
  const auto back = ExecutionFromJson(json);
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(ToJson(*back), json);
  for (const std::uint32_t wrong : {0u, 1u, 4u, ~0u}) {  // an input, freed, nobody
    execution.launches[3].fresh = {wrong};
    EXPECT_FALSE(ExecutionFromJson(ToJson(execution))) << wrong;
  }
}

TEST(Report, JsonRoundTrip) {
  Report report;
  report.stop = Stop::kStepLimit;
  report.reason = "2 steps";
  report.findings.resize(1);
  report.findings[0].kind = FindingKind::kLivelock;
  report.counters.steps = 1ull << 60;
  report.counters.used_atomics = true;
  report.counters.may_meet = true;
  report.counters.strong_loads = true;
  report.counters.stale_reads = 3;
  report.launch_steps = {7, 1ull << 59};
  report.drawn = {{.word = {1, 4, 4}, .times = 7, .value = 1ull << 40}};
  report.stale_reads.resize(1);
  report.stale_reads[0].kind = FindingKind::kStaleRead;
  report.order = {.sums = report.findings,
                  .contests = report.findings,
                  .pairs = 9,
                  .orders = {{0, 1, 2, 3, 4}},
                  .held = true};
  report.coverage = {{.ptx_line = 3, .file = "kernel.cu", .line = 2, .column = 9, .sides = 3},
                     {.ptx_line = 5, .file = "", .line = 0, .column = 0, .sides = 1},
                     {.ptx_line = 7, .file = "kernel.cu", .line = 4, .column = 1, .sides = 6}};
  report.origin = ErrorOrigin{.shares = {{.site = {.file = "kernel.cu", .line = 2}, .share = 0.25}},
                              .exact = {1.5, std::nan("")},
                              .flipped = 3,
                              .lost = 1};
  report.unwritten_bytes = {0, 12};
  report.first_unwritten = {-1, 3};
  const Json json = ToJson(report);
  const auto back = ReportFromJson(*ParseJson(CompactJson(json), "r"));
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->coverage[2].file, "kernel.cu");
  EXPECT_EQ(back->coverage[2].line, 4u);
  EXPECT_EQ(back->coverage[1].file, "");
  Json broken = json;
  broken["stop"] = "somehow";
  EXPECT_FALSE(ReportFromJson(broken));
  broken = json;
  broken["coverage"]["branches"].push_back(3);
  EXPECT_FALSE(ReportFromJson(broken));
  broken = json;
  broken["coverage"]["branches"][4] = 9;
  EXPECT_FALSE(ReportFromJson(broken));
  broken = json;
  broken["coverage"]["branches"][0] = -1;
  EXPECT_FALSE(ReportFromJson(broken));
  broken = json;
  broken["coverage"]["files"].erase(0);
  EXPECT_FALSE(ReportFromJson(broken));
}

}  // namespace
}  // namespace assay
