// How integers, indices and choices are drawn: a function each, and their table.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "validator/cases/profile_draw.h"

namespace assay::cases {
namespace {

// --- integers that are not indices

// A double as an integer, however large.
std::int64_t Whole(double value) {
  constexpr double kMost = 0x1p62;
  return static_cast<std::int64_t>(std::clamp(value, -kMost, kMost));
}

// Bytes are taken whole: packed data is held in them.
double UniformInteger(const FillContext& context, std::int64_t index) {
  if (context.dtype == DType::kBool) return static_cast<double>(At(context, index).Below(2));
  const auto& domain = *context.domain;
  const bool is_signed = IsSignedInteger(context.dtype);
  const bool byte = SizeOf(context.dtype) == 1;
  std::int64_t low = is_signed ? (byte ? -128 : -100) : 0;
  std::int64_t high = byte ? (is_signed ? 127 : 255) : 100;
  if (domain.kind == ops::Domain::Kind::kRange) {
    low = Whole(std::ceil(domain.low));
    high = Whole(std::floor(domain.high));
  }
  return static_cast<double>(At(context, index).Between(low, std::max(low, high)));
}

// --- indices in [0, bound)

double IndexUniform(const FillContext& context, std::int64_t index) {
  return static_cast<double>(At(context, index).Below(static_cast<std::uint64_t>(context.bound)));
}

// Rejection-inversion (Hörmann and Derflinger 1996): P(k) ~ 1 / (k + 1)^s without tables.
double IndexZipf(const FillContext& context, std::int64_t index) {
  const double s = context.parameter[0];
  const auto n = static_cast<double>(context.bound);
  const auto integral = [s](double x) {
    return std::fabs(s - 1.0) < 1e-9 ? std::log(x) : (std::pow(x, 1.0 - s) - 1.0) / (1.0 - s);
  };
  const auto inverse = [s](double y) {
    return std::fabs(s - 1.0) < 1e-9 ? std::exp(y) : std::pow(1.0 + y * (1.0 - s), 1.0 / (1.0 - s));
  };
  Rng rng = At(context, index);
  const double low = integral(1.5) - 1.0;
  const double high = integral(n + 0.5);
  for (int tries = 0; tries < 64; ++tries) {
    const double u = high + rng.Unit() * (low - high);
    const double x = inverse(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, n);
    if (u >= integral(k + 0.5) - std::pow(k, -s)) return k - 1.0;
  }
  return 0;
}

double IndexAllEqual(const FillContext& context, std::int64_t) {
  return static_cast<double>(Mix64(context.stream) % static_cast<std::uint64_t>(context.bound));
}

double IndexSorted(const FillContext& context, std::int64_t index) {
  return std::floor(Fraction(index, context.elements) * (static_cast<double>(context.bound) - 1.0));
}

// Each index several times in a row, ascending.
double IndexSortedRuns(const FillContext& context, std::int64_t index) {
  return std::min(static_cast<double>(context.bound) - 1.0,
                  std::floor(static_cast<double>(index) / 3));
}

// Ascending in runs, but for one step down at that place (0: between the lanes 31 and 32, or inside of a warp).
double IndexSortedButOne(const FillContext& context, std::int64_t index) {
  const std::int64_t drawn = Mix64(context.stream) % 3 == 0 ? 17 : 32;
  const std::int64_t place =
      context.parameter[0] > 0 ? static_cast<std::int64_t>(context.parameter[0]) : drawn;
  const double sorted = IndexSorted(context, index);
  const double before = IndexSorted(context, place - 1);
  if (index < place || context.elements <= place + 1) return std::min(sorted, before);
  // What comes after goes back to an index that there was, and on from there.
  return std::max(0.0, sorted - std::max(1.0, std::floor(before / 2)));
}

double IndexLast(const FillContext& context, std::int64_t) {
  return static_cast<double>(context.bound - 1);
}

double IndexReversed(const FillContext& context, std::int64_t index) {
  return IndexSorted(context, context.elements - 1 - index);
}

// i -> (a i + b) mod bound with a coprime to bound: no index occurs twice before all have occurred.
double IndexPermutation(const FillContext& context, std::int64_t index) {
  const auto bound = static_cast<std::uint64_t>(context.bound);
  std::uint64_t factor = Mix64(context.stream) % bound | 1u;
  const auto gcd = [](std::uint64_t a, std::uint64_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
  };
  while (gcd(factor, bound) != 1) ++factor;
  const auto product = static_cast<__uint128_t>(factor) * static_cast<std::uint64_t>(index) +
                       Mix64(context.stream + 1) % bound;
  return static_cast<double>(static_cast<std::uint64_t>(product % bound));
}

double IndexEdges(const FillContext& context, std::int64_t index) {
  return Hash(context, index) % 2 == 0 ? 0.0 : static_cast<double>(context.bound - 1);
}

// Where programs put their marks: halves and quarters of the range and powers of two, each with its
// neighbours, among ordinary indices.
double IndexLandmarks(const FillContext& context, std::int64_t index) {
  Rng rng = At(context, index);
  std::int64_t place = 0;
  switch (rng.Below(6)) {
    case 0:
      place = context.bound / 2;
      break;
    case 1:
      place = context.bound * static_cast<std::int64_t>(1 + rng.Below(3)) / 4;
      break;
    case 2:
      place = (std::int64_t{1} << rng.Below(40)) + rng.Between(-1, 1);
      break;
    case 3:
      place = context.bound - 1 - static_cast<std::int64_t>(rng.Below(2));
      break;
    default:
      place = static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(context.bound)));
  }
  return static_cast<double>(std::clamp<std::int64_t>(place, 0, context.bound - 1));
}

