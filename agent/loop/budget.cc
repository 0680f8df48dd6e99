#include "agent/loop/budget.h"

#include <fmt/format.h>

#include <cmath>

namespace assay::loop {
namespace {

// List prices of the providers, dollars for a million tokens. They change; --prices FILE overrides
// them.
constexpr std::string_view kBuiltIn = R"({
  "schema": "assay.prices/1",
  "as_of": "2025-09",
  "models": {
    "openai/gpt-5":            {"input": 1.25, "cached_input": 0.125, "output": 10},
    "openai/gpt-5-mini":       {"input": 0.25, "cached_input": 0.025, "output": 2},
    "openai/gpt-5-nano":       {"input": 0.05, "cached_input": 0.005, "output": 0.4},
    "openai/gpt-4.1":          {"input": 2,    "cached_input": 0.5,   "output": 8},
    "openai/gpt-4.1-mini":     {"input": 0.4,  "cached_input": 0.1,   "output": 1.6},
    "openai/gpt-4o":           {"input": 2.5,  "cached_input": 1.25,  "output": 10},
    "openai/o3":               {"input": 2,    "cached_input": 0.5,   "output": 8},
    "openai/o4-mini":          {"input": 1.1,  "cached_input": 0.275, "output": 4.4},
    "anthropic/claude-opus-4":   {"input": 15, "cached_input": 1.5,   "output": 75},
    "anthropic/claude-sonnet-4": {"input": 3,  "cached_input": 0.3,   "output": 15},
    "anthropic/claude-3-7-sonnet": {"input": 3, "cached_input": 0.3,  "output": 15},
    "anthropic/claude-3-5-haiku": {"input": 0.8, "cached_input": 0.08, "output": 4}
  }
})";

Result<Price> PriceFromJson(const Json& json, std::string place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, std::move(place)));
  Price price;
  ASSAY_TRY(price.input, reader.Required<double>("input"));
  ASSAY_TRY(price.output, reader.Required<double>("output"));
  ASSAY_TRY(price.cached_input, reader.Optional<double>("cached_input", price.input));
  for (const double value : {price.input, price.output, price.cached_input}) {
    if (!std::isfinite(value) || value < 0) {
      return Fail(ErrorKind::kMalformedInput, "a price must be at least 0",
                  reader.PlaceOf("input"));
    }
  }
  ASSAY_TRY_VOID(reader.Finish());
  return price;
}

}  // namespace

Result<PriceTable> ParsePrices(std::string_view text, const std::string& file) {
  ASSAY_TRY(const Json document, ParseJson(text, file));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(document, file));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != "assay.prices/1") {
    return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'",
                reader.PlaceOf("schema"), "this version reads assay.prices/1");
  }
  reader.Ignore("as_of");
  ASSAY_TRY(const Json models, reader.Required<Json>("models"));
  ASSAY_TRY_VOID(reader.Finish());
  if (!models.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object", reader.PlaceOf("models"));
  PriceTable prices;
  for (const auto& [model, json] : models.items()) {
    ASSAY_TRY(prices[model], PriceFromJson(json, reader.PlaceOf("models") + "/" + model));
  }
  return prices;
}

Result<PriceTable> LoadPrices(const Path& file) {
  ASSAY_TRY(PriceTable prices, ParsePrices(kBuiltIn, "built-in prices"));
  if (file.empty()) return prices;
  ASSAY_TRY(const std::string text, ReadFile(file, 4u << 20));
  ASSAY_TRY(const PriceTable own, ParsePrices(text, file.string()));
  for (const auto& [model, price] : own) prices[model] = price;
  return prices;
}

std::optional<Price> PriceOf(const PriceTable& prices, std::string_view model) {
  if (model.starts_with("exec/") || model.starts_with("replay/")) return Price{};
  std::optional<Price> best;
  std::size_t longest = 0;
  for (const auto& [name, price] : prices) {
    if (!model.starts_with(name) || name.size() < longest) continue;
    longest = name.size();
    best = price;
  }
  return best;
}

double CostOf(const runs::Usage& usage, const Price& price) {
  const std::uint64_t cached = std::min(usage.cached_input_tokens, usage.input_tokens);
  return (static_cast<double>(usage.input_tokens - cached) * price.input +
          static_cast<double>(cached) * price.cached_input +
          static_cast<double>(usage.output_tokens) * price.output) /
         1e6;
}

Result<Meter> Meter::Make(const Budget& budget, const std::string& model) {
  ASSAY_TRY(const PriceTable prices, LoadPrices(budget.prices));
  const std::optional<Price> price = PriceOf(prices, model);
  if (budget.usd > 0 && !price) {
    return Fail(ErrorKind::kUsage,
                "no price is known for " + model + ", so a limit in dollars cannot be kept",
                "--budget-usd",
                "give its price with --prices FILE, or limit tokens with --budget-tokens");
  }
  return Meter(budget, price);
}

std::optional<double> Meter::Spent(const runs::RunState& state) const {
  if (!price_) return std::nullopt;
  return CostOf(state.answered, *price_) + CostOf(state.lost, *price_);
}

std::optional<Meter::Limit> Meter::Exceeded(const runs::RunState& state,
                                            const runs::Usage& in_flight,
                                            std::uint64_t session_seconds) const {
  runs::Usage total = state.answered;
  total += state.lost;
  total += in_flight;
  const std::uint64_t tokens = total.input_tokens + total.output_tokens;
  if (budget_.tokens > 0 && tokens >= budget_.tokens) {
    return Limit{fmt::format("the limit of {} tokens (--budget-tokens) is reached ({} used)",
                             budget_.tokens, tokens)};
  }
  if (budget_.usd > 0 && price_) {
    const double usd = CostOf(total, *price_);
    if (usd >= budget_.usd)
      return Limit{fmt::format("the limit of ${:.4g} (--budget-usd) is reached (${:.4g} spent)",
                               budget_.usd, usd)};
  }
  const std::uint64_t seconds = state.earlier_milliseconds / 1000 + session_seconds;
  if (budget_.seconds > 0 && seconds >= budget_.seconds) {
    return Limit{fmt::format("the limit of {} s (--budget-seconds) is reached", budget_.seconds),
                 true};
  }
  return std::nullopt;
}

}  // namespace assay::loop
