// The page of a batch: what came of each instance at each gate, progress, spend, drift.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/page.h"
#include "report/sections.h"
#include "report/style.h"
#include "report/svg.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostRows = 1000;
constexpr std::size_t kMostGates = 24;

Html Summary(const BatchView& batch) {
  const std::uint64_t accepted = batch.CountOf("accepted"), all = batch.rows.size();
  const bool recheck = batch.kind == "recheck";
  const auto drifted =
      static_cast<std::uint64_t>(std::ranges::count(batch.drift, true, &DriftView::drifted));
  Html html = E("p", {{"class", "eyebrow"}}, "Assay report · batch ", Head(batch.name, 120));
  html += E("h1", {},
            recheck ? fmt::format("{} judged again", Plural(batch.drift.size(), "kernel"))
                    : fmt::format("{} of {} accepted", Count(accepted), Plural(all, "instance")));
  html += E("p", {{"class", "soft"}},
            batch.executor.empty() ? "" : Head(batch.executor, 60) + " · ", Moment(batch.began));
  const bool good = recheck ? drifted == 0 : accepted == all;
  Html panel = E("strong", {},
                 !batch.stopped.empty() ? "stopped before its end"
                 : recheck              ? (good ? "no verdict changed" : "verdicts changed")
                           : (good ? "every instance accepted" : "not every instance accepted"));
  if (!batch.stopped.empty()) panel += E("p", {}, Head(batch.stopped, 600));
  if (recheck) {
    panel += E("p", {},
               fmt::format("{} of {} verdicts are others than before.", Count(drifted),
                           Count(batch.drift.size())));
  } else {
    panel += E("p", {},
               fmt::format("{} accepted, {} refuted, {} inconclusive, {} failed, {} waiting.",
                           Count(accepted), Count(batch.CountOf("refuted")),
                           Count(batch.CountOf("inconclusive")), Count(batch.CountOf("failed")),
                           Count(batch.CountOf("waiting"))));
  }
  const bool bad = recheck ? !good : batch.CountOf("refuted") + batch.CountOf("failed") > 0;
  html += E("section",
            {{"class", good && batch.stopped.empty() ? "verdict accepted"
                       : bad                         ? "verdict refuted"
                                                     : "verdict inconclusive"}},
            panel);
  std::uint64_t attempts = 0, read = 0, written = 0, up_to_date = 0;
  double usd = 0;
  bool priced = false;
  for (const BatchRow& row : batch.rows) {
    attempts += row.attempts;
    read += row.read;
    written += row.written;
    up_to_date += row.up_to_date;
    usd += row.usd.value_or(0);
    priced = priced || row.usd.has_value();
  }
  Html figures =
      Figure("instances", Count(all), up_to_date > 0 ? Count(up_to_date) + " up to date" : "");
  figures += Figure("attempts", Count(attempts));
  figures += Figure("time", Duration(batch.seconds));
  figures += Figure("tokens", Count(read + written), Count(written) + " out");
  if (priced) figures += Figure("cost", Dollars(usd), "list price");
  html += E("dl", {{"class", "figures"}}, figures);
  return html;
}

Html GateCell(const BatchRow& row, const std::string& gate) {
  const auto found =
      std::ranges::find(row.gates, gate, &std::pair<std::string, std::string>::first);
  if (found == row.gates.end()) return E("td", {}, "");
  const std::string& status = found->second;
  const char* const mark = status == "passed"         ? "✓"
                           : status == "refuted"      ? "✕"
                           : status == "inconclusive" ? "?"
                                                      : "–";
  return E("td",
           {{"class", "cell " + std::string(ToneOf(status).text)},
            {"title", gate + ": " + Head(status, 40)}},
           mark);
}

