#include "validator/emu/shadow/ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/dtype.h"

namespace assay::emu {
namespace {

constexpr std::size_t kFirstCollection = std::size_t{1} << 18;
/// An overflow whose trace is smaller than this share of the value has healed.
constexpr double kHealed = 0x1p-20;

}  // namespace

std::size_t BytesOf(NumberFormat format) {
  constexpr std::size_t kBytes[] = {0, 2, 2, 4, 8};
  return kBytes[static_cast<std::size_t>(format)];
}

double ToDouble(NumberFormat format, std::uint64_t bits) {
  switch (format) {
    case NumberFormat::kF16:
      return static_cast<double>(F16ToFloat(static_cast<std::uint16_t>(bits)));
    case NumberFormat::kBF16:
      return static_cast<double>(Bf16ToFloat(static_cast<std::uint16_t>(bits)));
    case NumberFormat::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case NumberFormat::kF64:
      return std::bit_cast<double>(bits);
    case NumberFormat::kNone:
      break;
  }
  return 0;
}

Ledger::Ledger(std::uint64_t max_bytes)
    : max_bytes_(max_bytes), values_(1), next_collection_(kFirstCollection) {}

void Ledger::Begin() {
  for (const SiteId site : touched_) {
    sums_[site] = 0;
    in_[site] = 0;
  }
  touched_.clear();
  overflowed_ = false;
}

void Ledger::Charge(SiteId site, double error) {
  if (error == 0) return;
  if (!std::isfinite(error)) {
    if (!overflowed_) overflow_site_ = site;
    overflowed_ = true;
    return;
  }
  if (site >= sums_.size()) {
    sums_.resize(site + 1);
    in_.resize(site + 1);
  }
  if (in_[site] == 0) touched_.push_back(site);
  in_[site] = 1;
  sums_[site] += error;
}

void Ledger::AddScaled(ValueId id, double derivative) {
  if (id == kExact || derivative == 0) return;
  const ShadowValue& value = values_[id];
  for (std::uint32_t i = 0; i < value.count; ++i) {
    const Contribution& part = contributions_[value.first + i];
    // What overflowed stays the reason, whatever it is multiplied with.
    Charge(part.site, std::isfinite(part.error) ? part.error * derivative : part.error);
  }
}

void Ledger::KeepLargest() {
  std::ranges::sort(touched_, [&](SiteId a, SiteId b) {
    const double size_a = std::fabs(sums_[a]);
    const double size_b = std::fabs(sums_[b]);
    return size_a != size_b ? size_a > size_b : a < b;
  });
  double rest = 0;
  for (std::size_t i = kMostContributions - 1; i < touched_.size(); ++i) {
    rest += sums_[touched_[i]];
    in_[touched_[i]] = 0;
    sums_[touched_[i]] = 0;
  }
  touched_.resize(kMostContributions - 1);
  Charge(kOtherSite, rest);
}

ValueId Ledger::End(double actual, double shadow, NumberFormat format) {
  const bool nonfinite = overflowed_ && !std::isfinite(actual);
  if (!std::isfinite(shadow) && !nonfinite) return kExact;
  if (overflowed_ && (nonfinite || std::fabs(actual - shadow) > kHealed * std::fabs(shadow))) {
    values_.push_back(
        {actual, shadow, static_cast<std::uint32_t>(contributions_.size()), 1, format});
    contributions_.push_back({overflow_site_, HUGE_VAL});
    return static_cast<ValueId>(values_.size() - 1);
  }
  if (!std::isfinite(actual) || touched_.empty()) return kExact;
  if (touched_.size() > kMostContributions) KeepLargest();
  const auto first = static_cast<std::uint32_t>(contributions_.size());
  for (const SiteId site : touched_) {
    if (sums_[site] != 0) contributions_.push_back({site, sums_[site]});
  }
  const auto count = static_cast<std::uint16_t>(contributions_.size() - first);
  if (count == 0 && actual == shadow) return kExact;
  values_.push_back({actual, shadow, first, count, format});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Ledger::Exact(double actual, NumberFormat format) {
  values_.push_back({actual, actual, static_cast<std::uint32_t>(contributions_.size()), 0, format});
  return static_cast<ValueId>(values_.size() - 1);
}

void Ledger::Compact(std::vector<ValueId>& moved) {
  std::size_t kept = 1;
  std::uint32_t parts = 0;
  for (std::size_t id = 1; id < values_.size(); ++id) {
    if (moved[id] == kExact) continue;
    ShadowValue value = values_[id];
    // Both arrays are in the order of creation, so that everything moves to the front.
    std::copy_n(contributions_.begin() + value.first, value.count, contributions_.begin() + parts);
    value.first = parts;
    parts += value.count;
    values_[kept] = value;
    moved[id] = static_cast<ValueId>(kept++);
  }
  values_.resize(kept);
  contributions_.resize(parts);
  // Room for as many again before the next collection, and for the arrays to double while they grow.
  const std::uint64_t bytes = 2 * (kept * sizeof(ShadowValue) + parts * sizeof(Contribution));
  exhausted_ = exhausted_ || bytes > max_bytes_ || kept > (std::size_t{1} << 30);
  next_collection_ = std::max(kFirstCollection, 2 * kept);
}

}  // namespace assay::emu
