#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/sections.h"
#include "report/svg.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostRows = 80;

// How long an axis was tried, of what the op allows; logarithmic, since extents are.
Html ReachBar(const verdict::AxisReach& axis) {
  const double domain = std::log2(static_cast<double>(std::max<std::int64_t>(axis.domain, 2)));
  const auto share = [&](std::int64_t extent) {
    return extent <= 0 ? 0
                       : std::clamp((std::log2(static_cast<double>(extent)) + 0.5) / (domain + 0.5),
                                    0.02, 1.0);
  };
  Canvas canvas(160, 10);
  canvas.Rect({0, 2}, {160, 6}, "fill-track");
  canvas.Rect({0, 2}, {160 * share(std::max(axis.at_ends, axis.in_slices)), 6}, "fill-info", 0.4);
  canvas.Rect({0, 2}, {160 * share(axis.whole), 6}, "fill-info");
  return canvas.Take(
      "Reach of an axis",
      fmt::format(
          "tried whole up to {}, in slices up to {}, at its ends up to {}, where it writes up to "
          "{}, of {}",
          axis.whole, axis.in_slices, axis.at_ends, axis.in_places, axis.domain));
}

std::string Extent(std::int64_t extent) {
  return extent > 0 ? Count(static_cast<std::uint64_t>(extent)) : "–";
}

Html AxesTable(const verdict::Ledger& ledger) {
  if (ledger.axes().empty()) return {};
  Html rows;
  for (const verdict::AxisReach& axis : ledger.axes()) {
    rows +=
        E("tr", {}, E("td", {}, Head(axis.axis, 80)), E("td", {{"class", "n"}}, Extent(axis.whole)),
          E("td", {{"class", "n"}}, Extent(axis.in_slices)),
          E("td", {{"class", "n"}}, Extent(axis.at_ends)),
          E("td", {{"class", "n"}}, Extent(axis.in_places)),
          E("td", {{"class", "n"}}, Extent(axis.domain)), E("td", {}, ReachBar(axis)));
  }
  Html html = E("h3", {}, "How far along each axis");
  html += E("div", {{"class", "scroll"}},
            E("table", {},
              HeadRow({"axis", "#whole", "#in slices", "#at its ends", "#where it writes",
                       "#allowed", ""}),
              E("tbody", {}, rows)));
  html += E(
      "p", {{"class", "small soft"}},
      "Longest extent of a case that ran whole; of one of which some blocks ran; of one of which "
      "only the first and last blocks ran; of one of which it was seen where it is written to, not "
      "what; and that the op allows. Bars are logarithmic.");
  return html;
}

Html LaunchesTable(const verdict::Ledger& ledger) {
  if (ledger.launches().empty()) return {};
  Html rows;
  for (const verdict::LaunchReach& launch : ledger.launches()) {
    rows += E("tr", {}, E("td", {}, Head(launch.entry, 120)),
              E("td", {{"class", "n"}}, Count(launch.whole)),
              E("td", {{"class", "n"}}, launch.all > 0 ? Count(launch.run) : "–"),
              E("td", {{"class", "n"}}, launch.all > 0 ? Count(launch.all) : "–"));
  }
  Html html = E("h3", {}, "How many blocks");
  html +=
      E("div", {{"class", "scroll"}},
        E("table", {}, HeadRow({"kernel", "#largest launch run whole", "#run in a slice", "#of"}),
          E("tbody", {}, rows)));
  return html;
}

Html WavesTable(const verdict::Ledger& ledger) {
  Html rows;
  std::size_t shown = 0;
  for (const verdict::LedgerRow& row : ledger.rows()) {
    if (++shown > kMostRows) break;
    Html left;
    for (const verdict::LeftOut& out : row.left_out) {
      Html line = Html::Text(Count(out.count) + " · " + Head(out.reason, 240));
      if (!out.example.empty())
        line += E("span", {{"class", "soft"}}, ", e.g. ", Head(out.example, 160));
      left += E("div", {}, line);
    }
    if (left.empty()) left = E("span", {{"class", "soft"}}, "nothing");
    rows +=
        E("tr", {}, E("td", {}, Head(row.wave, 120)), E("td", {{"class", "n"}}, Count(row.planned)),
          E("td", {{"class", "n"}}, Count(row.examined)), E("td", {}, left));
  }
  Html html = E("div", {{"class", "scroll"}},
                E("table", {}, HeadRow({"wave", "#planned", "#examined", "left out, and why"}),
                  E("tbody", {}, rows)));
  if (ledger.rows().size() > kMostRows) {
    html += E("p", {{"class", "cut"}},
              fmt::format("{} more waves are left out here.", ledger.rows().size() - kMostRows));
  }
  return html;
}

}  // namespace

Html LedgerSection(const AttemptView& attempt) {
  if (!attempt.verdict || attempt.verdict->ledger.planned() == 0) return {};
  const verdict::Ledger& ledger = attempt.verdict->ledger;
  Html html = E("h2", {{"id", "tried"}}, "What was tried, and what was not");
  html +=
      E("p", {},
        fmt::format("Attempt {}: {} cases were planned, {} examined, {} left out.", attempt.number,
                    Count(ledger.planned()), Count(ledger.examined()), Count(ledger.left_out())),
        ledger.Balanced() ? "" : " The ledger does not balance, so this proves nothing.");
  html += WavesTable(ledger);
  html += AxesTable(ledger);
  html += LaunchesTable(ledger);
  return E("section", {}, html);
}

}  // namespace assay::report
