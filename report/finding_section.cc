#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/sections.h"
#include "report/source.h"
#include "report/words.h"
#include "validator/findings/render.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostText = 1200;
constexpr std::size_t kMostStatistics = 24;
constexpr double kLeastShare = 0.01;  // of the error, for a line to be marked

bool IsOfKernel(const SourceSite& site) {
  return site.line > 0 && (site.file.empty() || site.file.ends_with("kernel.cu"));
}

std::string NoteOf(const Access& access) {
  std::string note = access.what;
  if (access.threads > 0) {
    note += " by " + Describe(access.thread);
    if (access.threads > 1) note += fmt::format(" and {} more", Count(access.threads - 1));
  }
  if (!access.value.empty()) note += ": " + Head(access.value, 80);
  return note;
}

std::vector<Mark> MarksOf(const Finding& finding) {
  std::vector<Mark> marks;
  for (const Access& access : finding.accesses) {
    if (!IsOfKernel(access.site)) continue;
    marks.push_back({.line = access.site.line,
                     .kind = marks.empty() ? MarkKind::kGuilty : MarkKind::kOther,
                     .note = NoteOf(access)});
  }
  for (const ErrorShare& share : finding.origins) {
    if (!IsOfKernel(share.site) || share.share < kLeastShare) continue;
    marks.push_back({.line = share.site.line,
                     .kind = MarkKind::kOrigin,
                     .note = fmt::format("{:.0f} % of the error enters here", 100 * share.share)});
  }
  return marks;
}

std::string IndexText(const ElementPlace& element) {
  std::string text = element.output;
  if (element.index.empty()) return text;
  text += "[";
  for (std::size_t i = 0; i < element.index.size() && i < 8; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(element.index[i]);
  return text + "]";
}

void Fact(Html& list, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  list += E("dt", {}, name);
  list += E("dd", {}, Head(value, kMostText));
}

Html Facts(const Finding& finding) {
  Html list;
  if (finding.element) {
    const ElementPlace& element = *finding.element;
    const double error = std::fabs(element.got - element.expected);
    Fact(list, "element", IndexText(element));
    Fact(list, "computed", fmt::format("{:.9g}", element.got));
    Fact(list, "truth", fmt::format("{:.9g}", element.expected));
    if (std::isfinite(error) && element.allowance > 0) {
      Fact(list, "error",
           fmt::format("{:.3g}, which is {:.3g} times the allowance of {:.3g}", error,
                       error / element.allowance, element.allowance));
    }
  }
  if (finding.memory)
    Fact(list, "memory", Describe(*finding.memory) + " (" + finding.memory->space + ")");
  Fact(list, "likely cause", finding.cause);
  Fact(list, "where the error enters", finding.origin);
  return list.empty() ? list : E("dl", {{"class", "facts-list"}}, list);
}

Html Statistics(const Finding& finding) {
  if (finding.statistics.empty()) return {};
  Html rows;
  for (std::size_t i = 0; i < finding.statistics.size() && i < kMostStatistics; ++i) {
    const Statistic& statistic = finding.statistics[i];
    rows += E("tr", {}, E("td", {}, Spaced(Head(statistic.name, 80))),
              E("td", {{"class", "n"}}, Number(statistic.value)),
              E("td", {{"class", "n"}}, statistic.limit == 0 ? "" : Number(statistic.limit)),
              E("td", {}, Head(statistic.note, 240)));
  }
  return Folded(Html::Text("Statistics of this case"),
                E("div", {{"class", "scroll"}},
                  E("table", {}, HeadRow({"statistic", "#value", "#limit", "of what"}),
                    E("tbody", {}, rows))));
}

Html FindingPart(const Finding& finding, std::string_view kernel) {
  Html html = E("p", {{"class", "kind"}}, Spaced(Name(finding.kind)));
  html += E("h4", {},
            Head(finding.message.empty() ? MeaningOf(finding.kind) : finding.message, kMostText));
  const Html diagram = RaceDiagram(finding, kernel);
  Html text = Facts(finding);
  if (diagram.empty() && !finding.missing.empty())
    text += E("p", {{"class", "missing"}}, "Missing: ", Head(finding.missing, kMostText));
  const std::vector<Mark> marks = MarksOf(finding);
  const Html excerpt = Excerpt(kernel, marks, 3);
  text += excerpt;
  if (excerpt.empty()) {
    // The guilty place is in no line of the source: in a header, or in PTX without line information.
    for (const Access& access : finding.accesses) {
      text += E("p", {{"class", "small"}}, NoteOf(access), ": ",
                E("code", {},
                  Head(access.site.excerpt.empty() ? access.site.instruction : access.site.excerpt,
                       200)));
    }
  }
  text += Statistics(finding);
  html += E("div", {{"class", diagram.empty() ? "beside" : "beside drawn"}}, E("div", {}, text),
            diagram);
  return html;
}

// The surroundings in which the case fails, where they are not the plain ones.
std::string Surroundings(const verdict::Counterexample& counterexample) {
  if (!counterexample.probe) return {};
  const cases::Probe& probe = *counterexample.probe;
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (!probe.prelude.empty())
    add(fmt::format("after {}", Plural(probe.prelude.size(), "earlier call")));
  if (probe.reuse_addresses) add("at the addresses of the call before");
  if (probe.misalign > 0) add(fmt::format("buffers {} bytes off alignment", probe.misalign));
  if (probe.perturbation_seed != 0)
    add("approximate functions perturbed within their documented error");
  if (probe.ends_only) add("only some blocks of each launch run");
  return text;
}

}  // namespace

Html CounterexampleCard(const verdict::Counterexample& counterexample, std::string_view kernel,
                        std::string_view replay) {
  Html html;
  if (counterexample.findings.empty())
    html += E("h4", {}, "The counterexample holds no finding.");
  else
    html += FindingPart(counterexample.findings.front(), kernel);
  Html facts;
  Fact(facts, "smallest case found", counterexample.description);
  Fact(facts, "surroundings", Surroundings(counterexample));
  Fact(facts, "property", counterexample.property);
  facts += E("dt", {}, "run it again");
  facts += E("dd", {}, E("code", {}, Head(replay, 300)));
  html += E("dl", {{"class", "facts-list"}}, facts);
  if (counterexample.findings.size() > 1) {
    Html more;
    for (std::size_t i = 1; i < counterexample.findings.size() && i < 8; ++i)
      more += FindingPart(counterexample.findings[i], kernel);
    html += Folded(Html::Text(Plural(counterexample.findings.size() - 1, "more finding") +
                              " in the same case"),
                   more);
  }
  return E("article", {{"class", "card"}}, html);
}

}  // namespace assay::report
