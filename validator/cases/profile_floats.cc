// How floats are drawn: a function each, and their table.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "validator/cases/profile_draw.h"

namespace assay::cases {
namespace {

// Places a standard value (mean 0, scale 1) where the op says its values lie: in the middle of a
// narrow range, else around the typical mean.
double Scaled(const FillContext& context, double standard) {
  const ops::Domain& domain = *context.domain;
  const double width = domain.high - domain.low;
  if (domain.kind == ops::Domain::Kind::kRange && width < 1e3 * domain.typical_scale) {
    return domain.low + width * (0.5 + 0.25 * standard);
  }
  return domain.typical_mean + domain.typical_scale * standard;
}

double Integers(const FillContext& context, std::int64_t index) {
  const auto limit = static_cast<std::int64_t>(context.parameter[0]);
  return static_cast<double>(At(context, index).Between(-limit, limit));
}

double Normal(const FillContext& context, std::int64_t index) {
  return Scaled(context, context.parameter[0] + context.parameter[1] * At(context, index).Normal());
}

double Uniform(const FillContext& context, std::int64_t index) {
  const double low = context.parameter[0];
  const double high = context.parameter[1];
  // Twice the standard width where a range is given, which is all of it.
  const double stretch = context.domain->kind == ops::Domain::Kind::kRange ? 2.0 : 1.0;
  return Scaled(context, stretch * (low + (high - low) * At(context, index).Unit()));
}

double Biased(const FillContext& context, std::int64_t index) {
  return Scaled(context, context.parameter[0] + 0.25 * At(context, index).Normal());
}

// Each page of memory has a level of its own, so that a long row's sum, or the sum of its exponentials,
// says which pages it is of.
double Patchy(const FillContext& context, std::int64_t index) {
  constexpr double kApart = 2;
  const auto bytes = static_cast<std::int64_t>(SizeOf(context.dtype));
  const std::int64_t page = index * bytes / static_cast<std::int64_t>(kPatternPage);
  return Scaled(context, kApart * At(context, ~page).Normal() + At(context, index).Normal());
}

// All values far on one side: a maximum that starts at 0, or none at all, shows in exp.
double Offset(const FillContext& context, std::int64_t index) {
  return Scaled(context, context.parameter[0] + At(context, index).Normal());
}

double Tiny(const FillContext& context, std::int64_t index) {
  return std::ldexp(At(context, index).Normal(), -RoomyExponent(context.dtype));
}

// Far below what is tiny, but still normal: thresholds like 1e-12 and 1e-20 lie in between.
double Minute(const FillContext& context, std::int64_t index) {
  const int exponent = IsNarrow(context.dtype) ? 10 : 90;
  return std::ldexp(At(context, index).Normal(), -exponent);
}

double MixedExponents(const FillContext& context, std::int64_t index) {
  Rng rng = At(context, index);
  const int room = std::min(RoomyExponent(context.dtype), 14);
  const auto exponent = static_cast<int>(rng.Between(-room, room / 2));
  return std::ldexp(Sign(rng.Next()) * (1.0 + rng.Unit()), exponent);
}

// All magnitudes of a range alike, down to its low end or to 2^-24 of its high one: what is a step, a decay or
// an eps is ordinarily far below the middle of what it may be.
double Graded(const FillContext& context, std::int64_t index) {
  const ops::Domain& domain = *context.domain;
  const double unit = At(context, index).Unit();
  if (domain.kind != ops::Domain::Kind::kRange || domain.low < 0 || domain.high <= 0)
    return Scaled(context, 4 * unit - 2);
  const double low = std::log2(std::max(domain.low, std::ldexp(domain.high, -24)));
  return std::exp2(low + (std::log2(domain.high) - low) * unit);
}

double Denormals(const FillContext& context, std::int64_t index) {
  Rng rng = At(context, index);
  return Sign(rng.Next()) * rng.Unit() * MinNormal(context.dtype);
}

// Neighbours cancel up to the last few bits: catastrophic for whoever accumulates too narrowly.
double Cancelling(const FillContext& context, std::int64_t index) {
  const double magnitude = 1.0 + 7.0 * At(context, index / 2).Unit();
  const double rest = index % 2 == 0 ? 0 : UnitRoundoff(context.dtype) * 8;
  return Scaled(context, (index % 2 == 0 ? 1.0 : -1.0 + rest) * magnitude);
}

// Integers, in each stretch of 64 each with its opposite, at places that are drawn, and one of them a little off. Sums of
// whole stretches are exact in f32 and stay small, so that a narrow result shows what anything narrower has rounded.
double Opposed(const FillContext& context, std::int64_t index) {
  constexpr std::int64_t kRun = 64, kOff = 3;
  const std::int64_t place = index % kRun, first = index - place;
  const std::int64_t partner =
      place ^ static_cast<std::int64_t>(1 + Hash(context, ~first) % (kRun - 1));
  const std::int64_t off = At(context, ~index).Between(-kOff, kOff);
  if (first + partner >= context.elements) return static_cast<double>(off);
  const auto limit = static_cast<std::int64_t>(context.parameter[0]);
  const std::int64_t value = At(context, first + std::min(place, partner)).Between(-limit, limit);
  return static_cast<double>((place < partner ? value : -value) + (place == 0 ? off : 0));
}

// In each row (along: 1), or in each column (2; 0: either, by the seed), a large value and later its
// opposite, ordinary ones around them: what sums lose next to the large one stays when it is gone, so
// that it shows in narrow results, too, how the terms were grouped. In every second tensor (wholly: in
// all) an f32 sum loses the ordinary ones wholly: 2^26 has a last place of 8, and f16, which ends below
// 2^16, has smaller ones instead.
double Absorbing(const FillContext& context, std::int64_t index) {
  const std::int64_t rows = std::max<std::int64_t>(1, context.elements / context.row);
  const bool drawn =
      context.parameter[0] == 0 ? (Mix64(context.stream) & 1) == 0 : context.parameter[0] == 1;
  const bool along_rows = rows < 2 || (context.row > 1 && drawn);
  const std::int64_t line = along_rows ? index / context.row : index % context.row;
  const std::int64_t at = along_rows ? index % context.row : index / context.row;
  const std::int64_t half = std::max<std::int64_t>(1, (along_rows ? context.row : rows) / 2);
  const std::uint64_t places = Hash(context, line);
  const auto first = static_cast<std::int64_t>(places % static_cast<std::uint64_t>(half));
  const auto second =
      half + static_cast<std::int64_t>((places >> 32) % static_cast<std::uint64_t>(half));
  const bool wholly = context.parameter[1] != 0 || (Mix64(context.stream) & 2) == 0;
  const bool short_range = IsNarrow(context.dtype);
  if (at != first && at != second) {
    const double ordinary = Scaled(context, Noise(context, index));
    return wholly && short_range ? std::ldexp(ordinary, -11) : ordinary;
  }
  const double large = std::ldexp(1.0, short_range ? 14 : wholly ? 26 : 20);
  return at == first ? large : -large;
}

double Sorted(const FillContext& context, std::int64_t index) {
  return Scaled(context, -2.0 + 4.0 * Fraction(index, context.elements));
}

double OneHot(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  const auto hot =
      static_cast<std::int64_t>(Hash(context, row) % static_cast<std::uint64_t>(context.row));
  return index % context.row == hot ? 2.0 : 0.0;
}

// A few channels (columns) a hundred times larger than the rest, as activations of trained models
// have them.
double Outliers(const FillContext& context, std::int64_t index) {
  const bool outlier =
      Hash(context, index % context.row) % 32 == 0 || index % context.row == context.row - 1;
  return Scaled(context, Noise(context, index) * (outlier ? context.parameter[0] : 1.0));
}

double SignedZeros(const FillContext& context, std::int64_t index) {
  Rng rng = At(context, index);
  const double magnitude = rng.Below(4) == 0 ? rng.Normal() : 0.0;
  return Sign(rng.Next()) * magnitude;
}

// Ordinary values with a NaN or an infinity here and there, limited to what the domain allows.
double Specials(const FillContext& context, std::int64_t index) {
  Rng rng = At(context, index);
  const double ordinary = Scaled(context, rng.Normal());
  const auto every = std::max<std::uint64_t>(2, static_cast<std::uint64_t>(context.parameter[0]));
  if (rng.Below(every) != 0 && index != context.elements - 1) return ordinary;
  const bool nan =
      context.domain->allow_nan && (!context.domain->allow_infinity || rng.Below(2) == 0);
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  if (context.domain->allow_infinity)
    return Sign(rng.Next()) * std::numeric_limits<double>::infinity();
  return ordinary;
}

// Whole rows of -inf (a fully masked row), the rest ordinary.
double InfiniteRows(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  if (context.domain->allow_infinity && Hash(context, row) % 2 == 0) {
    return -std::numeric_limits<double>::infinity();
  }
  return Scaled(context, Noise(context, index));
}

// Parts of rows at -inf, as masks leave them, the rest ordinary: the front, the end, a stretch between or places here and
// there; something is left of each.
double Masked(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row, column = index % context.row;
  const std::uint64_t drawn = Hash(context, row);
  const auto kept = static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(context.row));
  const std::int64_t length = 1 + static_cast<std::int64_t>((drawn >> 32) & 0xffff) *
                                      (context.row - 1) / std::int64_t{1 << 16};
  const std::array<bool, 4> hidden = {column < length, column >= context.row - length,
                                      (column + kept) % context.row < length,
                                      Hash(context, ~index) % 2 == 0};
  if (context.domain->allow_infinity && column != kept && hidden[(drawn >> 48) % hidden.size()])
    return -std::numeric_limits<double>::infinity();
  return Scaled(context, Noise(context, index));
}

// Small integers other than 0 at both ends, zeros between them, whose pages are never touched.
double Ends(const FillContext& context, std::int64_t index) {
  if (!InEnds(context.elements, index)) return 0;
  Rng rng = At(context, index);
  const double sign = Sign(rng.Next());
  const double magnitude = static_cast<double>(1 + rng.Below(3));
  return context.parameter[0] != 0 ? sign * magnitude : magnitude;
}

// Small integers above 0 in front, zeros behind.
double Front(const FillContext& context, std::int64_t index) {
  return index < kFrontElements ? static_cast<double>(1 + At(context, index).Below(3)) : 0;
}

// Small integers, none of them 0, but for whole warps of zeros: in front, at the end, or in between.
double Padded(const FillContext& context, std::int64_t index) {
  constexpr std::int64_t kRun = 128;
  const std::int64_t row = index / context.row;
  const std::int64_t column = index % context.row;
  const std::int64_t run = context.row > 2 * kRun ? kRun : context.row / 3;
  const std::int64_t whole = context.row / kRun * kRun;
  bool zero = false;
  switch ((static_cast<std::int64_t>(context.stream % 3) + row) % 3) {
    case 0:
      zero = column < run;
      break;
    case 1:
      zero = column >= (whole > run ? whole - run : context.row - run);
      break;
    default:
      zero = column / std::max<std::int64_t>(run, 1) % 2 == 1;
  }
  if (zero) return 0;
  Rng rng = At(context, index);
  const double sign = Sign(rng.Next());
  return sign * static_cast<double>(1 + rng.Below(3));
}

// Not a power of two, nor a multiple of one: sums of it are rounded.
double ConstantRows(const FillContext& context, std::int64_t index) {
  const auto step = static_cast<double>(Hash(context, index / context.row) % 23);
  return Scaled(context, 0.1 * (step - 11.5));
}

// One value a row, near the top of its binade, and here and there one that is a 256th of it higher: a
// mean as far above the spread as bfloat16 can tell, so that what one pass over it loses shows before
// the roundings of long sums do. Of each two rows one is large beside whatever is added to its spread, so that a spread
// below 0 shows; of each four two have a third as many that are higher, of which honest sums of short rows lose little.
double Rippled(const FillContext& context, std::int64_t index) {
  const std::int64_t number = index / context.row;
  const std::uint64_t row = Hash(context, number) % 32;
  const double share = context.parameter[0] / (number % 4 < 2 ? 1 : 3);
  const bool high = At(context, index).Unit() < share;
  return Scaled(context, (255.0 - static_cast<double>(row) + (high ? 1.0 : 0.0)) *
                             (number % 2 == 0 ? 0.125 : 8.0));
}

// The maximum, 4, stands in each row two or three times, in different warps and once at the end.
double Ties(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  const std::int64_t column = index % context.row;
  const auto first =
      static_cast<std::int64_t>(Hash(context, row) % static_cast<std::uint64_t>(context.row));
  const bool third = row % 2 == 1;
  if (column == first || column == (first + context.row / 2) % context.row ||
      (third && column == context.row - 1))
    return 4.0;
  return static_cast<double>(At(context, index).Between(-3, 3));
}

// In the last place, or (every other row) in the first one past the last multiple of 32.
double LateMaximum(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  const std::int64_t column = index % context.row;
  const std::int64_t place =
      row % 2 == 0 ? context.row - 1 : std::min(context.row / 32 * 32, context.row - 1);
  return Scaled(context, Noise(context, index) * (column == place ? 1.0 : context.parameter[1]) +
                             (column == place ? context.parameter[0] : 0.0));
}

// A few large values in each row, and in a few rows, as far apart as the largest power of two of which five fit: a warp, a block or its double
// apart in long rows, so that one lane meets them all.
double FarApart(const FillContext& context, std::int64_t index) {
  constexpr std::int64_t kFewest = 5;
  const auto meets = [&](std::int64_t place, std::int64_t places) {
    const auto apart = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(places / kFewest, 1))));
    const auto first =
        static_cast<std::int64_t>(Mix64(context.stream) % static_cast<std::uint64_t>(apart));
    return apart > 1 && place % apart == first ? 1.0 : 0.0;
  };
  const double large = meets(index % context.row, context.row) +
                       meets(index / context.row % context.rows, context.rows);
  return Scaled(context, 0.25 + 0.25 * At(context, index).Unit() + 2 * large);
}

