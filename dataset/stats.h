// What a corpus says about models, ops and findings. Pure functions of its rows.
//
//   attempts to acceptance   how many judged attempts a run made up to its first accepted one
//   told                     a finding was followed by an attempt of the same line (its child)
//   cured                    ... which no longer has a finding of that gate and kind
//   accepted next            ... which was accepted
//   accepted later           ... or one of its descendants was
#pragma once

#include "dataset/corpus.h"

namespace assay::dataset {

struct Tally {
  std::uint64_t attempts = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refuted = 0;
  std::uint64_t inconclusive = 0;  ///< And those on which the judge failed.
  std::uint64_t runs = 0;
  std::uint64_t runs_accepted = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  double judge_seconds = 0;
  std::uint64_t attempts_of_accepted_runs = 0;  ///< Up to the first accepted one, added.
};

/// What became of a kind of finding when it was fed back.
struct Lesson {
  std::string gate;
  std::string kind;
  std::uint64_t attempts = 0;  ///< Attempts that have it as their first finding.
  std::uint64_t distinct = 0;  ///< Without duplicates.
  std::uint64_t told = 0;
  std::uint64_t cured = 0;
  std::uint64_t accepted_next = 0;
  std::uint64_t accepted_later = 0;
};

struct Stats {
  std::uint64_t runs = 0;
  std::uint64_t attempts = 0;
  std::uint64_t distinct = 0;
  std::uint64_t kernels = 0;  ///< Different normalised sources.
  std::uint64_t findings = 0;
  std::map<std::string, Tally> models;
  std::map<std::string, Tally> ops;
  std::map<std::string, std::uint64_t> licences;  ///< Attempts by licence.
  std::vector<Lesson> lessons;                    ///< Most frequent first.
  std::map<int, std::uint64_t> to_acceptance;     ///< Runs by attempts to acceptance.
  std::uint64_t never_accepted = 0;
};

Stats StatsOf(const std::vector<AttemptRow>& attempts,
              const std::map<std::int64_t, std::vector<FindingRow>>& findings);
Json ToJson(const Stats& stats);
/// Tables for people.
std::string Render(const Stats& stats);

}  // namespace assay::dataset