// Neighbours that are the same but for one upper bit: a field that is too narrow takes one for the other.
double IndexAliases(const FillContext& context, std::int64_t index) {
  constexpr std::uint64_t kLeast = 8, kBases = 4;
  const auto bits = static_cast<std::uint64_t>(
      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(context.bound - 1, 0))));
  const auto drawn = static_cast<std::uint64_t>(Hash(context, index / 2));
  const auto base = static_cast<std::int64_t>(drawn % kBases);
  std::int64_t place = base;
  if (index % 2 == 1 && bits > kLeast)
    place += std::int64_t{1} << (kLeast + drawn / kBases % (bits - kLeast));
  return static_cast<double>(std::min(place, context.bound - 1));
}

// Lanes of one warp meet on few rows, other warps on others.
double IndexWarpDuplicates(const FillContext& context, std::int64_t index) {
  const std::int64_t group = index / 32 * 4 + (index % 32) / 11;
  return static_cast<double>(Hash(context, group) % static_cast<std::uint64_t>(context.bound));
}

// --- choices

double Choice(const FillContext& context, std::int64_t index) {
  const auto& values = context.domain->values;
  return values.empty() ? 0.0 : values[Hash(context, index) % values.size()];
}

using enum InputClass;

constexpr std::array kRows = {
    // kind, class, rank, exact, special, parameters, value, meaning
    ProfileRow{"zero", kInteger, 0, true, false, {kNone, kNone}, Zero, "all zeros"},
    ProfileRow{
        "constant", kInteger, 1, true, false, {{{"value", 2}, kNone}}, Constant, "one value"},
    ProfileRow{"uniform", kInteger, 4, true, false, {kNone, kNone}, UniformInteger, "uniform"},
    ProfileRow{"extremes",
               kInteger,
               15,
               true,
               false,
               {kNone, kNone},
               Extremes,
               "only the ends of the range"},
    ProfileRow{"zero", kIndex, 0, true, false, {kNone, kNone}, Zero, "index 0 everywhere"},
    ProfileRow{
        "all_equal", kIndex, 1, true, false, {kNone, kNone}, IndexAllEqual, "one index everywhere"},
    ProfileRow{
        "sorted", kIndex, 2, true, false, {kNone, kNone}, IndexSorted, "ascending, evenly spread"},
    ProfileRow{"last", kIndex, 1, true, false, {kNone, kNone}, IndexLast, "the last everywhere"},
    ProfileRow{"reversed", kIndex, 3, true, false, {kNone, kNone}, IndexReversed, "descending"},
    ProfileRow{"sorted_runs",
               kIndex,
               2,
               true,
               false,
               {kNone, kNone},
               IndexSortedRuns,
               "ascending, each three times"},
    ProfileRow{"sorted_but_one",
               kIndex,
               5,
               true,
               false,
               {{{"place", 0}, kNone}},
               IndexSortedButOne,
               "ascending but for one step down"},
    ProfileRow{"uniform", kIndex, 4, true, false, {kNone, kNone}, IndexUniform, "uniform"},
    ProfileRow{
        "permutation", kIndex, 5, true, false, {kNone, kNone}, IndexPermutation, "no duplicates"},
    ProfileRow{
        "edges", kIndex, 6, true, false, {kNone, kNone}, IndexEdges, "first and last index only"},
    ProfileRow{"landmarks",
               kIndex,
               6,
               true,
               false,
               {kNone, kNone},
               IndexLandmarks,
               "halves, quarters and powers of two of the range"},
    ProfileRow{"aliases",
               kIndex,
               9,
               true,
               false,
               {kNone, kNone},
               IndexAliases,
               "neighbours that differ in one upper bit"},
    ProfileRow{"warp_duplicates",
               kIndex,
               7,
               true,
               false,
               {kNone, kNone},
               IndexWarpDuplicates,
               "duplicates among lanes of a warp"},
    ProfileRow{
        "zipf", kIndex, 8, true, false, {{{"exponent", 1}, kNone}}, IndexZipf, "few hot indices"},
    ProfileRow{
        "choice", kChoice, 0, false, false, {kNone, kNone}, Choice, "one of the allowed values"},
};

}  // namespace

std::span<const ProfileRow> IntegerProfiles() { return kRows; }

}  // namespace assay::cases
