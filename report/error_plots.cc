// How errors lie: a histogram in allowances, a map of the worst case, growth with the number of terms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/sections.h"
#include "report/svg.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr double kWidth = 340, kHeight = 190, kLeft = 42, kRight = 332, kTop = 14, kBottom = 156;
constexpr std::size_t kMostOutputs = 6;

double Log10(std::uint64_t count) { return std::log10(1 + static_cast<double>(count)); }

Html Histogram(const ErrorProfile& profile) {
  constexpr auto kBins = static_cast<double>(ErrorProfile::kBins);
  const std::uint64_t most = *std::ranges::max_element(profile.histogram);
  const double top = std::max(1.0, std::ceil(Log10(most) - 0.05));
  const auto y = [&](double log) { return kBottom - (kBottom - kTop) * std::min(log / top, 1.0); };
  const double step = (kRight - kLeft) / kBins;
  const auto x = [&](double bin) { return kLeft + step * bin; };
  Canvas canvas(kWidth, kHeight);
  const int every = top > 5 ? 2 : 1;
  for (int decade = 0; decade <= static_cast<int>(top); decade += every) {
    canvas.Line({kLeft, y(decade)}, {kRight, y(decade)}, "grid");
    const std::uint64_t count =
        decade == 0 ? 0 : static_cast<std::uint64_t>(std::pow(10.0, decade));
    canvas.Text({kLeft - 5, y(decade) + 4},
                count < 1'000'000 ? Count(count) : fmt::format("{} M", count / 1'000'000), "end");
  }
  // The bin of up to two allowances and those after it are beyond.
  constexpr std::size_t kFirstBeyond = 1 - ErrorProfile::kFirstOctave;
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < ErrorProfile::kBins; ++i) {
    const std::uint64_t count = profile.histogram[i];
    if (i >= kFirstBeyond) beyond += count;
    if (count == 0) continue;
    const double height = std::max(kBottom - y(Log10(count)), 1.5);
    const At corner{x(static_cast<double>(i)) + 0.75, kBottom - height};
    if (i >= kFirstBeyond) {
      canvas.Rect(corner, {step - 1.5, height}, "fill-bad");
    } else {
      canvas.Rect(corner, {step - 1.5, height}, "fill-info");
    }
  }
  canvas.Line({kLeft, kBottom}, {kRight, kBottom}, "axis");
  const double limit = x(static_cast<double>(kFirstBeyond));
  canvas.Line({limit, kTop - 6}, {limit, kBottom + 4}, "limit");
  canvas.Text({limit + 4, kTop - 3}, "allowance", "bad-text");
  struct Tick {
    double octave;
    const char* label;
  };
  constexpr Tick kTicks[] = {{-12, "0"}, {-8, "1/256"}, {-4, "1/16"}, {0, "1"},
                             {4, "16"},  {8, "256"},    {12, "more"}};
  for (const Tick& tick : kTicks)
    canvas.Text({x(1 + tick.octave + 12), kBottom + 16}, tick.label, "middle");
  canvas.Text({(kLeft + kRight) / 2, kBottom + 31}, "error, in allowances", "middle");
  const std::uint64_t all = std::max<std::uint64_t>(profile.elements(), 1);
  const std::string words =
      beyond == 0
          ? fmt::format("All {} elements compared, over all cases, are within their allowance.",
                        Count(all))
          : fmt::format(
                "{} of {} elements compared, over all cases, are beyond their allowance ({:.2g} "
                "%).",
                Count(beyond), Count(all),
                100.0 * static_cast<double>(beyond) / static_cast<double>(all));
  return E("figure", {}, canvas.Take("Errors in allowances", words),
           E("figcaption", {}, E("b", {}, "Errors of ", Head(profile.output, 60), ". "), words,
             " Heights are logarithmic."));
}

// The level of an error: 0 nearly none, 1 to 3 within the allowance, 4 to 6 beyond.
int LevelOf(double allowances) {
  constexpr double kLimits[] = {1.0 / 16, 1.0 / 4, 1.0 / 2, 1, 4, 64};
  return static_cast<int>(std::ranges::lower_bound(kLimits, allowances) - std::begin(kLimits));
}

