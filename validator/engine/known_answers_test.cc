#include "validator/engine/known_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "validator/emu/emulator.h"

namespace assay::engine {
namespace {

using ::testing::HasSubstr;

// The emulator without a worker, and what a test does to its answers.
class Emulator final : public Engine {
 public:
  using Tamper = std::function<void(const Execution&, std::span<SharedMemory* const>, Report&)>;
  explicit Emulator(Tamper tamper = {}) : tamper_(std::move(tamper)) {}
  std::string_view name() const override { return "emulator"; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     Trust) override {
    ASSAY_TRY(const auto program, emu::Program::Load(execution.ptx));
    std::vector<std::span<std::byte>> bytes;
    for (SharedMemory* const buffer : buffers) bytes.push_back(buffer->bytes());
    Report report = emu::Run(*program, execution, bytes);
    if (tamper_) tamper_(execution, buffers, report);
    return report;
  }

 private:
  Tamper tamper_;
};

TEST(KnownAnswersTest, TheEmulatorKnowsThem) {
  Emulator emulator;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Status status = CheckKnownAnswers(emulator, seed);
    EXPECT_TRUE(status) << ToString(status.error());
  }
}

TEST(KnownAnswersTest, WhoeverFindsNothingIsNotBelieved) {
  Emulator silent([](const Execution&, std::span<SharedMemory* const>, Report& report) {
    report.findings.clear();
    report.stop = Stop::kCompleted;
    report.unwritten_bytes = {0, 0};
  });
  const Status status = CheckKnownAnswers(silent, 1);
  ASSERT_FALSE(status);
  EXPECT_THAT(ToString(status.error()), HasSubstr("found nothing"));
}

TEST(KnownAnswersTest, NorIsWhoeverFindsAlwaysTheSame) {
  Emulator accusing([](const Execution&, std::span<SharedMemory* const>, Report& report) {
    Finding finding;
    finding.kind = FindingKind::kOutOfBounds;
    finding.message = "out of bounds";
    report.findings = {finding};
  });
  EXPECT_FALSE(CheckKnownAnswers(accusing, 1));
}

TEST(KnownAnswersTest, NorIsWhoeverComputesWrongly) {
  Emulator wrong([](const Execution&, std::span<SharedMemory* const> buffers, Report&) {
    buffers[1]->bytes()[7] ^= std::byte{1};
  });
  const Status status = CheckKnownAnswers(wrong, 1);
  ASSERT_FALSE(status);
  EXPECT_THAT(ToString(status.error()), HasSubstr("a result is wrong"));
}

}  // namespace
}  // namespace assay::engine
