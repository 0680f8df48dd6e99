// What a run may cost, and what it has cost: tokens, money, time.
//
// Prices are a table of models (assay.prices/1): dollars for a million tokens. A limit in dollars
// needs a price; without one the request is refused rather than run unlimited. Tokens of requests
// under way count from the moment they are seen, so that a limit holds while replies still stream.
//
//   {"schema": "assay.prices/1", "as_of": "2025-09", "models": {"openai/gpt-5": {"input": 1.25,
//   "cached_input": 0.125, "output": 10}}}
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/loop/generate.h"
#include "runs/state.h"

namespace assay::loop {

/// Dollars for a million tokens.
struct Price {
  double input = 0;
  double cached_input = 0;
  double output = 0;
};
using PriceTable = std::map<std::string, Price, std::less<>>;

Result<PriceTable> ParsePrices(std::string_view text, const std::string& file);
/// The built-in table, overridden row by row by `file` where given.
Result<PriceTable> LoadPrices(const Path& file);
/// The row whose name is the longest prefix of `model` ("openai/gpt-5" prices
/// "openai/gpt-5-2025-08-07"). exec/ and replay/ are free.
std::optional<Price> PriceOf(const PriceTable& prices, std::string_view model);

double CostOf(const runs::Usage& usage, const Price& price);

/// Watches a run's limits.
class Meter {
 public:
  /// Fails where dollars are limited and the model has no price.
  static Result<Meter> Make(const Budget& budget, const std::string& model);

  struct Limit {
    std::string why;
    bool time = false;  ///< It was the limit of time.
  };
  /// Why the run must stop now, or nothing. `in_flight`: estimated tokens of requests under way.
  std::optional<Limit> Exceeded(const runs::RunState& state, const runs::Usage& in_flight,
                                std::uint64_t session_seconds) const;
  /// Dollars so far, where prices are known.
  std::optional<double> Spent(const runs::RunState& state) const;

 private:
  Meter(Budget budget, std::optional<Price> price) : budget_(std::move(budget)), price_(price) {}

  Budget budget_;
  std::optional<Price> price_;
};

}  // namespace assay::loop
