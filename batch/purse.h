// What a batch as a whole may cost: money, tokens, time, over all instances and all processes that
// worked on it. Each instance tells what it has spent; who asks whether the limit is reached gets the
// same answer in every thread.
//
// Limits of single instances are their runs' own (agent/loop/budget.h).
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "agent/loop/budget.h"
#include "base/clock.h"

namespace assay::batch {

class Purse {
 public:
  /// `earlier`: time that ended processes spent. `clock` must outlive it.
  Purse(loop::Budget budget, loop::PriceTable prices, std::chrono::milliseconds earlier,
        Clock& clock);

  /// What `instance` has spent in all, lost tries included; `usage` replaces what was told before.
  void Spent(const std::string& instance, const std::string& model, const runs::Usage& usage);
  /// Why nothing more may be begun, or nothing.
  std::optional<std::string> Exceeded() const;

  struct Total {
    double usd = 0;
    std::uint64_t tokens = 0;
  };
  Total total() const;
  const loop::Budget& budget() const { return budget_; }
  /// Dollars for `usage`, where a price is known.
  std::optional<double> CostOf(const std::string& model, const runs::Usage& usage) const;

 private:
  const loop::Budget budget_;
  const loop::PriceTable prices_;
  const std::chrono::milliseconds earlier_;
  Clock& clock_;
  const std::chrono::steady_clock::time_point began_;
  mutable std::mutex mutex_;
  std::map<std::string, Total> spent_;
  Total total_;
};

}  // namespace assay::batch