Html Matrix(const BatchView& batch, Ration& ration) {
  std::vector<std::string> gates;
  for (const BatchRow& row : batch.rows) {
    for (const auto& [gate, status] : row.gates) {
      if (gates.size() < kMostGates && std::ranges::find(gates, gate) == gates.end())
        gates.push_back(gate);
    }
  }
  Html head = E("th", {{"scope", "col"}}, "instance");
  head += E("th", {{"scope", "col"}}, "outcome");
  head += E("th", {{"scope", "col"}, {"class", "n"}}, "attempts");
  for (const std::string& gate : gates)
    head += E("th", {{"scope", "col"}, {"class", "gate"}}, Head(gate, 24));
  Html rows, reasons;
  std::size_t shown = 0;
  for (const BatchRow& row : batch.rows) {
    if (++shown > kMostRows) break;
    const std::string sister = row.sister.empty() ? "" : "began from " + Head(row.sister, 120);
    Html cells = E("th", {{"scope", "row"}, {"title", sister}}, Head(row.instance, 120));
    cells += E("td", {}, StateTag(Head(row.outcome, 24)), row.up_to_date ? " up to date" : "");
    cells += E("td", {{"class", "n"}}, Count(row.attempts));
    for (const std::string& gate : gates) cells += GateCell(row, gate);
    rows += E("tr", {}, cells);
    if (row.outcome == "accepted" || row.reason.empty()) continue;
    reasons += E("tr", {}, E("td", {}, Head(row.instance, 120)),
                 E("td", {}, StateTag(Head(row.outcome, 24))), E("td", {}, Head(row.reason, 300)));
  }
  Html html = E("h2", {{"id", "gates"}}, "Instances and gates");
  html += ration.Take(
      E("div", {{"class", "scroll"}},
        E("table", {{"class", "matrix"}}, E("thead", {}, E("tr", {}, head)), E("tbody", {}, rows))),
      "The table is");
  if (batch.rows.size() > kMostRows) {
    html += E("p", {{"class", "cut"}}, Plural(batch.rows.size() - kMostRows, "more instance"),
              " left out here.");
  }
  if (!reasons.empty()) {
    html += E("h3", {}, "Those that were not accepted, and why");
    html += ration.Take(
        E("div", {{"class", "scroll"}},
          E("table", {}, HeadRow({"instance", "outcome", "reason"}), E("tbody", {}, reasons))),
        "The table is");
  }
  return E("section", {}, html);
}

// Instances that had ended, over time; accepted ones apart.
Html Progress(const BatchView& batch) {
  constexpr double kWidth = 340, kLeft = 34, kRight = 332, kTop = 12, kBottom = 150;
  std::vector<std::pair<double, bool>> ends;
  for (const BatchRow& row : batch.rows) {
    if (row.ended) ends.emplace_back(*row.ended, row.outcome == "accepted");
  }
  if (ends.size() < 2) return {};
  std::ranges::sort(ends);
  const double last = std::max(ends.back().first, 1e-3);
  const auto all = static_cast<double>(ends.size());
  const auto at = [&](double seconds, double count) {
    return At{kLeft + (kRight - kLeft) * seconds / last, kBottom - (kBottom - kTop) * count / all};
  };
  std::vector<At> ended = {at(0, 0)}, accepted = {at(0, 0)};
  double count = 0, good = 0;
  // Some hundred points draw as well as thousands.
  const std::size_t every = ends.size() / 300 + 1;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const bool drawn = i % every == 0 || i + 1 == ends.size();
    if (drawn) {
      ended.push_back(at(ends[i].first, count));
      accepted.push_back(at(ends[i].first, good));
    }
    count += 1;
    good += ends[i].second ? 1 : 0;
    if (drawn) {
      ended.push_back(at(ends[i].first, count));
      accepted.push_back(at(ends[i].first, good));
    }
  }
  Canvas canvas(kWidth, 186);
  for (const double share : {0.0, 0.5, 1.0}) {
    const double y = at(0, all * share).y;
    canvas.Line({kLeft, y}, {kRight, y}, "grid");
    canvas.Text({kLeft - 5, y + 4}, Count(static_cast<std::uint64_t>(all * share)), "end");
  }
  canvas.Polyline(ended, "reference");
  canvas.Polyline(accepted, "curve");
  canvas.Line({kLeft, kBottom}, {kRight, kBottom}, "axis");
  canvas.Text({kLeft, kBottom + 16}, "0", "label");
  canvas.Text({kRight, kBottom + 16}, Duration(last), "end");
  canvas.Text({(kLeft + kRight) / 2, kBottom + 30}, "since the batch began", "middle");
  const std::string words =
      fmt::format("{} ended in {}, {} of them accepted.", Plural(ends.size(), "instance"),
                  Duration(last), Count(static_cast<std::uint64_t>(good)));
  return E("section", {}, E("h2", {{"id", "progress"}}, "Progress"),
           E("figure", {}, canvas.Take("Progress of the batch", words),
             E("figcaption", {}, words, " Line: accepted. Dashed: ended.")));
}

