#include "validator/campaign/clears.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::campaign {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// reset(come) stores and count(come) adds, over workspace that holds nothing at first; somebody counted in what was not stored.
struct Given {
  ops::ResolvedPlan plan;
  Execution execution;
  facts::Facts program;
  Report report;

  Given() {
    plan.workspace = {{.name = "come", .dtype = DType::kU32, .elements = 8, .zero = false}};
    execution.buffers = {{.name = "come",
                          .dtype = DType::kU32,
                          .elements = 8,
                          .role = BufferRole::kWorkspace,
                          .fill = BufferFill::kUninitialised}};
    for (const char* const entry : {"reset", "count"}) {
      Launch& launch = execution.launches.emplace_back();
      launch.entry = entry;
      launch.args.resize(1);
      launch.args[0].kind = Argument::Kind::kBuffer;
      launch.args[0].buffer = 0;
    }
    Use("st", "reset#0");
    Use("atom", "count#0");
    report.watched = Checks{};
    Found("come");
  }
  void Use(const std::string& opcode, const std::string& origin) {
    facts::MemoryUse& use = program.memory.emplace_back();
    use.opcode = opcode;
    use.space = "global";
    use.writes = true;
    use.origins = {origin};
  }
  /// What is used undefined came from there; empty: from nowhere that is known.
  void Found(const std::string& buffer) {
    Finding& finding = report.findings.emplace_back();
    finding.kind = FindingKind::kUninitialisedUse;
    if (buffer.empty()) return;
    finding.memory.emplace();
    finding.memory->buffer = buffer;
  }
  std::vector<Finding> Left() const { return LeftUncleared(report, execution, plan, &program); }
};

TEST(Clears, WhoCountsInWhatNobodyStoredIsFound) { EXPECT_THAT(Given().Left(), SizeIs(1)); }

TEST(Clears, NotWhereItIsNotKnownWhatWasStored) {
  Given given;
  given.Found("");
  EXPECT_THAT(given.Left(), IsEmpty());
}

TEST(Clears, NotInWhatTheOpOverwritesOrStartsAsZeros) {
  Given overwritten;
  overwritten.plan.workspace.clear();
  EXPECT_THAT(overwritten.Left(), IsEmpty());
  Given zeros;
  zeros.plan.workspace[0].zero = true;
  EXPECT_THAT(zeros.Left(), IsEmpty());
}

TEST(Clears, NotWhereOthersStoreOrTheFirstReads) {
  Given stored;
  stored.Use("st", "count#0");
  EXPECT_THAT(stored.Left(), IsEmpty());
  Given read;
  read.Use("ld", "reset#0");
  EXPECT_THAT(read.Left(), IsEmpty());
  Given anywhere;
  anywhere.Use("st", "unknown");
  EXPECT_THAT(anywhere.Left(), IsEmpty());
}

}  // namespace
}  // namespace assay::campaign
