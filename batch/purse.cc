#include "batch/purse.h"

#include <fmt/format.h>

namespace assay::batch {

Purse::Purse(loop::Budget budget, loop::PriceTable prices, std::chrono::milliseconds earlier,
             Clock& clock)
    : budget_(std::move(budget)),
      prices_(std::move(prices)),
      earlier_(earlier),
      clock_(clock),
      began_(clock.Now()) {}

std::optional<double> Purse::CostOf(const std::string& model, const runs::Usage& usage) const {
  const std::optional<loop::Price> price = loop::PriceOf(prices_, model);
  return price ? std::optional(loop::CostOf(usage, *price)) : std::nullopt;
}

void Purse::Spent(const std::string& instance, const std::string& model, const runs::Usage& usage) {
  const Total now{CostOf(model, usage).value_or(0), usage.input_tokens + usage.output_tokens};
  const std::lock_guard lock(mutex_);
  Total& before = spent_[instance];
  total_.usd += now.usd - before.usd;
  total_.tokens += now.tokens - before.tokens;  // unsigned arithmetic: differences come out right
  before = now;
}

Purse::Total Purse::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::optional<std::string> Purse::Exceeded() const {
  const Total spent = total();
  if (budget_.tokens > 0 && spent.tokens >= budget_.tokens) {
    return fmt::format("the batch's limit of {} tokens is reached ({} used)", budget_.tokens,
                       spent.tokens);
  }
  if (budget_.usd > 0 && spent.usd >= budget_.usd) {
    return fmt::format("the batch's limit of ${:.4g} is reached (${:.4g} spent)", budget_.usd,
                       spent.usd);
  }
  const auto time =
      earlier_ + std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - began_);
  if (budget_.seconds > 0 && time >= std::chrono::seconds(budget_.seconds))
    return fmt::format("the batch's limit of {} s is reached", budget_.seconds);
  return std::nullopt;
}

}  // namespace assay::batch