Html Spend(const BatchView& batch, Ration& ration) {
  std::vector<const BatchRow*> rows;
  for (const BatchRow& row : batch.rows) {
    if (row.seconds > 0 || row.read + row.written > 0) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  const bool priced =
      std::ranges::any_of(rows, [](const BatchRow* row) { return row->usd && *row->usd > 0; });
  const auto spent = [priced](const BatchRow& row) {
    return priced ? row.usd.value_or(0) : static_cast<double>(row.read + row.written);
  };
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [&](const BatchRow* row) { return spent(*row); });
  const double most = std::max(spent(*rows.front()), 1e-9);
  Html lines;
  for (std::size_t i = 0; i < rows.size() && i < kMostRows; ++i) {
    const BatchRow& row = *rows[i];
    Canvas canvas(200, 10);
    canvas.Rect({0, 1}, {200, 8}, "fill-track");
    canvas.Rect({0, 1}, {200 * spent(row) / most, 8}, "fill-info");
    lines +=
        E("tr", {}, E("td", {}, Head(row.instance, 120)),
          E("td", {{"class", "n"}}, Count(row.read)), E("td", {{"class", "n"}}, Count(row.written)),
          E("td", {{"class", "n"}}, row.usd ? Dollars(*row.usd) : "–"),
          E("td", {{"class", "n"}}, Duration(row.seconds)),
          E("td", {}, canvas.Take("Share of an instance", priced ? "of dollars" : "of tokens")));
  }
  return E("section", {}, E("h2", {{"id", "spend"}}, "Spend"),
           ration.Take(
               E("div", {{"class", "scroll"}},
                 E("table", {}, HeadRow({"instance", "#read", "#written", "#dollars", "#time", ""}),
                   E("tbody", {}, lines))),
               "The table is"));
}

Html Drift(const BatchView& batch, Ration& ration) {
  if (batch.drift.empty()) return {};
  Html rows;
  for (const bool drifted : {true, false}) {
    std::size_t shown = 0;
    for (const DriftView& drift : batch.drift) {
      if (drift.drifted != drifted || ++shown > kMostRows) continue;
      Html causes;
      for (std::size_t i = 0; i < drift.changed.size() && i < 12; ++i)
        causes += E("div", {}, Head(drift.changed[i], 120));
      if (causes.empty()) causes = Html::Text("nothing changed");
      Html after = StateTag(drift.after.empty() ? "not judged" : Head(drift.after, 24));
      if (!drift.gate.empty())
        after +=
            E("div", {{"class", "small soft"}}, Head(drift.gate + " " + Spaced(drift.finding), 80));
      if (!drift.reason.empty() && drifted)
        after += E("div", {{"class", "small soft"}}, Head(drift.reason, 200));
      rows +=
          E("tr", {}, E("td", {}, Head(drift.instance, 120)),
            E("td", {}, StateTag(Head(drift.before, 24))), E("td", {}, after), E("td", {}, causes));
    }
  }
  return E(
      "section", {}, E("h2", {{"id", "drift"}}, "Drift"),
      E("p", {},
        "Kernels that were accepted once, judged again under today's judge; those whose verdict "
        "changed come first."),
      ration.Take(E("div", {{"class", "scroll"}},
                    E("table", {}, HeadRow({"instance", "before", "today", "what is different"}),
                      E("tbody", {}, rows))),
                  "The table is"));
}

}  // namespace

std::string BatchPage(const BatchView& batch) {
  Ration ration(kRationBytes);
  Html sections = Drift(batch, ration);
  if (!batch.rows.empty()) sections += Matrix(batch, ration);
  sections += Progress(batch);
  sections += Spend(batch, ration);
  return Whole("Assay: batch " + Head(batch.name, 80), Summary(batch),
               {{"drift", "Drift"},
                {"gates", "Instances and gates"},
                {"progress", "Progress"},
                {"spend", "Spend"}},
               sections);
}

}  // namespace assay::report
