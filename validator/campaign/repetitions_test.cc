#include "validator/campaign/repetitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "validator/campaign/effort.h"
#include "validator/campaign/testing/fakes.h"

namespace assay::campaign {
namespace {

using Before = Repetition::Before;

cases::Case CaseOf(std::int64_t n, std::uint64_t seed) {
  return {.axes = {{"n", n}}, .seed = seed, .profiles = {}, .origin = "edge"};
}

TEST(RepetitionsTest, HalfOfTheRowsIsReachedAtQuickEffortAndAllAtStandard) {
  EXPECT_GE(3 * RowOf(Effort::kQuick).schedules, Repetitions().size() / 2);
  EXPECT_GE(3 * RowOf(Effort::kStandard).schedules, Repetitions().size());
}

TEST(RepetitionsTest, ThePastIsWhatTheRowSays) {
  const ops::Instance instance = DoubleInstance();
  const cases::Case judged = CaseOf(9, 3);
  const cases::Case other = CaseOf(5, 4);
  for (const Repetition& row : Repetitions()) {
    Rng rng(1);
    const cases::Probe probe = ProbeAfter(instance, row, judged, other, rng);
    EXPECT_EQ(probe.prelude.size(), row.calls);
    EXPECT_EQ(probe.reuse_addresses, row.same_addresses);
    EXPECT_EQ(probe.case_.axes, judged.axes);
    const cases::Case& before = probe.prelude.front();
    EXPECT_EQ(before == probe.case_, row.before == Before::kSame);
    EXPECT_EQ(before == other, row.before == Before::kOtherShape);
    EXPECT_EQ(before.axes == judged.axes, row.before != Before::kOtherShape);
  }
}

TEST(RepetitionsTest, SomeValuesAreTheFirstHalfTheLastHalfOrAllButOne) {
  const ops::Instance instance = DoubleInstance();
  const Repetition row{.before = Before::kSomeValues, .calls = 1};
  Rng rng(1);
  std::set<std::pair<std::size_t, std::size_t>> runs;  // first changed, how many
  for (int i = 0; i < 64; ++i) {
    const cases::Probe probe = ProbeAfter(instance, row, CaseOf(9, 3), CaseOf(5, 4), rng);
    const auto& now = probe.case_.profiles.at("x").literal;
    const auto& before = probe.prelude.at(0).profiles.at("x").literal;
    ASSERT_EQ(now.size(), before.size());
    std::size_t first = now.size();
    std::size_t count = 0;
    for (std::size_t at = now.size(); at-- > 0;) {
      if (now[at] == before[at]) continue;
      first = at;
      ++count;
    }
    runs.insert({first, count});
  }
  EXPECT_TRUE(runs.contains({0, 5}));
  EXPECT_TRUE(runs.contains({5, 4}));
  EXPECT_GE(std::ranges::count(runs, 1u, &std::pair<std::size_t, std::size_t>::second), 5);
  EXPECT_TRUE(std::ranges::all_of(runs, [](const auto& run) { return run.second > 0; }));
}

}  // namespace
}  // namespace assay::campaign
