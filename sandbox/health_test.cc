#include "sandbox/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::sandbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FakeWorkers Replying(Reply reply) {
  auto shared = std::make_shared<Reply>(std::move(reply));
  return FakeWorkers(
      [shared](WorkerKind, const Request& request, std::chrono::milliseconds) -> Result<Reply> {
        EXPECT_EQ(request.header, (Json{{"action", "probe"}}));
        return std::move(*shared);
      });
}

FakeWorkers Replying(Json header) {
  Reply reply;
  reply.message.header = std::move(header);
  return Replying(std::move(reply));
}

const Json kGood{{"nvrtc", "13.0"},
                 {"library", "/cuda/lib/libnvrtc.so.13"},
                 {"includes", {"/cuda/include"}},
                 {"architectures", {75, 90}}};

TEST(ProbeCompiler, ReadsTheAnswer) {
  FakeWorkers workers = Replying(kGood);
  const auto health = ProbeCompiler(workers);
  ASSERT_TRUE(health) << ToString(health.error());
  EXPECT_EQ(health->nvrtc, "13.0");
  EXPECT_THAT(health->includes, ElementsAre("/cuda/include"));
  EXPECT_THAT(health->architectures, ElementsAre(75, 90));
}

TEST(ProbeCompiler, AMalformedAnswerIsAnError) {
  for (const char* key : {"nvrtc", "library", "includes", "architectures"}) {
    Json wrong = kGood;
    wrong[key] = Json{{"a", 1}};
    FakeWorkers workers = Replying(wrong);
    EXPECT_FALSE(ProbeCompiler(workers)) << key;
    wrong.erase(key);
    FakeWorkers missing = Replying(wrong);
    EXPECT_FALSE(ProbeCompiler(missing)) << key;
  }
}

TEST(ProbeCompiler, ADeadWorkerIsAnErrorThatSaysHowItDied) {
  Reply reply;
  reply.outcome = CallOutcome::kCrashed;
  reply.detail = "killed by signal 11";
  FakeWorkers workers = Replying(std::move(reply));
  const auto health = ProbeCompiler(workers);
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(health.error().message, HasSubstr("signal 11"));
}

}  // namespace
}  // namespace assay::sandbox
