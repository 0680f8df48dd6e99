#include "dataset/stats.h"

#include <gtest/gtest.h>

namespace assay::dataset {
namespace {

// Attempts of one run from "outcome gate/kind" words; each follows the one before it.
struct World {
  std::vector<AttemptRow> attempts;
  std::map<std::int64_t, std::vector<FindingRow>> findings;

  void Run(std::int64_t run, const std::vector<std::string>& words, const char* kind = "run") {
    int number = 0;
    for (const std::string& word : words) {
      AttemptRow row;
      row.id = static_cast<std::int64_t>(attempts.size()) + 1;
      row.run = run;
      row.run_kind = kind;
      row.number = ++number;
      row.parent = number - 1;
      row.model = "m";
      row.target.op = "softmax";
      row.licence = "unknown";
      row.first = true;
      row.outcome = word == "ok" ? "accepted" : "refuted";
      if (word != "ok")
        findings[row.id].push_back({.attempt = row.id, .gate = "race", .kind = word});
      attempts.push_back(row);
    }
  }
  Stats Make() const { return StatsOf(attempts, findings); }
};

const Lesson& Of(const Stats& stats, const std::string& kind) {
  return *std::ranges::find(stats.lessons, kind, &Lesson::kind);
}

TEST(Stats, CountAttemptsToAcceptanceAndWhatFeedbackCured) {
  World world;
  world.Run(1, {"data_race", "data_race", "deadlock", "ok"});
  world.Run(2, {"deadlock", "data_race"});
  world.Run(3, {"ok", "deadlock", "ok"});
  const Stats stats = world.Make();
  EXPECT_EQ(stats.runs, 3u);
  EXPECT_EQ(stats.to_acceptance, (std::map<int, std::uint64_t>{{1, 1}, {4, 1}}));
  EXPECT_EQ(stats.never_accepted, 1u);
  const Lesson race = Of(stats, "data_race");
  EXPECT_EQ(race.attempts, 3u);
  EXPECT_EQ(race.told, 2u);
  EXPECT_EQ(race.cured, 1u);  // the second time it was told
  EXPECT_EQ(race.accepted_next, 0u);
  EXPECT_EQ(race.accepted_later, 2u);  // both lead to the accepted one
  const Lesson lock = Of(stats, "deadlock");
  EXPECT_EQ(lock.told, 3u);
  EXPECT_EQ(lock.cured, 3u);
  EXPECT_EQ(lock.accepted_next, 2u);
  EXPECT_EQ(lock.accepted_later, 2u);
  EXPECT_EQ(stats.models.at("m").runs_accepted, 2u);
  EXPECT_EQ(stats.models.at("m").attempts_of_accepted_runs, 5u);
}

TEST(Stats, CandidatesOfTrainersAreNoRuns) {
  World world;
  world.Run(1, {"ok"}, "rewards");
  const Stats stats = world.Make();
  EXPECT_EQ(stats.attempts, 1u);
  EXPECT_TRUE(stats.to_acceptance.empty());
  EXPECT_EQ(stats.models.at("m").runs, 0u);
  EXPECT_NE(Render(stats).find("softmax"), std::string::npos);
  EXPECT_EQ(ToJson(stats)["ops"]["softmax"]["accepted"], 1);
}

}  // namespace
}  // namespace assay::dataset