// One value of each row that far from all others (0: as far as the root of their number, where what is taken relative
// to it cancels most): the first one, the last one, or any.
double Lone(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  const auto any =
      static_cast<std::int64_t>(Hash(context, row) % static_cast<std::uint64_t>(context.row));
  const std::int64_t place =
      std::array{std::int64_t{0}, context.row - 1, any}[static_cast<std::size_t>(row % 3)];
  const double far =
      context.parameter[0] > 0 ? context.parameter[0] : std::sqrt(static_cast<double>(context.row));
  return Scaled(context, Noise(context, index) * context.parameter[1] +
                             (index % context.row == place ? far : 0.0));
}

// One value in each row beside which f32 keeps little of the others, and their format less of what that loses; results
// before it do not know it. Not so large that the others become one number, whose roundings add up.
double Spiked(const FillContext& context, std::int64_t index) {
  const std::int64_t row = index / context.row;
  const auto place =
      static_cast<std::int64_t>(Hash(context, row) % static_cast<std::uint64_t>(context.row));
  const bool narrow = IsNarrow(context.dtype);
  const int exponent = narrow ? 15 : SizeOf(context.dtype) == 2 ? 22 : 12;
  if (index % context.row == place) return std::ldexp(1.0, exponent);
  return std::ldexp(Noise(context, index), narrow ? -4 : 0);
}

