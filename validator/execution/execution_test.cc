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
  launch.args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 1},
                 {.kind = Argument::Kind::kScalar,
                  .name = "n",
                  .bytes = {1, 2, 3, 255},
                  .dtype = DType::kI32}};
  execution.launches = {launch};
  execution.checks.coverage = true;
  execution.schedule = {.policy = Schedule::Policy::kPriorities, .seed = ~0ull};
  execution.limits.max_steps = 99;
  execution.perturbation_seed = 5;
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
  json = ToJson(Sample());
  json["surprise"] = 1;
  EXPECT_FALSE(ExecutionFromJson(json));
  EXPECT_FALSE(ExecutionFromJson(Json::array()));
}

TEST(Report, JsonRoundTrip) {
  Report report;
  report.stop = Stop::kStepLimit;
  report.reason = "2 steps";
  report.findings.resize(1);
  report.findings[0].kind = FindingKind::kLivelock;
  report.counters.steps = 1ull << 60;
  report.counters.used_atomics = true;
  report.coverage = {{.ptx_line = 3, .site = {.file = "kernel.cu", .line = 2}, .sides = 3}};
  report.origin = ErrorOrigin{
      .shares = {{.site = {.file = "kernel.cu", .line = 2}, .share = 0.25}},
      .exact = {1.5, std::nan("")},
      .flipped = 3,
      .lost = 1};
  report.unwritten_bytes = {0, 12};
  report.first_unwritten = {-1, 3};
  const Json json = ToJson(report);
  const auto back = ReportFromJson(*ParseJson(CompactJson(json), "r"));
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(ToJson(*back), json);
  Json broken = json;
  broken["stop"] = "somehow";
  EXPECT_FALSE(ReportFromJson(broken));
}

}  // namespace
}  // namespace assay
