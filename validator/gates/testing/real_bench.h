// Everything that judges, for tests of real candidates: jailed compiler, emulator, oracle and the
// shipped ops. One for a test program, so that workers stay warm and truths are shared.
//
//   class WordsTest : public RealBenchTest<testing::TestWithParam<std::string>> {};
//   TEST_P(WordsTest, SaysWhatIsWrong) { ... Gatekeeper(bench_->tools(), options) ... }
//
// A machine that cannot judge (no jail, no assay-worker) fails the tests: skipped, they would read
// as passed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "ops/op.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"
#include "validator/oracle/oracle.h"
#include "validator/verdict/render.h"

namespace assay::gates {

struct RealBench {
  std::string fault;  ///< Why nothing can be judged here; empty: everything is set.
  std::unique_ptr<engine::Toolbox> toolbox;
  std::unique_ptr<oracle::Oracle> oracle;
  SystemClock clock;
  ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops"}};

  static std::unique_ptr<RealBench> Make() {
    auto bench = std::make_unique<RealBench>();
    auto toolbox = engine::Toolbox::Create({});
    if (!toolbox) {
      bench->fault = ToString(toolbox.error());
      return bench;
    }
    bench->toolbox = *std::move(toolbox);
    bench->oracle =
        std::make_unique<oracle::Oracle>(bench->toolbox->compiler(), bench->toolbox->emulator());
    return bench;
  }
  Tools tools() { return {toolbox->compiler(), toolbox->emulator(), *oracle, clock, {}}; }
};

/// A test of real candidates. The bench lives as long as its suite.
template <class Base = testing::Test>
class RealBenchTest : public Base {
 protected:
  static void SetUpTestSuite() { bench_ = RealBench::Make(); }
  static void TearDownTestSuite() { bench_ = nullptr; }
  void SetUp() override { ASSERT_EQ(bench_->fault, ""); }

  /// What expect.json says was written: the op, and its binding.
  static ops::Instance InstanceOf(const Json& about) {
    return ops::MakeInstance(bench_->library.Find(about.at("op").get<std::string>()).value(),
                             about.at("dtypes").get<std::map<std::string, std::string>>(), "sm_90")
        .value();
  }

  /// What is known of a candidate holds of its judgement: how it comes out (`what` says why), that
  /// nothing was left out of the ledger, that a right one is vetted, and that each counterexample
  /// shows its finding again by itself.
  static void ExpectOutcome(Gatekeeper& gatekeeper, const ops::Instance& instance,
                            const Judgement& judgement, const std::string& outcome,
                            const std::string& what) {
    const std::string text = what + "\n" + RenderVerdict(judgement.verdict);
    ASSERT_EQ(std::string(Name(judgement.verdict.outcome)), outcome) << text;
    EXPECT_TRUE(judgement.verdict.ledger.Balanced()) << text;
    EXPECT_EQ(judgement.vetted.has_value(),
              judgement.verdict.outcome == verdict::Outcome::kAccepted);
    if (judgement.verdict.outcome != verdict::Outcome::kRefuted) return;
    const auto all = judgement.verdict.Counterexamples();
    ASSERT_FALSE(all.empty()) << text;
    for (const verdict::Counterexample* const each : all) {
      const auto again = gatekeeper.Replay(instance, *each);
      ASSERT_TRUE(again) << ToString(again.error());
      ASSERT_FALSE(again->findings.empty()) << text;
      EXPECT_EQ(again->findings.front().kind, each->findings.front().kind) << text;
    }
  }

  static inline std::unique_ptr<RealBench> bench_;
};

inline verdict::Candidate CandidateIn(const Path& folder) {
  return {ReadFile(folder / "kernel.cu").value(), ReadFile(folder / "launch.json").value()};
}

/// The folders below a corpus's root that have an expect.json, as paths from there, in order.
inline std::vector<std::string> FoldersBelow(const Path& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() == "expect.json")
      names.push_back(std::filesystem::relative(entry.path().parent_path(), root).string());
  }
  std::ranges::sort(names);
  return names;
}

/// Such a folder as the name of a test.
inline std::string NameOfFolder(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '/', '_');
  return name;
}

}  // namespace assay::gates