// The last row of each matrix far above the others, which are ordinary times `rest`; of a vector, its last
// element.
double LateRow(const FillContext& context, std::int64_t index) {
  const bool late = context.row == context.elements
                        ? index == context.elements - 1
                        : index / context.row % context.rows == context.rows - 1;
  return Scaled(context, Noise(context, index) * (late ? 1.0 : context.parameter[1]) +
                             (late ? context.parameter[0] : 0.0));
}

// Ordinary values, but for the first of each row of a matrix, which rises from row to row; of a vector, all rise.
double Rising(const FillContext& context, std::int64_t index) {
  const bool vector = context.row == context.elements;
  const std::int64_t place = vector ? index : index / context.row % context.rows;
  const std::int64_t places = vector ? context.row : context.rows;
  const bool rises = vector || index % context.row == 0;
  const double height = static_cast<double>(place + 1) / static_cast<double>(places);
  return Scaled(context, Noise(context, index) + (rises ? context.parameter[0] * height : 0.0));
}

// A band from one corner of each matrix to the other, ordinary values of one sign, and zeros beside it: of a sum over either
// axis each part is another result's, which shows a piece that is lost among thousands.
double Banded(const FillContext& context, std::int64_t index) {
  const std::int64_t rows = context.row == context.elements ? 1 : context.rows;
  const std::int64_t row = index / context.row % rows, column = index % context.row;
  const bool in_band =
      rows > context.row ? row * context.row / rows == column : column * rows / context.row == row;
  return in_band ? Scaled(context, 1.5 + 0.25 * Noise(context, index)) : 0;
}

