// A run as a page shows it: what its events say, with what follows from several of them: how long each attempt took, what its
// reply holds, what it is compared with.
//
// Read from events.jsonl alone, without the lock: of a run that goes on, as far as it has come. The folder may come from anybody;
// links in it, other damage and logs too large to show are errors with a cure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "runs/state.h"

namespace assay::report {

/// What tokens cost at a model ("openai/gpt-5"); nothing where no price is known.
using Price = std::function<std::optional<double>(const std::string& model, const runs::Usage&)>;

struct AttemptView {
  int number = 0;
  std::string why;                            ///< "first", "repair of attempt 2", ...
  int base = 0;                               ///< The attempt that it is compared with; 0: none.
  std::optional<std::string> kernel, launch;  ///< Where the reply holds a candidate.
  std::optional<double> waited, judged;       ///< Seconds: for the reply, for the verdict.
  runs::Usage usage;
  std::optional<verdict::Verdict> verdict;
  std::string vetted;  ///< Where its kernel was emitted, below the run's folder.
  std::string
      state;  ///< "accepted", "refuted", ..., or "asked", "answered" where it is not judged.
};

struct RunView {
  std::string name;  ///< Of the folder.
  std::string instance, op, arch, model;
  std::string started, ended;  ///< Stamps of the first event and the last.
  Json request;
  std::string prompts_digest;
  std::vector<AttemptView> attempts;
  runs::Usage answered, lost;
  double seconds = 0;  ///< Of all processes that worked on it.
  std::optional<runs::RunStopped> stopped;
  std::optional<std::size_t>
      result;  ///< Index of the attempt that counts: the accepted one, or the last judged.
  std::optional<double> usd;

  const AttemptView* Find(int number) const;
};

inline constexpr std::uintmax_t kLargestLog = 512u << 20;

Result<RunView> ReadRunView(const Path& folder, const Price& price);

/// "race", "precision": the gate that refuted, or that could not tell; empty where there is none.
std::string EndingGate(const verdict::Verdict& verdict);

}  // namespace assay::report