Html HeatMap(const ErrorProfile& profile) {
  if (profile.map.empty() || profile.elements() == 0) return {};
  const double columns = static_cast<double>(profile.map_columns);
  const double rows = static_cast<double>(profile.map_rows);
  // Cells are square where that fills the place; few of them do not become bricks.
  const double width = std::min((kRight - kLeft) / columns, 40.0);
  const double height = std::min({(kBottom - kTop) / rows, 28.0, std::max(width, 8.0)});
  std::vector<At> levels[7];
  for (std::int64_t row = 0; row < profile.map_rows; ++row) {
    for (std::int64_t column = 0; column < profile.map_columns; ++column) {
      const double cell = profile.map[static_cast<std::size_t>(row * profile.map_columns + column)];
      levels[LevelOf(cell)].push_back(
          {kLeft + width * static_cast<double>(column), kTop + height * static_cast<double>(row)});
    }
  }
  const double right = kLeft + width * columns, bottom = kTop + height * rows;
  Canvas canvas(kWidth, bottom + 34);
  const double gap = std::min(width, height) > 6 ? 1 : 0.25;
  const Size tile{width - gap, height - gap};
  canvas.Tiles(levels[1], tile, "h1");
  canvas.Tiles(levels[2], tile, "h2");
  canvas.Tiles(levels[3], tile, "h3");
  canvas.Tiles(levels[4], tile, "h4");
  canvas.Tiles(levels[5], tile, "h5");
  canvas.Tiles(levels[6], tile, "h6");
  canvas.Rect({kLeft - 0.5, kTop - 0.5}, {right - kLeft + 1, bottom - kTop + 1}, "frame");
  canvas.Text({kLeft - 5, kTop + 9}, "0", "end");
  if (profile.rows > 1 && bottom - kTop > 22)
    canvas.Text({kLeft - 5, bottom}, Count(static_cast<std::uint64_t>(profile.rows - 1)), "end");
  canvas.Text({kLeft, bottom + 14}, "0", "label");
  if (profile.columns > 1)
    canvas.Text({right, bottom + 14}, Count(static_cast<std::uint64_t>(profile.columns - 1)),
                "end");
  if (right - kLeft > 90) canvas.Text({(kLeft + right) / 2, bottom + 14}, "column", "middle");
  const std::string words = fmt::format(
      "The worst case, {} by {}: largest error {} the allowance. ",
      Plural(static_cast<std::uint64_t>(profile.rows), "row"),
      Plural(static_cast<std::uint64_t>(profile.columns), "column"),
      profile.Worst() >= ErrorProfile::kBeyond ? "infinitely many times"
                                               : fmt::format("{:.3g} times", profile.Worst()));
  Html legend = E("span", {{"class", "legend"}},
                  E("span", {}, E("span", {{"class", "key info"}}, ""),
                    "within, stronger is nearer to the allowance"),
                  E("span", {}, E("span", {{"class", "key bad"}}, ""), "beyond"));
  return E("figure", {}, canvas.Take("Map of errors", words),
           E("figcaption", {}, E("b", {}, "Where in ", Head(profile.output, 60), ". "), words,
             E("span", {{"class", "soft"}}, Head(profile.where, 200)), legend));
}

Html Growth(const ErrorProfile& profile) {
  if (profile.growth.size() < 3) return {};
  double most = 2, largest = 1, least = 1;
  for (const GrowthPoint& point : profile.growth) {
    most = std::max(most, point.terms);
    for (const double value : {point.error, point.typical}) {
      if (value <= 0) continue;
      largest = std::max(largest, value);
      least = std::min(least, value);
    }
  }
  least = std::max(least, largest * 1e-6);
  const double octaves = std::ceil(std::log2(most) + 0.01);
  const double low = std::floor(std::log10(least)), high = std::ceil(std::log10(largest) + 0.01);
  const auto at = [&](double terms, double value) {
    const double log = std::log10(std::max(value, least));
    return At{kLeft + (kRight - kLeft) * (std::log2(std::max(terms, 2.0)) - 1) /
                          std::max(octaves - 1, 1.0),
              kBottom - (kBottom - kTop) * (log - low) / std::max(high - low, 1.0)};
  };
  Canvas canvas(kWidth, kHeight);
  for (double decade = low; decade <= high; ++decade) {
    const double y = at(2, std::pow(10.0, decade)).y;
    canvas.Line({kLeft, y}, {kRight, y}, "grid");
    const double value = std::pow(10.0, decade);
    canvas.Text({kLeft - 5, y + 4},
                decade >= 0 && decade < 6 ? Count(static_cast<std::uint64_t>(std::round(value)))
                                          : fmt::format("{:.0e}", value),
                "end");
  }
  const double step = std::max(1.0, std::ceil(octaves / 6));
  for (double octave = 1; octave <= octaves; octave += step) {
    const double x = at(std::exp2(octave), 1).x;
    canvas.Line({x, kBottom}, {x, kBottom + 4}, "axis");
    canvas.Text({x, kBottom + 16}, Count(static_cast<std::uint64_t>(std::exp2(octave))), "middle");
  }
  canvas.Line({kLeft, kBottom}, {kRight, kBottom}, "axis");
  canvas.Text({(kLeft + kRight) / 2, kBottom + 31}, "terms behind an element", "middle");
  std::vector<At> errors, typical;
  for (const GrowthPoint& point : profile.growth) {
    errors.push_back(at(point.terms, point.error));
    typical.push_back(at(point.terms, point.typical));
  }
  canvas.Polyline(typical, "reference");
  canvas.Polyline(errors, "curve");
  for (const At& point : errors) canvas.Circle(point, 3, "fill-info");
  const std::string words =
      "Root mean square error in roundings of a partial sum (points), and what honest arithmetic "
      "typically has (dashed).";
  return E("figure", {}, canvas.Take("Growth of errors", words),
           E("figcaption", {}, E("b", {}, "Growth in ", Head(profile.output, 60), ". "), words));
}

}  // namespace

Html ErrorPlots(const verdict::Verdict& verdict) {
  Html plots;
  std::size_t outputs = 0;
  for (const verdict::GateResult& gate : verdict.gates) {
    for (const ErrorProfile& profile : gate.errors) {
      if (profile.elements() == 0 || ++outputs > kMostOutputs) continue;
      plots +=
          E("div", {{"class", "plots"}}, Histogram(profile), HeatMap(profile), Growth(profile));
    }
  }
  if (outputs > kMostOutputs)
    plots += E("p", {{"class", "cut"}}, Plural(outputs - kMostOutputs, "more output"),
               " left out here.");
  return plots;
}

}  // namespace assay::report