using enum InputClass;

constexpr std::array kRows = {
    // kind, class, rank, exact, special, parameters, value, meaning
    ProfileRow{"zero", kFloat, 0, true, false, {kNone, kNone}, Zero, "all zeros, no page touched"},
    ProfileRow{
        "constant", kFloat, 1, true, false, {{{"value", kNaN}, kNone}}, Constant, "one value"},
    ProfileRow{"integers",
               kFloat,
               2,
               true,
               false,
               {{{"limit", 3}, kNone}},
               Integers,
               "small integers: exact"},
    ProfileRow{"one_hot", kFloat, 3, true, false, {kNone, kNone}, OneHot, "one element a row"},
    ProfileRow{
        "uniform", kFloat, 4, false, false, {{{"low", -1}, {"high", 1}}}, Uniform, "uniform"},
    ProfileRow{"normal", kFloat, 5, false, false, {{{"mean", 0}, {"scale", 1}}}, Normal, "normal"},
    ProfileRow{
        "biased", kFloat, 6, false, false, {{{"mean", 1.5}, kNone}}, Biased, "mean far from 0"},
    ProfileRow{
        "patchy", kFloat, 6, false, false, {kNone, kNone}, Patchy, "each page at its own level"},
    ProfileRow{"sorted", kFloat, 7, false, false, {kNone, kNone}, Sorted, "ascending"},
    ProfileRow{"signed_zeros", kFloat, 8, false, false, {kNone, kNone}, SignedZeros, "0 and -0"},
    ProfileRow{"cancelling",
               kFloat,
               9,
               false,
               false,
               {kNone, kNone},
               Cancelling,
               "pairs that nearly cancel"},
    ProfileRow{"opposed",
               kFloat,
               9,
               true,
               false,
               {{{"limit", 100}, kNone}},
               Opposed,
               "integers and their opposites: sums are small and exact"},
    ProfileRow{"absorbing",
               kFloat,
               12,
               false,
               false,
               {{{"along", 0}, {"wholly", 0}}},
               Absorbing,
               "a large value and its opposite in each row or column"},
    ProfileRow{"outliers",
               kFloat,
               10,
               false,
               false,
               {{{"factor", 100}, kNone}},
               Outliers,
               "outlier channels"},
    ProfileRow{
        "low", kFloat, 10, false, false, {{{"offset", -200}, kNone}}, Offset, "far below zero"},
    ProfileRow{
        "high", kFloat, 10, false, false, {{{"offset", 200}, kNone}}, Offset, "far above zero"},
    ProfileRow{"graded",
               kFloat,
               11,
               false,
               false,
               {kNone, kNone},
               Graded,
               "all magnitudes of a range alike"},
    ProfileRow{"mixed_exponents",
               kFloat,
               11,
               false,
               false,
               {kNone, kNone},
               MixedExponents,
               "2^-14 to 2^7"},
    ProfileRow{"large", kFloat, 12, false, false, {kNone, kNone}, Large, "large magnitudes"},
    ProfileRow{"tiny", kFloat, 13, false, false, {kNone, kNone}, Tiny, "small magnitudes"},
    ProfileRow{"minute",
               kFloat,
               13,
               false,
               false,
               {kNone, kNone},
               Minute,
               "magnitudes little above the smallest normal ones"},
    ProfileRow{
        "denormals", kFloat, 14, false, false, {kNone, kNone}, Denormals, "denormals of the dtype"},
    ProfileRow{"extremes",
               kFloat,
               15,
               false,
               false,
               {kNone, kNone},
               Extremes,
               "only the ends of the range"},
    ProfileRow{"specials",
               kFloat,
               16,
               false,
               true,
               {{{"every", 16}, kNone}},
               Specials,
               "NaN and inf here and there"},
    ProfileRow{
        "banded", kFloat, 9, false, false, {kNone, kNone}, Banded, "a band across each matrix"},
    ProfileRow{
        "infinite_rows", kFloat, 17, false, true, {kNone, kNone}, InfiniteRows, "rows of -inf"},
    ProfileRow{"masked", kFloat, 17, false, true, {kNone, kNone}, Masked, "parts of rows at -inf"},
    ProfileRow{"ends",
               kFloat,
               18,
               true,
               false,
               {{{"signs", 1}, kNone}},
               Ends,
               "small integers at both ends of a huge tensor, zeros between"},
    ProfileRow{"front",
               kFloat,
               18,
               true,
               false,
               {kNone, kNone},
               Front,
               "small positive integers in front, zeros behind"},
    ProfileRow{"padded",
               kFloat,
               9,
               true,
               false,
               {kNone, kNone},
               Padded,
               "small integers and whole warps of zeros"},
    ProfileRow{
        "constant_rows", kFloat, 7, false, false, {kNone, kNone}, ConstantRows, "one value a row"},
    ProfileRow{"rippled",
               kFloat,
               9,
               false,
               false,
               {{{"share", 1.0 / 96}, kNone}},
               Rippled,
               "one value a row, and a few just above it"},
    ProfileRow{"ties",
               kFloat,
               9,
               true,
               false,
               {kNone, kNone},
               Ties,
               "small integers, the largest several times"},
    ProfileRow{"far_apart",
               kFloat,
               10,
               false,
               false,
               {kNone, kNone},
               FarApart,
               "the largest values of rows and columns a warp or more apart"},
    ProfileRow{"lone",
               kFloat,
               10,
               false,
               false,
               {{{"distance", 0}, {"rest", 1}}},
               Lone,
               "one value of each row far from all others"},
    ProfileRow{"spiked",
               kFloat,
               12,
               false,
               false,
               {kNone, kNone},
               Spiked,
               "one value in each row beside which little is kept of the others"},
    ProfileRow{"late_maximum",
               kFloat,
               10,
               false,
               false,
               {{{"peak", 12}, {"rest", 1}}},
               LateMaximum,
               "the largest value at the end"},
    ProfileRow{"late_row",
               kFloat,
               10,
               false,
               false,
               {{{"peak", 100}, {"rest", 1}}},
               LateRow,
               "the largest values in each matrix's last row"},
    ProfileRow{"rising",
               kFloat,
               10,
               false,
               false,
               {{{"peak", 256}, kNone}},
               Rising,
               "the first column larger from row to row"},
};

}  // namespace

std::span<const ProfileRow> FloatProfiles() { return kRows; }

}  // namespace assay::cases
