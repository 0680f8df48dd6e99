// What shadow values are made of: an FP64 shadow beside the actual value, and a ledger of which
// source line contributed how much to the difference.
//
// Model: a value is { actual, shadow, contributions }. `actual` is what the kernel computed, `shadow`
// what the same operations give in FP64 from the start, and a contribution (site, error) is the
// signed error, to first order, that entered at a site and has reached this value. Where neither
// rounding nor history makes a difference there is no value at all: kExact stands for "shadow =
// actual, no contributions", which is true of inputs, integers and constants.
//
// A value is built in steps: Begin, then AddScaled for each operand (times the derivative by it) and
// Charge for what rounding added, then End. An actual value that is infinite or no number has one
// contribution of infinite size, from the site where the first such value arose that reached it.
//
// Values are immutable and shared: moves copy ids. Unreachable ones are reclaimed by Collect, which
// the owner of the ids calls between instructions.
//
// Cost: 24 bytes a value and 16 a contribution, at most kMostContributions of them; beyond that the
// smallest are merged into kOtherSite. Deterministic. Not thread-safe.
//
//   ledger.Begin();
//   ledger.AddScaled(a, 1.0);
//   ledger.AddScaled(b, 1.0);
//   ledger.Charge(site, actual - exact);
//   const ValueId sum = ledger.End(actual, shadow_a + shadow_b, NumberFormat::kBF16);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::emu {

/// Number formats that have shadows.
enum class NumberFormat : std::uint8_t { kNone, kF16, kBF16, kF32, kF64 };
/// Bytes of a format; 0 for kNone.
std::size_t BytesOf(NumberFormat format);
/// The value of `bits` in `format`.
double ToDouble(NumberFormat format, std::uint64_t bits);

using ValueId = std::uint32_t;
inline constexpr ValueId kExact = 0;

using SiteId = std::uint32_t;
/// Where contributions go that there was no room for.
inline constexpr SiteId kOtherSite = 0;

struct Contribution {
  SiteId site = kOtherSite;
  double error = 0;
};

struct ShadowValue {
  double actual = 0;
  double shadow = 0;
  std::uint32_t first = 0;  ///< Of its contributions, in the ledger.
  std::uint16_t count = 0;
  NumberFormat format = NumberFormat::kNone;
};

class Ledger {
 public:
  static constexpr std::size_t kMostContributions = 24;

  explicit Ledger(std::uint64_t max_bytes);

  const ShadowValue& At(ValueId id) const { return values_[id]; }
  std::span<const Contribution> ContributionsOf(ValueId id) const {
    return std::span(contributions_).subspan(values_[id].first, values_[id].count);
  }

  void Begin();
  /// `id` flows into the value that is being built, with this derivative.
  void AddScaled(ValueId id, double derivative);
  /// Rounding at `site` added `error`.
  void Charge(SiteId site, double error);
  /// kExact when nothing has contributed, or when `shadow` is not a number to compare with (unless
  /// `actual` is none either, and the site where that began is known).
  ValueId End(double actual, double shadow, NumberFormat format);

  /// A number without a history that is about to be taken apart.
  ValueId Exact(double actual, NumberFormat format);

  /// True when enough has been added since the last collection for another one to pay.
  bool WantsCollection() const { return values_.size() >= next_collection_; }
  /// `roots` calls its argument with a reference to every ValueId that is still held; ids change.
  template <class Roots>
  void Collect(Roots roots) {
    std::vector<ValueId> moved(values_.size(), kExact);
    roots([&](ValueId& id) {
      if (id < moved.size()) moved[id] = id;
    });
    Compact(moved);
    roots([&](ValueId& id) { id = id < moved.size() ? moved[id] : kExact; });
  }
  /// True once the values that are held need more memory than allowed: nothing more can be said.
  bool exhausted() const { return exhausted_; }

 private:
  void Compact(std::vector<ValueId>& moved);
  void KeepLargest();

  std::uint64_t max_bytes_;
  std::vector<ShadowValue> values_;
  std::vector<Contribution> contributions_;
  std::vector<double> sums_;      ///< By site, for the value that is being built.
  std::vector<std::uint8_t> in_;  ///< By site: it has a sum.
  std::vector<SiteId> touched_;
  bool overflowed_ = false;
  SiteId overflow_site_ = kOtherSite;
  std::size_t next_collection_;
  bool exhausted_ = false;
};

}  // namespace assay::emu
